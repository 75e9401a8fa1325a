package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"envace/chat"
)

const (
	callTag      = "tool_call"
	responseOpen = "<tool_response>"

	rawLimit = 200 // characters of a malformed block quoted in an error
)

const callForm = `write each call as <tool_call>{"name": …, "arguments": {…}}</tool_call>`

// act collects the calls of a message as they are read.
type act struct {
	max   int // maximum number of calls; 0 is no limit
	place int // index of the next call, valid or not
	calls []chat.Call
	errs  []CallError
}

// block reads the calls of one block and reports whether there was any.
func (a *act) block(s span) bool {
	switch s.fault {
	case mentioned:
		a.fail(s.raw, NoToolCallFound, "<tool_call> is not followed by a call: "+callForm)
		return false
	case unclosed:
		a.fail(s.raw, NoToolCallFound, "the block is not closed by </tool_call>: "+callForm)
		return false
	case notJSON:
		why := "text follows the JSON value"
		if s.cause != nil {
			why = s.cause.Error()
		}
		a.fail(s.raw, JSONDecodeError, "the block is not one JSON value ("+why+"): "+callForm)
		return false
	}
	items := []json.RawMessage{json.RawMessage(s.value)}
	if s.value[0] == '[' {
		if err := json.Unmarshal([]byte(s.value), &items); err != nil {
			a.fail(s.raw, JSONDecodeError, err.Error())
			return false
		}
	}
	if len(items) == 0 {
		a.fail(s.raw, NoToolCallFound, "the list of calls is empty: "+callForm)
	}
	before := len(a.calls)
	for _, item := range items {
		a.item(item)
	}
	return len(a.calls) > before
}

func (a *act) item(item json.RawMessage) {
	call, code, why := readCall(item)
	if code == "" && a.max > 0 && len(a.calls) >= a.max {
		code, why = TooManyCalls, fmt.Sprintf("at most %d calls are allowed in one message", a.max)
	}
	if code != "" {
		a.fail(string(item), code, why)
		return
	}
	a.calls = append(a.calls, call)
	a.place++
}

func (a *act) fail(raw, code, why string) {
	a.errs = append(a.errs, CallError{Index: a.place, Code: code, Message: why, Raw: clip(raw, rawLimit)})
	a.place++
}

// readCall reads one call. It checks the arguments first: if half of the call is
// missing, that is the more useful error.
func readCall(item json.RawMessage) (call chat.Call, code, why string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(item, &fields); err != nil || fields == nil {
		return call, NoArguments, "a call is a JSON object, not " + kindOf(item) + ": " + callForm
	}
	args := fields["parameters"]
	if absent(args) {
		args = fields["arguments"]
	}
	if absent(args) {
		return call, NoArguments, `the call has no "arguments": ` + callForm
	}
	if args[0] != '{' {
		return call, InvalidArguments, `"arguments" must be a JSON object, not ` + kindOf(args)
	}
	var name string
	if err := json.Unmarshal(fields["name"], &name); err != nil || strings.TrimSpace(name) == "" {
		return call, InvalidToolName, `"name" must be the name of a tool, a string: ` + callForm
	}
	return chat.Call{Name: strings.TrimSpace(chat.Sanitize(name)), Arguments: args}, "", ""
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// kindOf returns the type of a JSON value in words.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
