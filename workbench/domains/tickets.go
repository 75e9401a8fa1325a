package domains

import (
	"maps"
	"slices"

	"envace/workbench"
)

// desk is the state of the domain tickets.
type desk struct {
	Tickets map[string]*ticket   `json:"tickets"`
	Agents  map[string]*helper   `json:"agents"`
	Surveys workbench.FreshNames `json:"surveys"`
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

func tickets() workbench.Domain {
	name := workbench.Text("ticket")
	return workbench.Domain{
		Name:  "tickets",
		About: "you help with tickets. only solved tickets can be closed, only open tickets can be changed, only agents who are here get tickets.",
		Tools: []workbench.Tool{
			{Name: "find_tickets", About: "list the tickets of a customer", Params: []workbench.Param{workbench.Text("customer")}, Do: workbench.On(findTickets)},
			{Name: "get_ticket", About: "show a ticket", Params: []workbench.Param{name}, Do: workbench.On(getTicket)},
			{Name: "find_agents", About: "list the agents of a team", Params: []workbench.Param{workbench.Choice("team", teams)}, Do: workbench.On(findAgents)},
			{Name: "get_agent", About: "show an agent", Params: []workbench.Param{workbench.Text("agent")}, Do: workbench.On(getAgent)},
			{Name: "assign_ticket", About: "give an open ticket to an agent", Params: []workbench.Param{name, workbench.Text("agent")},
				Write: true, Do: workbench.On(assignTicket)},
			{Name: "set_priority", About: "change the priority of an open ticket", Params: []workbench.Param{name, workbench.Choice("priority", priorities)},
				Write: true, Do: workbench.On(setPriority)},
			{Name: "close_ticket", About: "close a solved ticket", Params: []workbench.Param{name}, Write: true, Do: workbench.On(closeTicket)},
		},
		New: newDesk,
		Kinds: append(ticketNoun().Kinds(),
			workbench.Kind{Name: "agent", Weight: 2, Make: workbench.For(ticketAgent)},
			workbench.Kind{Name: "act", Weight: 5, Make: workbench.For(ticketAct)},
			workbench.Kind{Name: "assign", Weight: 11, Make: workbench.For(ticketAssign)},
			workbench.Kind{Name: "team", Weight: 9, Make: workbench.For(ticketTeam)},
			workbench.Kind{Name: "limit", Weight: 12, Make: workbench.For(ticketLimit)},
			workbench.Kind{Name: "cases", Weight: 11, Make: workbench.For(ticketCases)},
			workbench.Kind{Name: "try", Weight: 10, Make: workbench.For(ticketTry)},
			workbench.Kind{Name: "beyond", Weight: 3, Make: workbench.For(ticketBeyond)}),
	}
}

func ticketNoun() workbench.Noun {
	return workbench.Noun{
		One: "ticket", Owner: "customer", Shows: []string{"status", "hours", "priority", "topic", "agent"},
		Status: "solved", Others: []string{"open", "closed", "waiting"}, Verb: "close", End: closePlan,
		Number: "hours", Less: "newer", Least: "newest", Most: "oldest",
		Add: func(r *workbench.Rand, s workbench.State, owner string, hours int, status string) string {
			return s.(*desk).add(r, owner, hours, status)
		},
	}
}

func newDesk(r *workbench.Rand) workbench.State {
	s := &desk{map[string]*ticket{}, map[string]*helper{}, r.Fresh()}
	for _, team := range teams {
		s.agent(r, team)
	}
	for range 2 {
		s.any(r, "open")
	}
	return s
}

// add makes a ticket and returns its name. Hours of 0 are drawn, and so is a status
// of "".
func (s *desk) add(r *workbench.Rand, customer string, hours int, status string) string {
	name := r.Name()
	if hours == 0 {
		hours = r.Int(5, 95)
	}
	if status == "" {
		status = r.One("open", "solved", "closed", "waiting")
	}
	agent := r.One(slices.Sorted(maps.Keys(s.Agents))...)
	s.Tickets[name] = &ticket{customer, status, r.One(priorities...),
		r.One(ticketTopics...), agent, hours}
	return name
}

// any makes a ticket, usually with the given status.
func (s *desk) any(r *workbench.Rand, status string) string {
	return s.add(r, r.Person(), 0, usually(r, status, []string{"open", "solved", "closed", "waiting"}))
}

func (s *desk) agent(r *workbench.Rand, team string) string {
	name := r.Person()
	s.Agents[name] = &helper{team, usually(r, "here", awayStops), r.Int(1, 9)}
	return name
}

func (s *desk) ticket(name, status string) (*ticket, error) {
	t, ok := s.Tickets[name]
	if !ok {
		return nil, workbench.NotFound("ticket", name, s.Tickets, "find_tickets")
	}
	if status != "" && t.Status != status {
		return nil, workbench.Refuse("status", t.Status, "ticket is not %s", status)
	}
	return t, nil
}

func findTickets(s *desk, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Tickets)) {
		if t := s.Tickets[name]; t.Customer == a.Text("customer") {
			list = append(list, workbench.Fields{"ticket": name, "hours": t.Hours})
		}
	}
	return workbench.Fields{"tickets": list}, nil
}

func getTicket(s *desk, a workbench.Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "")
	if err != nil {
		return nil, err
	}
	return workbench.Fields{"status": t.Status, "hours": t.Hours, "priority": t.Priority, "topic": t.Topic, "agent": t.Agent}, nil
}

func findAgents(s *desk, a workbench.Args) (any, error) {
	list := []workbench.Fields{}
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		if h := s.Agents[name]; h.Team == a.Text("team") {
			list = append(list, workbench.Fields{"agent": name, "load": h.Load})
		}
	}
	return workbench.Fields{"agents": list}, nil
}

func getAgent(s *desk, a workbench.Args) (any, error) {
	h, ok := s.Agents[a.Text("agent")]
	if !ok {
		return nil, workbench.NotFound("agent", a.Text("agent"), s.Agents, "find_agents")
	}
	return workbench.Fields{"status": h.Status, "load": h.Load, "team": h.Team}, nil
}

func assignTicket(s *desk, a workbench.Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "open")
	if err != nil {
		return nil, err
	}
	h, ok := s.Agents[a.Text("agent")]
	if !ok {
		return nil, workbench.NotFound("agent", a.Text("agent"), s.Agents, "find_agents")
	}
	if h.Status != "here" {
		return nil, workbench.Refuse("status", h.Status, "agent is not here")
	}
	t.Agent = a.Text("agent")
	h.Load++
	return workbench.Fields{"agent": t.Agent, "team": h.Team}, nil
}

func setPriority(s *desk, a workbench.Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "open")
	if err != nil {
		return nil, err
	}
	t.Priority = a.Text("priority")
	return workbench.Fields{"priority": t.Priority, "agent": t.Agent}, nil
}

func closeTicket(s *desk, a workbench.Args) (any, error) {
	t, err := s.ticket(a.Text("ticket"), "solved")
	if err != nil {
		return nil, err
	}
	t.Status = "closed"
	return workbench.Fields{"status": t.Status, "survey": s.Surveys.Next()}, nil
}

// Plans.

func closePlan(name any) *workbench.Plan {
	return workbench.Do("close", "close_ticket", workbench.Values{"ticket": name},
		workbench.Say("done, %v is closed, the survey is %v.", name, workbench.From("close.survey")))
}

func priorityPlan(name any, priority string) *workbench.Plan {
	return workbench.Do("priority", "set_priority", workbench.Values{"ticket": name, "priority": priority},
		workbench.Say("done, the priority of %v is %v, the agent is %v.", name, priority, workbench.From("priority.agent")))
}

func assignPlan(name, agent any) *workbench.Plan {
	return workbench.Do("assign", "assign_ticket", workbench.Values{"ticket": name, "agent": agent},
		workbench.Say("done, %v goes to %v in %v.", name, agent, workbench.From("assign.team")))
}

// ifHere looks at an agent and continues with yes if the agent is here.
func ifHere(agent any, yes *workbench.Plan) *workbench.Plan {
	return workbench.Do("agent", "get_agent", workbench.Values{"agent": agent},
		workbench.OnlyIf(workbench.From("agent.status").Is("here"), yes, agent, workbench.From("agent.status")))
}

// Kinds.

// ticketAgent: a question about an agent or a team.
func ticketAgent(r *workbench.Rand, s *desk) workbench.Turn {
	key, team := r.One("status", "load", "team"), r.One(teams...)
	agent := s.agent(r, team)
	slots := workbench.Values{"agent": agent, "key": key, "team": team}
	if r.Chance(0.3) {
		s.spread(r, team)
		return workbench.Turn{
			User: r.Phrase(slots, "who has the least load in team {team}?", "tell me the agent of {team} with the least load.",
				"find the agent of team {team} with the least load."),
			Plan: workbench.Do("found", "find_agents", workbench.Values{"team": team},
				workbench.Say("%v has the least load, %v.", workbench.From("found.agents").Least("load").At("agent"), workbench.From("found.agents").Least("load").At("load"))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "what is the {key} of agent {agent}?", "{agent} is an agent. what is the {key}?",
			"tell me the {key} of the agent {agent}."),
		Plan: workbench.Do("agent", "get_agent", workbench.Values{"agent": agent}, workbench.Tell(key, agent, workbench.From("agent."+key))),
	}
}

// spread makes the loads of a team's agents differ.
func (s *desk) spread(r *workbench.Rand, team string) {
	taken := map[int]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		if h := s.Agents[name]; h.Team == team {
			for taken[h.Load] {
				h.Load = r.Int(1, 15)
			}
			taken[h.Load] = true
		}
	}
}

// ticketAct: close or change the priority, if the status allows it.
func ticketAct(r *workbench.Rand, s *desk) workbench.Turn {
	if r.Chance(0.5) {
		name := s.any(r, "solved")
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"ticket": name}, "all is well with {ticket}, close it.", "close ticket {ticket} and tell me the survey.",
				"please close ticket {ticket}."),
			Plan: ticketNoun().If(name, "solved", closePlan(name)),
		}
	}
	name := s.any(r, "open")
	priority := r.Other(s.Tickets[name].Priority, priorities)
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"ticket": name, "priority": priority}, "ticket {ticket} is now {priority}, change its priority.",
			"please give ticket {ticket} the priority {priority}. who is the agent?", "set the priority of ticket {ticket} to {priority}."),
		Plan: ticketNoun().If(name, "open", priorityPlan(name, priority)),
	}
}

// ticketAssign: assign, if the ticket is open and the agent here.
func ticketAssign(r *workbench.Rand, s *desk) workbench.Turn {
	name, agent := s.any(r, "open"), s.agent(r, r.One(teams...))
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"ticket": name, "agent": agent},
			"give ticket {ticket} to {agent}.", "assign {ticket} to the agent {agent}, please.",
			"assign ticket {ticket} to {agent} and tell me the team.", "please give ticket {ticket} to the agent {agent}."),
		Plan: ticketNoun().If(name, "open", ifHere(agent, assignPlan(name, agent))),
	}
}

// ticketTeam: assign to the agent with the least load, who must be found first.
func ticketTeam(r *workbench.Rand, s *desk) workbench.Turn {
	name, team := s.any(r, "open"), r.One(teams...)
	s.agent(r, team)
	s.spread(r, team)
	who := workbench.From("found.agents").Least("load").At("agent")
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"ticket": name, "team": team}, "give ticket {ticket} to the agent of {team} with the least load.",
			"assign {ticket} to the agent with the least load in team {team}.",
			"team {team} must look after {ticket}: assign it to the agent with the least load."),
		Plan: ticketNoun().If(name, "open", workbench.Do("found", "find_agents", workbench.Values{"team": team}, ifHere(who, assignPlan(name, who)))),
	}
}

// ticketLimit: what to do depends on the hours waited.
func ticketLimit(r *workbench.Rand, s *desk) workbench.Turn {
	n := r.Int(20, 80)
	name := s.any(r, "open")
	s.Tickets[name].Hours = r.Side(n, 0.5)
	less := workbench.From("seen.hours").Below(n)
	a := r.Other(s.Tickets[name].Priority, priorities)
	slots := workbench.Values{"ticket": name, "n": n, "a": a}
	if r.Chance(0.5) {
		b := a
		for b == a {
			b = r.Other(s.Tickets[name].Priority, priorities)
		}
		slots["b"] = b
		return workbench.Turn{
			User: r.Phrase(slots, "if ticket {ticket} has waited less than {n} hours, set its priority to {a}, otherwise to {b}.",
				"set the priority of {ticket} to {a} if its hours are less than {n}, else to {b}.",
				"are the hours of {ticket} less than {n}? then its priority is {a}, if not, {b}. set it."),
			Plan: ticketNoun().If(name, "open", workbench.If(less, priorityPlan(name, a),
				workbench.Do("other", "set_priority", workbench.Values{"ticket": name, "priority": b},
					workbench.Say("done, the priority of %v is %v, the agent is %v.", name, b, workbench.From("other.agent"))))),
		}
	}
	return workbench.Turn{
		User: r.Phrase(slots, "if ticket {ticket} has waited less than {n} hours, tell me its agent, otherwise set its priority to {a}.",
			"say the agent of {ticket} if its hours are less than {n}, else set its priority to {a}.",
			"are the hours of {ticket} less than {n}? then tell me its agent, if not, set its priority to {a}."),
		Plan: ticketNoun().If(name, "open", workbench.If(less, workbench.Tell("agent", name, workbench.From("seen.agent")), priorityPlan(name, a))),
	}
}

// ticketCases: what to do depends on the status.
func ticketCases(r *workbench.Rand, s *desk) workbench.Turn {
	name := s.any(r, "open")
	s.Tickets[name].Status = r.One("open", "solved", r.One("closed", "waiting"))
	priority := r.Other(s.Tickets[name].Priority, priorities)
	status := workbench.From("seen.status")
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"ticket": name, "priority": priority},
			"if ticket {ticket} is solved, close it, if it is open, set its priority to {priority}.",
			"close {ticket} if it is solved, or set its priority to {priority} if it is open.",
			"close ticket {ticket} if it is solved, if it is open, set its priority to {priority}."),
		Plan: ticketNoun().Look("seen", name, workbench.If(status.Is("solved"), closePlan(name),
			workbench.OnlyIf(status.Is("open"), priorityPlan(name, priority), name, status))),
	}
}

// ticketTry: the user says "try to", so there is no look first; the tool may refuse,
// and then a second ticket is tried.
func ticketTry(r *workbench.Rand, s *desk) workbench.Turn {
	want := r.One("solved", "open")
	a, b := s.any(r, want), s.any(r, want)
	s.Tickets[a].Status = r.One(want, r.One("closed", "waiting"))
	if want == "solved" {
		return workbench.Turn{
			User: r.Phrase(workbench.Values{"a": a, "b": b}, "try to close {a} at once, or if that fails, {b}.",
				"try to close ticket {a}, else ticket {b}. what is the survey?", "please try to close ticket {a}, or if that fails, ticket {b}."),
			Plan: closePlan(a).OnError(workbench.Attempt(closePlan(b).As("other"), b, "status")),
		}
	}
	priority := r.Other(s.Tickets[a].Priority, priorities)
	for s.Tickets[b].Priority == priority {
		s.Tickets[b].Priority = r.One(priorities...)
	}
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"a": a, "b": b, "priority": priority},
			"try to set the priority of {a} to {priority}, or if that fails, of {b}.",
			"try to give ticket {a} the priority {priority}, else ticket {b}.",
			"please try to set the priority of ticket {a} to {priority}, else of ticket {b}."),
		Plan: priorityPlan(a, priority).OnError(workbench.Attempt(priorityPlan(b, priority).As("other"), b, "status")),
	}
}

// ticketBeyond: no tool can do it.
func ticketBeyond(r *workbench.Rand, s *desk) workbench.Turn {
	return workbench.Turn{
		User: r.Phrase(workbench.Values{"ticket": s.any(r, "open"), "customer": r.Person()},
			"call {customer} about ticket {ticket}.", "repair what ticket {ticket} is about.", "what is the weather at the desk?",
			"print ticket {ticket}.", "please send flowers to {customer}."),
		Plan: workbench.Beyond(),
	}
}
