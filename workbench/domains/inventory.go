package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// store is the state of the domain inventory.
type store struct {
	Items    map[string]*item     `json:"items"`
	Shelves  map[string]*shelf    `json:"shelves"`
	Receipts workbench.FreshNames `json:"receipts"`
	Ordered  map[string]int       `json:"ordered"` // by item
}

type item struct {
	Owner    string `json:"owner"`
	Status   string `json:"status"`
	Shelf    string `json:"shelf"`
	Priority string `json:"priority"`
	Count    int    `json:"count"`
}

type shelf struct {
	Status string `json:"status"`
	Space  int    `json:"space"` // maximum count of one item
}

var (
	shelves   = rooms
	itemStops = []string{"frozen", "broken", "lost"}
)

func inventory() workbench.Domain {
	name, to := workbench.Text("item"), workbench.Choice("shelf", shelves)
	return workbench.Domain{
		Name:  "inventory",
		About: "you help with items. only open items can be taken, moved or deleted, only an open shelf takes items, and none with a count bigger than its space.",
		Tools: []workbench.Tool{
			{Name: "find_items", About: "list the items of an owner", Params: []workbench.Param{workbench.Text("owner")}, Do: workbench.On(findItems)},
			{Name: "get_item", About: "show an item", Params: []workbench.Param{name}, Do: workbench.On(getItem)},
			{Name: "get_shelf", About: "show a shelf", Params: []workbench.Param{to}, Do: workbench.On(getShelf)},
			{Name: "take_item", About: "take an amount of an open item", Params: []workbench.Param{name, workbench.Number("amount")},
				Write: true, Do: workbench.On(takeItem)},
			{Name: "order_item", About: "order an amount of an item", Params: []workbench.Param{name, workbench.Number("amount")},
				Write: true, Do: workbench.On(orderItem)},
			{Name: "move_item", About: "move an open item to a shelf", Params: []workbench.Param{name, to}, Write: true, Do: workbench.On(moveItem)},
			{Name: "delete_item", About: "delete an open item", Params: []workbench.Param{name}, Write: true, Do: workbench.On(deleteItem)},
		},
		New: newStore,
		Kinds: append(itemNoun().Kinds(),
			workbench.Kind{Name: "shelf", Weight: 2, Make: workbench.For(itemShelf)},
			workbench.Kind{Name: "act", Weight: 8, Make: workbench.For(itemAct)},
			workbench.Kind{Name: "move", Weight: 13, Make: workbench.For(itemMove)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(itemLimit)},
			workbench.Kind{Name: "refill", Weight: 12, Make: workbench.For(itemRefill)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(itemTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(itemBeyond)}),
	}
}

func itemNoun() workbench.Noun {
	return workbench.Noun{
		One: "item", Owner: "owner", Shows: []string{"status", "count", "shelf", "priority"},
		Status: "open", Others: itemStops, Verb: "delete", End: discardPlan,
		Number: "count", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, count int, status string) string {
			return s.(*store).add(r, owner, count, status)
		},
	}
}

func newStore(r *workbench.Rand) workbench.State {
	s := &store{map[string]*item{}, map[string]*shelf{}, r.Fresh(), map[string]int{}}
	for _, name := range shelves {
		s.Shelves[name] = &shelf{usually(r, "open", placeStops), r.Int(20, 80)}
	}
	for range 3 {
		s.any(r)
	}
	return s
}

// add puts an item into the store and returns its name. A count of 0 is drawn, and so
// is a status of "".
func (s *store) add(r *workbench.Rand, owner string, count int, status string) string {
	name := r.Name()
	if count == 0 {
		count = r.Int(5, 95)
	}
	if status == "" {
		status = usually(r, "open", itemStops)
	}
	s.Items[name] = &item{owner, status, r.One(shelves...), r.One(priorities...), count}
	return name
}

func (s *store) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0, "") }

func (s *store) item(name string) (*item, error) {
	if i, ok := s.Items[name]; ok {
		return i, nil
	}
	return nil, workbench.NotFound("item", name, s.Items, "find_items")
}

// open returns an item that may be changed.
func (s *store) open(name string) (*item, error) {
	i, err := s.item(name)
	if err == nil && i.Status != "open" {
		return nil, workbench.Refuse("status", i.Status, "item is not open")
	}
	return i, err
}

func findItems(s *store, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Items)) {
		if i := s.Items[name]; i.Owner == a.Text("owner") {
			list = append(list, workbench.Fields{"item": name, "count": i.Count})
		}
	}
	return workbench.Fields{"items": list}, nil
}

func getItem(s *store, a workbench.Args) (any, error) {
	i, err := s.item(a.Text("item"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": i.Status, "count": i.Count, "shelf": i.Shelf, "priority": i.Priority}, nil
}

func getShelf(s *store, a workbench.Args) (any, error) {
	to := s.Shelves[a.Text("shelf")]
	return workbench.Fields{"status": to.Status, "space": to.Space}, nil
}

func takeItem(s *store, a workbench.Args) (any, error) {
	i, err := s.open(a.Text("item"))
	if err != nil {
		return nil, err
	}
	if i.Count < a.Int("amount") {
		return nil, workbench.Refuse("count", i.Count, "count is too low")
	}
	i.Count -= a.Int("amount")
	return workbench.Fields{"receipt": s.Receipts.Next(), "shelf": i.Shelf}, nil
}

func orderItem(s *store, a workbench.Args) (any, error) {
	i, err := s.item(a.Text("item"))
	if err != nil {
		return nil, err
	}
	s.Ordered[a.Text("item")] += a.Int("amount")
	return workbench.Fields{"receipt": s.Receipts.Next(), "owner": i.Owner}, nil
}

func moveItem(s *store, a workbench.Args) (any, error) {
	i, err := s.open(a.Text("item"))
	if err != nil {
		return nil, err
	}
	switch to := s.Shelves[a.Text("shelf")]; {
	case to.Status != "open":
		return nil, workbench.Refuse("status", to.Status, "shelf is not open")
	case to.Space < i.Count:
		return nil, workbench.Refuse("space", to.Space, "shelf is too small")
	}
	i.Shelf = a.Text("shelf")
	return workbench.Fields{"shelf": i.Shelf, "count": i.Count}, nil
}

func deleteItem(s *store, a workbench.Args) (any, error) {
	i, err := s.open(a.Text("item"))
	if err != nil {
		return nil, err
	}
	delete(s.Items, a.Text("item"))
	return workbench.Fields{"status": "deleted", "count": i.Count}, nil
}

// Plans.

func discardPlan(name any) *workbench.Plan {
	return workbench.Do("delete", "delete_item", workbench.Values{"item": name},
		workbench.Say("done, %v is deleted, the count was %v.", name, workbench.From("delete.count")))
}

func takePlan(name any, amount int) *workbench.Plan {
	return workbench.Do("take", "take_item", workbench.Values{"item": name, "amount": amount},
		workbench.Say("done, the receipt is %v.", workbench.From("take.receipt")))
}

// ifCount continues with yes unless the item just looked at has a count below
// amount.
func ifCount(name any, amount int, yes *workbench.Plan) *workbench.Plan {
	return workbench.If(workbench.From("seen.count").Below(amount), workbench.Sorry("the count of %v is %v.", name, workbench.From("seen.count")), yes)
}

func refillPlan(name any, amount int) *workbench.Plan {
	return workbench.Do("order", "order_item", workbench.Values{"item": name, "amount": amount},
		workbench.Say("done, the receipt is %v, the owner is %v.", workbench.From("order.receipt"), workbench.From("order.owner")))
}

func shelfPlan(name any, to string) *workbench.Plan {
	small := workbench.Sorry("the space of %v is %v.", to, workbench.From("shelf.space"))
	move := workbench.Do("move", "move_item", workbench.Values{"item": name, "shelf": to},
		workbench.Say("done, %v is in %v, the count is %v.", name, to, workbench.From("move.count")))
	return workbench.Do("shelf", "get_shelf", workbench.Values{"shelf": to},
		workbench.OnlyIf(workbench.From("shelf.status").Is("open"),
			workbench.If(workbench.From("shelf.space").Below(workbench.From("seen.count")), small, move),
			to, workbench.From("shelf.status")))
}

// Kinds.

// itemShelf: a question about a shelf.
func itemShelf(r *workbench.Rand, s *store) workbench.Turn {
	name, key, n := r.One(shelves...), r.One("status", "space"), r.Int(20, 80)
	slots := workbench.Values{"shelf": name, "key": key, "n": n}
	see := func(next *workbench.Plan) *workbench.Plan {
		return workbench.Do("shelf", "get_shelf", workbench.Values{"shelf": name}, next)
	}
	if r.Chance(0.4) {
		return workbench.Turn{
			User: r.Phrase(slots, "does the {shelf} shelf have less than {n} of space?", "is the space of the {shelf} shelf less than {n}?",
				"tell me if the {shelf} shelf has less than {n} of space."),
			Plan: see(workbench.YesNo(workbench.From("shelf.space").Below(n), "space", name, workbench.From("shelf.space"))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "what is the {key} of the {shelf} shelf?", "i want to use the {shelf} shelf. which {key} does it have?",
			"tell me the {key} of the {shelf} shelf."),
		Plan: see(workbench.Tell(key, name, workbench.From("shelf."+key))),
	}
}

// itemAct: take or delete, if the item is open.
func itemAct(r *workbench.Rand, s *store) workbench.Turn {
	n := r.Int(20, 80)
	name := s.add(r, r.Person(), r.Side(n, 0.5), "")
	slots := workbench.Values{"item": name, "n": n}
	if r.Chance(0.3) {
		return workbench.Turn{
			User: r.Phrase(slots, "i do not need {item} any more, delete it.", "delete item {item} and tell me the count.",
				"please delete item {item}."),
			Plan: itemNoun().If(name, "open", discardPlan(name)),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "take {n} of {item}.", "please take {n} of the item {item}.", "i need {n} of {item}, take it.",
			"take {n} of item {item}. what is the receipt?"),
		Plan: itemNoun().If(name, "open", ifCount(name, n, takePlan(name, n))),
	}
}

// itemMove: move, if the item is open and the shelf takes it.
func itemMove(r *workbench.Rand, s *store) workbench.Turn {
	name := s.any(r)
	to := r.Other(s.Items[name].Shelf, shelves)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"item": name, "shelf": to}, "move {item} to the {shelf} shelf.", "please put the item {item} on the {shelf} shelf.",
			"{item} belongs on the {shelf} shelf, move it there.", "move item {item} to the {shelf} shelf and tell me its count."),
		Plan: itemNoun().If(name, "open", shelfPlan(name, to)),
	}
}

// itemLimit: what to do depends on the count.
func itemLimit(r *workbench.Rand, s *store) workbench.Turn {
	n, m := r.Int(20, 80), r.Int(5, 60)
	name := s.add(r, r.Person(), r.Side(n, 0.5), "")
	slots := workbench.Values{"item": name, "n": n, "m": m, "k": n - r.Int(5, 15)}
	less := workbench.From("seen.count").Below(n)
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "if the count of {item} is less than {n}, order {m}, otherwise take {k}.",
				"order {m} of {item} if there are less than {n}, else take {k} of it.",
				"is the count of {item} less than {n}? then order {m}, if not, take {k}."),
			Plan: itemNoun().Look("seen", name, workbench.If(less, refillPlan(name, m), itemNoun().OnlyIf("seen", name, "open", takePlan(name, slots["k"].(int))))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "if the count of {item} is less than {n}, delete it, otherwise take {k}.",
			"delete {item} if there are less than {n}, else take {k} of it.",
			"is the count of {item} less than {n}? then delete it, if not, take {k}."),
		Plan: itemNoun().If(name, "open", workbench.If(less, discardPlan(name), takePlan(name, slots["k"].(int)))),
	}
}

// itemRefill: order more of an item that must be found first, if there is too little
// of it.
func itemRefill(r *workbench.Rand, s *store) workbench.Turn {
	noun, owner, other, amount, n := itemNoun(), r.Person(), r.Person(), r.Int(5, 60), r.Int(20, 80)
	for _, who := range []string{owner, other}[r.Int(0, 1):] {
		s.add(r, who, r.Side(n, 0.5), "")
	}
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"owner": owner, "other": other, "m": amount, "n": n},
			"find the item of {owner}, or of {other} if there is none. if there are less than {n}, order {m}, otherwise tell me its shelf.",
			"look at the item of {owner}, or if there is none, of {other}: order {m} if its count is less than {n}, else say its shelf.",
			"find the item of {owner}, or if there is none, of {other}. order {m} if its count is less than {n}, else say its shelf."),
		Plan: noun.FindOr(owner, other, func(name workbench.Ref, id string) *workbench.Plan {
			return workbench.If(workbench.From(id+".count").Below(n), refillPlan(name, amount), workbench.Tell("shelf", name, workbench.From(id+".shelf")))
		}),
	}
}

// itemTry: the user says "try to", so there is no look first; the tool may refuse
// for two reasons, and sometimes a second item is tried.
func itemTry(r *workbench.Rand, s *store) workbench.Turn {
	n := r.Int(30, 80)
	a := s.add(r, r.Person(), r.Side(n, 0.5), "")
	if r.Chance(0.4) {
		b := s.any(r)
		s.Items[a].Status = r.One("open", r.One(itemStops...))
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"a": a, "b": b}, "try to delete {a} at once, or if that fails, {b}.",
				"try to delete item {a}, else item {b}.", "please try to delete item {a}, or if that fails, item {b}."),
			Plan: discardPlan(a).OnError(workbench.Attempt(discardPlan(b).As("other"), b, "status")),
		}
	}
	refused := workbench.If(workbench.From("take.count").Empty(), workbench.Sorry("%v is %v.", a, workbench.From("take.status")),
		workbench.Sorry("the count of %v is %v.", a, workbench.From("take.count")))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"item": a, "n": n}, "try to take {n} of {item}.", "try to get {n} of item {item}.",
			"please try to take {n} of my item {item}."),
		Plan: takePlan(a, n).OnError(refused),
	}
}

// itemBeyond: no tool can do it.
func itemBeyond(r *workbench.Rand, s *store) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"item": s.any(r), "owner": r.Person()},
			"sing about item {item}.", "call {owner} about {item}, please.", "paint the item {item} for me.",
			"what is the weather in the garden?", "please carry {item} for me."),
		Plan: workbench.Beyond(),
	}
}
