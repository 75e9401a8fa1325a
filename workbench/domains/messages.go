package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// mailbox is the state of the domain messages.
type mailbox struct {
	Messages map[string]*letter   `json:"messages"`
	Contacts map[string]*contact  `json:"contacts"`
	Sent     map[string]string    `json:"sent"` // name of a new message: reader and topic
	Fresh    workbench.FreshNames `json:"fresh"`
}

type letter struct {
	Sender string `json:"sender"`
	Status string `json:"status"`
	Topic  string `json:"topic"`
	Day    string `json:"day"`
	Size   int    `json:"size"`
}

type contact struct {
	Status string `json:"status"`
	City   string `json:"city"`
	Deputy string `json:"deputy"`
}

var (
	letterTopics = fileTopics
	letterStops  = []string{"locked", "secret", "lost"}
	awayStops    = []string{"absent", "busy", "ill"}
)

func messages() workbench.Domain {
	name, to, topic := workbench.Text("message"), workbench.Text("reader"), workbench.Choice("topic", letterTopics)
	return workbench.Domain{
		Name:  "messages",
		About: "you help with messages. only open messages can be deleted or shared, only contacts who are here get a message.",
		Tools: []workbench.Tool{
			{Name: "find_messages", About: "list the messages of a sender", Params: []workbench.Param{workbench.Text("sender")}, Do: workbench.On(findMessages)},
			{Name: "get_message", About: "show a message", Params: []workbench.Param{name}, Do: workbench.On(getMessage)},
			{Name: "get_contact", About: "show a contact", Params: []workbench.Param{workbench.Text("contact")}, Do: workbench.On(getContact)},
			{Name: "send_message", About: "send a message to a contact who is here", Params: []workbench.Param{to, topic},
				Write: true, Do: workbench.On(sendMessage)},
			{Name: "share_message", About: "share an open message with a contact who is here", Params: []workbench.Param{name, to},
				Write: true, Do: workbench.On(shareMessage)},
			{Name: "delete_message", About: "delete an open message", Params: []workbench.Param{name}, Write: true, Do: workbench.On(deleteMessage)},
		},
		New: newMailbox,
		Kinds: append(messageNoun().Kinds(),
			workbench.Kind{Name: "contact", Weight: 2, Make: workbench.For(messageContact)},
			workbench.Kind{Name: "act", Weight: 7, Make: workbench.For(messageAct)},
			workbench.Kind{Name: "send", Weight: 12, Make: workbench.For(messageSend)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(messageLimit)},
			workbench.Kind{Name: "answer", Weight: 12, Make: workbench.For(messageAnswer)},
			workbench.Kind{Name: "forward", Weight: 11, Make: workbench.For(messageForward)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(messageTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(messageBeyond)}),
	}
}

func messageNoun() workbench.Noun {
	return workbench.Noun{
		One: "message", Owner: "sender", Shows: []string{"status", "size", "topic", "day", "sender"},
		Status: "open", Others: letterStops, Verb: "delete", End: deletePlan,
		Number: "size", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *workbench.Rand, s workbench.State, sender string, size int, status string) string {
			return s.(*mailbox).add(r, sender, size, status)
		},
	}
}

func newMailbox(r *workbench.Rand) workbench.State {
	s := &mailbox{map[string]*letter{}, map[string]*contact{}, map[string]string{}, r.Fresh()}
	for range 3 {
		s.any(r)
	}
	return s
}

// add puts a message into the mailbox and returns its name. A size of 0 is drawn, and
// so is a status of "". The sender becomes a contact.
func (s *mailbox) add(r *workbench.Rand, sender string, size int, status string) string {
	name := r.Name()
	if size == 0 {
		size = r.Int(5, 95)
	}
	if s.Contacts[sender] == nil {
		s.contact(r, sender)
	}
	if status == "" {
		status = usually(r, "open", letterStops)
	}
	s.Messages[name] = &letter{sender, status, r.One(letterTopics...), r.One(days...), size}
	return name
}

func (s *mailbox) any(r *workbench.Rand) string { return s.add(r, r.Person(), 0, "") }

// contact adds a contact and returns its name. The deputy is another contact if
// there is one.
func (s *mailbox) contact(r *workbench.Rand, name string) string {
	deputy := name
	if others := slices.Sorted(maps.Keys(s.Contacts)); len(others) > 0 {
		deputy = r.One(others...)
	}
	s.Contacts[name] = &contact{usually(r, "here", awayStops), r.One(cities...), deputy}
	return name
}

// open returns a message that may be changed.
func (s *mailbox) open(name string) (*letter, error) {
	m, err := s.message(name)
	if err == nil && m.Status != "open" {
		return nil, workbench.Refuse("status", m.Status, "message is not open")
	}
	return m, err
}

func (s *mailbox) message(name string) (*letter, error) {
	if m, ok := s.Messages[name]; ok {
		return m, nil
	}
	return nil, workbench.NotFound("message", name, s.Messages, "find_messages")
}

// reach returns a contact, or an error if the contact is absent.
func (s *mailbox) reach(name string) (*contact, error) {
	c, ok := s.Contacts[name]
	if !ok {
		return nil, workbench.NotFound("contact", name, s.Contacts, "another name")
	}
	if c.Status != "here" {
		return nil, workbench.Refuse("status", c.Status, "contact is not here")
	}
	return c, nil
}

func findMessages(s *mailbox, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Messages)) {
		if m := s.Messages[name]; m.Sender == a.Text("sender") {
			list = append(list, workbench.Fields{"message": name, "size": m.Size})
		}
	}
	return workbench.Fields{"messages": list}, nil
}

func getMessage(s *mailbox, a workbench.Args) (any, error) {
	m, err := s.message(a.Text("message"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": m.Status, "size": m.Size, "topic": m.Topic, "day": m.Day, "sender": m.Sender}, nil
}

func getContact(s *mailbox, a workbench.Args) (any, error) {
	c, ok := s.Contacts[a.Text("contact")]
	if !ok {
		return nil, workbench.NotFound("contact", a.Text("contact"), s.Contacts, "another name")
	}
	return workbench.Fields{"status": c.Status, "city": c.City, "deputy": c.Deputy}, nil
}

// post stores a sent message and returns its name.
func (s *mailbox) post(reader, what string) string {
	name := s.Fresh.Next()
	s.Sent[name] = reader + " " + what
	return name
}

func sendMessage(s *mailbox, a workbench.Args) (any, error) {
	c, err := s.reach(a.Text("reader"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"message": s.post(a.Text("reader"), a.Text("topic")), "city": c.City}, nil
}

func shareMessage(s *mailbox, a workbench.Args) (any, error) {
	if _, err := s.open(a.Text("message")); err != nil {
		return nil, err
	}
	c, err := s.reach(a.Text("reader"))
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"message": s.post(a.Text("reader"), a.Text("message")), "city": c.City}, nil
}

func deleteMessage(s *mailbox, a workbench.Args) (any, error) {
	m, err := s.open(a.Text("message"))
	if err != nil {
		return nil, err
	}
	delete(s.Messages, a.Text("message"))
	return workbench.Fields{"status": "deleted", "day": m.Day}, nil
}

// Plans.

func deletePlan(name any) *workbench.Plan {
	return workbench.Do("delete", "delete_message", workbench.Values{"message": name},
		workbench.Say("done, %v is deleted, the day was %v.", name, workbench.From("delete.day")))
}

func postPlan(id string, reader any, topic any) *workbench.Plan {
	return workbench.Do(id, "send_message", workbench.Values{"reader": reader, "topic": topic},
		workbench.Say("done, the message is %v, the city is %v.", workbench.From(id+".message"), workbench.From(id+".city")))
}

func handPlan(name any, reader string) *workbench.Plan {
	return workbench.Do("share", "share_message", workbench.Values{"message": name, "reader": reader},
		workbench.Say("done, the message is %v, the city is %v.", workbench.From("share.message"), workbench.From("share.city")))
}

// ifPresent looks at a contact, under the id, and continues with yes if the contact
// is here.
func ifPresent(id string, who any, yes *workbench.Plan) *workbench.Plan {
	return workbench.Do(id, "get_contact", workbench.Values{"contact": who},
		workbench.OnlyIf(workbench.From(id+".status").Is("here"), yes, who, workbench.From(id+".status")))
}

// orDeputy writes to a contact, or to the deputy, if either is here.
func orDeputy(who, topic any) *workbench.Plan {
	deputy := workbench.From("contact.deputy")
	return workbench.Do("contact", "get_contact", workbench.Values{"contact": who},
		workbench.If(workbench.From("contact.status").Is("here"), postPlan("send", who, topic),
			ifPresent("deputy", deputy, postPlan("instead", deputy, topic))))
}

// Kinds.

// messageContact: a question about a contact.
func messageContact(r *workbench.Rand, s *mailbox) workbench.Turn {
	who, key := s.contact(r, r.Person()), r.One("status", "city", "deputy")
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"who": who, "key": key}, "what is the {key} of contact {who}?", "{who} is a contact. what is the {key}?",
			"i have a contact called {who}. which {key} does it have?", "tell me the {key} of my contact {who}."),
		Plan: workbench.Do("contact", "get_contact", workbench.Values{"contact": who}, workbench.Tell(key, who, workbench.From("contact."+key))),
	}
}

// messageAct: delete or share, if the message is open.
func messageAct(r *workbench.Rand, s *mailbox) workbench.Turn {
	name, who := s.any(r), s.contact(r, r.Person())
	slots := workbench.Values{"message": name, "who": who}
	if r.Chance(0.25) {
		return workbench.Turn{
			User: r.Phrase(slots, "i do not need {message} any more, delete it.", "delete the message {message} and tell me its day.",
				"please delete message {message}."),
			Plan: messageNoun().If(name, "open", deletePlan(name)),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "{who} wants to read {message}, share it.", "please share message {message} with {who} and tell me the city.",
			"share message {message} with {who}."),
		Plan: messageNoun().If(name, "open", ifPresent("contact", who, handPlan(name, who))),
	}
}

// messageSend: write to a contact, or to the deputy if that one is not here.
func messageSend(r *workbench.Rand, s *mailbox) workbench.Turn {
	who, topic := s.contact(r, r.Person()), r.One(letterTopics...)
	s.Contacts[who].Status = r.One("here", r.One(awayStops...))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"who": who, "topic": topic},
			"send {who} a message about the {topic}, or if {who} is not here, the deputy.",
			"write to {who}, or to the deputy if {who} is not here, about the {topic}.",
			"if {who} is here, send a message about the {topic}, otherwise send it to the deputy.",
			"send a message about the {topic} to {who}, or if {who} is not here, to the deputy."),
		Plan: orDeputy(who, topic),
	}
}

// messageLimit: what to do depends on the size.
func messageLimit(r *workbench.Rand, s *mailbox) workbench.Turn {
	who, n := s.contact(r, r.Person()), r.Int(20, 80)
	name := s.add(r, r.Person(), r.Side(n, 0.5), "")
	slots := workbench.Values{"message": name, "who": who, "n": n}
	less := workbench.From("seen.size").Below(n)
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "if {message} is smaller than {n}, delete it, otherwise share it with {who}.",
				"delete {message} if its size is less than {n}, else share it with {who}.",
				"is the size of {message} less than {n}? then delete it, if not, share it with {who}."),
			Plan: messageNoun().If(name, "open", workbench.If(less, deletePlan(name), ifPresent("contact", who, handPlan(name, who)))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "if {message} is smaller than {n}, tell me its topic, otherwise delete it.",
			"say the topic of {message} if its size is less than {n}, else delete it.",
			"is the size of {message} less than {n}? then tell me its topic, if not, delete it."),
		Plan: messageNoun().If(name, "open", workbench.If(less, workbench.Tell("topic", name, workbench.From("seen.topic")), deletePlan(name))),
	}
}

// messageAnswer: write to the sender of a message or to a deputy, sometimes on its
// topic.
func messageAnswer(r *workbench.Rand, s *mailbox) workbench.Turn {
	name, topic := s.any(r), r.One(letterTopics...)
	s.Contacts[s.Messages[name].Sender].Status = r.One("here", r.One(awayStops...))
	sender := workbench.From("seen.sender")
	slots := workbench.Values{"message": name, "topic": topic}
	if r.Chance(0.5) {
		return workbench.Turn{
			User: r.Phrase(slots, "write to the sender of {message}, or if not here, to the deputy, about the {topic}.",
				"send a message about the {topic} to the sender of {message}, or to the deputy if the sender is not here.",
				"write about the {topic} to the sender of {message}, or to the deputy if the sender is not here."),
			Plan: messageNoun().Look("seen", name, orDeputy(sender, topic)),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "write to the sender of {message}, or if not here, to the deputy, about the same topic.",
			"send a message with the topic of {message} to its sender, or to the deputy if the sender is not here.",
			"write about the same topic to the sender of {message}, or to the deputy if the sender is not here."),
		Plan: messageNoun().Look("seen", name, orDeputy(sender, workbench.From("seen.topic"))),
	}
}

// messageForward: share a message that must be found first.
func messageForward(r *workbench.Rand, s *mailbox) workbench.Turn {
	n, sender, who := messageNoun(), r.Person(), s.contact(r, r.Person())
	for _, size := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, sender, size, "")
	}
	which, name := n.Pick(r)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"sender": sender, "who": who, "which": which},
			"share the {which} message of {sender} with {who}.", "{who} wants to read the {which} message of {sender}.",
			"find the {which} message of {sender} and share it with {who}."),
		Plan: n.Find(sender, n.If(name, "open", ifPresent("contact", who, handPlan(name, who)))),
	}
}

// messageTry: the user says "try to", so there is no look first; the tool may refuse,
// and then something else is tried.
func messageTry(r *workbench.Rand, s *mailbox) workbench.Turn {
	if r.Chance(0.5) {
		a, b := s.add(r, r.Person(), 0, r.One("open", r.One(letterStops...))), s.any(r)
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"a": a, "b": b}, "try to delete {a} at once, or if that fails, {b}.",
				"try to delete message {a}, else message {b}.", "please try to delete message {a}, or if that fails, message {b}."),
			Plan: deletePlan(a).OnError(workbench.Attempt(deletePlan(b).As("other"), b, "status")),
		}
	}
	a, b, topic := s.contact(r, r.Person()), s.contact(r, r.Person()), r.One(letterTopics...)
	s.Contacts[a].Status = r.One("here", r.One(awayStops...))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"a": a, "b": b, "topic": topic}, "try to send {a} a message about the {topic}, or if that fails, {b}.",
			"try to write to {a} about the {topic}, else to {b}.", "please try to send a message about the {topic} to {a}, else to {b}."),
		Plan: postPlan("send", a, topic).OnError(workbench.Attempt(postPlan("other", b, topic), b, "status")),
	}
}

// messageBeyond: no tool can do it.
func messageBeyond(r *workbench.Rand, s *mailbox) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"message": s.any(r), "who": r.Person()},
			"print message {message}.", "call {who} about {message}, please.", "sing message {message} to me.",
			"what is the weather in the garden?", "please buy flowers for {who}."),
		Plan: workbench.Beyond(),
	}
}
