package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// agenda is the state of the domain calendar.
type agenda struct {
	Events map[string]*event    `json:"events"`
	Fresh  workbench.FreshNames `json:"fresh"`
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

var eventStops = []string{"locked", "past", "secret"}

var rooms = []string{"hall", "garden", "attic", "studio", "tower"}

func calendar() workbench.Domain {
	name, hour := workbench.Text("event"), workbench.Param{Name: "hour", Integer: true, Min: 8, Max: 19}
	at := []workbench.Param{workbench.Choice("day", days), hour}
	return workbench.Domain{
		Name:  "calendar",
		About: "you help with events. only open events can be moved or cancelled, a taken slot cannot be used.",
		Tools: []workbench.Tool{
			{Name: "find_events", About: "list the events of a host", Params: []workbench.Param{workbench.Text("host")}, Do: workbench.On(findEvents)},
			{Name: "get_event", About: "show an event", Params: []workbench.Param{name}, Do: workbench.On(getEvent)},
			{Name: "check_slot", About: "show if a slot is free", Params: at, Do: workbench.On(checkSlot)},
			{Name: "add_event", About: "add an event at a free slot", Params: append([]workbench.Param{workbench.Text("host")}, at...),
				Write: true, Do: workbench.On(addEvent)},
			{Name: "move_event", About: "move an open event to a free slot", Params: append([]workbench.Param{name}, at...),
				Write: true, Do: workbench.On(moveEvent)},
			{Name: "cancel_event", About: "cancel an open event", Params: []workbench.Param{name}, Write: true, Do: workbench.On(cancelEvent)},
		},
		New: newAgenda,
		Kinds: append(eventNoun().Kinds(),
			workbench.Kind{Name: "slot", Weight: 2, Make: workbench.For(eventSlot)},
			workbench.Kind{Name: "act", Weight: 10, Make: workbench.For(eventAct)},
			workbench.Kind{Name: "add", Weight: 13, Make: workbench.For(eventAdd)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(eventLimit)},
			workbench.Kind{Name: "shift", Weight: 12, Make: workbench.For(eventShift)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(eventTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(eventBeyond)}),
	}
}

func eventNoun() workbench.Noun {
	return workbench.Noun{
		One: "event", Owner: "host", Shows: []string{"status", "day", "hour", "room", "guests"},
		Status: "open", Others: eventStops, Verb: "cancel", End: dropPlan,
		Number: "guests", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *workbench.Rand, s workbench.State, host string, guests int, status string) string {
			return s.(*agenda).add(r, host, guests, status)
		},
	}
}

func newAgenda(r *workbench.Rand) workbench.State {
	s := &agenda{map[string]*event{}, r.Fresh()}
	for range 3 {
		s.any(r)
	}
	return s
}

// free draws a slot that no event has.
func (s *agenda) free(r *workbench.Rand) slot {
	for {
		at := slot{r.One(days...), r.Int(8, 19)}
		if s.at(at) == "" {
			return at
		}
	}
}

// maybe draws a slot, free or taken.
func (s *agenda) maybe(r *workbench.Rand) slot {
	if r.Chance(0.5) {
		return s.free(r)
	}
	return s.Events[s.any(r)].slot
}

// at returns the name of the event in a slot, "" if it is free.
func (s *agenda) at(at slot) string {
	for _, name := range slices.Sorted(maps.Keys(s.Events)) {
		if s.Events[name].slot == at {
			return name
		}
	}
	return ""
}

// add puts an event into a free slot and returns its name. A number of guests of 0 is
// drawn, and so is a status of "".
func (s *agenda) add(r *workbench.Rand, host string, guests int, status string) string {
	name := r.Name()
	if guests == 0 {
		guests = r.Int(5, 95)
	}
	if status == "" {
		status = usually(r, "open", eventStops)
	}
	s.Events[name] = &event{host, status, r.One(rooms...), guests, s.free(r)}
	return name
}

func (s *agenda) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0, "") }

// room is the one that an event gets: which, depends on all that is planned.
func (s *agenda) room() string {
	guests := 0
	for _, e := range s.Events {
		guests += e.Guests
	}
	return rooms[guests%len(rooms)]
}

func (s *agenda) event(name string) (*event, error) {
	if e, ok := s.Events[name]; ok {
		return e, nil
	}
	return nil, workbench.NotFound("event", name, s.Events, "find_events")
}

// open returns an event that may be changed.
func (s *agenda) open(name string) (*event, error) {
	e, err := s.event(name)
	if err == nil && e.Status != "open" {
		return nil, workbench.Refuse("status", e.Status, "event is not open")
	}
	return e, err
}

func findEvents(s *agenda, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Events)) {
		if e := s.Events[name]; e.Host == a.Text("host") {
			list = append(list, workbench.Fields{"event": name, "guests": e.Guests})
		}
	}
	return workbench.Fields{"events": list}, nil
}

func getEvent(s *agenda, a workbench.Args) (any, error) {
	e, err := s.event(a.Text("event"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": e.Status, "day": e.Day, "hour": e.Hour, "room": e.Room, "guests": e.Guests}, nil
}

func checkSlot(s *agenda, a workbench.Args) (any, error) {
	if name := s.at(slot{a.Text("day"), a.Int("hour")}); name != "" {
		return workbench.Fields{"slot": "taken", "event": name}, nil
	}
	return workbench.Fields{"slot": "free"}, nil
}

// take returns the slot that a call asks for, or an error if it is taken.
func (s *agenda) take(a workbench.Args) (slot, error) {
	at := slot{a.Text("day"), a.Int("hour")}
	if name := s.at(at); name != "" {
		return at, workbench.Refuse("event", name, "slot is taken")
	}
	return at, nil
}

func addEvent(s *agenda, a workbench.Args) (any, error) {
	at, err := s.take(a)
	if err != nil {
		return nil, err
	}
	name, room := s.Fresh.Next(), s.room()
	s.Events[name] = &event{a.Text("host"), "open", room, 1, at}
	return workbench.Fields{"event": name, "room": room}, nil
}

func moveEvent(s *agenda, a workbench.Args) (any, error) {
	e, err := s.open(a.Text("event"))
	if err != nil {
		return nil, err
	}
	at, err := s.take(a)
	if err != nil {
		return nil, err
	}
	e.slot, e.Room = at, s.room()
	return workbench.Fields{"day": at.Day, "hour": at.Hour, "room": e.Room}, nil
}

func cancelEvent(s *agenda, a workbench.Args) (any, error) {
	e, err := s.open(a.Text("event"))
	if err != nil {
		return nil, err
	}
	delete(s.Events, a.Text("event"))
	return workbench.Fields{"status": "cancelled", "room": e.Room}, nil
}

// Plans.

// ifFree checks a slot, under the id, and continues with yes if it is free, else with
// no.
func ifFree(id string, at slot, yes, no *workbench.Plan) *workbench.Plan {
	return workbench.Do(id, "check_slot", workbench.Values{"day": at.Day, "hour": at.Hour}, workbench.If(workbench.From(id+".slot").Is("free"), yes, no))
}

// taken declines because an event has the slot checked under the id.
func taken(id string) *workbench.Plan {
	return workbench.Sorry("the slot is taken by %v.", workbench.From(id+".event"))
}

func movePlan(name any, at slot) *workbench.Plan {
	return ifFree("slot", at, workbench.Do("move", "move_event", workbench.Values{"event": name, "day": at.Day, "hour": at.Hour},
		workbench.Say("done, %v is moved, the room is %v.", name, workbench.From("move.room"))), taken("slot"))
}

func addPlan(id, host string, at slot) *workbench.Plan {
	return workbench.Do(id, "add_event", workbench.Values{"host": host, "day": at.Day, "hour": at.Hour},
		workbench.Say("done, the event is %v, the room is %v.", workbench.From(id+".event"), workbench.From(id+".room")))
}

func dropPlan(name any) *workbench.Plan {
	return workbench.Do("cancel", "cancel_event", workbench.Values{"event": name},
		workbench.Say("done, %v is cancelled, the room was %v.", name, workbench.From("cancel.room")))
}

// Kinds.

// eventSlot: a question about a slot.
func eventSlot(r *workbench.Rand, s *agenda) workbench.Turn {
	at := s.maybe(r)
	slots := workbench.Values{"day": at.Day, "hour": at.Hour}
	if r.Chance(0.7) {
		return workbench.Turn{
			User: r.Phrase(slots, "which room has the event on {day} at {hour}?", "what is on {day} at {hour}? say the room.",
				"tell me the room of the event on {day} at {hour}."),
			Plan: ifFree("slot", at, workbench.Sorry("the slot is free."),
				eventNoun().Look("seen", workbench.From("slot.event"), workbench.Tell("room", workbench.From("slot.event"), workbench.From("seen.room")))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "is {day} at {hour} free?", "tell me if {day} at {hour} is free, yes or no.",
			"is the slot on {day} at {hour} free?"),
		Plan: ifFree("slot", at, workbench.Say("yes, the slot is free.").Any("yes").Without("no"),
			workbench.Say("no, the slot is taken by %v.", workbench.From("slot.event")).Any("no").Without("yes")),
	}
}

// eventAct: cancel or move, if the event is open and the slot free.
func eventAct(r *workbench.Rand, s *agenda) workbench.Turn {
	name, at := s.any(r), s.maybe(r)
	slots := workbench.Values{"event": name, "day": at.Day, "hour": at.Hour}
	if r.Chance(0.25) {
		return workbench.Turn{
			User: r.Phrase(slots, "please cancel event {event}.", "nobody comes to {event}, cancel it.",
				"cancel event {event} and tell me which room it had."),
			Plan: eventNoun().If(name, "open", dropPlan(name)),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "move {event} to {day} at {hour}.", "move event {event} to {day} at {hour}. which room will it have?",
			"i cannot come to {event}, move it to {day} at {hour}.", "please move the event {event} to {day} at {hour}."),
		Plan: eventNoun().If(name, "open", movePlan(name, at)),
	}
}

// eventAdd: a new event, with a second choice of slot.
func eventAdd(r *workbench.Rand, s *agenda) workbench.Turn {
	host, at, other := r.Person(), s.maybe(r), s.maybe(r)
	for other == at {
		other = s.maybe(r)
	}
	slots := workbench.Values{"host": host, "day": at.Day, "hour": at.Hour, "day2": other.Day, "hour2": other.Hour}
	return workbench.Turn{
		User: r.Phrase(slots, "add an event for {host} on {day} at {hour}, or if that is taken, on {day2} at {hour2}.",
			"{host} needs an event on {day} at {hour}, else on {day2} at {hour2}.",
			"if {day} at {hour} is free, add an event for {host}, otherwise on {day2} at {hour2}.",
			"please add an event for {host} on {day} at {hour}, else on {day2} at {hour2}."),
		Plan: ifFree("slot", at, addPlan("add", host, at),
			ifFree("other", other, addPlan("second", host, other), taken("other"))),
	}
}

// eventLimit: what to do depends on the hour.
func eventLimit(r *workbench.Rand, s *agenda) workbench.Turn {
	name, at, n := s.any(r), s.maybe(r), r.Int(12, 15)
	less := workbench.From("seen.hour").Below(n)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"event": name, "day": at.Day, "hour": at.Hour, "n": n},
			"if {event} begins before {n}, move it to {day} at {hour}, otherwise cancel it.",
			"move {event} to {day} at {hour} if it begins before {n}, else cancel it.",
			"does {event} begin before {n}? then move it to {day} at {hour}, if not, cancel it.",
			"if event {event} begins before {n}, move it to {day} at {hour}, if not, cancel it."),
		Plan: eventNoun().If(name, "open", workbench.If(less, movePlan(name, at), dropPlan(name))),
	}
}

// eventShift: move an event that must be found first.
func eventShift(r *workbench.Rand, s *agenda) workbench.Turn {
	n, host, other, at := eventNoun(), r.Person(), r.Person(), s.maybe(r)
	slots := workbench.Values{"host": host, "other": other, "day": at.Day, "hour": at.Hour}
	if r.Chance(0.5) {
		if r.Chance(0.6) {
			s.add(r, host, 0, "")
		}
		return workbench.Turn{
			User: r.Phrase(slots, "move the event of {host} to {day} at {hour}.", "{host} wants to move the event to {day} at {hour}.",
				"find the event of {host} and move it to {day} at {hour}."),
			Plan: n.Find(host, n.If(n.First(), "open", movePlan(n.First(), at))),
		}
	}
	for _, guests := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, host, guests, "")
	}
	which, name := n.Pick(r)
	slots["which"] = which
	return workbench.Turn{
		User: r.Phrase(slots, "move the {which} event of {host} to {day} at {hour}.",
			"{host} wants to move the {which} event to {day} at {hour}.",
			"find the {which} event of {host} and move it to {day} at {hour}."),
		Plan: n.Find(host, n.If(name, "open", movePlan(name, at))),
	}
}

// eventTry: the user says "try to", so there is no look first; the tool may refuse,
// and then something else is tried.
func eventTry(r *workbench.Rand, s *agenda) workbench.Turn {
	if r.Chance(0.5) {
		a, b := s.add(r, r.Person(), 0, r.One("open", r.One(eventStops...))), s.any(r)
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"a": a, "b": b}, "try to cancel {a} at once, or if that fails, {b}.",
				"try to cancel event {a}, else event {b}.", "please try to cancel event {a}, or if that fails, event {b}."),
			Plan: dropPlan(a).OnError(workbench.Attempt(dropPlan(b).As("other"), b, "status")),
		}
	}
	host, at, other := r.Person(), s.maybe(r), s.maybe(r)
	for other == at {
		other = s.maybe(r)
	}
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"host": host, "day": at.Day, "hour": at.Hour, "day2": other.Day, "hour2": other.Hour},
			"try to add an event for {host} on {day} at {hour}, or if that fails, on {day2} at {hour2}.",
			"try to give {host} an event on {day} at {hour}, else on {day2} at {hour2}.",
			"please try to add an event for {host} on {day} at {hour}, else on {day2} at {hour2}."),
		Plan: addPlan("add", host, at).OnError(addPlan("second", host, other).OnError(taken("second"))),
	}
}

// eventBeyond: no tool can do it.
func eventBeyond(r *workbench.Rand, s *agenda) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"event": s.any(r), "host": r.Person()},
			"cook for the guests of {event}.", "call {host} about {event}, please.", "what is the weather in the garden?",
			"buy flowers for {event}.", "please sing a song for {host}."),
		Plan: workbench.Beyond(),
	}
}
