package workbench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"envace/chat"
	"envace/rollout"
	"envace/task"
)

// What package workbench_test sees of the inside. Its tests play the domains of
// workbench/domains, which tests of this package cannot import.

// Stage returns the world and the first user turn of a seed.
func (d Domain) Stage(seed uint64) (*World, Turn) {
	s := d.stage(seed, false)
	return &World{d, s.state}, s.turns[0]
}

// Follow lets the expert do what p says where call answers. Results are by the id
// of the planned call.
func (d Domain) Follow(p *Plan, call func(string, json.RawMessage) string) ([]chat.Message, map[string]string, error) {
	c, err := d.follow(p, call, 0)
	if err != nil {
		return nil, nil, err
	}
	return c.messages, c.results, nil
}

// Outline writes down a plan with all its branches.
func (p *Plan) Outline() string {
	switch {
	case p.text != "":
		return p.wording()
	case p.tool == "":
		return fmt.Sprintf("(%s ? %s : %s)", describe([]task.Cond{p.cond}), p.yes.Outline(), p.no.Outline())
	}
	return fmt.Sprintf("%s=%s(%s) %s", p.id, p.tool, p.args.describe(), p.next.Outline())
}

// EachText passes every text in which Words looks for words to note.
func (d Domain) EachText(note func(string)) { d.words(note) }

// Wordings passes the wordings of each request of the kinds of d, drawn or not.
func (d Domain) Wordings(note func(kind string, wordings []string)) {
	for _, kind := range d.Kinds {
		for seed := range uint64(wordRuns) {
			r := newRand(d.Name, seed)
			r.note = func(words ...string) {
				if strings.Contains(words[0], " ") {
					note(kind.Name, words)
				}
			}
			kind.Make(r, d.New(r))
		}
	}
}

// Script is an agent that has the perfect plan of every user turn and follows it
// blindly.
type Script struct {
	Yes bool // which way it takes at every branch, whatever the tools answered
	// Guess, if not nil, takes the place of what tools return: it gives the value
	// of a reference, named by the plan. A nil Guess reads the true value, and
	// where there is none the turn ends without a reply.
	Guess func(kind, ref string) any
}

// Play returns the episode of the agent in the true world of t, which must be a
// task of d.
func (d Domain) Play(t task.Task, a Script) (*rollout.Episode, error) {
	o, err := Describe(t)
	if err != nil {
		return nil, err
	}
	s := d.set(o.Seed)
	world := &World{d, s.state}
	played := t
	played.Turns = slices.Clone(t.Turns)
	for i, turn := range s.turns {
		c := &course{domain: d, call: world.Call, results: map[string]string{}}
		a.turn(c, turn.Plan, s.kinds[i], 10*i)
		played.Turns[i].Expert = c.messages
	}
	return rollout.Recorded(played), nil
}

func (a Script) turn(c *course, p *Plan, kind string, number int) {
	for p.text == "" {
		if p.tool == "" {
			if p = map[bool]*Plan{true: p.yes, false: p.no}[a.Yes]; p.text != "" {
				break
			}
			continue
		}
		args := Values{}
		for k, v := range p.args {
			if r, ok := v.(Ref); ok && a.Guess != nil {
				v = a.Guess(kind, where(r.Ref))
			}
			args[k] = v
		}
		call := *p
		call.args = args
		if c.step(&call, number) != nil {
			return
		}
		p = p.next
	}
	reply := *p
	reply.values = slices.Clone(p.values)
	for i, v := range p.values {
		if r, ok := v.(Ref); ok && a.Guess != nil {
			reply.values[i] = a.Guess(kind, where(r.Ref))
		}
	}
	if text, err := reply.say(c.answer); err == nil {
		c.messages = append(c.messages, chat.Message{Role: chat.Assistant, Content: text})
	}
}

// Learnt counts, by kind and reference, what values the experts of tasks read.
func (d Domain) Learnt(tasks []task.Task) (map[[2]string]map[string]int, error) {
	out := map[[2]string]map[string]int{}
	for _, t := range tasks {
		o, err := Describe(t)
		if err != nil {
			return nil, err
		}
		s := d.set(o.Seed)
		courses, err := d.perform(s)
		if err != nil {
			return nil, err
		}
		for i, c := range courses {
			for _, r := range refs(c.reply.values) {
				value, err := r.read(c.answer)
				if err != nil {
					return nil, err
				}
				key := [2]string{s.kinds[i], where(r.Ref)}
				if out[key] == nil {
					out[key] = map[string]int{}
				}
				out[key][task.Plain(value)]++
			}
		}
	}
	return out, nil
}

// Decided counts the ways that the experts of tasks took at branches.
func (d Domain) Decided(tasks []task.Task) (yes, no int, err error) {
	for _, t := range tasks {
		o, err := Describe(t)
		if err != nil {
			return 0, 0, err
		}
		courses, err := d.perform(d.set(o.Seed))
		if err != nil {
			return 0, 0, err
		}
		for _, c := range courses {
			yes, no = yes+c.agreed, no+c.branches-c.agreed
		}
	}
	return yes, no, nil
}
