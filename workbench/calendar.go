package workbench

// agenda is the state of the domain calendar.
type agenda struct {
	Events map[string]*event `json:"events"`
	Fresh  freshNames        `json:"fresh"`
}

type event struct {
	Host   string `json:"host"`
	Status string `json:"status"`
	Room   string `json:"room"`
	slot
}

type slot struct {
	Day  string `json:"day"`
	Hour int    `json:"hour"`
}

var rooms = []string{"hall", "garden", "attic", "studio", "tower"}

func calendar() Domain {
	name, hour := Text("event"), Param{Name: "hour", Integer: true, Min: 8, Max: 19}
	at := []Param{Choice("day", days), hour}
	return Domain{
		Name:  "calendar",
		About: "you help with events. locked events cannot be moved or cancelled, a taken slot cannot be used.",
		Tools: []Tool{
			{Name: "find_events", About: "list the events of a host", Params: []Param{Text("host")}, Do: On(findEvents)},
			{Name: "get_event", About: "show an event", Params: []Param{name}, Do: On(getEvent)},
			{Name: "check_slot", About: "show if a slot is free", Params: at, Do: On(checkSlot)},
			{Name: "add_event", About: "add an event at a free slot", Params: append([]Param{Text("host")}, at...), Write: true, Do: On(addEvent)},
			{Name: "move_event", About: "move an open event to a free slot", Params: append([]Param{name}, at...), Write: true, Do: On(moveEvent)},
			{Name: "cancel_event", About: "cancel an open event", Params: []Param{name}, Write: true, Do: On(cancelEvent)},
		},
		New: newAgenda,
		Kinds: []Kind{
			{"read", 10, For(eventRead)},
			{"act", 14, For(eventAct)},
			{"add", 14, For(eventAdd)},
			{"word", 10, For(eventWord)},
			{"limit", 12, For(eventLimit)},
			{"find", 10, For(eventFind)},
			{"pick", 12, For(eventPick)},
			{"mend", 8, For(eventMend)},
			{"seek", 8, For(eventSeek)},
			{"try", 9, For(eventTry)},
			{"compare", 8, For(eventCompare)},
			{"beyond", 5, For(eventBeyond)},
		},
	}
}

func newAgenda(r *Rand) State {
	s := &agenda{map[string]*event{}, r.fresh()}
	for range 3 {
		s.any(r)
	}
	return s
}

// free draws a slot that no event has.
func (s *agenda) free(r *Rand) slot {
	for {
		at := slot{r.One(days...), r.Int(8, 19)}
		if s.at(at) == "" {
			return at
		}
	}
}

// maybe draws a slot, free or taken.
func (s *agenda) maybe(r *Rand) slot {
	if r.Chance(0.6) {
		return s.free(r)
	}
	return s.Events[s.any(r)].slot
}

// at names the event that has a slot; "" if none does.
func (s *agenda) at(at slot) string {
	for _, name := range sortedKeys(s.Events) {
		if s.Events[name].slot == at {
			return name
		}
	}
	return ""
}

func (s *agenda) add(r *Rand, host, status string) string {
	name := r.Name()
	s.Events[name] = &event{host, status, r.One(rooms...), s.free(r)}
	return name
}

// any adds an event of a new host, open more often than not.
func (s *agenda) any(r *Rand) string {
	return s.add(r, r.Person(), r.One("open", "open", "open", "locked"))
}

func (s *agenda) event(name string) (*event, error) {
	if e, ok := s.Events[name]; ok {
		return e, nil
	}
	return nil, NotFound("event", name, s.Events, "find_events")
}

// open returns an event that may be changed.
func (s *agenda) open(name string) (*event, error) {
	e, err := s.event(name)
	if err == nil && e.Status != "open" {
		return nil, Refuse("status", e.Status, "event is not open")
	}
	return e, err
}

func findEvents(s *agenda, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Events) {
		if e := s.Events[name]; e.Host == a.Text("host") {
			list = append(list, Fields{"event": name, "hour": e.Hour})
		}
	}
	return Fields{"events": list}, nil
}

func getEvent(s *agenda, a Args) (any, error) {
	e, err := s.event(a.Text("event"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": e.Status, "day": e.Day, "hour": e.Hour, "room": e.Room}, nil
}

func checkSlot(s *agenda, a Args) (any, error) {
	if name := s.at(slot{a.Text("day"), a.Int("hour")}); name != "" {
		return Fields{"slot": "taken", "event": name}, nil
	}
	return Fields{"slot": "free"}, nil
}

// take returns the slot that a call asks for if it is free.
func (s *agenda) take(a Args) (slot, error) {
	at := slot{a.Text("day"), a.Int("hour")}
	if name := s.at(at); name != "" {
		return at, Refuse("event", name, "slot is taken")
	}
	return at, nil
}

func addEvent(s *agenda, a Args) (any, error) {
	at, err := s.take(a)
	if err != nil {
		return nil, err
	}
	name, room := s.Fresh.next(), rooms[at.Hour%len(rooms)]
	s.Events[name] = &event{a.Text("host"), "open", room, at}
	return Fields{"event": name, "room": room}, nil
}

func moveEvent(s *agenda, a Args) (any, error) {
	e, err := s.open(a.Text("event"))
	if err != nil {
		return nil, err
	}
	at, err := s.take(a)
	if err != nil {
		return nil, err
	}
	e.slot, e.Room = at, rooms[at.Hour%len(rooms)]
	return Fields{"day": at.Day, "hour": at.Hour, "room": e.Room}, nil
}

func cancelEvent(s *agenda, a Args) (any, error) {
	e, err := s.open(a.Text("event"))
	if err != nil {
		return nil, err
	}
	delete(s.Events, a.Text("event"))
	return Fields{"status": "cancelled", "room": e.Room}, nil
}

// Plans.

func lookEvent(name any, next *Plan) *Plan {
	return Do("event", "get_event", Values{"event": name}, next)
}

// ifUnlocked goes on with yes if the event that was looked at is open.
func ifUnlocked(name any, yes *Plan) *Plan {
	return onlyIf(From("event.status").Is("open"), yes, name, From("event.status"))
}

// ifFree looks at a slot, under the id, and goes on by what is there.
func ifFree(id string, at slot, yes, no *Plan) *Plan {
	return Do(id, "check_slot", Values{"day": at.Day, "hour": at.Hour}, If(From(id+".slot").Is("free"), yes, no))
}

// taken declines a slot because of the event that has it.
func taken(id string) *Plan { return Sorry("the slot is taken by %v.", From(id+".event")) }

func movePlan(name any, at slot) *Plan {
	return ifFree("slot", at, Do("move", "move_event", Values{"event": name, "day": at.Day, "hour": at.Hour},
		Say("done, %v is moved, the room is %v.", name, From("move.room"))), taken("slot"))
}

func addPlan(id, host string, at slot) *Plan {
	return Do(id, "add_event", Values{"host": host, "day": at.Day, "hour": at.Hour},
		Say("done, the event is %v, the room is %v.", From(id+".event"), From(id+".room")))
}

func dropPlan(name any) *Plan {
	return Do("cancel", "cancel_event", Values{"event": name},
		Say("done, %v is cancelled, the room was %v.", name, From("cancel.room")))
}

// Kinds.

func eventKey(r *Rand) string { return r.One("status", "day", "hour", "room") }

func eventRead(r *Rand, s *agenda) Turn {
	if r.Chance(0.3) {
		at := s.maybe(r)
		return Turn{
			r.Phrase(Values{"day": at.Day, "hour": at.Hour}, "is {day} at {hour} free?", "do i have time on {day} at {hour}?",
				"tell me if {day} at {hour} is free, yes or no."),
			ifFree("slot", at, Say("yes, the slot is free.").Any("yes").Without("no"),
				Say("no, the slot is taken by %v.", From("slot.event")).Any("no").Without("yes")),
		}
	}
	name, key := s.any(r), eventKey(r)
	return Turn{
		r.Phrase(Values{"event": name, "key": key},
			"what is the {key} of event {event}?", "tell me the {key} of event {event}, please.",
			"i want to know the {key} of my event {event}.", "event {event}: which {key} does it have?"),
		lookEvent(name, tell(key, name, From("event."+key))),
	}
}

func eventAct(r *Rand, s *agenda) Turn {
	name, at := s.any(r), s.maybe(r)
	slots := Values{"event": name, "day": at.Day, "hour": at.Hour}
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "please cancel event {event}.", "nobody comes to {event}, cancel it.",
				"cancel the event {event} and tell me which room it had."),
			lookEvent(name, ifUnlocked(name, dropPlan(name))),
		}
	}
	return Turn{
		r.Phrase(slots, "move {event} to {day} at {hour}.", "please move the event {event} to {day} at {hour}.",
			"i cannot come to {event}, move it to {day} at {hour}.", "move event {event} to {day} at {hour}. which room will it have?"),
		lookEvent(name, ifUnlocked(name, movePlan(name, at))),
	}
}

// eventAdd: a new event, perhaps with a second choice.
func eventAdd(r *Rand, s *agenda) Turn {
	host, at := r.Person(), s.maybe(r)
	slots := Values{"host": host, "day": at.Day, "hour": at.Hour}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "add an event for {host} on {day} at {hour}.", "{host} needs an event on {day} at {hour}.",
				"please add an event on {day} at {hour}, the host is {host}."),
			ifFree("slot", at, addPlan("add", host, at), taken("slot")),
		}
	}
	other := s.maybe(r)
	for other == at {
		other = s.maybe(r)
	}
	slots["day2"], slots["hour2"] = other.Day, other.Hour
	return Turn{
		r.Phrase(slots, "add an event for {host} on {day} at {hour}, or if that is taken, on {day2} at {hour2}.",
			"{host} needs an event on {day} at {hour}, else on {day2} at {hour2}.",
			"if {day} at {hour} is free, add an event for {host}, otherwise on {day2} at {hour2}."),
		ifFree("slot", at, addPlan("add", host, at),
			ifFree("other", other, addPlan("second", host, other), taken("other"))),
	}
}

func eventWord(r *Rand, s *agenda) Turn {
	name, key := s.any(r), r.One("day", "hour", "room")
	return Turn{
		r.Phrase(Values{"event": name, "key": key}, "cancel {event} if it is open, otherwise tell me its {key}.",
			"if event {event} is open, cancel it, if not, tell me the {key}.",
			"look at {event}: when it is open cancel it, else say its {key}."),
		lookEvent(name, If(From("event.status").Is("open"), dropPlan(name), tell(key, name, From("event."+key)))),
	}
}

func eventLimit(r *Rand, s *agenda) Turn {
	name, at, n := s.any(r), s.maybe(r), r.Int(10, 17)
	less := From("event.hour").Below(n)
	slots := Values{"event": name, "day": at.Day, "hour": at.Hour, "n": n}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "if {event} begins before {n}, move it to {day} at {hour}, otherwise cancel it.",
				"move {event} to {day} at {hour} if it begins before {n}, else cancel it.",
				"does {event} begin before {n}? then move it to {day} at {hour}, if not, cancel it."),
			lookEvent(name, ifUnlocked(name, If(less, movePlan(name, at), dropPlan(name)))),
		}
	}
	return Turn{
		r.Phrase(slots, "does event {event} begin before {n}?", "is the hour of {event} before {n}?",
			"{event} begins before {n}, yes or no?"),
		lookEvent(name, yesNo(less, "hour", name, From("event.hour"))),
	}
}

func eventFind(r *Rand, s *agenda) Turn {
	host, key, at := r.Person(), r.One("status", "day", "room"), s.maybe(r)
	slots := Values{"host": host, "key": key, "day": at.Day, "hour": at.Hour}
	if r.Chance(0.8) {
		s.add(r, host, r.One("open", "open", "locked"))
	}
	name := From("found.events.0.event")
	var t Turn
	switch r.Int(1, 3) {
	case 1:
		t = Turn{
			r.Phrase(slots, "what is the {key} of the event of {host}?", "{host} has an event, tell me its {key}.",
				"find the event of {host} and say its {key}."),
			lookEvent(name, tell(key, name, From("event."+key))),
		}
	case 2:
		t = Turn{
			r.Phrase(slots, "cancel the event of {host}.", "{host} is ill, please cancel the event.",
				"find the event of {host} and cancel it."),
			lookEvent(name, ifUnlocked(name, dropPlan(name))),
		}
	case 3:
		t = Turn{
			r.Phrase(slots, "move the event of {host} to {day} at {hour}.", "{host} wants to move the event to {day} at {hour}.",
				"find the event of {host} and move it to {day} at {hour}."),
			lookEvent(name, ifUnlocked(name, movePlan(name, at))),
		}
	}
	t.Plan = Do("found", "find_events", Values{"host": host},
		If(From("found.events").Empty(), Sorry("%v has no event.", host), t.Plan))
	return t
}

func eventPick(r *Rand, s *agenda) Turn {
	host, at := r.Person(), s.maybe(r)
	for _, hour := range r.Ints(r.Int(2, 3), 8, 19) {
		e := s.Events[s.add(r, host, r.One("open", "open", "locked"))]
		e.slot = slot{}
		for e.slot = (slot{r.One(days...), hour}); s.crowded(e.slot) || e.slot == at; {
			e.Day = r.One(days...)
		}
	}
	slots := Values{"host": host, "day": at.Day, "hour": at.Hour, "which": "earliest"}
	name := From("found.events").Least("hour").At("event")
	if r.Chance(0.5) {
		slots["which"] = "latest"
		name = From("found.events").Most("hour").At("event")
	}
	var t Turn
	switch r.Int(1, 3) {
	case 1:
		t = Turn{
			r.Phrase(slots, "which event of {host} is the {which}?", "tell me the {which} event of {host}.",
				"find the {which} event of {host}."),
			Say("it is %v.", name),
		}
	case 2:
		t = Turn{
			r.Phrase(slots, "cancel the {which} event of {host}.", "{host} wants to cancel the {which} event.",
				"please find the {which} event of {host} and cancel it."),
			lookEvent(name, ifUnlocked(name, dropPlan(name))),
		}
	case 3:
		t = Turn{
			r.Phrase(slots, "move the {which} event of {host} to {day} at {hour}.",
				"{host} wants to move the {which} event to {day} at {hour}.",
				"find the {which} event of {host} and move it to {day} at {hour}."),
			lookEvent(name, ifUnlocked(name, movePlan(name, at))),
		}
	}
	t.Plan = Do("found", "find_events", Values{"host": host}, t.Plan)
	return t
}

// crowded reports whether two events have a slot.
func (s *agenda) crowded(at slot) bool {
	n := 0
	for _, e := range s.Events {
		if e.slot == at {
			n++
		}
	}
	return n > 1
}

func eventMend(r *Rand, s *agenda) Turn {
	name, key := s.any(r), eventKey(r)
	slip := name
	if r.Chance(0.8) {
		slip = r.Slip(name)
	}
	similar := From("event.similar")
	return Turn{
		r.Phrase(Values{"event": slip, "key": key},
			"what is the {key} of event {event}, or what it is called?", "i think my event is {event}. tell me its {key}.",
			"the {key} of event {event}, please, if the name is right."),
		lookEvent(slip, If(From("event").Failed(),
			Do("again", "get_event", Values{"event": similar}, tell(key, similar, From("again."+key))),
			tell(key, slip, From("event."+key)))),
	}
}

func eventSeek(r *Rand, s *agenda) Turn {
	host, key := r.Person(), r.One("status", "day", "room")
	wrong := s.add(r, host, r.One("open", "open", "locked"))
	if r.Chance(0.8) {
		wrong = r.Name()
	}
	slots := Values{"host": host, "key": key, "event": wrong}
	name := From("found.events.0.event")
	t := Turn{User: r.Phrase(slots, "what is the {key} of event {event} of {host}?",
		"{host} has event {event}, tell me its {key}.", "say the {key} of {event}, the event of {host}.")}
	goal := func(name any, id string) *Plan { return tell(key, name, From(id+"."+key)) }
	if r.Chance(0.4) {
		t.User = r.Phrase(slots, "cancel event {event} of {host}.", "{host} wants to cancel event {event}.",
			"please cancel {event}, the event of {host}.")
		goal = func(name any, id string) *Plan {
			return onlyIf(From(id+".status").Is("open"), dropPlan(name), name, From(id+".status"))
		}
	}
	t.Plan = lookEvent(wrong, If(From("event").Failed(),
		Do("found", "find_events", Values{"host": host},
			Do("again", "get_event", Values{"event": name}, goal(name, "again"))),
		goal(wrong, "event")))
	return t
}

func eventTry(r *Rand, s *agenda) Turn {
	if r.Chance(0.5) {
		name := s.add(r, r.Person(), r.One("open", "locked"))
		return Turn{
			r.Phrase(Values{"event": name}, "try to cancel {event} at once.", "try to cancel event {event}.",
				"please try to cancel my event {event}."),
			Do("cancel", "cancel_event", Values{"event": name}, If(From("cancel").Failed(),
				Sorry("%v is %v.", name, From("cancel.status")),
				Say("done, %v is cancelled, the room was %v.", name, From("cancel.room")))),
		}
	}
	host, at := r.Person(), s.maybe(r)
	return Turn{
		r.Phrase(Values{"host": host, "day": at.Day, "hour": at.Hour}, "try to add an event for {host} on {day} at {hour}.",
			"try to give {host} an event on {day} at {hour}.", "please try to add an event on {day} at {hour}, the host is {host}."),
		Do("add", "add_event", Values{"host": host, "day": at.Day, "hour": at.Hour}, If(From("add").Failed(),
			taken("add"),
			Say("done, the event is %v, the room is %v.", From("add.event"), From("add.room")))),
	}
}

func eventCompare(r *Rand, s *agenda) Turn {
	a, b := s.any(r), s.any(r)
	for s.Events[a].Hour == s.Events[b].Hour {
		s.Events[b].slot = s.free(r)
	}
	slots := Values{"a": a, "b": b}
	less := From("a.hour").Below(From("b.hour"))
	both := func(next *Plan) *Plan {
		return Do("a", "get_event", Values{"event": a}, Do("b", "get_event", Values{"event": b}, next))
	}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "which hour is earlier, that of {a} or of {b}?", "i have events {a} and {b}. which has the earlier hour?",
				"tell me which of {a} and {b} has the earlier hour."),
			both(oneOf(less, a, b, "earlier")),
		}
	}
	drop := func(name, id string) *Plan {
		return onlyIf(From(id+".status").Is("open"), dropPlan(name), name, From(id+".status"))
	}
	return Turn{
		r.Phrase(slots, "cancel the one of {a} and {b} with the earlier hour.",
			"of events {a} and {b}, cancel the one that has the earlier hour.",
			"i can only come to one of {a} and {b}, so cancel the one with the earlier hour."),
		both(If(less, drop(a, "a"), drop(b, "b"))),
	}
}

func eventBeyond(r *Rand, s *agenda) Turn {
	return Turn{
		r.Phrase(Values{"event": s.any(r), "host": r.Person()},
			"cook for the guests of {event}.", "call {host} about {event}, please.", "what is the weather in the garden?",
			"buy flowers for {event}.", "sing a song for {host}."),
		beyond(),
	}
}
