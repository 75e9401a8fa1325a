// Package task defines tasks: dataset rows with recorded turns and checklists, and their
// seeded order.
package task

import (
	"encoding/json"

	"envace/chat"
)

// Task is one dataset row.
type Task struct {
	ID     string
	Source string          // origin: a workbench domain or a data set
	System string          // system message; "" for none
	Tools  []chat.Function // tools that the agent may call
	Turns  []Turn          // the user's recorded turns, in order; none if the user is not recorded
	World  json.RawMessage // data from which the real world of this task is opened; nil if there is none
}

// Turn is one user turn: the user's message, the expert's messages and the checklist.
//
// The calls of a message of Expert have distinct ids. A message is followed by the
// results of its calls, one for each and in the order of the calls, whatever the order in
// which they were recorded, because some templates identify a result by position. A
// result has the CallID and Name of its call. [Load] ensures all this and rejects results
// that it cannot pair; code that constructs a Task must ensure it as well.
type Turn struct {
	User      string
	Expert    []chat.Message // the expert's messages, up to and including the reply: assistant and tool
	Checklist []Item         // empty: the turn is not judged
}

// Record is a recorded call with its real result.
type Record struct {
	Turn      int // index of its user turn
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
		for at, m := range turn.Expert {
			if call, ok := turn.Answered(at); ok {
				out = append(out, Record{i, call.Name, call.Arguments, m.Content})
			}
		}
	}
	return out
}

// Checklist returns the items of user turn u; none if there is no such turn.
func (t Task) Checklist(u int) []Item {
	if u < 0 || u >= len(t.Turns) {
		return nil
	}
	return t.Turns[u].Checklist
}

// Answered returns the call whose result is message i of Expert; false if that is not a
// tool message.
func (t Turn) Answered(i int) (chat.Call, bool) {
	if t.Expert[i].Role != chat.Tool {
		return chat.Call{}, false
	}
	for at := i - 1; at >= 0; at-- {
		for _, c := range t.Expert[at].Calls {
			if c.ID == t.Expert[i].CallID {
				return c, true
			}
		}
		if t.Expert[at].Role != chat.Tool {
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
