package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// agency is the state of the domain travel.
type agency struct {
	Trips    map[string]*trip     `json:"trips"`
	Bookings map[string]*booking  `json:"bookings"`
	Fresh    workbench.FreshNames `json:"fresh"`
}

type trip struct {
	City   string `json:"city"`
	Day    string `json:"day"`
	Status string `json:"status"`
	Price  int    `json:"price"`
}

type booking struct {
	Traveller string `json:"traveller"`
	Status    string `json:"status"`
	Class     string `json:"class"`
	City      string `json:"city"`
	Price     int    `json:"price"`
}

var (
	classes      = []string{"window", "middle", "corner", "front"}
	bookingStops = []string{"fixed", "used", "past"}
	tripStops    = []string{"full", "late", "over"}
)

func travel() workbench.Domain {
	name := workbench.Text("booking")
	return workbench.Domain{
		Name:  "travel",
		About: "you help with trips and bookings. only open bookings can be cancelled or changed, only free trips can be booked.",
		Tools: []workbench.Tool{
			{Name: "find_bookings", About: "list the bookings of a traveller", Params: []workbench.Param{workbench.Text("traveller")}, Do: workbench.On(findBookings)},
			{Name: "get_booking", About: "show a booking", Params: []workbench.Param{name}, Do: workbench.On(getBooking)},
			{Name: "find_trips", About: "list the trips to a city", Params: []workbench.Param{workbench.Choice("city", cities)}, Do: workbench.On(findTrips)},
			{Name: "get_trip", About: "show a trip", Params: []workbench.Param{workbench.Text("trip")}, Do: workbench.On(getTrip)},
			{Name: "book_trip", About: "book a trip that is free", Params: []workbench.Param{workbench.Text("trip"), workbench.Text("traveller")},
				Write: true, Do: workbench.On(bookTrip)},
			{Name: "set_class", About: "change the class of an open booking", Params: []workbench.Param{name, workbench.Choice("class", classes)},
				Write: true, Do: workbench.On(setClass)},
			{Name: "cancel_booking", About: "cancel an open booking", Params: []workbench.Param{name}, Write: true, Do: workbench.On(cancelBooking)},
		},
		New: newAgency,
		Kinds: append(bookingNoun().Kinds(),
			workbench.Kind{Name: "trip", Weight: 2, Make: workbench.For(travelTrip)},
			workbench.Kind{Name: "act", Weight: 6, Make: workbench.For(travelAct)},
			workbench.Kind{Name: "book", Weight: 12, Make: workbench.For(travelBook)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(travelLimit)},
			workbench.Kind{Name: "city", Weight: 11, Make: workbench.For(travelCity)},
			workbench.Kind{Name: "swap", Weight: 9, Make: workbench.For(travelSwap)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(travelTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(travelBeyond)}),
	}
}

func bookingNoun() workbench.Noun {
	return workbench.Noun{
		One: "booking", Owner: "traveller", Shows: []string{"status", "price", "class", "city"},
		Status: "open", Others: bookingStops, Verb: "cancel", End: unbookPlan,
		Number: "price", Less: "cheaper", Least: "cheapest", Most: "dearest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, price int, status string) string {
			return s.(*agency).add(r, owner, price, status)
		},
	}
}

func newAgency(r *workbench.Rand) workbench.State {
	s := &agency{map[string]*trip{}, map[string]*booking{}, r.Fresh()}
	for range 2 {
		s.any(r)
	}
	s.trip(r, r.One(cities...), 0)
	return s
}

// add makes a booking and returns its name. A price of 0 is drawn, and so is a status
// of "".
func (s *agency) add(r *workbench.Rand, traveller string, price int, status string) string {
	name := r.Name()
	if price == 0 {
		price = r.Int(5, 95)
	}
	if status == "" {
		status = usually(r, "open", bookingStops)
	}
	s.Bookings[name] = &booking{traveller, status, r.One(classes...), r.One(cities...), price}
	return name
}

func (s *agency) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0, "") }

// trip adds a trip and returns its name. If price is 0, it is drawn.
func (s *agency) trip(r *workbench.Rand, city string, price int) string {
	name := r.Name()
	if price == 0 {
		price = r.Int(5, 95)
	}
	s.Trips[name] = &trip{city, r.One(days...), usually(r, "free", tripStops), price}
	return name
}

// unserved draws a city that no trip goes to yet.
func (s *agency) unserved(r *workbench.Rand) string {
	taken := map[string]bool{}
	for _, t := range s.Trips {
		taken[t.City] = true
	}
	for {
		if city := r.One(cities...); !taken[city] {
			return city
		}
	}
}

func (s *agency) booking(name string) (*booking, error) {
	if b, ok := s.Bookings[name]; ok {
		return b, nil
	}
	return nil, workbench.NotFound("booking", name, s.Bookings, "find_bookings")
}

// open returns a booking that may be changed.
func (s *agency) open(name string) (*booking, error) {
	b, err := s.booking(name)
	if err == nil && b.Status != "open" {
		return nil, workbench.Refuse("status", b.Status, "booking is not open")
	}
	return b, err
}

func findBookings(s *agency, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Bookings)) {
		if b := s.Bookings[name]; b.Traveller == a.Text("traveller") {
			list = append(list, workbench.Fields{"booking": name, "price": b.Price})
		}
	}
	return workbench.Fields{"bookings": list}, nil
}

func getBooking(s *agency, a workbench.Args) (any, error) {
	b, err := s.booking(a.Text("booking"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": b.Status, "price": b.Price, "class": b.Class, "city": b.City}, nil
}

func findTrips(s *agency, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Trips)) {
		if t := s.Trips[name]; t.City == a.Text("city") {
			list = append(list, workbench.Fields{"trip": name, "price": t.Price})
		}
	}
	return workbench.Fields{"trips": list}, nil
}

func getTrip(s *agency, a workbench.Args) (any, error) {
	t, ok := s.Trips[a.Text("trip")]
	if !ok {
		return nil, workbench.NotFound("trip", a.Text("trip"), s.Trips, "find_trips")
	}
	return workbench.Fields{"status": t.Status, "price": t.Price, "day": t.Day, "city": t.City}, nil
}

func bookTrip(s *agency, a workbench.Args) (any, error) {
	t, ok := s.Trips[a.Text("trip")]
	if !ok {
		return nil, workbench.NotFound("trip", a.Text("trip"), s.Trips, "find_trips")
	}
	if t.Status != "free" {
		return nil, workbench.Refuse("status", t.Status, "trip is not free")
	}
	name, class := s.Fresh.Next(), classes[t.Price%len(classes)]
	s.Bookings[name] = &booking{a.Text("traveller"), "open", class, t.City, t.Price}
	return workbench.Fields{"booking": name, "class": class}, nil
}

func setClass(s *agency, a workbench.Args) (any, error) {
	b, err := s.open(a.Text("booking"))
	if err != nil {
		return nil, err
	}
	b.Class = a.Text("class")
	return workbench.Fields{"class": b.Class, "fee": 2 + b.Price%7}, nil
}

func cancelBooking(s *agency, a workbench.Args) (any, error) {
	b, err := s.open(a.Text("booking"))
	if err != nil {
		return nil, err
	}
	b.Status = "cancelled"
	return workbench.Fields{"status": b.Status, "refund": b.Price}, nil
}

// Plans.

func unbookPlan(name any) *workbench.Plan {
	return workbench.Do("cancel", "cancel_booking", workbench.Values{"booking": name},
		workbench.Say("done, %v is cancelled, the refund is %v.", name, workbench.From("cancel.refund")))
}

func classPlan(name any, class string) *workbench.Plan {
	return workbench.Do("class", "set_class", workbench.Values{"booking": name, "class": class},
		workbench.Say("done, %v has the class %v, the fee is %v.", name, class, workbench.From("class.fee")))
}

func bookPlan(trip any, traveller string) *workbench.Plan {
	return workbench.Do("book", "book_trip", workbench.Values{"trip": trip, "traveller": traveller},
		workbench.Say("done, the booking is %v, the class is %v.", workbench.From("book.booking"), workbench.From("book.class")))
}

func lookTrip(trip any, next *workbench.Plan) *workbench.Plan {
	return workbench.Do("trip", "get_trip", workbench.Values{"trip": trip}, next)
}

// ifPlace continues with yes if the trip just looked at is free.
func ifPlace(trip any, yes *workbench.Plan) *workbench.Plan {
	return workbench.OnlyIf(workbench.From("trip.status").Is("free"), yes, trip, workbench.From("trip.status"))
}

// Kinds.

// travelTrip: a question about a trip.
func travelTrip(r *workbench.Rand, s *agency) workbench.Turn {
	name, key, n := s.trip(r, r.One(cities...), 0), r.One("status", "price", "day", "city"), r.Int(20, 80)
	slots := workbench.Values{"trip": name, "key": key, "n": n}
	if r.Chance(0.3) {
		return workbench.Turn{
			User: r.Phrase(slots, "is trip {trip} cheaper than {n}?", "can i have trip {trip} for less than {n}?",
				"tell me if trip {trip} costs less than {n}."),
			Plan: lookTrip(name, workbench.YesNo(workbench.From("trip.price").Below(n), "price", name, workbench.From("trip.price"))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "what is the {key} of trip {trip}?", "i may go on trip {trip}. which {key} does it have?",
			"tell me the {key} of trip {trip}, please."),
		Plan: lookTrip(name, workbench.Tell(key, name, workbench.From("trip."+key))),
	}
}

// travelAct: one change, if the booking is open.
func travelAct(r *workbench.Rand, s *agency) workbench.Turn {
	name := s.any(r)
	class := r.Other(s.Bookings[name].Class, classes)
	slots := workbench.Values{"booking": name, "class": class}
	if r.Chance(0.4) {
		return workbench.Turn{
			User: r.Phrase(slots, "i am ill, cancel {booking}.", "i cannot go, so cancel {booking}. what is the refund?",
				"please cancel booking {booking} and tell me the refund."),
			Plan: bookingNoun().If(name, "open", unbookPlan(name)),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "change the class of {booking} to {class}.", "give {booking} the class {class}, please. what is the fee?",
			"please change the class of booking {booking} to {class}."),
		Plan: bookingNoun().If(name, "open", classPlan(name, class)),
	}
}

// travelBook: book a trip that may be full, with a second choice.
func travelBook(r *workbench.Rand, s *agency) workbench.Turn {
	a, b, traveller := s.trip(r, r.One(cities...), 0), s.trip(r, r.One(cities...), 0), r.Person()
	s.Trips[a].Status = r.One("free", r.One(tripStops...))
	second := workbench.Do("second", "get_trip", workbench.Values{"trip": b},
		workbench.OnlyIf(workbench.From("second.status").Is("free"), bookPlan(b, traveller).As("other"), b, workbench.From("second.status")))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"trip": a, "traveller": traveller, "b": b},
			"book trip {trip} for {traveller}, or if it is not free, trip {b}.",
			"{traveller} wants to go on trip {trip}, else on trip {b}.",
			"if trip {trip} is free, book it for {traveller}, otherwise book {b}.",
			"please book trip {trip} for {traveller}, else trip {b}."),
		Plan: lookTrip(a, workbench.If(workbench.From("trip.status").Is("free"), bookPlan(a, traveller), second)),
	}
}

// travelLimit: what to do depends on the price of a trip or a booking.
func travelLimit(r *workbench.Rand, s *agency) workbench.Turn {
	n := r.Int(20, 80)
	if r.Chance(0.5) {
		name, traveller := s.trip(r, r.One(cities...), r.Side(n, 0.5)), r.Person()
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"trip": name, "traveller": traveller, "n": n},
				"book trip {trip} for {traveller} if it costs less than {n}, otherwise tell me its price.",
				"if the price of trip {trip} is less than {n}, book it for {traveller}, else say the price.",
				"does trip {trip} cost less than {n}? then book it for {traveller}, if not, tell me the price."),
			Plan: lookTrip(name, ifPlace(name, workbench.If(workbench.From("trip.price").Below(n), bookPlan(name, traveller),
				workbench.Tell("price", name, workbench.From("trip.price"))))),
		}
	}
	name := s.add(r, r.Person(), r.Side(n, 0.5), "")
	class := r.Other(s.Bookings[name].Class, classes)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"booking": name, "class": class, "n": n},
			"if booking {booking} costs less than {n}, change its class to {class}, otherwise cancel it.",
			"give {booking} the class {class} if its price is less than {n}, else cancel it.",
			"is the price of {booking} less than {n}? then change its class to {class}, if not, cancel it."),
		Plan: bookingNoun().If(name, "open", workbench.If(workbench.From("seen.price").Below(n), classPlan(name, class), unbookPlan(name))),
	}
}

// travelCity: ask about or book a trip that must be found by its city.
func travelCity(r *workbench.Rand, s *agency) workbench.Turn {
	city, traveller := s.unserved(r), r.Person()
	which, list := "cheapest", workbench.From("found.trips").Least("price")
	if r.Chance(0.3) {
		which, list = "dearest", workbench.From("found.trips").Most("price")
	}
	if r.Chance(0.65) {
		for _, price := range r.Ints(r.Int(2, 3), 5, 95) {
			s.trip(r, city, price)
		}
	}
	name, slots := list.At("trip"), workbench.Values{"city": city, "traveller": traveller, "which": which}
	found := func(next *workbench.Plan) *workbench.Plan {
		return workbench.Do("found", "find_trips", workbench.Values{"city": city},
			workbench.If(workbench.From("found.trips").Empty(), workbench.Sorry("%v has no trip.", city), next))
	}
	if r.Chance(0.2) {
		return workbench.Turn{
			User: r.Phrase(slots, "on which day is the {which} trip to {city}?", "i want to go to {city} on the {which} trip. what is the day?",
				"tell me the day of the {which} trip to {city}."),
			Plan: found(lookTrip(name, workbench.Tell("day", name, workbench.From("trip.day")))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "book the {which} trip to {city} for {traveller}.", "{traveller} wants to go to {city} on the {which} trip.",
			"find the {which} trip to {city} and book it for {traveller}."),
		Plan: found(lookTrip(name, ifPlace(name, bookPlan(name, traveller)))),
	}
}

// travelSwap: cancel one booking and make another, unless the new trip is full.
func travelSwap(r *workbench.Rand, s *agency) workbench.Turn {
	traveller := r.Person()
	old, next := s.add(r, traveller, 0, ""), s.trip(r, r.One(cities...), 0)
	swap := workbench.Do("cancel", "cancel_booking", workbench.Values{"booking": old}, bookPlan(next, traveller))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"booking": old, "trip": next, "traveller": traveller},
			"cancel {booking} and book trip {trip} for {traveller} instead.",
			"{traveller} wants trip {trip} instead of booking {booking}.",
			"please cancel booking {booking} and book trip {trip} for {traveller}."),
		Plan: bookingNoun().If(old, "open", lookTrip(next, ifPlace(next, swap))),
	}
}

// travelTry: the user says "try to", so there is no look first; the tool may refuse,
// and then something else is tried.
func travelTry(r *workbench.Rand, s *agency) workbench.Turn {
	if r.Chance(0.5) {
		a, b := s.add(r, r.Person(), 0, r.One("open", r.One(bookingStops...))), s.any(r)
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"a": a, "b": b}, "try to cancel {a} at once, or if that fails, {b}.",
				"try to cancel booking {a}, else booking {b}. what is the refund?",
				"please try to cancel booking {a}, or if that fails, booking {b}."),
			Plan: unbookPlan(a).OnError(workbench.Attempt(unbookPlan(b).As("other"), b, "status")),
		}
	}
	a, b, traveller := s.trip(r, r.One(cities...), 0), s.trip(r, r.One(cities...), 0), r.Person()
	s.Trips[a].Status = r.One("free", r.One(tripStops...))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"a": a, "b": b, "traveller": traveller}, "try to book {a} for {traveller}, or if that fails, {b}.",
			"try to book trip {a} for {traveller}, else trip {b}.", "please try to book trip {a} for {traveller}, or if that fails, trip {b}."),
		Plan: bookPlan(a, traveller).OnError(workbench.Attempt(bookPlan(b, traveller).As("other"), b, "status")),
	}
}

// travelBeyond: no tool can do it.
func travelBeyond(r *workbench.Rand, s *agency) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"booking": s.any(r), "city": r.One(cities...)},
			"print a ticket for booking {booking}.", "what is the weather in {city}?", "find a hotel in {city}, please.",
			"carry my bags for {booking}.", "please write a guide to {city}."),
		Plan: workbench.Beyond(),
	}
}
