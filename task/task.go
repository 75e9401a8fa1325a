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
//
// Every call of Reference has an id that no other call of its message has. Behind a
// message stand the results of its calls, one each and in the order of the calls,
// whatever the order they were recorded in: some templates know a result by its place
// alone. A result's CallID and Name are its call's. [Load] sees to all this and
// refuses what cannot be paired; whoever makes a Task otherwise must do so too.
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
		for at, m := range turn.Reference {
			if call, ok := turn.Answered(at); ok {
				out = append(out, Record{i, call.Name, call.Arguments, m.Content})
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

// Answered returns the call that message i of Reference is the result of; false for
// a message of another kind.
func (t Turn) Answered(i int) (chat.Call, bool) {
	if t.Reference[i].Role != chat.Tool {
		return chat.Call{}, false
	}
	for at := i - 1; at >= 0; at-- {
		for _, c := range t.Reference[at].Calls {
			if c.ID == t.Reference[i].CallID {
				return c, true
			}
		}
		if t.Reference[at].Role != chat.Tool {
			break
		}
	}
	return chat.Call{}, false
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
