package workbench

// mailbox is the state of the domain messages.
type mailbox struct {
	Messages map[string]*letter  `json:"messages"`
	Contacts map[string]*contact `json:"contacts"`
	Sent     map[string]string   `json:"sent"` // name of a new message: reader and topic
	Fresh    FreshNames          `json:"fresh"`
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

var letterTopics = fileTopics

func messages() Domain {
	name, to, topic := Text("message"), Text("reader"), Choice("topic", letterTopics)
	return Domain{
		Name:  "messages",
		About: "you help with messages. locked messages cannot be deleted or shared, absent contacts get no message.",
		Tools: []Tool{
			{Name: "find_messages", About: "list the messages of a sender", Params: []Param{Text("sender")}, Do: On(findMessages)},
			{Name: "get_message", About: "show a message", Params: []Param{name}, Do: On(getMessage)},
			{Name: "get_contact", About: "show a contact", Params: []Param{Text("contact")}, Do: On(getContact)},
			{Name: "send_message", About: "send a message to a contact who is here", Params: []Param{to, topic}, Write: true, Do: On(sendMessage)},
			{Name: "share_message", About: "share an open message with a contact who is here", Params: []Param{name, to}, Write: true, Do: On(shareMessage)},
			{Name: "delete_message", About: "delete an open message", Params: []Param{name}, Write: true, Do: On(deleteMessage)},
		},
		New: newMailbox,
		Kinds: append(messageNoun().Kinds(),
			Kind{"contact", 6, For(messageContact)},
			Kind{"act", 12, For(messageAct)},
			Kind{"send", 12, For(messageSend)},
			Kind{"limit", 10, For(messageLimit)},
			Kind{"answer", 8, For(messageAnswer)},
			Kind{"forward", 8, For(messageForward)},
			Kind{"try", 10, For(messageTry)},
			Kind{"beyond", 5, For(messageBeyond)}),
	}
}

func messageNoun() Noun {
	return Noun{
		One: "message", Owner: "sender", Shows: []string{"status", "size", "topic", "day", "sender"},
		Status: "open", Verb: "delete", End: deletePlan,
		Number: "size", Less: "smaller", Least: "smallest", Most: "biggest",
		Add: func(r *Rand, s State, sender string, size int) string {
			return s.(*mailbox).add(r, sender, size)
		},
	}
}

func newMailbox(r *Rand) State {
	s := &mailbox{map[string]*letter{}, map[string]*contact{}, map[string]string{}, r.Fresh()}
	for range 3 {
		s.any(r)
	}
	return s
}

// add puts a message into the mailbox; a size of 0 is drawn. Who sends one is a
// contact.
func (s *mailbox) add(r *Rand, sender string, size int) string {
	name := r.Name()
	if size == 0 {
		size = r.Int(5, 95)
	}
	if s.Contacts[sender] == nil {
		s.contact(r, sender)
	}
	s.Messages[name] = &letter{sender, r.One("open", "open", "open", "locked"), r.One(letterTopics...), r.One(days...), size}
	return name
}

func (s *mailbox) any(r *Rand) string { return s.add(r, r.Person(), 0) }

// contact adds somebody, whose deputy, where there is one already, may stand in.
func (s *mailbox) contact(r *Rand, name string) string {
	deputy := name
	if others := sortedKeys(s.Contacts); len(others) > 0 {
		deputy = r.One(others...)
	}
	s.Contacts[name] = &contact{r.One("here", "here", "absent"), r.One(cities...), deputy}
	return name
}

// open returns a message that may be changed.
func (s *mailbox) open(name string) (*letter, error) {
	m, err := s.message(name)
	if err == nil && m.Status != "open" {
		return nil, Refuse("status", m.Status, "message is not open")
	}
	return m, err
}

func (s *mailbox) message(name string) (*letter, error) {
	if m, ok := s.Messages[name]; ok {
		return m, nil
	}
	return nil, NotFound("message", name, s.Messages, "find_messages")
}

// reach returns a contact who can get a message.
func (s *mailbox) reach(name string) (*contact, error) {
	c, ok := s.Contacts[name]
	if !ok {
		return nil, NotFound("contact", name, s.Contacts, "another name")
	}
	if c.Status != "here" {
		return nil, Refuse("status", c.Status, "contact is not here")
	}
	return c, nil
}

func findMessages(s *mailbox, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Messages) {
		if m := s.Messages[name]; m.Sender == a.Text("sender") {
			list = append(list, Fields{"message": name, "size": m.Size})
		}
	}
	return Fields{"messages": list}, nil
}

func getMessage(s *mailbox, a Args) (any, error) {
	m, err := s.message(a.Text("message"))
	if err != nil {
		return nil, err
	}
	return Fields{"status": m.Status, "size": m.Size, "topic": m.Topic, "day": m.Day, "sender": m.Sender}, nil
}

func getContact(s *mailbox, a Args) (any, error) {
	c, ok := s.Contacts[a.Text("contact")]
	if !ok {
		return nil, NotFound("contact", a.Text("contact"), s.Contacts, "another name")
	}
	return Fields{"status": c.Status, "city": c.City, "deputy": c.Deputy}, nil
}

// post keeps what was sent and returns its name.
func (s *mailbox) post(reader, what string) string {
	name := s.Fresh.Next()
	s.Sent[name] = reader + " " + what
	return name
}

func sendMessage(s *mailbox, a Args) (any, error) {
	c, err := s.reach(a.Text("reader"))
	if err != nil {
		return nil, err
	}
	return Fields{"message": s.post(a.Text("reader"), a.Text("topic")), "city": c.City}, nil
}

func shareMessage(s *mailbox, a Args) (any, error) {
	if _, err := s.open(a.Text("message")); err != nil {
		return nil, err
	}
	c, err := s.reach(a.Text("reader"))
	if err != nil {
		return nil, err
	}
	return Fields{"message": s.post(a.Text("reader"), a.Text("message")), "city": c.City}, nil
}

func deleteMessage(s *mailbox, a Args) (any, error) {
	m, err := s.open(a.Text("message"))
	if err != nil {
		return nil, err
	}
	delete(s.Messages, a.Text("message"))
	return Fields{"status": "deleted", "day": m.Day}, nil
}

// Plans.

func deletePlan(name any) *Plan {
	return Do("delete", "delete_message", Values{"message": name},
		Say("done, %v is deleted, the day was %v.", name, From("delete.day")))
}

func postPlan(id string, reader any, topic any) *Plan {
	return Do(id, "send_message", Values{"reader": reader, "topic": topic},
		Say("done, the message is %v.", From(id+".message")))
}

func handPlan(name any, reader string) *Plan {
	return Do("share", "share_message", Values{"message": name, "reader": reader},
		Say("done, the message is %v, the city is %v.", From("share.message"), From("share.city")))
}

// ifPresent looks at a contact, under the id, and goes on with yes if the contact
// is here.
func ifPresent(id string, who any, yes *Plan) *Plan {
	return Do(id, "get_contact", Values{"contact": who},
		OnlyIf(From(id+".status").Is("here"), yes, who, From(id+".status")))
}

// Kinds.

// messageContact: a question about a contact.
func messageContact(r *Rand, s *mailbox) Turn {
	who, key := s.contact(r, r.Person()), r.One("status", "city", "deputy")
	return Turn{
		r.Phrase(Values{"who": who, "key": key}, "what is the {key} of contact {who}?", "tell me the {key} of my contact {who}.",
			"{who} is a contact. what is the {key}?", "i have a contact called {who}. which {key} does it have?"),
		Do("contact", "get_contact", Values{"contact": who}, Tell(key, who, From("contact."+key))),
	}
}

// messageAct: delete it or share it, if that is allowed.
func messageAct(r *Rand, s *mailbox) Turn {
	name, who := s.any(r), s.contact(r, r.Person())
	slots := Values{"message": name, "who": who}
	if r.Chance(0.4) {
		return Turn{
			r.Phrase(slots, "please delete message {message}.", "i do not need {message} any more, delete it.",
				"delete the message {message} and tell me its day."),
			messageNoun().If(name, "open", deletePlan(name)),
		}
	}
	return Turn{
		r.Phrase(slots, "share {message} with {who}.", "{who} wants to read {message}, share it.",
			"please share message {message} with {who} and tell me the city."),
		messageNoun().If(name, "open", ifPresent("contact", who, handPlan(name, who))),
	}
}

// messageSend: to somebody, or to the deputy.
func messageSend(r *Rand, s *mailbox) Turn {
	who, topic := s.contact(r, r.Person()), r.One(letterTopics...)
	slots := Values{"who": who, "topic": topic}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "send {who} a message about the {topic}.", "write to {who} about the {topic}, please.",
				"{who} must know about the {topic}, send a message."),
			ifPresent("contact", who, postPlan("send", who, topic)),
		}
	}
	s.Contacts[who].Status = r.One("here", "absent")
	deputy := From("contact.deputy")
	return Turn{
		r.Phrase(slots, "send {who} a message about the {topic}, or if absent, the deputy.",
			"write to {who}, or to the deputy if {who} is absent, about the {topic}.",
			"if {who} is here, send a message about the {topic}, otherwise send it to the deputy."),
		Do("contact", "get_contact", Values{"contact": who}, If(From("contact.status").Is("here"), postPlan("send", who, topic),
			ifPresent("deputy", deputy, postPlan("instead", deputy, topic)))),
	}
}

// messageLimit: the user says what to do with small and with big messages.
func messageLimit(r *Rand, s *mailbox) Turn {
	name, who, n := s.any(r), s.contact(r, r.Person()), r.Int(20, 80)
	slots := Values{"message": name, "who": who, "n": n}
	less := From("seen.size").Below(n)
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "if {message} is smaller than {n}, delete it, otherwise share it with {who}.",
				"delete {message} if its size is less than {n}, else share it with {who}.",
				"is the size of {message} less than {n}? then delete it, if not, share it with {who}."),
			messageNoun().If(name, "open", If(less, deletePlan(name), ifPresent("contact", who, handPlan(name, who)))),
		}
	}
	return Turn{
		r.Phrase(slots, "if {message} is smaller than {n}, tell me its topic, otherwise delete it.",
			"say the topic of {message} if its size is less than {n}, else delete it.",
			"is the size of {message} less than {n}? then tell me its topic, if not, delete it."),
		messageNoun().If(name, "open", If(less, Tell("topic", name, From("seen.topic")), deletePlan(name))),
	}
}

// messageAnswer: whom and about what stands in the message.
func messageAnswer(r *Rand, s *mailbox) Turn {
	name, topic := s.any(r), r.One(letterTopics...)
	sender := From("seen.sender")
	slots := Values{"message": name, "topic": topic}
	if r.Chance(0.5) {
		return Turn{
			r.Phrase(slots, "answer {message} with a message about the {topic}.", "write to the sender of {message} about the {topic}.",
				"send a message about the {topic} to the sender of {message}."),
			messageNoun().Look("seen", name, ifPresent("contact", sender, postPlan("send", sender, topic))),
		}
	}
	return Turn{
		r.Phrase(slots, "answer {message} with the same topic.", "write to the sender of {message} about the same topic.",
			"send a message with the topic of {message} to its sender."),
		messageNoun().Look("seen", name, ifPresent("contact", sender, postPlan("send", sender, From("seen.topic")))),
	}
}

// messageForward: the message must be found first.
func messageForward(r *Rand, s *mailbox) Turn {
	n, sender, who := messageNoun(), r.Person(), s.contact(r, r.Person())
	for _, size := range r.Ints(r.Int(2, 3), 5, 95) {
		s.add(r, sender, size)
	}
	which, name := n.Pick(r)
	return Turn{
		r.Phrase(Values{"sender": sender, "who": who, "which": which},
			"share the {which} message of {sender} with {who}.", "{who} wants to read the {which} message of {sender}.",
			"find the {which} message of {sender} and share it with {who}."),
		n.Find(sender, n.If(name, "open", ifPresent("contact", who, handPlan(name, who)))),
	}
}

// messageTry: the user wants no look before; the tool may refuse.
func messageTry(r *Rand, s *mailbox) Turn {
	if r.Chance(0.5) {
		name := s.any(r)
		s.Messages[name].Status = r.One("open", "locked")
		return Turn{
			r.Phrase(Values{"message": name}, "try to delete {message} at once.", "try to delete message {message}.",
				"please try to delete my message {message}."),
			Attempt(deletePlan(name), name, "status"),
		}
	}
	who, topic := s.contact(r, r.Person()), r.One(letterTopics...)
	return Turn{
		r.Phrase(Values{"who": who, "topic": topic}, "try to send {who} a message about the {topic}.",
			"try to write to {who} about the {topic}.", "please try to send a message about the {topic} to {who}."),
		Attempt(postPlan("send", who, topic), who, "status"),
	}
}

func messageBeyond(r *Rand, s *mailbox) Turn {
	return Turn{
		r.Phrase(Values{"message": s.any(r), "who": r.Person()},
			"print message {message}.", "call {who} about {message}, please.", "sing message {message} to me.",
			"what is the weather in the garden?", "buy flowers for {who}."),
		Beyond(),
	}
}
