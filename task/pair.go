package task

import (
	"fmt"
	"slices"

	"envace/chat"
)

// pair returns the assistant message msgs[at] and the results that follow it in the form
// that [Turn] promises. Results are paired by id, or by position if none has an id.
func pair(msgs []chat.Message, at int) ([]chat.Message, error) {
	m := msgs[at]
	if len(m.Calls) == 0 {
		return []chat.Message{m}, nil
	}
	end := at + 1
	for end < len(msgs) && msgs[end].Role == chat.Tool {
		end++
	}
	if err := distinct(m.Calls, at); err != nil {
		return nil, err
	}
	byID := slices.ContainsFunc(msgs[at+1:end], func(r chat.Message) bool { return r.CallID != "" })
	find := placed
	if byID {
		find = identified
	}
	answer := make([]int, len(m.Calls)) // the place of each call's result in msgs; 0: none
	for i := at + 1; i < end; i++ {
		call, err := find(msgs, at, i)
		if err != nil {
			return nil, err
		}
		if answer[call] > 0 {
			return nil, fmt.Errorf("message %d: second result for call %q, after message %d", i, msgs[i].CallID, answer[call])
		}
		answer[call] = i
	}
	m.Calls = named(m.Calls, at)
	out := []chat.Message{m}
	for i, c := range m.Calls {
		if answer[i] == 0 {
			return nil, fmt.Errorf("message %d: %s has no result", at, label(msgs[at].Calls, i))
		}
		r := msgs[answer[i]]
		r.CallID, r.Name = c.ID, c.Name
		out = append(out, r)
	}
	return out, nil
}

// distinct returns an error if two calls of message at share an id.
func distinct(calls []chat.Call, at int) error {
	for i, c := range calls {
		if c.ID != "" && slices.ContainsFunc(calls[:i], func(other chat.Call) bool { return other.ID == c.ID }) {
			return fmt.Errorf("message %d: two calls have the id %q", at, c.ID)
		}
	}
	return nil
}

// identified finds the call of message at that result i names.
func identified(msgs []chat.Message, at, i int) (int, error) {
	id, calls := msgs[i].CallID, msgs[at].Calls
	if id == "" {
		return 0, fmt.Errorf("message %d: no tool_call_id, but other results of message %d have one", i, at)
	}
	if call := slices.IndexFunc(calls, func(c chat.Call) bool { return c.ID == id }); call >= 0 {
		return call, nil
	}
	if call := slices.IndexFunc(calls, func(c chat.Call) bool { return c.ID == "" }); call >= 0 {
		return 0, fmt.Errorf("message %d: tool_call_id %q, but call %d of message %d (%s) has no id", i, id, call, at, calls[call].Name)
	}
	return 0, fmt.Errorf("message %d: tool_call_id %q matches no call of message %d", i, id, at)
}

// placed finds the call of message at with the same position as result i. It is an error
// if the result bears the name of another of the calls.
func placed(msgs []chat.Message, at, i int) (int, error) {
	place, name, calls := i-at-1, msgs[i].Name, msgs[at].Calls
	if place >= len(calls) {
		return 0, orphan(i)
	}
	if due := calls[place].Name; name != due && slices.ContainsFunc(calls, func(c chat.Call) bool { return c.Name == name }) {
		return 0, fmt.Errorf("message %d: result of %s in the position of %s: add a tool_call_id to the results of message %d", i, name, due, at)
	}
	return place, nil
}

func orphan(i int) error {
	return fmt.Errorf("message %d: tool message without a preceding call", i)
}

// named assigns an id to each call of message at that has none: nine letters and digits,
// as some templates require.
func named(calls []chat.Call, at int) []chat.Call {
	out := slices.Clone(calls)
	place := 0
	for i := range out {
		for out[i].ID == "" {
			id := fmt.Sprintf("c%04d%04d", at, place)
			if !slices.ContainsFunc(out, func(c chat.Call) bool { return c.ID == id }) {
				out[i].ID = id
			}
			place++
		}
	}
	return out
}

// label names a call in error messages.
func label(calls []chat.Call, i int) string {
	if calls[i].ID == "" {
		return fmt.Sprintf("call %d (%s)", i, calls[i].Name)
	}
	return fmt.Sprintf("the call %q (%s)", calls[i].ID, calls[i].Name)
}
