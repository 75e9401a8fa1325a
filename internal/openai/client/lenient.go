package client

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Servers deviate from the API in how they write an answer. What can be understood is
// read, and what is unknown ignored: an answer that was paid for is not thrown away.

// message is a message or the delta of one.
type message struct {
	content, thinking, refusal string
	calls                      []toolCall
	reasoning                  bool // the thinking came in the field reasoning
}

// toolCall is a call or the delta of one.
type toolCall struct {
	index     *int
	id, name  string
	arguments string
	old       bool // from function_call, which has neither index nor ID
}

// UnmarshalJSON reads all forms in use.
func (m *message) UnmarshalJSON(data []byte) error {
	*m = message{}
	var w struct {
		Content   json.RawMessage `json:"content"`
		Thinking  json.RawMessage `json:"reasoning_content"`
		Reasoning json.RawMessage `json:"reasoning"` // newer vLLM and others
		Details   json.RawMessage `json:"reasoning_details"`
		Thought   json.RawMessage `json:"thinking"`
		Refusal   json.RawMessage `json:"refusal"`
		Calls     json.RawMessage `json:"tool_calls"`
		Call      json.RawMessage `json:"function_call"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	m.read(w.Content, false)
	apart := m.thinking == ""
	for i, raw := range []json.RawMessage{w.Thinking, w.Reasoning, w.Thought, w.Details} {
		if apart && m.thinking == "" {
			m.read(raw, true)
			m.reasoning = i == 1 && m.thinking != ""
		}
	}
	var refusal message
	refusal.read(w.Refusal, false)
	m.refusal += refusal.content
	for _, raw := range list(w.Calls) {
		m.call(raw, false)
	}
	if isObject(w.Call) {
		m.call(w.Call, true)
	}
	return nil
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// list returns the items of an array, or a single value as the only one.
func list(raw json.RawMessage) (items []json.RawMessage) {
	if len(raw) > 0 && raw[0] == '[' {
		if json.Unmarshal(raw, &items) != nil {
			return nil
		}
		return items
	}
	if isObject(raw) {
		return []json.RawMessage{raw}
	}
	return nil
}

// read appends content: a text, a part, or a list of these.
func (m *message) read(raw json.RawMessage, thinking bool) {
	if len(raw) > 0 && raw[0] == '"' {
		if thinking {
			m.thinking += loose(raw)
		} else {
			m.content += loose(raw)
		}
		return
	}
	if isObject(raw) {
		m.part(raw, thinking)
		return
	}
	for _, item := range list(raw) {
		m.read(item, thinking)
	}
}

// part appends one part of content.
func (m *message) part(raw json.RawMessage, thinking bool) {
	var p struct {
		Type, Text, Value, Content, Thinking, Reasoning, Summary, Refusal json.RawMessage
	}
	if json.Unmarshal(raw, &p) != nil {
		return
	}
	kind := loose(p.Type)
	switch {
	case kind == "tool_use" || kind == "tool_call" || kind == "function_call":
		m.call(raw, false)
		return
	case kind == "refusal":
		m.refusal += loose(p.Refusal)
		return
	}
	fields := []json.RawMessage{p.Text, p.Value, p.Content}
	if thinking = thinking || strings.Contains(kind, "thinking") || strings.Contains(kind, "reasoning"); thinking {
		fields = append([]json.RawMessage{p.Thinking, p.Reasoning}, append(fields, p.Summary)...)
	}
	for _, f := range fields {
		if len(f) > 0 && string(f) != "null" {
			m.read(f, thinking)
			return
		}
	}
}

// call appends a call.
func (m *message) call(raw json.RawMessage, old bool) {
	type function struct{ Name, Arguments, Input json.RawMessage }
	var w struct {
		Index, ID json.RawMessage
		Function  json.RawMessage
		function
	}
	if json.Unmarshal(raw, &w) != nil {
		return
	}
	f := w.function
	if isObject(w.Function) && json.Unmarshal(w.Function, &f) != nil {
		return
	}
	if len(f.Arguments) == 0 {
		f.Arguments = f.Input
	}
	c := toolCall{id: loose(w.ID), name: loose(f.Name), arguments: loose(f.Arguments), old: old}
	if at, err := strconv.ParseFloat(loose(w.Index), 64); err == nil && at == math.Trunc(at) && math.Abs(at) < 1<<30 {
		index := int(at)
		c.index = &index
	}
	m.calls = append(m.calls, c)
}

// loose returns a JSON string's text, other values as they are written, and "" for null.
func loose(raw json.RawMessage) string {
	var text string
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// number is a whole number, also written as text or with a fraction of 0; else it is 0.
type number int

// UnmarshalJSON reads all forms.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = 0
	if x, err := strconv.ParseFloat(loose(data), 64); err == nil && math.Abs(x) < 1<<53 {
		*n = number(x)
	}
	return nil
}

// word is a text in small letters, or "".
type word string

// UnmarshalJSON reads a text and ignores other values.
func (w *word) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*w = word(strings.ToLower(text))
	}
	return nil
}
