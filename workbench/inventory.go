package workbench

// store is the state of the domain inventory.
type store struct {
	Items   map[string]*item  `json:"items"`
	Shelves map[string]*shelf `json:"shelves"`
	Slips   FreshNames        `json:"slips"`
	Orders  map[string]int    `json:"orders"` // ordered from suppliers, by item
}

type item struct {
	Supplier string `json:"supplier"`
	Status   string `json:"status"`
	Shelf    string `json:"shelf"`
	Colour   string `json:"colour"`
	Count    int    `json:"count"`
}

type shelf struct {
	Status string `json:"status"`
	Space  int    `json:"space"` // the most that it takes of one item
}

var (
	shelves = []string{"upper", "lower", "left", "right", "back"}
	colours = []string{"red", "green", "blue", "white", "black"}
)

func inventory() Domain {
	name, to := Text("item"), Choice("shelf", shelves)
	return Domain{
		Name:  "inventory",
		About: "you help with items. blocked items cannot be taken, moved or removed, a shelf takes no item with a count above its space.",
		Tools: []Tool{
			{Name: "find_items", About: "list the items of a supplier", Params: []Param{Text("supplier")}, Do: On(findItems)},
			{Name: "get_item", About: "show an item", Params: []Param{name}, Do: On(getItem)},
			{Name: "get_shelf", About: "show a shelf", Params: []Param{to}, Do: On(getShelf)},
			{Name: "take_item", About: "take an amount of an open item", Params: []Param{name, Number("amount")}, Write: true, Do: On(takeItem)},
			{Name: "order_item", About: "order an amount of an item", Params: []Param{name, Number("amount")}, Write: true, Do: On(orderItem)},
			{Name: "move_item", About: "move an open item to a shelf", Params: []Param{name, to}, Write: true, Do: On(moveItem)},
			{Name: "remove_item", About: "remove an open item", Params: []Param{name}, Write: true, Do: On(removeItem)},
		},
		New: newStore,
		Kinds: append(itemNoun().Kinds(),
			Kind{"shelf", 6, For(itemShelf)},
			Kind{"act", 12, For(itemAct)},
			Kind{"move", 12, For(itemMove)},
			Kind{"limit", 12, For(itemLimit)},
			Kind{"refill", 10, For(itemRefill)},
			Kind{"try", 10, For(itemTry)},
			Kind{"beyond", 5, For(itemBeyond)}),
	}
}

func itemNoun() Noun {
	return Noun{
		One: "item", Owner: "supplier", Shows: []string{"status", "count", "shelf", "colour"},
		Status: "open", Verb: "remove", End: removePlan,
		Number: "count", Less: "rarer", Least: "rarest", Most: "commonest",
		Add: func(r *Rand, s State, supplier string, count int) string {
			return s.(*store).add(r, supplier, count)
		},
	}
}

func newStore(r *Rand) State {
	s := &store{map[string]*item{}, map[string]*shelf{}, r.Fresh(), map[string]int{}}
	for _, name := range shelves {
		s.Shelves[name] = &shelf{r.One("open", "open", "open", "closed"), r.Int(30, 95)}
	}
	for range 3 {
		s.any(r)
	}
	return s
}

// add puts an item into the store; a count of 0 is drawn.
func (s *store) add(r *Rand, supplier string, count int) string {
	name := r.Name()
	if count == 0 {
		count = r.Int(5, 95)
	}
	s.Items[name] = &item{supplier, r.One("open", "open", "open", "blocked"), r.One(shelves...), r.One(colours...), count}
	return name
}

func (s *store) any(r *Rand) string { return s.add(r, r.Person(), 0) }

func (s *store) item(name string) (*item, error) {
	if i, ok := s.Items[name]; ok {
		return i, nil
	}
	return nil, NotFound("item", name, s.Items, "find_items")
}

// open returns an item that may be changed.
func (s *store) open(name string) (*item, error) {
	i, err := s.item(name)
	if err == nil && i.Status != "open" {
		return nil, Refuse("status", i.Status, "item is not open")
	}
	return i, err
}

func findItems(s *store, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Items) {
		if i := s.Items[name]; i.Supplier == a.Text("supplier") {
			list = append(list, Fields{"item": name, "count": i.Count})
		}
	}
	return Fields{"items": list}, nil
}

func getItem(s *store, a Args) (any, error) {
	i, err := s.item(a.Text("item"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": i.Status, "count": i.Count, "shelf": i.Shelf, "colour": i.Colour}, nil
}

func getShelf(s *store, a Args) (any, error) {
	to := s.Shelves[a.Text("shelf")]
	return Fields{"status": to.Status, "space": to.Space}, nil
}

func takeItem(s *store, a Args) (any, error) {
	i, err := s.open(a.Text("item"))
	if err != nil {
		return nil, err
	}
	if i.Count < a.Int("amount") {
		return nil, Refuse("count", i.Count, "count is too low")
	}
	i.Count -= a.Int("amount")
	return Fields{"slip": s.Slips.Next(), "shelf": i.Shelf}, nil
}

func orderItem(s *store, a Args) (any, error) {
	i, err := s.item(a.Text("item"))
	if err != nil {
		return nil, err
	}
	s.Orders[a.Text("item")] += a.Int("amount")
	return Fields{"slip": s.Slips.Next(), "supplier": i.Supplier}, nil
}

func moveItem(s *store, a Args) (any, error) {
	i, err := s.open(a.Text("item"))
	if err != nil {
		return nil, err
	}
	switch to := s.Shelves[a.Text("shelf")]; {
	case to.Status != "open":
		return nil, Refuse("status", to.Status, "shelf is not open")
	case to.Space < i.Count:
		return nil, Refuse("space", to.Space, "shelf is too small")
	}
	i.Shelf = a.Text("shelf")
	return Fields{"shelf": i.Shelf, "count": i.Count}, nil
}

func removeItem(s *store, a Args) (any, error) {
	i, err := s.open(a.Text("item"))
	if err != nil {
		return nil, err
	}
	delete(s.Items, a.Text("item"))
	return Fields{"status": "removed", "count": i.Count}, nil
}

// Plans.

func removePlan(name any) *Plan {
	return Do("remove", "remove_item", Values{"item": name},
		Say("done, %v is removed, the count was %v.", name, From("remove.count")))
}

func takePlan(name any, amount int) *Plan {
	return Do("take", "take_item", Values{"item": name, "amount": amount},
		Say("done, the slip is %v.", From("take.slip")))
}

// ifCount goes on with yes unless the item that was seen is too rare.
func ifCount(name any, amount int, yes *Plan) *Plan {
	return If(From("seen.count").Below(amount), Sorry("the count of %v is %v.", name, From("seen.count")), yes)
}

func refillPlan(name any, amount int) *Plan {
	return Do("order", "order_item", Values{"item": name, "amount": amount},
		Say("done, the slip is %v, the supplier is %v.", From("order.slip"), From("order.supplier")))
}

func shelfPlan(name any, to string) *Plan {
	small := Sorry("the space of %v is %v.", to, From("shelf.space"))
	move := Do("move", "move_item", Values{"item": name, "shelf": to},
		Say("done, %v is in %v, the count is %v.", name, to, From("move.count")))
	return Do("shelf", "get_shelf", Values{"shelf": to},
		OnlyIf(From("shelf.status").Is("open"), If(From("shelf.space").Below(From("seen.count")), small, move),
			to, From("shelf.status")))
}

// Kinds.

// itemShelf: a question about a shelf.
func itemShelf(r *Rand, s *store) Turn {
	name, key, n := r.One(shelves...), r.One("status", "space"), r.Int(20, 80)
	slots := Values{"shelf": name, "key": key, "n": n}
	see := func(next *Plan) *Plan { return Do("shelf", "get_shelf", Values{"shelf": name}, next) }
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "does the {shelf} shelf have less than {n} of space?", "is the space of the {shelf} shelf less than {n}?",
				"the {shelf} shelf has a space of less than {n}, yes or no?"),
			see(YesNo(From("shelf.space").Below(n), "space", name, From("shelf.space"))),
		}
	}
	return Turn{
		r.Phrase(slots, "what is the {key} of the {shelf} shelf?", "tell me the {key} of the {shelf} shelf.",
			"i want to use the {shelf} shelf. which {key} does it have?"),
		see(Tell(key, name, From("shelf."+key))),
	}
}

// itemAct: take or remove, if the item allows it.
func itemAct(r *Rand, s *store) Turn {
	name, n := s.any(r), r.Int(5, 70)
	slots := Values{"item": name, "n": n}
	if r.Chance(0.3) {
		return Turn{
			r.Phrase(slots, "please remove item {item}.", "nobody needs {item} any more, remove it.",
				"remove item {item} and tell me the count."),
			itemNoun().If(name, "open", removePlan(name)),
		}
	}
	return Turn{
		r.Phrase(slots, "take {n} of {item}.", "please take {n} of the item {item}.", "i need {n} of {item}, take them.",
			"take {n} of item {item}. what is the slip?"),
		itemNoun().If(name, "open", ifCount(name, n, takePlan(name, n))),
	}
}

// itemMove: the item and the shelf must both allow it.
func itemMove(r *Rand, s *store) Turn {
	name := s.any(r)
	to := r.Other(s.Items[name].Shelf, shelves)
	return Turn{
		r.Phrase(Values{"item": name, "shelf": to}, "move {item} to the {shelf} shelf.", "please put the item {item} on the {shelf} shelf.",
			"{item} belongs on the {shelf} shelf, move it there.", "move item {item} to the {shelf} shelf and tell me its count."),
		itemNoun().If(name, "open", shelfPlan(name, to)),
	}
}

// itemLimit: the user says what to do with rare and with common items.
func itemLimit(r *Rand, s *store) Turn {
	name, n, m := s.any(r), r.Int(20, 80), r.Int(5, 60)
	slots := Values{"item": name, "n": n, "m": m, "k": n - r.Int(5, 15)}
	less := From("seen.count").Below(n)
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "if the count of {item} is less than {n}, order {m}, otherwise tell me its shelf.",
				"order {m} of {item} if there are less than {n}, else say its shelf.",
				"is the count of {item} less than {n}? then order {m}, if not, tell me its shelf."),
			itemNoun().Look("seen", name, If(less, refillPlan(name, m), Tell("shelf", name, From("seen.shelf")))),
		}
	}
	return Turn{
		r.Phrase(slots, "if the count of {item} is less than {n}, remove it, otherwise take {k}.",
			"remove {item} if there are less than {n}, else take {k} of it.",
			"is the count of {item} less than {n}? then remove it, if not, take {k}."),
		itemNoun().If(name, "open", If(less, removePlan(name), takePlan(name, slots["k"].(int)))),
	}
}

// itemRefill: an order, perhaps for an item that must be found first.
func itemRefill(r *Rand, s *store) Turn {
	n, supplier, amount := itemNoun(), r.Person(), r.Int(5, 60)
	slots := Values{"supplier": supplier, "n": amount}
	if r.Chance(0.4) {
		name := s.any(r)
		slots["item"] = name
		return Turn{
			r.Phrase(slots, "order {n} of {item}.", "please order {n} more of item {item}.",
				"we need more of {item}, so order {n}. who is the supplier?"),
			n.Look("seen", name, refillPlan(name, amount)),
		}
	}
	for _, count := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, supplier, count)
	}
	which, name := n.Pick(r)
	slots["which"] = which
	return Turn{
		r.Phrase(slots, "order {n} of the {which} item of {supplier}.", "we need {n} more of the {which} item of {supplier}, order them.",
			"find the {which} item of {supplier} and order {n} of it."),
		n.Find(supplier, n.Look("seen", name, refillPlan(name, amount))),
	}
}

// itemTry: the user wants no look before; the tool may refuse, for two reasons.
func itemTry(r *Rand, s *store) Turn {
	name, n := s.any(r), r.Int(30, 80)
	s.Items[name].Status = r.One("open", "open", "blocked")
	slots := Values{"item": name, "n": n}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "try to remove {item} at once.", "try to remove item {item}.", "please try to remove my item {item}."),
			Attempt(removePlan(name), name, "status"),
		}
	}
	take := takePlan(name, n)
	refused := If(From("take.count").Empty(), Sorry("%v is %v.", name, From("take.status")),
		Sorry("the count of %v is %v.", name, From("take.count")))
	return Turn{
		r.Phrase(slots, "try to take {n} of {item}.", "try to get {n} of item {item}.", "please try to take {n} of my item {item}."),
		Do(take.id, take.tool, take.args, If(From("take").Failed(), refused, take.next)),
	}
}

func itemBeyond(r *Rand, s *store) Turn {
	return Turn{
		r.Phrase(Values{"item": s.any(r), "supplier": r.Person()},
			"clean item {item}.", "call {supplier} about {item}, please.", "paint the item {item} for me.",
			"what is the weather at the store?", "carry {item} to my car."),
		Beyond(),
	}
}
