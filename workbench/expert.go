package workbench

import (
	"encoding/json"
	"fmt"

	"envace/chat"
	"envace/task"
)

// course is the execution of a plan in a world.
type course struct {
	domain   Domain
	call     func(name string, args json.RawMessage) string // the world's answer
	plan     *Plan
	messages []chat.Message
	results  map[string]string // by id of the planned call
	reply    *Plan
	branches int // decisions on what a tool had answered
	agreed   int // those whose condition held
	calls    int
	returned bool // whether a call or the reply needs a value that only a tool returns
}

func (c *course) answer(id string) (string, bool) {
	result, ok := c.results[id]
	return result, ok
}

// follow executes the plan p. number counts the calls of the task so far.
func (d Domain) follow(p *Plan, call func(string, json.RawMessage) string, number int) (*course, error) {
	c := &course{domain: d, call: call, plan: p, results: map[string]string{}}
	var when []task.Cond // that led to p
	for p.text == "" {
		if p.tool == "" {
			holds, known := task.HoldAll(append(when, p.cond), c.answer)
			if !known {
				return nil, fmt.Errorf("the plan decides on %s, which no answer has", where(p.cond.Ref))
			}
			c.branches++
			if holds {
				c.agreed++
				when, p = append(when, p.cond), p.yes
			} else {
				when, p = append(when, opposite(p.cond)), p.no
			}
			continue
		}
		if err := c.step(p, number); err != nil {
			return nil, err
		}
		p = p.next
	}
	text, err := p.say(c.answer)
	if err != nil {
		return nil, err
	}
	c.returned = c.returned || len(refs(p.values)) > 0
	c.reply = p
	c.messages = append(c.messages, chat.Message{Role: chat.Assistant, Content: text})
	return c, nil
}

// step makes one planned call.
func (c *course) step(p *Plan, number int) error {
	args := map[string]any{}
	for _, k := range sortedKeys(p.args) {
		args[k] = p.args[k]
		if r, ok := p.args[k].(Ref); ok {
			value, err := r.read(c.answer)
			if err != nil {
				return err
			}
			args[k], c.returned = value, true
		}
	}
	c.calls++
	call := chat.Call{ID: fmt.Sprintf("call_%d", number+c.calls), Name: p.tool, Arguments: c.domain.ordered(p.tool, args)}
	result := c.call(call.Name, call.Arguments)
	c.results[p.id] = result
	c.messages = append(c.messages,
		chat.Message{Role: chat.Assistant, Calls: []chat.Call{call}},
		chat.Message{Role: chat.Tool, CallID: call.ID, Name: call.Name, Content: result})
	return nil
}

// ordered writes arguments in the order of the tool's parameters.
func (d Domain) ordered(tool string, args map[string]any) []byte {
	t, _ := d.tool(tool)
	out := []byte{'{'}
	for _, p := range t.Params {
		if v, ok := args[p.Name]; ok {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, mustJSON(p.Name)...), ':'), mustJSON(v)...)
		}
	}
	return append(out, '}')
}
