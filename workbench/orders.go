package workbench

// This file is a whole domain, and the pattern for one of your own:
//
//  1. a state: a struct that encodes as JSON; entities in maps by their name;
//  2. tools: a schema, a flag if it writes, and a function on the state that
//     returns a short object or an error that helps;
//  3. kinds of tasks: each puts what it is about into the state, words the
//     user's request in several ways, and gives the expert's plan.
//
// From the plan come the expert's episode, the checklist with every branch, and
// the true answer. So a plan decides by what tools answered (From), never by what
// the Make function happens to know.
//
// The user's words must determine the plan: same words and same answers, same
// next step. All domains keep to one convention: an expert looks at an entity
// before changing it, unless the user says "try to …".

// shop is the state of the domain orders.
type shop struct {
	Orders map[string]*order `json:"orders"`
}

type order struct {
	Customer string `json:"customer"`
	Status   string `json:"status"`
	Price    int    `json:"price"`
	Carrier  string `json:"carrier"`
	City     string `json:"city"`
}

var (
	carriers = []string{"post", "rail", "truck", "plane"}
	reasons  = []string{"broken", "late", "wrong", "small"}
)

func orders() Domain {
	name := Text("order")
	return Domain{
		Name:  "orders",
		About: "you help with orders. only pending orders can be changed or cancelled, only delivered orders can be returned.",
		Tools: []Tool{
			{Name: "find_orders", About: "list the orders of a customer", Params: []Param{Text("customer")}, Do: On(findOrders)},
			{Name: "get_order", About: "show an order", Params: []Param{name}, Do: On(getOrder)},
			{Name: "cancel_order", About: "cancel a pending order", Params: []Param{name}, Write: true, Do: On(cancelOrder)},
			{Name: "set_carrier", About: "change the carrier of a pending order", Params: []Param{name, Choice("carrier", carriers)}, Write: true, Do: On(setCarrier)},
			{Name: "set_city", About: "change the city of a pending order", Params: []Param{name, Choice("city", cities)}, Write: true, Do: On(setCity)},
			{Name: "return_order", About: "return a delivered order", Params: []Param{name, Choice("reason", reasons)}, Write: true, Do: On(returnOrder)},
		},
		New: newShop,
		Kinds: []Kind{
			{"read", 10, For(orderRead)},
			{"act", 16, For(orderAct)},
			{"word", 10, For(orderWord)},
			{"limit", 12, For(orderLimit)},
			{"find", 10, For(orderFind)},
			{"pick", 12, For(orderPick)},
			{"mend", 8, For(orderMend)},
			{"seek", 8, For(orderSeek)},
			{"try", 10, For(orderTry)},
			{"compare", 10, For(orderCompare)},
			{"beyond", 5, For(orderBeyond)},
		},
	}
}

func newShop(r *Rand) State {
	s := &shop{map[string]*order{}}
	for range 3 {
		s.add(r, r.Person(), r.One("pending", "shipped", "delivered"))
	}
	return s
}

// add puts a new order into the shop and returns its name.
func (s *shop) add(r *Rand, customer, status string) string {
	name := r.Name()
	s.Orders[name] = &order{customer, status, r.Int(5, 95), r.One(carriers...), r.One(cities...)}
	return name
}

// any adds an order of a new customer, pending more often than not.
func (s *shop) any(r *Rand) string {
	return s.add(r, r.Person(), r.One("pending", "pending", "pending", "shipped", "delivered"))
}

// news draws a carrier and a city that the order does not have: a change must
// change something.
func (s *shop) news(r *Rand, name string) (carrier, city string) {
	o := s.Orders[name]
	return r.Other(o.Carrier, carriers), r.Other(o.City, cities)
}

func (s *shop) order(name string) (*order, error) {
	if o, ok := s.Orders[name]; ok {
		return o, nil
	}
	return nil, NotFound("order", name, s.Orders, "find_orders")
}

// open returns an order that has the status that a change needs.
func (s *shop) open(name, status string) (*order, error) {
	o, err := s.order(name)
	if err == nil && o.Status != status {
		return nil, Refuse("status", o.Status, "order is not %s", status)
	}
	return o, err
}

func findOrders(s *shop, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Orders) {
		if o := s.Orders[name]; o.Customer == a.Text("customer") {
			list = append(list, Fields{"order": name, "price": o.Price})
		}
	}
	return Fields{"orders": list}, nil
}

func getOrder(s *shop, a Args) (any, error) {
	o, err := s.order(a.Text("order"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": o.Status, "price": o.Price, "carrier": o.Carrier, "city": o.City}, nil
}

func cancelOrder(s *shop, a Args) (any, error) {
	o, err := s.open(a.Text("order"), "pending")
	if err != nil {
		return nil, err
	}
	o.Status = "cancelled"
	return Fields{"status": o.Status, "refund": o.Price}, nil
}

func setCarrier(s *shop, a Args) (any, error) {
	o, err := s.open(a.Text("order"), "pending")
	if err != nil {
		return nil, err
	}
	o.Carrier = a.Text("carrier")
	return Fields{"carrier": o.Carrier, "fee": 1 + len(o.Carrier)}, nil
}

func setCity(s *shop, a Args) (any, error) {
	o, err := s.open(a.Text("order"), "pending")
	if err != nil {
		return nil, err
	}
	o.City = a.Text("city")
	return Fields{"city": o.City, "fee": 2 + len(o.City)}, nil
}

func returnOrder(s *shop, a Args) (any, error) {
	o, err := s.open(a.Text("order"), "delivered")
	if err != nil {
		return nil, err
	}
	o.Status = "returned"
	return Fields{"status": o.Status, "refund": o.Price}, nil
}

// Plans.

// look shows an order under the id "order", then goes on.
func lookOrder(name any, next *Plan) *Plan {
	return Do("order", "get_order", Values{"order": name}, next)
}

// ifStatus goes on with yes if the order that was looked at has a status, and
// otherwise tells the user which it has.
func ifStatus(name any, status string, yes *Plan) *Plan {
	return onlyIf(From("order.status").Is(status), yes, name, From("order.status"))
}

func cancelPlan(name any) *Plan {
	return Do("cancel", "cancel_order", Values{"order": name},
		Say("done, %v is cancelled, the refund is %v.", name, From("cancel.refund")))
}

func carrierPlan(name any, carrier string) *Plan {
	return Do("carrier", "set_carrier", Values{"order": name, "carrier": carrier},
		Say("done, %v goes by %v, the fee is %v.", name, carrier, From("carrier.fee")))
}

func tellOrder(name any, key string) *Plan {
	return tell(key, name, From("order."+key))
}

// Kinds.

func orderKey(r *Rand) string { return r.One("status", "price", "carrier", "city") }

func orderRead(r *Rand, s *shop) Turn {
	name, key := s.any(r), orderKey(r)
	return Turn{
		r.Phrase(Values{"order": name, "key": key},
			"what is the {key} of order {order}?", "tell me the {key} of {order}, please.",
			"i want to know the {key} of my order {order}.", "{order}: which {key} does it have?"),
		lookOrder(name, tellOrder(name, key)),
	}
}

func orderAct(r *Rand, s *shop) Turn {
	name, reason := s.any(r), r.One(reasons...)
	carrier, city := s.news(r, name)
	slots := Values{"order": name, "carrier": carrier, "city": city, "reason": reason}
	switch r.Int(1, 4) {
	case 1:
		return Turn{
			r.Phrase(slots, "please cancel order {order} and tell me the refund.", "cancel {order}. what is the refund?",
				"i do not need {order} any more, cancel it."),
			lookOrder(name, ifStatus(name, "pending", cancelPlan(name))),
		}
	case 2:
		return Turn{
			r.Phrase(slots, "send order {order} by {carrier}, please.", "change the carrier of {order} to {carrier}.",
				"i want {order} to go by {carrier}. what is the fee?"),
			lookOrder(name, ifStatus(name, "pending", carrierPlan(name, carrier))),
		}
	case 3:
		return Turn{
			r.Phrase(slots, "send order {order} to {city} instead.", "change the city of {order} to {city}, please.",
				"i moved to {city}, so send {order} there. what is the fee?"),
			lookOrder(name, ifStatus(name, "pending", Do("city", "set_city", Values{"order": name, "city": city},
				Say("done, %v goes to %v, the fee is %v.", name, city, From("city.fee"))))),
		}
	}
	if r.Chance(0.5) {
		s.Orders[name].Status = "delivered"
	}
	return Turn{
		r.Phrase(slots, "order {order} is {reason}, please return it.", "return {order} for me, it is {reason}.",
			"i want to return {order} because it is {reason}. what is the refund?"),
		lookOrder(name, ifStatus(name, "delivered", Do("return", "return_order", Values{"order": name, "reason": reason},
			Say("done, %v is returned, the refund is %v.", name, From("return.refund"))))),
	}
}

// orderWord: the user says what to do in either case of a status.
func orderWord(r *Rand, s *shop) Turn {
	name, key := s.any(r), r.One("price", "carrier", "city")
	carrier, _ := s.news(r, name)
	slots := Values{"order": name, "key": key, "carrier": carrier}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "cancel {order} if it is pending, otherwise tell me its {key}.",
				"if order {order} is pending, cancel it, if not, tell me the {key}.",
				"look at {order}: when it is pending cancel it, else say its {key}."),
			lookOrder(name, If(From("order.status").Is("pending"), cancelPlan(name), tellOrder(name, key))),
		}
	}
	return Turn{
		r.Phrase(slots, "if {order} is pending, send it by {carrier}, otherwise tell me its {key}.",
			"send {order} by {carrier} if it is pending, else say its {key}.",
			"look at order {order}: when it is pending change the carrier to {carrier}, if not, tell me the {key}."),
		lookOrder(name, If(From("order.status").Is("pending"), carrierPlan(name, carrier), tellOrder(name, key))),
	}
}

// orderLimit: the user says what to do above and below a price.
func orderLimit(r *Rand, s *shop) Turn {
	name, n := s.any(r), r.Int(20, 80)
	carrier, _ := s.news(r, name)
	slots := Values{"order": name, "carrier": carrier, "n": n}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "if order {order} costs less than {n}, send it by {carrier}, otherwise cancel it.",
				"send {order} by {carrier} if its price is less than {n}, else cancel it.",
				"is the price of {order} less than {n}? then send it by {carrier}, if not, cancel it."),
			lookOrder(name, ifStatus(name, "pending",
				If(From("order.price").Below(n), carrierPlan(name, carrier), cancelPlan(name)))),
		}
	}
	return Turn{
		r.Phrase(slots, "does order {order} cost less than {n}?", "is the price of {order} less than {n}?",
			"i paid less than {n} for {order}, yes or no?"),
		lookOrder(name, yesNo(From("order.price").Below(n), "price", name, From("order.price"))),
	}
}

// orderFind: the user knows the customer, not the order.
func orderFind(r *Rand, s *shop) Turn {
	customer := r.Person()
	slots := Values{"customer": customer, "key": r.One("status", "carrier", "city")}
	if r.Chance(0.8) {
		s.add(r, customer, r.One("pending", "pending", "shipped", "delivered"))
	}
	found := From("found.orders")
	none := Sorry("%v has no order.", customer)
	if r.Chance(0.5) {
		name := From("found.orders.0.order")
		key := slots["key"].(string)
		return Turn{
			r.Phrase(slots, "what is the {key} of the order of {customer}?", "{customer} has an order, tell me its {key}.",
				"find the order of {customer} and say its {key}."),
			Do("found", "find_orders", Values{"customer": customer}, If(found.Empty(), none,
				lookOrder(name, tellOrder(name, key)))),
		}
	}
	name := From("found.orders.0.order")
	return Turn{
		r.Phrase(slots, "cancel the order of {customer}.", "{customer} does not need the order any more, please cancel it.",
			"find the order of {customer} and cancel it."),
		Do("found", "find_orders", Values{"customer": customer}, If(found.Empty(), none,
			lookOrder(name, ifStatus(name, "pending", cancelPlan(name))))),
	}
}

// orderPick: the user wants the cheapest or the dearest of a list.
func orderPick(r *Rand, s *shop) Turn {
	customer, carrier := r.Person(), r.One(carriers...)
	prices := r.Ints(r.Int(2, 3), 5, 95)
	for _, price := range prices {
		o := s.Orders[s.add(r, customer, r.One("pending", "pending", "shipped"))]
		o.Price, o.Carrier = price, r.Other(carrier, carriers)
	}
	most := r.Chance(0.5)
	slots := Values{"customer": customer, "carrier": carrier, "which": "cheapest"}
	name := From("found.orders").Least("price").At("order")
	if most {
		slots["which"] = "dearest"
		name = From("found.orders").Most("price").At("order")
	}
	find := func(next *Plan) Turn {
		return Turn{Plan: Do("found", "find_orders", Values{"customer": customer}, next)}
	}
	var t Turn
	switch r.Int(1, 3) {
	case 1:
		t = find(Say("it is %v.", name))
		t.User = r.Phrase(slots, "which order of {customer} is the {which}?", "tell me the {which} order of {customer}.",
			"find the {which} order of {customer}.")
	case 2:
		t = find(lookOrder(name, ifStatus(name, "pending", cancelPlan(name))))
		t.User = r.Phrase(slots, "cancel the {which} order of {customer}.", "{customer} wants to cancel the {which} order.",
			"please find the {which} order of {customer} and cancel it.")
	case 3:
		t = find(lookOrder(name, ifStatus(name, "pending", carrierPlan(name, carrier))))
		t.User = r.Phrase(slots, "send the {which} order of {customer} by {carrier}.",
			"{customer} wants the {which} order to go by {carrier}.",
			"find the {which} order of {customer} and change its carrier to {carrier}.")
	}
	return t
}

// orderMend: the user remembers half a name; the tool knows a similar one.
func orderMend(r *Rand, s *shop) Turn {
	name, key := s.any(r), orderKey(r)
	slip := name
	if r.Chance(0.8) {
		slip = r.Slip(name)
	}
	similar := From("order.similar")
	return Turn{
		r.Phrase(Values{"order": slip, "key": key},
			"what is the {key} of order {order}, or what it is called?", "i think my order is {order}. tell me its {key}.",
			"the {key} of {order}, please, if the name is right."),
		lookOrder(slip, If(From("order").Failed(),
			Do("again", "get_order", Values{"order": similar},
				tell(key, similar, From("again."+key))),
			tellOrder(slip, key))),
	}
}

// orderSeek: the name is wrong, but the user names the customer too.
func orderSeek(r *Rand, s *shop) Turn {
	customer, key := r.Person(), r.One("status", "carrier", "city")
	slots := Values{"customer": customer, "key": key}
	wrong := s.add(r, customer, r.One("pending", "shipped", "delivered"))
	if r.Chance(0.8) {
		wrong = r.Name()
	}
	slots["order"] = wrong
	name := From("found.orders.0.order")
	cancel := r.Chance(0.4)
	t := Turn{User: r.Phrase(slots, "what is the {key} of order {order} of {customer}?",
		"{customer} has order {order}, tell me its {key}.", "say the {key} of {order}, the order of {customer}.")}
	goal := func(name any, id string) *Plan { return tell(key, name, From(id+"."+key)) }
	if cancel {
		t.User = r.Phrase(slots, "cancel order {order} of {customer}.", "{customer} wants to cancel order {order}.",
			"please cancel {order}, the order of {customer}.")
		goal = func(name any, id string) *Plan {
			return onlyIf(From(id+".status").Is("pending"), cancelPlan(name), name, From(id+".status"))
		}
	}
	t.Plan = lookOrder(wrong, If(From("order").Failed(),
		Do("found", "find_orders", Values{"customer": customer},
			Do("again", "get_order", Values{"order": name}, goal(name, "again"))),
		goal(wrong, "order")))
	return t
}

// orderTry: the user wants no look before; the tool may refuse.
func orderTry(r *Rand, s *shop) Turn {
	name := s.add(r, r.Person(), r.One("pending", "shipped", "delivered"))
	_, city := s.news(r, name)
	slots := Values{"order": name, "city": city}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "try to cancel {order} at once.", "try to cancel order {order}, what is the refund?",
				"please try to cancel my order {order}."),
			Do("cancel", "cancel_order", Values{"order": name}, If(From("cancel").Failed(),
				Sorry("%v is %v.", name, From("cancel.status")),
				Say("done, %v is cancelled, the refund is %v.", name, From("cancel.refund")))),
		}
	}
	return Turn{
		r.Phrase(slots, "try to send {order} to {city}.", "try to change the city of order {order} to {city}.",
			"please try to send my order {order} to {city}."),
		Do("city", "set_city", Values{"order": name, "city": city}, If(From("city").Failed(),
			Sorry("%v is %v.", name, From("city.status")),
			Say("done, %v goes to %v, the fee is %v.", name, city, From("city.fee")))),
	}
}

// orderCompare: two orders, one decision.
func orderCompare(r *Rand, s *shop) Turn {
	a, b, prices := s.any(r), s.any(r), r.Ints(2, 5, 95)
	s.Orders[a].Price, s.Orders[b].Price = prices[0], prices[1]
	slots := Values{"a": a, "b": b}
	less := From("a.price").Below(From("b.price"))
	both := func(next *Plan) *Plan {
		return Do("a", "get_order", Values{"order": a}, Do("b", "get_order", Values{"order": b}, next))
	}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "which is cheaper, {a} or {b}?", "i have orders {a} and {b}. which is cheaper?",
				"tell me the cheaper one of {a} and {b}."),
			both(oneOf(less, a, b, "cheaper")),
		}
	}
	cancel := func(name, id string) *Plan {
		return onlyIf(From(id+".status").Is("pending"), cancelPlan(name), name, From(id+".status"))
	}
	return Turn{
		r.Phrase(slots, "cancel the cheaper one of {a} and {b}.", "of orders {a} and {b}, cancel the cheaper one.",
			"i want only one of {a} and {b}, so cancel the cheaper one."),
		both(If(less, cancel(a, "a"), cancel(b, "b"))),
	}
}

// orderBeyond: no tool can do it.
func orderBeyond(r *Rand, s *shop) Turn {
	return Turn{
		r.Phrase(Values{"order": s.any(r), "city": r.One(cities...)},
			"call the driver of order {order}.", "print a label for {order}, please.", "what is the weather in {city}?",
			"write a song about {order}.", "paint order {order} for me."),
		beyond(),
	}
}
