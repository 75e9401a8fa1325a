// Package chat holds messages, tools and calls as models and people exchange
// them, before anything becomes tokens.
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

// The speakers.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of a dialogue.
type Message struct {
	Role     Role
	Content  string // what is said, without thinking and calls
	Thinking string // the assistant's private reasoning
	Calls    []Call // the assistant's tool calls, in order
	CallID   string // tool: the call that this answers
	Name     string // tool: the name of the tool that answers
}

// Call is one request to run a tool.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object, byte for byte as it was written
}

// Function describes a tool to a model.
type Function struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of the arguments; key order kept
	Strict      *bool           // as given; nil where absent
	Write       bool            // the tool changes the world ("x-write" in JSON)
}

// Options bound a completion. The zero value leaves all to the server.
type Options struct {
	Temperature *float64
	TopP        *float64
	MaxTokens   int
	Seed        *uint64
	Stop        []string
	Schema      json.RawMessage // JSON Schema that the answer must obey
}

// Usage counts tokens.
type Usage struct{ Prompt, Completion int }

// ErrCut is an answer that ended before its end, at a limit of tokens or by a
// filter. The message that comes with it is a beginning: its calls must not be made.
var ErrCut = errors.New("the answer was cut off before its end")

// Completer is anything that answers a dialogue with one message.
type Completer interface {
	Complete(ctx context.Context, msgs []Message, tools []Function, o Options) (Message, Usage, error)
}

// Canonical returns data with sorted keys, no white space and numbers as
// written, so that equal values have equal bytes.
func Canonical(data []byte) ([]byte, error) {
	v, err := decode(data)
	if err != nil {
		return nil, err
	}
	return Marshal(v)
}

// Equal reports whether a and b are the same JSON value; numbers are equal if
// their values are (1, 1.0 and 1e0 are). Broken JSON equals nothing.
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
