package workbench

// Noun is the main type of entity of a domain, such as an order. It provides the kinds of
// tasks that all domains share. It expects a tool get_order, which shows an order, and a
// tool find_orders, which lists the orders of an owner as objects with the entity's name
// and its Number.
type Noun struct {
	One    string   // "order": the word, and the argument that names one
	Owner  string   // "customer": the word, and the argument of find_orders
	Shows  []string // the keys of get_order that a user may ask for
	Status string   // the status that End requires: "pending"
	Verb   string   // the user's word for what End does: "cancel"
	Number string   // the comparable key of get_order and find_orders: "price"

	Less, Least, Most string // "cheaper", "cheapest", "dearest"

	// End is a plan that ends an order whose status allows it, and reports it.
	End func(name any) *Plan
	// Add adds a new order to the state. If n is not 0, it is the order's Number.
	Add func(r *Rand, s State, owner string, n int) string
}

// Kinds returns the kinds that all nouns have.
func (n Noun) Kinds() []Kind {
	return []Kind{
		{"read", 9, n.read},
		{"word", 5, n.word},
		{"ask", 5, n.ask},
		{"find", 8, n.find},
		{"pick", 9, n.pick},
		{"mend", 7, n.mend},
		{"seek", 7, n.seek},
		{"compare", 8, n.compare},
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

// First refers to the first entity of Find's result.
func (n Noun) First() Ref { return From("found." + n.many() + ".0." + n.One) }

// If shows an entity, with the result id "seen", and continues with yes if it has the
// status; otherwise it tells the user which status it has.
func (n Noun) If(name any, status string, yes *Plan) *Plan {
	return n.Look("seen", name, n.onlyIf("seen", name, status, yes))
}

func (n Noun) onlyIf(id string, name any, status string, yes *Plan) *Plan {
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

func (n Noun) any(r *Rand, s State) string { return n.Add(r, s, r.Person(), 0) }

// read: one value of one entity.
func (n Noun) read(r *Rand, s State) Turn {
	name, key := n.any(r, s), r.One(n.Shows...)
	return Turn{
		r.Phrase(n.slots(Values{"name": name, "key": key}),
			"what is the {key} of {one} {name}?", "tell me the {key} of {one} {name}, please.",
			"i want to know the {key} of my {one} {name}.", "{one} {name}: which {key} does it have?",
			"look at {name}, my {one}, and say its {key}."),
		n.Look("seen", name, Tell(key, name, From("seen."+key))),
	}
}

// word: the user says what to do depending on a status.
func (n Noun) word(r *Rand, s State) Turn {
	name, key := n.any(r, s), r.Other("status", n.Shows)
	return Turn{
		r.Phrase(n.slots(Values{"name": name, "key": key}),
			"{verb} {one} {name} if it is {status}, otherwise tell me its {key}.",
			"if {one} {name} is {status}, {verb} it, if not, tell me the {key}.",
			"look at {one} {name}: when it is {status} {verb} it, else say its {key}.",
			"is {one} {name} {status}? then {verb} it, otherwise tell me the {key}."),
		n.Look("seen", name, If(From("seen.status").Is(n.Status), n.End(name), Tell(key, name, From("seen."+key)))),
	}
}

// ask: a yes-or-no question about a number.
func (n Noun) ask(r *Rand, s State) Turn {
	name, limit := n.any(r, s), r.Int(20, 80)
	return Turn{
		r.Phrase(n.slots(Values{"name": name, "n": limit}),
			"is the {number} of {one} {name} less than {n}?", "the {number} of {one} {name} is less than {n}, yes or no?",
			"tell me if {one} {name} has a {number} of less than {n}.", "does {one} {name} have a {number} of less than {n}?"),
		n.Look("seen", name, YesNo(From("seen."+n.Number).Below(limit), n.Number, name, From("seen."+n.Number))),
	}
}

// find: the user knows the owner, not the name.
func (n Noun) find(r *Rand, s State) Turn {
	owner, key := r.Person(), n.unlisted(r)
	if r.Chance(0.8) {
		n.Add(r, s, owner, 0)
	}
	name, slots := n.First(), n.slots(Values{"owner": owner, "key": key})
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "what is the {key} of the {one} of {owner}?", "{owner} has one {one}, tell me its {key}.",
				"find the {one} of {owner} and say its {key}.", "tell me the {key} of the only {one} of {owner}."),
			n.Find(owner, n.Look("seen", name, Tell(key, name, From("seen."+key)))),
		}
	}
	return Turn{
		r.Phrase(slots, "{verb} the {one} of {owner}.", "{owner} has one {one}, please {verb} it.",
			"find the {one} of {owner} and {verb} it.", "{owner} wants me to {verb} the only {one}."),
		n.Find(owner, n.If(name, n.Status, n.End(name))),
	}
}

// unlisted draws a key that the list of find does not contain.
func (n Noun) unlisted(r *Rand) string { return r.Other(n.Number, n.Shows) }

// pick: the least or greatest of a list.
func (n Noun) pick(r *Rand, s State) Turn {
	owner, key := r.Person(), n.unlisted(r)
	for _, number := range r.Ints(r.Int(2, 3), 5, 95) {
		n.Add(r, s, owner, number)
	}
	which, name := n.Pick(r)
	slots := n.slots(Values{"owner": owner, "which": which, "key": key})
	switch r.Int(1, 3) {
	case 1:
		return Turn{
			r.Phrase(slots, "which {one} of {owner} is the {which}?", "tell me the {which} {one} of {owner}.",
				"find the {which} {one} of {owner}.", "{owner} asks for the {which} {one}. which is it?"),
			n.list(owner, Say("it is %v.", name)),
		}
	case 2:
		return Turn{
			r.Phrase(slots, "what is the {key} of the {which} {one} of {owner}?", "tell me the {key} of the {which} {one} of {owner}.",
				"find the {which} {one} of {owner} and say its {key}."),
			n.list(owner, n.Look("seen", name, Tell(key, name, From("seen."+key)))),
		}
	}
	return Turn{
		r.Phrase(slots, "{verb} the {which} {one} of {owner}.", "{owner} wants me to {verb} the {which} {one}.",
			"please find the {which} {one} of {owner} and {verb} it."),
		n.list(owner, n.If(name, n.Status, n.End(name))),
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
	name, key := n.any(r, s), r.One(n.Shows...)
	if r.Chance(0.8) {
		name = r.Slip(name)
	}
	similar := From("seen.similar")
	return Turn{
		r.Phrase(n.slots(Values{"name": name, "key": key}),
			"what is the {key} of {one} {name}, or what it is called?", "i think my {one} is {name}. tell me its {key}.",
			"the {key} of {one} {name}, please, if the name is right.", "{one} {name}, or nearly so: say its {key}."),
		n.Look("seen", name, If(From("seen").Failed(),
			n.Look("again", similar, Tell(key, similar, From("again."+key))),
			Tell(key, name, From("seen."+key)))),
	}
}

// seek: the name is wrong, but the user says whose it is.
func (n Noun) seek(r *Rand, s State) Turn {
	owner, key := r.Person(), n.unlisted(r)
	name := n.Add(r, s, owner, 0)
	if r.Chance(0.8) {
		name = r.Name()
	}
	slots := n.slots(Values{"owner": owner, "key": key, "name": name})
	turn := Turn{User: r.Phrase(slots, "what is the {key} of {one} {name} of {owner}?",
		"{owner} has the {one} {name}, tell me its {key}.", "say the {key} of {name}, the {one} of {owner}.")}
	goal := func(name any, id string) *Plan { return Tell(key, name, From(id+"."+key)) }
	if r.Chance(0.5) {
		turn.User = r.Phrase(slots, "{verb} {one} {name} of {owner}.", "{owner} wants me to {verb} {one} {name}.",
			"please {verb} {name}, the {one} of {owner}.")
		goal = func(name any, id string) *Plan { return n.onlyIf(id, name, n.Status, n.End(name)) }
	}
	turn.Plan = n.Look("seen", name, If(From("seen").Failed(),
		n.list(owner, n.Look("again", n.First(), goal(n.First(), "again"))),
		goal(name, "seen")))
	return turn
}

// compare: two entities, one decision.
func (n Noun) compare(r *Rand, s State) Turn {
	numbers := r.Ints(2, 5, 95)
	a, b := n.Add(r, s, r.Person(), numbers[0]), n.Add(r, s, r.Person(), numbers[1])
	slots := n.slots(Values{"a": a, "b": b})
	less := From("a." + n.Number).Below(From("b." + n.Number))
	both := func(next *Plan) *Plan { return n.Look("a", a, n.Look("b", b, next)) }
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "which {one} is {less}, {a} or {b}?", "i have the {one}s {a} and {b}. which is {less}?",
				"tell me the {less} {one} of {a} and {b}."),
			both(OneOf(less, a, b, n.Less)),
		}
	}
	return Turn{
		r.Phrase(slots, "{verb} the {less} one of {one}s {a} and {b}.", "of the {one}s {a} and {b}, {verb} the {less} one.",
			"i want only one of the {one}s {a} and {b}, so {verb} the {less} one."),
		both(If(less, n.onlyIf("a", a, n.Status, n.End(a)), n.onlyIf("b", b, n.Status, n.End(b)))),
	}
}
