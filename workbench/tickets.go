package workbench

// desk is the state of the domain tickets.
type desk struct {
	Tickets map[string]*ticket `json:"tickets"`
	Agents  map[string]*helper `json:"agents"`
	Surveys FreshNames         `json:"surveys"`
}

type ticket struct {
	Customer string `json:"customer"`
	Status   string `json:"status"`
	Priority string `json:"priority"`
	Topic    string `json:"topic"`
	Agent    string `json:"agent"`
	Hours    int    `json:"hours"` // that the customer has waited
}

type helper struct {
	Team   string `json:"team"`
	Status string `json:"status"`
	Load   int    `json:"load"`
}

var (
	priorities   = []string{"low", "normal", "high", "urgent"}
	ticketTopics = []string{"login", "refund", "delay", "damage", "noise"}
	teams        = []string{"support", "repair", "sales", "legal"}
)

func tickets() Domain {
	name := Text("ticket")
	return Domain{
		Name:  "tickets",
		About: "you help with tickets. only solved tickets can be closed, only open tickets can be changed, absent agents get no ticket.",
		Tools: []Tool{
			{Name: "find_tickets", About: "list the tickets of a customer", Params: []Param{Text("customer")}, Do: On(findTickets)},
			{Name: "get_ticket", About: "show a ticket", Params: []Param{name}, Do: On(getTicket)},
			{Name: "find_agents", About: "list the agents of a team", Params: []Param{Choice("team", teams)}, Do: On(findAgents)},
			{Name: "get_agent", About: "show an agent", Params: []Param{Text("agent")}, Do: On(getAgent)},
			{Name: "assign_ticket", About: "give an open ticket to an agent", Params: []Param{name, Text("agent")}, Write: true, Do: On(assignTicket)},
			{Name: "set_priority", About: "change the priority of an open ticket", Params: []Param{name, Choice("priority", priorities)}, Write: true, Do: On(setPriority)},
			{Name: "close_ticket", About: "close a solved ticket", Params: []Param{name}, Write: true, Do: On(closeTicket)},
		},
		New: newDesk,
		Kinds: append(ticketNoun().Kinds(),
			Kind{"agent", 6, For(ticketAgent)},
			Kind{"act", 12, For(ticketAct)},
			Kind{"assign", 12, For(ticketAssign)},
			Kind{"team", 9, For(ticketTeam)},
			Kind{"limit", 10, For(ticketLimit)},
			Kind{"cases", 8, For(ticketCases)},
			Kind{"try", 10, For(ticketTry)},
			Kind{"beyond", 5, For(ticketBeyond)}),
	}
}

func ticketNoun() Noun {
	return Noun{
		One: "ticket", Owner: "customer", Shows: []string{"status", "hours", "priority", "topic", "agent"},
		Status: "solved", Verb: "close", End: closePlan,
		Number: "hours", Less: "newer", Least: "newest", Most: "oldest",
		Add: func(r *Rand, s State, owner string, hours int) string {
			return s.(*desk).add(r, owner, hours, "solved")
		},
	}
}

func newDesk(r *Rand) State {
	s := &desk{map[string]*ticket{}, map[string]*helper{}, r.Fresh()}
	for _, team := range teams {
		s.agent(r, team)
	}
	for range 2 {
		s.any(r, "open")
	}
	return s
}

// add makes a ticket, more often than not with the given status; hours of 0 are
// drawn.
func (s *desk) add(r *Rand, customer string, hours int, status string) string {
	name := r.Name()
	if hours == 0 {
		hours = r.Int(5, 95)
	}
	agent := r.One(sortedKeys(s.Agents)...)
	s.Tickets[name] = &ticket{customer, r.One(status, status, "open", "solved", "closed"), r.One(priorities...),
		r.One(ticketTopics...), agent, hours}
	return name
}

func (s *desk) any(r *Rand, status string) string { return s.add(r, r.Person(), 0, status) }

func (s *desk) agent(r *Rand, team string) string {
	name := r.Person()
	s.Agents[name] = &helper{team, r.One("here", "here", "here", "absent"), r.Int(1, 9)}
	return name
}

func (s *desk) ticket(name, status string) (*ticket, error) {
	t, ok := s.Tickets[name]
	if !ok {
		return nil, NotFound("ticket", name, s.Tickets, "find_tickets")
	}
	if status != "" && t.Status != status {
		return nil, Refuse("status", t.Status, "ticket is not %s", status)
	}
	return t, nil
}

func findTickets(s *desk, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Tickets) {
		if t := s.Tickets[name]; t.Customer == a.Text("customer") {
			list = append(list, Fields{"ticket": name, "hours": t.Hours})
		}
	}
	return Fields{"tickets": list}, nil
}

func getTicket(s *desk, a Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "")
	if err != nil {
		return nil, err
	}
	return Fields{"status": t.Status, "hours": t.Hours, "priority": t.Priority, "topic": t.Topic, "agent": t.Agent}, nil
}

func findAgents(s *desk, a Args) (any, error) {
	list := []Fields{}
	for _, name := range sortedKeys(s.Agents) {
		if h := s.Agents[name]; h.Team == a.Text("team") {
			list = append(list, Fields{"agent": name, "load": h.Load})
		}
	}
	return Fields{"agents": list}, nil
}

func getAgent(s *desk, a Args) (any, error) {
	h, ok := s.Agents[a.Text("agent")]
	if !ok {
		return nil, NotFound("agent", a.Text("agent"), s.Agents, "find_agents")
	}
	return Fields{"status": h.Status, "load": h.Load, "team": h.Team}, nil
}

func assignTicket(s *desk, a Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "open")
	if err != nil {
		return nil, err
	}
	h, ok := s.Agents[a.Text("agent")]
	if !ok {
		return nil, NotFound("agent", a.Text("agent"), s.Agents, "find_agents")
	}
	if h.Status != "here" {
		return nil, Refuse("status", h.Status, "agent is not here")
	}
	t.Agent = a.Text("agent")
	h.Load++
	return Fields{"agent": t.Agent, "team": h.Team}, nil
}

func setPriority(s *desk, a Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "open")
	if err != nil {
		return nil, err
	}
	t.Priority = a.Text("priority")
	return Fields{"priority": t.Priority, "agent": t.Agent}, nil
}

func closeTicket(s *desk, a Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "solved")
	if err != nil {
		return nil, err
	}
	t.Status = "closed"
	return Fields{"status": t.Status, "survey": s.Surveys.Next()}, nil
}

// Plans.

func closePlan(name any) *Plan {
	return Do("close", "close_ticket", Values{"ticket": name},
		Say("done, %v is closed, the survey is %v.", name, From("close.survey")))
}

func priorityPlan(name any, priority string) *Plan {
	return Do("priority", "set_priority", Values{"ticket": name, "priority": priority},
		Say("done, the priority of %v is %v, the agent is %v.", name, priority, From("priority.agent")))
}

func assignPlan(name, agent any) *Plan {
	return Do("assign", "assign_ticket", Values{"ticket": name, "agent": agent},
		Say("done, %v goes to %v in %v.", name, agent, From("assign.team")))
}

// ifHere looks at an agent and goes on with yes if the agent is here.
func ifHere(agent any, yes *Plan) *Plan {
	return Do("agent", "get_agent", Values{"agent": agent},
		OnlyIf(From("agent.status").Is("here"), yes, agent, From("agent.status")))
}

// Kinds.

// ticketAgent: a question about an agent or a team.
func ticketAgent(r *Rand, s *desk) Turn {
	key, team := r.One("status", "load", "team"), r.One(teams...)
	agent := s.agent(r, team)
	slots := Values{"agent": agent, "key": key, "team": team}
	if r.Chance(0.4) {
		for s.Agents[agent].Load = r.Int(1, 15); s.even(team); {
			s.Agents[agent].Load = r.Int(1, 15)
		}
		return Turn{
			r.Phrase(slots, "who has the least load in team {team}?", "tell me the agent of {team} with the least load.",
				"find the agent of team {team} with the least load."),
			Do("found", "find_agents", Values{"team": team}, Say("it is %v.", From("found.agents").Least("load").At("agent"))),
		}
	}
	return Turn{
		r.Phrase(slots, "what is the {key} of agent {agent}?", "tell me the {key} of the agent {agent}.",
			"{agent} is an agent. what is the {key}?"),
		Do("agent", "get_agent", Values{"agent": agent}, Tell(key, agent, From("agent."+key))),
	}
}

// even reports whether two agents of a team have the same load.
func (s *desk) even(team string) bool {
	seen := map[int]bool{}
	for _, h := range s.Agents {
		if h.Team == team && seen[h.Load] {
			return true
		}
		if h.Team == team {
			seen[h.Load] = true
		}
	}
	return false
}

// ticketAct: close it or change its priority, if the status allows it.
func ticketAct(r *Rand, s *desk) Turn {
	if r.Chance(0.5) {
		name := s.any(r, "solved")
		return Turn{
			r.Phrase(Values{"ticket": name}, "please close ticket {ticket}.", "all is well with {ticket}, close it.",
				"close ticket {ticket} and tell me the survey."),
			ticketNoun().If(name, "solved", closePlan(name)),
		}
	}
	name := s.any(r, "open")
	priority := r.Other(s.Tickets[name].Priority, priorities)
	return Turn{
		r.Phrase(Values{"ticket": name, "priority": priority}, "set the priority of {ticket} to {priority}.",
			"ticket {ticket} is now {priority}, change its priority.", "please give ticket {ticket} the priority {priority}. who is the agent?"),
		ticketNoun().If(name, "open", priorityPlan(name, priority)),
	}
}

// ticketAssign: the ticket must be open and the agent here.
func ticketAssign(r *Rand, s *desk) Turn {
	name, agent := s.any(r, "open"), s.agent(r, r.One(teams...))
	return Turn{
		r.Phrase(Values{"ticket": name, "agent": agent}, "give ticket {ticket} to {agent}.", "assign {ticket} to the agent {agent}, please.",
			"{agent} will look after ticket {ticket}, so assign it.", "assign ticket {ticket} to {agent} and tell me the team."),
		ticketNoun().If(name, "open", ifHere(agent, assignPlan(name, agent))),
	}
}

// ticketTeam: the agent with the least load must be found first.
func ticketTeam(r *Rand, s *desk) Turn {
	name, team := s.any(r, "open"), r.One(teams...)
	agent := s.agent(r, team)
	for s.even(team) {
		s.Agents[agent].Load = r.Int(1, 15)
	}
	who := From("found.agents").Least("load").At("agent")
	return Turn{
		r.Phrase(Values{"ticket": name, "team": team}, "give ticket {ticket} to the agent of {team} with the least load.",
			"assign {ticket} to the agent with the least load in team {team}.",
			"team {team} must look after {ticket}: assign it to the agent with the least load."),
		ticketNoun().If(name, "open", Do("found", "find_agents", Values{"team": team}, ifHere(who, assignPlan(name, who)))),
	}
}

// ticketLimit: the user says what to do with new and with old tickets.
func ticketLimit(r *Rand, s *desk) Turn {
	name, n := s.any(r, "open"), r.Int(20, 80)
	less := From("seen.hours").Below(n)
	a := r.Other(s.Tickets[name].Priority, priorities)
	slots := Values{"ticket": name, "n": n, "a": a}
	if r.Chance(0.5) {
		b := a
		for b == a {
			b = r.Other(s.Tickets[name].Priority, priorities)
		}
		slots["b"] = b
		return Turn{
			r.Phrase(slots, "if ticket {ticket} has waited less than {n} hours, set its priority to {a}, otherwise to {b}.",
				"set the priority of {ticket} to {a} if its hours are less than {n}, else to {b}.",
				"are the hours of {ticket} less than {n}? then its priority is {a}, if not, {b}. set it."),
			ticketNoun().If(name, "open", If(less, priorityPlan(name, a), Do("other", "set_priority", Values{"ticket": name, "priority": b},
				Say("done, the priority of %v is %v, the agent is %v.", name, b, From("other.agent"))))),
		}
	}
	return Turn{
		r.Phrase(slots, "if ticket {ticket} has waited less than {n} hours, tell me its agent, otherwise set its priority to {a}.",
			"say the agent of {ticket} if its hours are less than {n}, else set its priority to {a}.",
			"are the hours of {ticket} less than {n}? then tell me its agent, if not, set its priority to {a}."),
		ticketNoun().If(name, "open", If(less, Tell("agent", name, From("seen.agent")), priorityPlan(name, a))),
	}
}

// ticketCases: three cases of a status, a reaction to each.
func ticketCases(r *Rand, s *desk) Turn {
	name := s.any(r, "open")
	priority := r.Other(s.Tickets[name].Priority, priorities)
	status := From("seen.status")
	return Turn{
		r.Phrase(Values{"ticket": name, "priority": priority},
			"if ticket {ticket} is solved, close it, if it is open, set its priority to {priority}.",
			"close {ticket} if it is solved, or set its priority to {priority} if it is open.",
			"look at ticket {ticket}: when it is open set its priority to {priority}, when it is solved close it."),
		ticketNoun().Look("seen", name, If(status.Is("solved"), closePlan(name),
			OnlyIf(status.Is("open"), priorityPlan(name, priority), name, status))),
	}
}

// ticketTry: the user wants no look before; the tool may refuse.
func ticketTry(r *Rand, s *desk) Turn {
	if r.Chance(0.5) {
		name := s.any(r, "solved")
		return Turn{
			r.Phrase(Values{"ticket": name}, "try to close {ticket} at once.", "try to close ticket {ticket}, what is the survey?",
				"please try to close my ticket {ticket}."),
			Attempt(closePlan(name), name, "status"),
		}
	}
	name := s.any(r, "open")
	priority := r.Other(s.Tickets[name].Priority, priorities)
	return Turn{
		r.Phrase(Values{"ticket": name, "priority": priority}, "try to set the priority of {ticket} to {priority}.",
			"try to give ticket {ticket} the priority {priority}.", "please try to change the priority of {ticket} to {priority}."),
		Attempt(priorityPlan(name, priority), name, "status"),
	}
}

func ticketBeyond(r *Rand, s *desk) Turn {
	return Turn{
		r.Phrase(Values{"ticket": s.any(r, "open"), "customer": r.Person()},
			"call {customer} about ticket {ticket}.", "repair what ticket {ticket} is about.", "send flowers to {customer}, please.",
			"print ticket {ticket}.", "what is the weather at the desk?"),
		Beyond(),
	}
}
