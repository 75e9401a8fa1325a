package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// This file is a complete domain. Copy it to start one of your own:
//
//  1. a state: a struct that encodes as JSON, with entities in maps by name;
//  2. tools: each has a schema, a flag that says whether it writes, and a function on
//     the state that returns a short object or a helpful error;
//  3. kinds of tasks: each adds its entities to the state, words the user's request in
//     several ways, and gives the expert's plan. A Noun provides eight kinds that all
//     domains share; the domain's own kinds follow.
//
// The expert's episode, the checklist with every branch and the true answer are
// all derived from the plan. So a plan must branch on tool results (From), never on what
// the Make function knows.
//
// The user's words must determine the plan: the same words and the same tool results
// lead to the same next step. By convention an expert looks at an entity before
// changing it, unless the user says "try to …". A change that a task asks for must
// change the state, otherwise doing nothing would succeed.

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

func orders() workbench.Domain {
	name := workbench.Text("order")
	return workbench.Domain{
		Name:  "orders",
		About: "you help with orders. only pending orders can be changed or cancelled, only delivered orders can be returned.",
		Tools: []workbench.Tool{
			{Name: "find_orders", About: "list the orders of a customer", Params: []workbench.Param{workbench.Text("customer")}, Do: workbench.On(findOrders)},
			{Name: "get_order", About: "show an order", Params: []workbench.Param{name}, Do: workbench.On(getOrder)},
			{Name: "cancel_order", About: "cancel a pending order", Params: []workbench.Param{name}, Write: true, Do: workbench.On(cancelOrder)},
			{Name: "set_carrier", About: "change the carrier of a pending order", Params: []workbench.Param{name, workbench.Choice("carrier", carriers)},
				Write: true, Do: workbench.On(setCarrier)},
			{Name: "set_city", About: "change the city of a pending order", Params: []workbench.Param{name, workbench.Choice("city", cities)},
				Write: true, Do: workbench.On(setCity)},
			{Name: "return_order", About: "return a delivered order", Params: []workbench.Param{name, workbench.Choice("reason", reasons)},
				Write: true, Do: workbench.On(returnOrder)},
		},
		New: newShop,
		Kinds: append(orderNoun().Kinds(),
			workbench.Kind{Name: "act", Weight: 5, Make: workbench.For(orderAct)},
			workbench.Kind{Name: "carry", Weight: 12, Make: workbench.For(orderCarry)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(orderLimit)},
			workbench.Kind{Name: "send", Weight: 10, Make: workbench.For(orderSend)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(orderTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(orderBeyond)}),
	}
}

func orderNoun() workbench.Noun {
	return workbench.Noun{
		One: "order", Owner: "customer", Shows: []string{"status", "price", "carrier", "city"},
		Status: "pending", Others: []string{"shipped", "delivered", "lost"}, Verb: "cancel", End: cancelPlan,
		Number: "price", Less: "cheaper", Least: "cheapest", Most: "dearest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, price int, status string) string {
			return s.(*shop).add(r, owner, price, status)
		},
	}
}

func newShop(r *workbench.Rand) workbench.State {
	s := &shop{map[string]*order{}}
	for range 3 {
		s.any(r)
	}
	return s
}

// add puts a new order into the shop and returns its name. A price of 0 is drawn,
// and so is a status of "": two in three are pending.
func (s *shop) add(r *workbench.Rand, customer string, price int, status string) string {
	name := r.Name()
	if price == 0 {
		price = r.Int(5, 95)
	}
	if status == "" {
		status = r.One("pending", "pending", "pending", "pending", "shipped", "delivered")
	}
	s.Orders[name] = &order{customer, status, price, r.One(carriers...), r.One(cities...)}
	return name
}

func (s *shop) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0, "") }

// news draws a carrier and a city other than the order's, so that setting them
// changes the state.
func (s *shop) news(r *workbench.Rand, name string) (carrier, city string) {
	o := s.Orders[name]
	return r.Other(o.Carrier, carriers), r.Other(o.City, cities)
}

func (s *shop) order(name string) (*order, error) {
	if o, ok := s.Orders[name]; ok {
		return o, nil
	}
	return nil, workbench.NotFound("order", name, s.Orders, "find_orders")
}

// open returns an order, or an error if it does not have the status.
func (s *shop) open(name, status string) (*order, error) {
	o, err := s.order(name)
	if err == nil && o.Status != status {
		return nil, workbench.Refuse("status", o.Status, "order is not %s", status)
	}
	return o, err
}

func findOrders(s *shop, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Orders)) {
		if o := s.Orders[name]; o.Customer == a.Text("customer") {
			list = append(list, workbench.Fields{"order": name, "price": o.Price})
		}
	}
	return workbench.Fields{"orders": list}, nil
}

func getOrder(s *shop, a workbench.Args) (any, error) {
	o, err := s.order(a.Text("order"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": o.Status, "price": o.Price, "carrier": o.Carrier, "city": o.City}, nil
}

func cancelOrder(s *shop, a workbench.Args) (any, error) {
	o, err := s.open(a.Text("order"), "pending")
	if err != nil {
		return nil, err
	}
	o.Status = "cancelled"
	return workbench.Fields{"status": o.Status, "refund": o.Price}, nil
}

func setCarrier(s *shop, a workbench.Args) (any, error) {
	o, err := s.open(a.Text("order"), "pending")
	if err != nil {
		return nil, err
	}
	o.Carrier = a.Text("carrier")
	return workbench.Fields{"carrier": o.Carrier, "fee": 2 + o.Price%7}, nil
}

func setCity(s *shop, a workbench.Args) (any, error) {
	o, err := s.open(a.Text("order"), "pending")
	if err != nil {
		return nil, err
	}
	o.City = a.Text("city")
	return workbench.Fields{"city": o.City, "fee": 2 + o.Price%9}, nil
}

func returnOrder(s *shop, a workbench.Args) (any, error) {
	o, err := s.open(a.Text("order"), "delivered")
	if err != nil {
		return nil, err
	}
	o.Status = "returned"
	return workbench.Fields{"status": o.Status, "refund": o.Price}, nil
}

// Plans.

func cancelPlan(name any) *workbench.Plan {
	return workbench.Do("cancel", "cancel_order", workbench.Values{"order": name},
		workbench.Say("done, %v is cancelled, the refund is %v.", name, workbench.From("cancel.refund")))
}

func carrierPlan(name any, carrier string) *workbench.Plan {
	return workbench.Do("carrier", "set_carrier", workbench.Values{"order": name, "carrier": carrier},
		workbench.Say("done, %v goes by %v, the fee is %v.", name, carrier, workbench.From("carrier.fee")))
}

func cityPlan(name any, city string) *workbench.Plan {
	return workbench.Do("city", "set_city", workbench.Values{"order": name, "city": city},
		workbench.Say("done, %v goes to %v, the fee is %v.", name, city, workbench.From("city.fee")))
}

func returnPlan(name any, reason string) *workbench.Plan {
	return workbench.Do("return", "return_order", workbench.Values{"order": name, "reason": reason},
		workbench.Say("done, %v is returned, the refund is %v.", name, workbench.From("return.refund")))
}

// Kinds.

// orderAct: one change, if the status allows it.
func orderAct(r *workbench.Rand, s *shop) workbench.Turn {
	n, name, reason := orderNoun(), s.any(r), r.One(reasons...)
	carrier, city := s.news(r, name)
	s.Orders[name].Status = r.One("pending", "pending", "shipped", "delivered")
	slots := workbench.Values{"order": name, "carrier": carrier, "city": city, "reason": reason}
	switch r.Int(1, 4) {
	case 1:
		return workbench.Turn{
			User: r.Phrase(slots, "please cancel order {order} and tell me the refund.", "i do not need {order} any more, cancel it.",
				"cancel order {order}. what is the refund?"),
			Plan: n.If(name, "pending", cancelPlan(name)),
		}
	case 2:
		return workbench.Turn{
			User: r.Phrase(slots, "send order {order} by {carrier}, please.", "i want {order} to go by {carrier}. what is the fee?",
				"please change the carrier of order {order} to {carrier}."),
			Plan: n.If(name, "pending", carrierPlan(name, carrier)),
		}
	case 3:
		return workbench.Turn{
			User: r.Phrase(slots, "send order {order} to {city} instead.", "i moved to {city}, so send {order} there. what is the fee?",
				"please change the city of order {order} to {city}."),
			Plan: n.If(name, "pending", cityPlan(name, city)),
		}
	}
	s.Orders[name].Status = r.One("delivered", "delivered", "pending", "shipped")
	return workbench.Turn{
		User: r.Phrase(slots, "order {order} is {reason}, please return it.", "i want to return {order} because it is {reason}. what is the refund?",
			"please return order {order}, it is {reason}."),
		Plan: n.If(name, "delivered", returnPlan(name, reason)),
	}
}

// orderCarry: what to do depends on the status.
func orderCarry(r *workbench.Rand, s *shop) workbench.Turn {
	name, reason := s.any(r), r.One(reasons...)
	carrier, _ := s.news(r, name)
	s.Orders[name].Status = r.One("pending", "shipped", "delivered")
	slots := workbench.Values{"order": name, "carrier": carrier, "reason": reason}
	status := workbench.From("seen.status")
	first, user := cancelPlan(name), ""
	if r.Chance(0.5) {
		user = r.Phrase(slots, "order {order} is {reason}: cancel it if it is pending, return it if it is delivered.",
			"cancel {order} if it is pending, or return it if it is delivered, because it is {reason}.",
			"{order} is {reason}. if it is pending, cancel it, if it is delivered, return it.")
	} else {
		first = carrierPlan(name, carrier)
		user = r.Phrase(slots, "if {order} is pending, send it by {carrier}, if it is delivered, return it, because it is {reason}.",
			"order {order} is {reason}: return it if it is delivered, or if it is pending, send it by {carrier}.",
			"{order} is {reason}. if it is pending, send it by {carrier}, if it is delivered, return it.")
	}
	return workbench.Turn{User: user, Plan: orderNoun().Look("seen", name, workbench.If(status.Is("pending"), first,
		workbench.OnlyIf(status.Is("delivered"), returnPlan(name, reason), name, status)))}
}

// orderLimit: what to do depends on the price.
func orderLimit(r *workbench.Rand, s *shop) workbench.Turn {
	n := r.Int(20, 80)
	name := s.add(r, r.Person(), r.Side(n, 0.5), "")
	carrier, city := s.news(r, name)
	slots := workbench.Values{"order": name, "carrier": carrier, "city": city, "n": n}
	less := workbench.From("seen.price").Below(n)
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "if order {order} costs less than {n}, send it by {carrier}, otherwise cancel it.",
				"send {order} by {carrier} if its price is less than {n}, else cancel it.",
				"is the price of {order} less than {n}? then send it by {carrier}, if not, cancel it."),
			Plan: orderNoun().If(name, "pending", workbench.If(less, carrierPlan(name, carrier), cancelPlan(name))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "cancel order {order} if it costs less than {n}, otherwise send it to {city}.",
			"if the price of {order} is less than {n}, cancel it, else send it to {city}.",
			"is the price of {order} less than {n}? then cancel it, if not, send it to {city}."),
		Plan: orderNoun().If(name, "pending", workbench.If(less, cancelPlan(name), cityPlan(name, city))),
	}
}

// orderSend: change the carrier of an order that must be found first, by a customer
// who may have none.
func orderSend(r *workbench.Rand, s *shop) workbench.Turn {
	n, customer, other, carrier := orderNoun(), r.Person(), r.Person(), r.One(carriers...)
	for _, who := range []string{customer, other}[r.Int(0, 1):] {
		s.Orders[s.add(r, who, 0, r.One("pending", "shipped", "pending", "delivered"))].Carrier = r.Other(carrier, carriers)
	}
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"customer": customer, "carrier": carrier, "other": other},
			"send the order of {customer} by {carrier}, or if there is none, that of {other}.",
			"find the order of {customer}, or of {other} if there is none, and send it by {carrier}.",
			"look at the order of {customer}, or if there is none, of {other}, and send it by {carrier}."),
		Plan: n.FindOr(customer, other, func(name workbench.Ref, id string) *workbench.Plan {
			return n.OnlyIf(id, name, "pending", carrierPlan(name, carrier))
		}),
	}
}

// orderTry: the user says "try to", so there is no look first; the tool may refuse,
// and then a second order is tried.
func orderTry(r *workbench.Rand, s *shop) workbench.Turn {
	a := s.add(r, r.Person(), 0, r.One("pending", "pending", "shipped", "delivered", "lost"))
	b := s.add(r, r.Person(), 0, r.One("pending", "shipped", "pending", "delivered"))
	_, city := s.news(r, a)
	for s.Orders[b].City == city {
		_, city = s.news(r, a)
	}
	slots := workbench.Values{"a": a, "b": b, "city": city}
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "try to cancel {a} at once, or if that fails, {b}.", "try to cancel order {a}, else order {b}. what is the refund?",
				"please try to cancel order {a}, or if that fails, order {b}."),
			Plan: cancelPlan(a).OnError(workbench.Attempt(cancelPlan(b).As("other"), b, "status")),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "try to send {a} to {city}, or if that fails, {b}.", "try to change the city of order {a} to {city}, else of order {b}.",
			"please try to send order {a} to {city}, or if that fails, order {b}."),
		Plan: cityPlan(a, city).OnError(workbench.Attempt(cityPlan(b, city).As("other"), b, "status")),
	}
}

// orderBeyond: no tool can do it.
func orderBeyond(r *workbench.Rand, s *shop) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"order": s.any(r), "city": r.One(cities...)},
			"call the driver of order {order}.", "what is the weather in {city}?", "write a song about {order}.",
			"print a label for {order}, please.", "paint order {order} for me."),
		Plan: workbench.Beyond(),
	}
}
