package workbench

import "slices"

// Noun is the sort of entity that a domain is about, such as an order. It makes
// the kinds of tasks that need no words of the domain's own. Its tools are called
// get_order, which shows one, and find_orders, which lists those of an owner as
// objects of the entity's name and its Number.
type Noun struct {
	One    string   // "order": the word, and the argument that names one
	Owner  string   // "customer": the word, and the argument of find_orders
	Shows  []string // the keys of get_order that a user may ask for
	Status string   // that an order must have for End: "pending"
	Others []string // the statuses in which End is refused
	Verb   string   // what End does, as the user says it: "cancel"
	Number string   // the key of get_order and of find_orders that can be compared: "price"

	Less, Least, Most string // "cheaper", "cheapest", "dearest"

	// End is a plan that ends an order whose status allows it, and reports it.
	End func(name any) *Plan
	// Add puts a new order into the state. n is its Number, or 0: any; status may be
	// "": any.
	Add func(r *Rand, s State, owner string, n int, status string) string
}

// Kinds returns the kinds that all nouns have.
func (n Noun) Kinds() []Kind {
	return []Kind{
		{"read", 2, n.read},
		{"word", 8, n.word},
		{"ask", 1, n.ask},
		{"find", 14, n.find},
		{"pick", 9, n.pick},
		{"mend", 12, n.mend},
		{"seek", 12, n.seek},
		{"compare", 16, n.compare},
	}
}

// Look shows an entity and continues with next, which refers to the result by id.
func (n Noun) Look(id string, name any, next *Plan) *Plan {
	return Do(id, "get_"+n.One, Values{n.One: name}, next)
}

// Find lists the entities of an owner, with the result id "found". If there are none it
// says so, otherwise it continues with next.
func (n Noun) Find(owner string, next *Plan) *Plan {
	return n.list(owner, If(From("found."+n.many()).Empty(), Sorry("%v has no %v.", owner, n.One), next))
}

func (n Noun) list(owner string, next *Plan) *Plan {
	return Do("found", "find_"+n.many(), Values{n.Owner: owner}, next)
}

// FindOr lists the entities of an owner, or if there is none, those of another, and
// goes on with next from the first, whichever list has it; id is a word for names of
// answers on the way.
func (n Noun) FindOr(owner, other string, next func(name Ref, id string) *Plan) *Plan {
	instead := From("instead." + n.many() + ".0." + n.One)
	return n.list(owner, If(From("found."+n.many()).Empty(),
		Do("instead", "find_"+n.many(), Values{n.Owner: other}, n.Look("again", instead, next(instead, "again"))),
		n.Look("seen", n.First(), next(n.First(), "seen"))))
}

// First is the first that Find found.
func (n Noun) First() Ref { return From("found." + n.many() + ".0." + n.One) }

// If shows an entity, with the result id "seen", and continues with yes if it has the
// status; otherwise it tells the user which status it has.
func (n Noun) If(name any, status string, yes *Plan) *Plan {
	return n.Look("seen", name, n.OnlyIf("seen", name, status, yes))
}

// OnlyIf goes on with yes if an entity just looked at, under the id, has the status;
// otherwise it tells the user which it has.
func (n Noun) OnlyIf(id string, name any, status string, yes *Plan) *Plan {
	return OnlyIf(From(id+".status").Is(status), yes, name, From(id+".status"))
}

func (n Noun) many() string { return n.One + "s" }

func (n Noun) slots(more Values) Values {
	slots := Values{"one": n.One, "verb": n.Verb, "status": n.Status, "number": n.Number, "less": n.Less}
	for k, v := range more {
		slots[k] = v
	}
	return slots
}

func (n Noun) any(r *Rand, s State) string { return n.Add(r, s, r.Person(), 0, "") }

// status draws the one that End wants with probability p.
func (n Noun) status(r *Rand, p float64) string {
	if r.Chance(p) {
		return n.Status
	}
	return r.One(n.Others...)
}

// goal is what a user wants of an entity that must be found first: to know
// whether its number is less than limit, or to end it. Either is right as often as
// not.
type goal struct {
	ends  bool
	limit int
}

func (n Noun) goal(r *Rand) goal { return goal{r.Chance(0.5), r.Int(20, 80)} }

// add makes an entity that suits the goal as often as not.
func (n Noun) add(r *Rand, s State, owner string, g goal) string {
	return n.Add(r, s, owner, r.Side(g.limit, 0.5), n.status(r, 0.5))
}

// reach is the goal's plan for an entity just looked at, under the id.
func (n Noun) reach(g goal, name any, id string) *Plan {
	if g.ends {
		return n.OnlyIf(id, name, n.Status, n.End(name))
	}
	return n.less(g.limit, name, id)
}

// less answers whether the number of an entity just looked at is less than limit.
func (n Noun) less(limit int, name any, id string) *Plan {
	number := From(id + "." + n.Number)
	return YesNo(number.Below(limit), n.Number, name, number)
}

// read: one value of one entity.
func (n Noun) read(r *Rand, s State) Turn {
	name, key := n.any(r, s), r.One(n.Shows...)
	return Turn{
		r.Phrase(n.slots(Values{"name": name, "key": key}),
			"what is the {key} of {one} {name}?", "tell me the {key} of {one} {name}, please.",
			"{one} {name}: which {key} does it have?", "look at {name}, my {one}, and say its {key}.",
			"i want to know the {key} of my {one} {name}."),
		n.Look("seen", name, Tell(key, name, From("seen."+key))),
	}
}

// word: the user says what to do in either case of a status, or of a number.
func (n Noun) word(r *Rand, s State) Turn {
	limit, key := r.Int(20, 80), n.unlisted(r)
	if r.Chance(0.5) {
		name := n.Add(r, s, r.Person(), r.Side(limit, 0.5), n.status(r, 0.4))
		return Turn{
			r.Phrase(n.slots(Values{"name": name, "n": limit}),
				"{verb} {one} {name} if it is {status}, otherwise tell me if its {number} is less than {n}.",
				"if {one} {name} is {status}, {verb} it, if not, tell me if the {number} is less than {n}.",
				"look at {one} {name}: when it is {status} {verb} it, else say if its {number} is less than {n}.",
				"is {one} {name} {status}? then {verb} it, otherwise say if the {number} is less than {n}."),
			n.Look("seen", name, If(From("seen.status").Is(n.Status), n.End(name), n.less(limit, name, "seen"))),
		}
	}
	name := n.Add(r, s, r.Person(), r.Side(limit, 0.6), n.status(r, 0.5))
	return Turn{
		r.Phrase(n.slots(Values{"name": name, "n": limit, "key": key}),
			"{verb} {one} {name} if its {number} is less than {n}, otherwise tell me its {key}.",
			"if the {number} of {one} {name} is less than {n}, {verb} it, if not, tell me the {key}.",
			"look at {one} {name}: when its {number} is less than {n} {verb} it, else say its {key}.",
			"is the {number} of {one} {name} less than {n}? then {verb} it, otherwise say the {key}."),
		n.Look("seen", name, If(From("seen."+n.Number).Below(limit),
			n.OnlyIf("seen", name, n.Status, n.End(name)), Tell(key, name, From("seen."+key)))),
	}
}

// ask: a yes-or-no question about a number.
func (n Noun) ask(r *Rand, s State) Turn {
	limit := r.Int(20, 80)
	name := n.Add(r, s, r.Person(), r.Side(limit, 0.5), "")
	return Turn{
		r.Phrase(n.slots(Values{"name": name, "n": limit}),
			"is the {number} of {one} {name} less than {n}?", "tell me if {one} {name} has a {number} of less than {n}.",
			"does {one} {name} have a {number} of less than {n}?", "the {number} of {one} {name} is less than {n}, yes or no?"),
		n.Look("seen", name, n.less(limit, name, "seen")),
	}
}

// find: the user knows the owner, not the name, and often a second owner in case
// the first has none.
func (n Noun) find(r *Rand, s State) Turn {
	g, owner, other := n.goal(r), r.Person(), r.Person()
	slots := n.slots(Values{"owner": owner, "other": other, "n": g.limit})
	if r.Chance(0.25) {
		if r.Chance(0.65) {
			n.add(r, s, owner, g)
		}
		turn := Turn{
			r.Phrase(slots, "{owner} has one {one}. is its {number} less than {n}?",
				"find the {one} of {owner} and tell me if its {number} is less than {n}.",
				"tell me if the {one} of {owner} has a {number} of less than {n}."),
			n.Find(owner, n.Look("seen", n.First(), n.reach(g, n.First(), "seen"))),
		}
		if g.ends {
			turn.User = r.Phrase(slots, "{verb} the {one} of {owner}.", "{owner} has one {one}, please {verb} it.",
				"{owner} wants me to {verb} the only {one}.", "find the {one} of {owner} and {verb} it.")
		}
		return turn
	}
	if r.Chance(0.5) {
		n.add(r, s, owner, g)
	}
	n.add(r, s, other, g)
	turn := Turn{
		r.Phrase(slots, "is the {number} of the {one} of {owner} less than {n}? if there is none, look at that of {other}.",
			"find the {one} of {owner}, or of {other} if there is none, and tell me if its {number} is less than {n}.",
			"look at the {one} of {owner}, or if there is none, of {other}: is its {number} less than {n}?",
			"tell me if the {one} of {owner}, or of {other} if there is none, has a {number} of less than {n}."),
		n.FindOr(owner, other, func(name Ref, id string) *Plan { return n.reach(g, name, id) }),
	}
	if g.ends {
		turn.User = r.Phrase(slots, "{verb} the {one} of {owner}, or if there is none, that of {other}.",
			"find the {one} of {owner}, or of {other} if there is none, and {verb} it.",
			"look at the {one} of {owner}, or if there is none, of {other}, and {verb} it.",
			"{verb} the {one} of {owner}. if there is none, {verb} that of {other}.")
	}
	return turn
}

// unlisted draws a key that the list of find does not contain.
func (n Noun) unlisted(r *Rand) string { return r.Other(n.Number, n.Shows) }

// pick: the least or the most of a list, and what to do with it.
func (n Noun) pick(r *Rand, s State) Turn {
	owner, key := r.Person(), n.unlisted(r)
	which, name := n.Pick(r)
	numbers := r.Ints(r.Int(2, 3), 5, 95)
	picked := slices.Max(numbers)
	if which == n.Least {
		picked = slices.Min(numbers)
	}
	way, limit, good := r.Int(1, 10), r.Limit(picked, 0.5), 0.4
	if way > 6 {
		limit, good = r.Limit(picked, 0.6), 0.5
	}
	for _, number := range numbers {
		n.Add(r, s, owner, number, n.status(r, good))
	}
	slots := n.slots(Values{"owner": owner, "which": which, "key": key, "n": limit})
	switch {
	case way == 1:
		return Turn{
			r.Phrase(slots, "which {one} of {owner} is the {which}?", "tell me the {which} {one} of {owner}.",
				"{owner} asks for the {which} {one}. which is it?", "find the {which} {one} of {owner}."),
			n.list(owner, Say("the %v %v is %v.", which, n.One, name)),
		}
	case way <= 6:
		return Turn{
			r.Phrase(slots, "{verb} the {which} {one} of {owner} if it is {status}, otherwise tell me if its {number} is less than {n}.",
				"find the {which} {one} of {owner}. if it is {status}, {verb} it, if not, tell me if the {number} is less than {n}.",
				"look at the {which} {one} of {owner}: when it is {status} {verb} it, else say if its {number} is less than {n}."),
			n.list(owner, n.Look("seen", name, If(From("seen.status").Is(n.Status), n.End(name), n.less(limit, name, "seen")))),
		}
	}
	return Turn{
		r.Phrase(slots, "{verb} the {which} {one} of {owner} if its {number} is less than {n}, otherwise tell me its {key}.",
			"find the {which} {one} of {owner}. if the {number} is less than {n}, {verb} it, if not, tell me the {key}.",
			"look at the {which} {one} of {owner}: when its {number} is less than {n} {verb} it, else say its {key}."),
		n.list(owner, n.Look("seen", name, If(From("seen."+n.Number).Below(limit),
			n.OnlyIf("seen", name, n.Status, n.End(name)), Tell(key, name, From("seen."+key))))),
	}
}

// Pick draws a word for the least or greatest, and refers to that entity of Find's result.
func (n Noun) Pick(r *Rand) (which string, name Ref) {
	list := From("found." + n.many())
	if r.Chance(0.5) {
		return n.Least, list.Least(n.Number).At(n.One)
	}
	return n.Most, list.Most(n.Number).At(n.One)
}

// mend: the user remembers half a name; the tool knows a similar one.
func (n Noun) mend(r *Rand, s State) Turn {
	g := n.goal(r)
	name := n.add(r, s, r.Person(), g)
	if r.Chance(0.5) {
		name = r.Slip(name)
	}
	similar := From("seen.similar")
	slots := n.slots(Values{"name": name, "n": g.limit})
	turn := Turn{
		r.Phrase(slots, "is the {number} of {one} {name}, or what it is called, less than {n}?",
			"i think my {one} is {name}. is its {number} less than {n}?",
			"{one} {name}, or nearly so: tell me if its {number} is less than {n}.",
			"i think the {one} is called {name}, tell me if its {number} is less than {n}."),
		n.Look("seen", name, If(From("seen").Failed(),
			n.Look("again", similar, n.reach(g, similar, "again")),
			n.reach(g, name, "seen"))),
	}
	if g.ends {
		turn.User = r.Phrase(slots, "{verb} {one} {name}, or what it is called.", "i think my {one} is {name}. {verb} it.",
			"{one} {name}, or nearly so: {verb} it.", "i think the {one} is called {name}, {verb} it.")
	}
	return turn
}

// seek: the name may be wrong, but the user says whose it is.
func (n Noun) seek(r *Rand, s State) Turn {
	g, owner := n.goal(r), r.Person()
	name := n.add(r, s, owner, g)
	if r.Chance(0.5) {
		name = r.Name()
	} else {
		name = max(name, n.add(r, s, owner, g)) // whoever looks at the first that Find finds has the wrong one
	}
	slots := n.slots(Values{"owner": owner, "name": name, "n": g.limit})
	turn := Turn{
		r.Phrase(slots, "is the {number} of {one} {name} of {owner} less than {n}?",
			"{owner} has the {one} {name}, tell me if its {number} is less than {n}.",
			"does {name}, the {one} of {owner}, have a {number} of less than {n}?",
			"tell me if {name}, the {one} of {owner}, has a {number} of less than {n}."),
		n.Look("seen", name, If(From("seen").Failed(),
			n.list(owner, n.Look("again", n.First(), n.reach(g, n.First(), "again"))),
			n.reach(g, name, "seen"))),
	}
	if g.ends {
		turn.User = r.Phrase(slots, "{verb} {one} {name} of {owner}.", "{owner} wants me to {verb} {one} {name}.",
			"{owner} has the {one} {name}, {verb} it.", "please {verb} {name}, the {one} of {owner}.")
	}
	return turn
}

// compare: two entities and a decision, or three and the least of them.
func (n Noun) compare(r *Rand, s State) Turn {
	if r.Chance(0.5) {
		return n.least(r, s)
	}
	numbers := r.Ints(2, 5, 95)
	a := n.Add(r, s, r.Person(), numbers[0], n.status(r, 0.5))
	b := n.Add(r, s, r.Person(), numbers[1], n.status(r, 0.5))
	less := From("a." + n.Number).Below(From("b." + n.Number))
	return Turn{
		r.Phrase(n.slots(Values{"a": a, "b": b}),
			"{verb} the {less} one of {one}s {a} and {b}.", "i want only one of the {one}s {a} and {b}, so {verb} the {less} one.",
			"look at the {one}s {a} and {b}, then {verb} the {less} one.", "of the {one}s {a} and {b}, {verb} the {less} one."),
		n.Look("a", a, n.Look("b", b,
			If(less, n.OnlyIf("a", a, n.Status, n.End(a)), n.OnlyIf("b", b, n.Status, n.End(b))))),
	}
}

func (n Noun) least(r *Rand, s State) Turn {
	names := make([]string, 3)
	for i, number := range r.Ints(3, 5, 95) {
		names[i] = n.Add(r, s, r.Person(), number, "")
	}
	ids := []string{"a", "b", "c"}
	value := func(i int) Ref { return From(ids[i] + "." + n.Number) }
	say := func(i int) *Plan {
		others := slices.Delete(slices.Clone(names), i, i+1)
		return OneOf(names[i], n.Least, n.Number, value(i), others...)
	}
	best := func(i, j int) *Plan { return If(value(i).Below(value(j)), say(i), say(j)) }
	return Turn{
		r.Phrase(n.slots(Values{"a": names[0], "b": names[1], "c": names[2], "least": n.Least}),
			"which {one} is the {least}, {a}, {b} or {c}?", "i have the {one}s {a}, {b} and {c}. which is the {least}?",
			"look at the {one}s {a}, {b} and {c}, which is the {least}?", "tell me the {least} {one} of {a}, {b} and {c}."),
		n.Look("a", names[0], n.Look("b", names[1], n.Look("c", names[2],
			If(value(0).Below(value(1)), best(0, 2), best(1, 2))))),
	}
}
