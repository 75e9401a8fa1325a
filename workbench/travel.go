package workbench

// agency is the state of the domain travel.
type agency struct {
	Trips    map[string]*trip    `json:"trips"`
	Bookings map[string]*booking `json:"bookings"`
	Fresh    FreshNames          `json:"fresh"`
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

var classes = []string{"window", "middle", "corner", "front"}

func travel() Domain {
	name := Text("booking")
	return Domain{
		Name:  "travel",
		About: "you help with trips and bookings. fixed bookings cannot be cancelled or changed, full trips cannot be booked.",
		Tools: []Tool{
			{Name: "find_bookings", About: "list the bookings of a traveller", Params: []Param{Text("traveller")}, Do: On(findBookings)},
			{Name: "get_booking", About: "show a booking", Params: []Param{name}, Do: On(getBooking)},
			{Name: "find_trips", About: "list the trips to a city", Params: []Param{Choice("city", cities)}, Do: On(findTrips)},
			{Name: "get_trip", About: "show a trip", Params: []Param{Text("trip")}, Do: On(getTrip)},
			{Name: "book_trip", About: "book a trip that is free", Params: []Param{Text("trip"), Text("traveller")}, Write: true, Do: On(bookTrip)},
			{Name: "set_class", About: "change the class of an open booking", Params: []Param{name, Choice("class", classes)}, Write: true, Do: On(setClass)},
			{Name: "cancel_booking", About: "cancel an open booking", Params: []Param{name}, Write: true, Do: On(cancelBooking)},
		},
		New: newAgency,
		Kinds: append(bookingNoun().Kinds(),
			Kind{"trip", 7, For(travelTrip)},
			Kind{"act", 12, For(travelAct)},
			Kind{"book", 12, For(travelBook)},
			Kind{"limit", 10, For(travelLimit)},
			Kind{"city", 10, For(travelCity)},
			Kind{"swap", 7, For(travelSwap)},
			Kind{"try", 9, For(travelTry)},
			Kind{"beyond", 5, For(travelBeyond)}),
	}
}

func bookingNoun() Noun {
	return Noun{
		One: "booking", Owner: "traveller", Shows: []string{"status", "price", "class", "city"},
		Status: "open", Verb: "cancel", End: unbookPlan,
		Number: "price", Less: "cheaper", Least: "cheapest", Most: "dearest",
		Add: func(r *Rand, s State, owner string, price int) string {
			return s.(*agency).add(r, owner, price)
		},
	}
}

func newAgency(r *Rand) State {
	s := &agency{map[string]*trip{}, map[string]*booking{}, r.Fresh()}
	for range 2 {
		s.any(r)
	}
	s.trip(r, r.One(cities...), 0)
	return s
}

// add makes a booking; a price of 0 is drawn.
func (s *agency) add(r *Rand, traveller string, price int) string {
	name := r.Name()
	if price == 0 {
		price = r.Int(5, 95)
	}
	s.Bookings[name] = &booking{traveller, r.One("open", "open", "open", "fixed"), r.One(classes...), r.One(cities...), price}
	return name
}

func (s *agency) any(r *Rand) string { return s.add(r, r.Person(), 0) }

// trip offers a trip; a price of 0 is drawn.
func (s *agency) trip(r *Rand, city string, price int) string {
	name := r.Name()
	if price == 0 {
		price = r.Int(5, 95)
	}
	s.Trips[name] = &trip{city, r.One(days...), r.One("free", "free", "free", "full"), price}
	return name
}

// unserved draws a city that no trip goes to yet.
func (s *agency) unserved(r *Rand) string {
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
	return nil, NotFound("booking", name, s.Bookings, "find_bookings")
}

// open returns a booking that may be changed.
func (s *agency) open(name string) (*booking, error) {
	b, err := s.booking(name)
	if err == nil && b.Status != "open" {
		return nil, Refuse("status", b.Status, "booking is not open")
	}
	return b, err
}

func findBookings(s *agency, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Bookings) {
		if b := s.Bookings[name]; b.Traveller == a.Text("traveller") {
			list = append(list, Fields{"booking": name, "price": b.Price})
		}
	}
	return Fields{"bookings": list}, nil
}

func getBooking(s *agency, a Args) (any, error) {
	b, err := s.booking(a.Text("booking"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": b.Status, "price": b.Price, "class": b.Class, "city": b.City}, nil
}

func findTrips(s *agency, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Trips) {
		if t := s.Trips[name]; t.City == a.Text("city") {
			list = append(list, Fields{"trip": name, "price": t.Price})
		}
	}
	return Fields{"trips": list}, nil
}

func getTrip(s *agency, a Args) (any, error) {
	t, ok := s.Trips[a.Text("trip")]
	if !ok {
		return nil, NotFound("trip", a.Text("trip"), s.Trips, "find_trips")
	}
	return Fields{"status": t.Status, "price": t.Price, "day": t.Day, "city": t.City}, nil
}

func bookTrip(s *agency, a Args) (any, error) {
	t, ok := s.Trips[a.Text("trip")]
	if !ok {
		return nil, NotFound("trip", a.Text("trip"), s.Trips, "find_trips")
	}
	if t.Status != "free" {
		return nil, Refuse("status", t.Status, "trip is not free")
	}
	name, class := s.Fresh.Next(), classes[t.Price%len(classes)]
	s.Bookings[name] = &booking{a.Text("traveller"), "open", class, t.City, t.Price}
	return Fields{"booking": name, "class": class}, nil
}

func setClass(s *agency, a Args) (any, error) {
	b, err := s.open(a.Text("booking"))
	if err != nil {
		return nil, err
	}
	b.Class = a.Text("class")
	return Fields{"class": b.Class, "fee": len(b.Class)}, nil
}

func cancelBooking(s *agency, a Args) (any, error) {
	b, err := s.open(a.Text("booking"))
	if err != nil {
		return nil, err
	}
	b.Status = "cancelled"
	return Fields{"status": b.Status, "refund": b.Price}, nil
}

// Plans.

func unbookPlan(name any) *Plan {
	return Do("cancel", "cancel_booking", Values{"booking": name},
		Say("done, %v is cancelled, the refund is %v.", name, From("cancel.refund")))
}

func classPlan(name any, class string) *Plan {
	return Do("class", "set_class", Values{"booking": name, "class": class},
		Say("done, %v has the class %v, the fee is %v.", name, class, From("class.fee")))
}

func bookPlan(trip any, traveller string) *Plan {
	return Do("book", "book_trip", Values{"trip": trip, "traveller": traveller},
		Say("done, the booking is %v, the class is %v.", From("book.booking"), From("book.class")))
}

func lookTrip(trip any, next *Plan) *Plan {
	return Do("trip", "get_trip", Values{"trip": trip}, next)
}

// ifPlace goes on with yes if the trip that was looked at is free.
func ifPlace(trip any, yes *Plan) *Plan {
	return OnlyIf(From("trip.status").Is("free"), yes, trip, From("trip.status"))
}

// Kinds.

// travelTrip: a question about a trip.
func travelTrip(r *Rand, s *agency) Turn {
	name, key, n := s.trip(r, r.One(cities...), 0), r.One("status", "price", "day", "city"), r.Int(20, 80)
	slots := Values{"trip": name, "key": key, "n": n}
	if r.Chance(0.3) {
		return Turn{
			r.Phrase(slots, "is trip {trip} cheaper than {n}?", "can i have trip {trip} for less than {n}?",
				"trip {trip} costs less than {n}, yes or no?"),
			lookTrip(name, YesNo(From("trip.price").Below(n), "price", name, From("trip.price"))),
		}
	}
	return Turn{
		r.Phrase(slots, "what is the {key} of trip {trip}?", "tell me the {key} of trip {trip}, please.",
			"i may go on trip {trip}. which {key} does it have?"),
		lookTrip(name, Tell(key, name, From("trip."+key))),
	}
}

// travelAct: one change, if the booking allows it.
func travelAct(r *Rand, s *agency) Turn {
	name := s.any(r)
	class := r.Other(s.Bookings[name].Class, classes)
	slots := Values{"booking": name, "class": class}
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "please cancel booking {booking} and tell me the refund.", "i am ill, cancel {booking}.",
				"i cannot go, so cancel {booking}. what is the refund?"),
			bookingNoun().If(name, "open", unbookPlan(name)),
		}
	}
	return Turn{
		r.Phrase(slots, "change the class of {booking} to {class}.", "i want the class {class} for booking {booking}.",
			"give {booking} the class {class}, please. what is the fee?"),
		bookingNoun().If(name, "open", classPlan(name, class)),
	}
}

// travelBook: a trip that may be full, perhaps with a second choice.
func travelBook(r *Rand, s *agency) Turn {
	a, traveller := s.trip(r, r.One(cities...), 0), r.Person()
	slots := Values{"trip": a, "traveller": traveller}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "book trip {trip} for {traveller}.", "{traveller} wants to go on trip {trip}, book it.",
				"please book {trip}, the trip, for {traveller}. which class is it?"),
			lookTrip(a, ifPlace(a, bookPlan(a, traveller))),
		}
	}
	b := s.trip(r, r.One(cities...), 0)
	s.Trips[a].Status = r.One("free", "full")
	slots["b"] = b
	second := Do("second", "get_trip", Values{"trip": b},
		OnlyIf(From("second.status").Is("free"), Do("other", "book_trip", Values{"trip": b, "traveller": traveller},
			Say("done, the booking is %v, the class is %v.", From("other.booking"), From("other.class"))),
			b, From("second.status")))
	return Turn{
		r.Phrase(slots, "book trip {trip} for {traveller}, or if it is full, trip {b}.",
			"{traveller} wants to go on trip {trip}, else on trip {b}.",
			"if trip {trip} is free, book it for {traveller}, otherwise book {b}."),
		lookTrip(a, If(From("trip.status").Is("free"), bookPlan(a, traveller), second)),
	}
}

// travelLimit: the user says what a trip, or a booking, may cost.
func travelLimit(r *Rand, s *agency) Turn {
	n := r.Int(20, 80)
	if r.Chance(0.5) {
		name, traveller := s.trip(r, r.One(cities...), 0), r.Person()
		return Turn{
			r.Phrase(Values{"trip": name, "traveller": traveller, "n": n},
				"book trip {trip} for {traveller} if it costs less than {n}, otherwise tell me its price.",
				"if the price of trip {trip} is less than {n}, book it for {traveller}, else say the price.",
				"does trip {trip} cost less than {n}? then book it for {traveller}, if not, tell me the price."),
			lookTrip(name, ifPlace(name, If(From("trip.price").Below(n), bookPlan(name, traveller),
				Tell("price", name, From("trip.price"))))),
		}
	}
	name := s.any(r)
	class := r.Other(s.Bookings[name].Class, classes)
	return Turn{
		r.Phrase(Values{"booking": name, "class": class, "n": n},
			"if booking {booking} costs less than {n}, change its class to {class}, otherwise cancel it.",
			"give {booking} the class {class} if its price is less than {n}, else cancel it.",
			"is the price of {booking} less than {n}? then change its class to {class}, if not, cancel it."),
		bookingNoun().If(name, "open", If(From("seen.price").Below(n), classPlan(name, class), unbookPlan(name))),
	}
}

// travelCity: the trip must be found by its city.
func travelCity(r *Rand, s *agency) Turn {
	city, traveller := s.unserved(r), r.Person()
	which, list := "cheapest", From("found.trips").Least("price")
	if r.Chance(0.3) {
		which, list = "dearest", From("found.trips").Most("price")
	}
	if r.Chance(0.85) {
		for _, price := range r.Ints(r.Int(2, 3), 5, 95) {
			s.trip(r, city, price)
		}
	}
	name, slots := list.At("trip"), Values{"city": city, "traveller": traveller, "which": which}
	found := func(next *Plan) *Plan {
		return Do("found", "find_trips", Values{"city": city},
			If(From("found.trips").Empty(), Sorry("%v has no trip.", city), next))
	}
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "on which day is the {which} trip to {city}?", "tell me the day of the {which} trip to {city}.",
				"i want to go to {city} on the {which} trip. what is the day?"),
			found(lookTrip(name, Tell("day", name, From("trip.day")))),
		}
	}
	return Turn{
		r.Phrase(slots, "book the {which} trip to {city} for {traveller}.", "{traveller} wants to go to {city} on the {which} trip.",
			"find the {which} trip to {city} and book it for {traveller}."),
		found(lookTrip(name, ifPlace(name, bookPlan(name, traveller)))),
	}
}

// travelSwap: one booking for another, unless the new trip is full.
func travelSwap(r *Rand, s *agency) Turn {
	traveller := r.Person()
	old, next := s.add(r, traveller, 0), s.trip(r, r.One(cities...), 0)
	swap := Do("cancel", "cancel_booking", Values{"booking": old}, bookPlan(next, traveller))
	return Turn{
		r.Phrase(Values{"booking": old, "trip": next, "traveller": traveller},
			"cancel {booking} and book trip {trip} for {traveller} instead.",
			"{traveller} wants trip {trip} instead of booking {booking}.",
			"swap booking {booking} of {traveller} for trip {trip}."),
		bookingNoun().If(old, "open", lookTrip(next, ifPlace(next, swap))),
	}
}

// travelTry: the user wants no look before; the tool may refuse.
func travelTry(r *Rand, s *agency) Turn {
	if r.Chance(0.5) {
		name := s.any(r)
		s.Bookings[name].Status = r.One("open", "fixed")
		return Turn{
			r.Phrase(Values{"booking": name}, "try to cancel {booking} at once.",
				"try to cancel booking {booking}, what is the refund?", "please try to cancel my booking {booking}."),
			Attempt(unbookPlan(name), name, "status"),
		}
	}
	name, traveller := s.trip(r, r.One(cities...), 0), r.Person()
	s.Trips[name].Status = r.One("free", "full")
	return Turn{
		r.Phrase(Values{"trip": name, "traveller": traveller}, "try to book {trip} for {traveller}.",
			"try to get {traveller} on trip {trip}.", "please try to book trip {trip} for {traveller} at once."),
		Attempt(bookPlan(name, traveller), name, "status"),
	}
}

func travelBeyond(r *Rand, s *agency) Turn {
	return Turn{
		r.Phrase(Values{"booking": s.any(r), "city": r.One(cities...)},
			"print a ticket for booking {booking}.", "what is the weather in {city}?", "find a hotel in {city}, please.",
			"carry my bags for {booking}.", "write a guide to {city}."),
		Beyond(),
	}
}
