// Package task holds what is to be done: dataset rows as tasks, their recorded
// turns and checklists, and their seeded order.
package task

import (
	"encoding/json"

	"envace/chat"
)

// Task is one dataset row.
type Task struct {
	ID     string
	Source string          // where it comes from: a workbench domain, a data set
	System string          // system message; "" for none
	Tools  []chat.Function // what the agent may call
	Turns  []Turn          // the user's recorded turns, in order; none where the user is not recorded
	World  json.RawMessage // what a real world needs to open this task; nil where there is none
}

// Turn is one user turn: what the user says, what an expert did, what is checked.
type Turn struct {
	User      string
	Reference []chat.Message // the expert's messages up to and with the reply: assistant and tool
	Checklist []Item         // empty: the turn is not judged
}

// Record is a call that was really made, with its real result.
type Record struct {
	Turn      int // user turn it belongs to
	Name      string
	Arguments json.RawMessage
	Result    string
}

// Records returns the recorded calls of user turns 0 … through, in order.
func (t Task) Records(through int) []Record {
	var out []Record
	for i, turn := range t.Turns {
		if i > through {
			break
		}
		var open []chat.Call
		for _, m := range turn.Reference {
			open = append(open, m.Calls...)
			if m.Role == chat.Tool && len(open) > 0 {
				out = append(out, Record{i, open[0].Name, open[0].Arguments, m.Content})
				open = open[1:]
			}
		}
	}
	return out
}

// Checklist returns the items of user turn u; none where the task has no such turn.
func (t Task) Checklist(u int) []Item {
	if u < 0 || u >= len(t.Turns) {
		return nil
	}
	return t.Turns[u].Checklist
}

// Tool returns the tool of that name.
func (t Task) Tool(name string) (chat.Function, bool) {
	for _, f := range t.Tools {
		if f.Name == name {
			return f, true
		}
	}
	return chat.Function{}, false
}
