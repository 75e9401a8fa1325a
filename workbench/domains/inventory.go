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

var shelves = rooms

func inventory() workbench.Domain {
	name, to := workbench.Text("item"), workbench.Choice("shelf", shelves)
	return workbench.Domain{
		Name:  "inventory",
		About: "you help with items. frozen items cannot be taken, moved or deleted, a shelf takes no item with a count bigger than its space.",
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
			workbench.Kind{Name: "shelf", Weight: 6, Make: workbench.For(itemShelf)},
			workbench.Kind{Name: "act", Weight: 12, Make: workbench.For(itemAct)},
			workbench.Kind{Name: "move", Weight: 12, Make: workbench.For(itemMove)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(itemLimit)},
			workbench.Kind{Name: "refill", Weight: 10, Make: workbench.For(itemRefill)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(itemTry)},
			workbench.Kind{Name: "beyond", Weight: 5, Make: workbench.For(itemBeyond)}),
	}
}

func itemNoun() workbench.Noun {
	return workbench.Noun{
		One: "item", Owner: "owner", Shows: []string{"status", "count", "shelf", "priority"},
		Status: "open", Verb: "delete", End: discardPlan,
		Number: "count", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, count int) string {
			return s.(*store).add(r, owner, count)
		},
	}
}

func newStore(r *workbench.Rand) workbench.State {
	s := &store{map[string]*item{}, map[string]*shelf{}, r.Fresh(), map[string]int{}}
	for _, name := range shelves {
		s.Shelves[name] = &shelf{r.One("open", "open", "open", "closed"), r.Int(30, 95)}
	}
	for range 3 {
		s.any(r)
	}
	return s
}

// add puts an item into the store and returns its name. If count is 0, it is
// drawn.
func (s *store) add(r *workbench.Rand, owner string, count int) string {
	name := r.Name()
	if count == 0 {
		count = r.Int(5, 95)
	}
	s.Items[name] = &item{owner, r.One("open", "open", "open", "frozen"), r.One(shelves...), r.One(priorities...), count}
	return name
}

func (s *store) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0) }

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
				"the {shelf} shelf has a space of less than {n}, yes or no?"),
			Plan: see(workbench.YesNo(workbench.From("shelf.space").Below(n), "space", name, workbench.From("shelf.space"))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "what is the {key} of the {shelf} shelf?", "tell me the {key} of the {shelf} shelf.",
			"i want to use the {shelf} shelf. which {key} does it have?"),
		Plan: see(workbench.Tell(key, name, workbench.From("shelf."+key))),
	}
}

// itemAct: take or delete, if the item is open.
func itemAct(r *workbench.Rand, s *store) workbench.Turn {
	name, n := s.any(r), r.Int(5, 70)
	slots := workbench.Values{"item": name, "n": n}
	if r.Chance(0.3) {
		return workbench.Turn{
			User: r.Phrase(slots, "please delete item {item}.", "i do not need {item} any more, delete it.",
				"delete item {item} and tell me the count."),
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
	name, n, m := s.any(r), r.Int(20, 80), r.Int(5, 60)
	slots := workbench.Values{"item": name, "n": n, "m": m, "k": n - r.Int(5, 15)}
	less := workbench.From("seen.count").Below(n)
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "if the count of {item} is less than {n}, order {m}, otherwise tell me its shelf.",
				"order {m} of {item} if there are less than {n}, else say its shelf.",
				"is the count of {item} less than {n}? then order {m}, if not, tell me its shelf."),
			Plan: itemNoun().Look("seen", name, workbench.If(less, refillPlan(name, m), workbench.Tell("shelf", name, workbench.From("seen.shelf")))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "if the count of {item} is less than {n}, delete it, otherwise take {k}.",
			"delete {item} if there are less than {n}, else take {k} of it.",
			"is the count of {item} less than {n}? then delete it, if not, take {k}."),
		Plan: itemNoun().If(name, "open", workbench.If(less, discardPlan(name), takePlan(name, slots["k"].(int)))),
	}
}

// itemRefill: order more of an item, which sometimes must be found first.
func itemRefill(r *workbench.Rand, s *store) workbench.Turn {
	n, owner, amount := itemNoun(), r.Person(), r.Int(5, 60)
	slots := workbench.Values{"owner": owner, "n": amount}
	if r.Chance(0.4) {
		name := s.any(r)
		slots["item"] = name
		return workbench.Turn{
			User: r.Phrase(slots, "order {n} of {item}.", "please order {n} more of item {item}.",
				"i need more of {item}, so order {n}. who is the owner?"),
			Plan: n.Look("seen", name, refillPlan(name, amount)),
		}
	}
	for _, count := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, owner, count)
	}
	which, name := n.Pick(r)
	slots["which"] = which
	return workbench.Turn{
		User: r.Phrase(slots, "order {n} of the {which} item of {owner}.", "{owner} needs {n} more of the {which} item, order it.",
			"find the {which} item of {owner} and order {n} of it."),
		Plan: n.Find(owner, n.Look("seen", name, refillPlan(name, amount))),
	}
}

// itemTry: the user says "try to", so the expert does not look first; the tool may refuse
// for two reasons.
func itemTry(r *workbench.Rand, s *store) workbench.Turn {
	name, n := s.any(r), r.Int(30, 80)
	s.Items[name].Status = r.One("open", "open", "frozen")
	slots := workbench.Values{"item": name, "n": n}
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "try to delete {item} at once.", "try to delete item {item}.", "please try to delete my item {item}."),
			Plan: workbench.Attempt(discardPlan(name), name, "status"),
		}
	}
	refused := workbench.If(workbench.From("take.count").Empty(), workbench.Sorry("%v is %v.", name, workbench.From("take.status")),
		workbench.Sorry("the count of %v is %v.", name, workbench.From("take.count")))
	return workbench.Turn{
		User: r.Phrase(slots, "try to take {n} of {item}.", "try to get {n} of item {item}.", "please try to take {n} of my item {item}."),
		Plan: takePlan(name, n).OnError(refused),
	}
}

// itemBeyond: no tool can do it.
func itemBeyond(r *workbench.Rand, s *store) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"item": s.any(r), "owner": r.Person()},
			"sing about item {item}.", "call {owner} about {item}, please.", "paint the item {item} for me.",
			"what is the weather in the garden?", "carry {item} for me."),
		Plan: workbench.Beyond(),
	}
}
