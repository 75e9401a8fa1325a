// Package chat defines messages, tools and calls, before tokenisation.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
)

// Role is the speaker of a message.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of a dialogue.
type Message struct {
	Role     Role
	Content  string // the text, without thinking and calls
	Thinking string // the assistant's private reasoning
	Calls    []Call // the assistant's tool calls, in order
	CallID   string // tool messages: id of the call this is the result of
	Name     string // tool messages: name of the tool
}

// Call is one request to run a tool.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object, byte for byte as written
}

// Function describes a tool to a model.
type Function struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments; key order is preserved
	Strict      *bool           // as given; nil if absent
	Write       bool            // the tool changes the world ("x-write" in JSON)
}

// Options are the parameters of a completion. The zero value means the server's
// defaults.
type Options struct {
	Temperature *float64
	TopP        *float64
	MaxTokens   int
	Seed        *uint64
	Stop        []string
	Schema      json.RawMessage // JSON Schema that the answer must match
}

// Usage counts tokens.
type Usage struct{ Prompt, Completion int }

// ErrCut means that an answer was truncated by a token limit or a filter. The
// message returned with it is incomplete: its calls must not be executed.
var ErrCut = errors.New("the answer was truncated")

// Completer generates the next message of a dialogue.
type Completer interface {
	Complete(ctx context.Context, msgs []Message, tools []Function, o Options) (Message, Usage, error)
}

// Canonical returns data with sorted keys, without white space and with numbers as
// written, so that equal values have equal bytes.
func Canonical(data []byte) ([]byte, error) {
	v, err := decode(data)
	if err != nil {
		return nil, err
	}
	return Marshal(v)
}

// Equal reports whether a and b are the same JSON value. Numbers are compared by
// value (1, 1.0 and 1e0 are equal). Invalid JSON is not equal to anything.
func Equal(a, b []byte) bool {
	va, erra := decode(a)
	vb, errb := decode(b)
	return erra == nil && errb == nil && equal(va, vb)
}

// Marshal is json.Marshal without escaping of <, > and &.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

func decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("text follows the JSON value")
	}
	return v, nil
}
