package workbench

// agenda is the state of the domain calendar.
type agenda struct {
	Events map[string]*event `json:"events"`
	Fresh  FreshNames        `json:"fresh"`
}

type event struct {
	Host   string `json:"host"`
	Status string `json:"status"`
	Room   string `json:"room"`
	Guests int    `json:"guests"`
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
		Kinds: append(eventNoun().Kinds(),
			Kind{"slot", 6, For(eventSlot)},
			Kind{"act", 14, For(eventAct)},
			Kind{"add", 14, For(eventAdd)},
			Kind{"limit", 10, For(eventLimit)},
			Kind{"shift", 10, For(eventShift)},
			Kind{"try", 9, For(eventTry)},
			Kind{"beyond", 5, For(eventBeyond)}),
	}
}

func eventNoun() Noun {
	return Noun{
		One: "event", Owner: "host", Shows: []string{"status", "day", "hour", "room", "guests"},
		Status: "open", Verb: "cancel", End: dropPlan,
		Number: "guests", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *Rand, s State, host string, guests int) string {
			return s.(*agenda).add(r, host, guests)
		},
	}
}

func newAgenda(r *Rand) State {
	s := &agenda{map[string]*event{}, r.Fresh()}
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

// add puts an event at a free slot; 0 guests are drawn.
func (s *agenda) add(r *Rand, host string, guests int) string {
	name := r.Name()
	if guests == 0 {
		guests = r.Int(5, 95)
	}
	s.Events[name] = &event{host, r.One("open", "open", "open", "locked"), r.One(rooms...), guests, s.free(r)}
	return name
}

func (s *agenda) any(r *Rand) string { return s.add(r, r.Person(), 0) }

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
			list = append(list, Fields{"event": name, "guests": e.Guests})
		}
	}
	return Fields{"events": list}, nil
}

func getEvent(s *agenda, a Args) (any, error) {
	e, err := s.event(a.Text("event"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": e.Status, "day": e.Day, "hour": e.Hour, "room": e.Room, "guests": e.Guests}, nil
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
	name, room := s.Fresh.Next(), rooms[at.Hour%len(rooms)]
	s.Events[name] = &event{a.Text("host"), "open", room, 1, at}
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

// eventSlot: a question about a slot.
func eventSlot(r *Rand, s *agenda) Turn {
	at := s.maybe(r)
	slots := Values{"day": at.Day, "hour": at.Hour}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "which room has the event on {day} at {hour}?", "tell me the room of the event on {day} at {hour}.",
				"what is on {day} at {hour}? say the room."),
			ifFree("slot", at, Sorry("the slot is free."),
				eventNoun().Look("seen", From("slot.event"), Tell("room", From("slot.event"), From("seen.room")))),
		}
	}
	return Turn{
		r.Phrase(slots, "is {day} at {hour} free?", "do i have time on {day} at {hour}?",
			"tell me if {day} at {hour} is free, yes or no."),
		ifFree("slot", at, Say("yes, the slot is free.").Any("yes").Without("no"),
			Say("no, the slot is taken by %v.", From("slot.event")).Any("no").Without("yes")),
	}
}

// eventAct: one change, if event and slot allow it.
func eventAct(r *Rand, s *agenda) Turn {
	name, at := s.any(r), s.maybe(r)
	slots := Values{"event": name, "day": at.Day, "hour": at.Hour}
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "please cancel event {event}.", "nobody comes to {event}, cancel it.",
				"cancel the event {event} and tell me which room it had."),
			eventNoun().If(name, "open", dropPlan(name)),
		}
	}
	return Turn{
		r.Phrase(slots, "move {event} to {day} at {hour}.", "please move the event {event} to {day} at {hour}.",
			"i cannot come to {event}, move it to {day} at {hour}.", "move event {event} to {day} at {hour}. which room will it have?"),
		eventNoun().If(name, "open", movePlan(name, at)),
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

// eventLimit: the user says what to do with early and with late events.
func eventLimit(r *Rand, s *agenda) Turn {
	name, at, n := s.any(r), s.maybe(r), r.Int(10, 17)
	less := From("seen.hour").Below(n)
	slots := Values{"event": name, "day": at.Day, "hour": at.Hour, "n": n}
	if r.Chance(0.6) {
		return Turn{
			r.Phrase(slots, "if {event} begins before {n}, move it to {day} at {hour}, otherwise cancel it.",
				"move {event} to {day} at {hour} if it begins before {n}, else cancel it.",
				"does {event} begin before {n}? then move it to {day} at {hour}, if not, cancel it."),
			eventNoun().If(name, "open", If(less, movePlan(name, at), dropPlan(name))),
		}
	}
	return Turn{
		r.Phrase(slots, "does event {event} begin before {n}?", "is the hour of {event} before {n}?",
			"{event} begins before {n}, yes or no?"),
		eventNoun().Look("seen", name, YesNo(less, "hour", name, From("seen.hour"))),
	}
}

// eventShift: the event must be found first.
func eventShift(r *Rand, s *agenda) Turn {
	n, host, at := eventNoun(), r.Person(), s.maybe(r)
	slots := Values{"host": host, "day": at.Day, "hour": at.Hour}
	if r.Chance(0.4) {
		if r.Chance(0.8) {
			s.add(r, host, 0)
		}
		return Turn{
			r.Phrase(slots, "move the event of {host} to {day} at {hour}.", "{host} wants to move the event to {day} at {hour}.",
				"find the event of {host} and move it to {day} at {hour}."),
			n.Find(host, n.If(n.First(), "open", movePlan(n.First(), at))),
		}
	}
	for _, guests := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, host, guests)
	}
	which, name := n.Pick(r)
	slots["which"] = which
	return Turn{
		r.Phrase(slots, "move the {which} event of {host} to {day} at {hour}.",
			"{host} wants to move the {which} event to {day} at {hour}.",
			"find the {which} event of {host} and move it to {day} at {hour}."),
		n.Find(host, n.If(name, "open", movePlan(name, at))),
	}
}

// eventTry: the user wants no look before; the tool may refuse.
func eventTry(r *Rand, s *agenda) Turn {
	if r.Chance(0.5) {
		name := s.any(r)
		s.Events[name].Status = r.One("open", "locked")
		return Turn{
			r.Phrase(Values{"event": name}, "try to cancel {event} at once.", "try to cancel event {event}.",
				"please try to cancel my event {event}."),
			Attempt(dropPlan(name), name, "status"),
		}
	}
	host, at := r.Person(), s.maybe(r)
	add := addPlan("add", host, at)
	return Turn{
		r.Phrase(Values{"host": host, "day": at.Day, "hour": at.Hour}, "try to add an event for {host} on {day} at {hour}.",
			"try to give {host} an event on {day} at {hour}.", "please try to add an event on {day} at {hour}, the host is {host}."),
		Do(add.id, add.tool, add.args, If(From("add").Failed(), taken("add"), add.next)),
	}
}

func eventBeyond(r *Rand, s *agenda) Turn {
	return Turn{
		r.Phrase(Values{"event": s.any(r), "host": r.Person()},
			"cook for the guests of {event}.", "call {host} about {event}, please.", "what is the weather in the garden?",
			"buy flowers for {event}.", "sing a song for {host}."),
		Beyond(),
	}
}
