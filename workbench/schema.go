package workbench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"envace/chat"
)

// Param describes one parameter of a tool. All parameters are required; the default type
// is text.
type Param struct {
	Name     string
	Enum     []string // allowed values; nil for any text
	Integer  bool     // a whole number from Min to Max
	Min, Max int
}

// Text returns a parameter that takes any text.
func Text(name string) Param { return Param{Name: name} }

// Choice returns a parameter that takes one of a few words.
func Choice(name string, of []string) Param { return Param{Name: name, Enum: of} }

// Number returns a parameter that takes a whole number from 1 to 99.
func Number(name string) Param { return Param{Name: name, Integer: true, Min: 1, Max: 99} }

type property struct {
	Type    string   `json:"type"`
	Enum    []string `json:"enum,omitempty"`
	Minimum int      `json:"minimum,omitempty"`
	Maximum int      `json:"maximum,omitempty"`
}

// schema returns the JSON Schema of params, with keys in their order.
func schema(params []Param) json.RawMessage {
	var props, names []string
	for _, p := range params {
		prop := property{Type: "string", Enum: p.Enum}
		if p.Integer {
			prop = property{Type: "integer", Minimum: p.Min, Maximum: p.Max}
		}
		props = append(props, string(mustJSON(p.Name))+":"+string(mustJSON(prop)))
		names = append(names, p.Name)
	}
	required := ""
	if len(names) > 0 {
		required = `,"required":` + string(mustJSON(names))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(props, ",") + `}` +
		required + `,"additionalProperties":false}`)
}

// validate parses the arguments of a call. Its errors say what is wrong and what is
// expected.
func (t Tool) validate(raw json.RawMessage) (Args, error) {
	var args Args
	if err := json.Unmarshal(raw, &args); err != nil || args == nil {
		return nil, fmt.Errorf("arguments must be a json object")
	}
	var names []string
	for _, p := range t.Params {
		names = append(names, p.Name)
		value, ok := args[p.Name]
		if !ok {
			return nil, fmt.Errorf("%s is missing, it must be %s", p.Name, p.expects())
		}
		if !p.accepts(value) {
			return nil, fmt.Errorf("%s must be %s", p.Name, p.expects())
		}
	}
	if len(args) == len(names) {
		return args, nil
	}
	for _, name := range sortedKeys(args) {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown argument %s, %s takes %s", name, t.Name, strings.Join(names, ", "))
		}
	}
	return args, nil
}

func (p Param) accepts(value json.RawMessage) bool {
	if p.Integer {
		var n int
		return json.Unmarshal(value, &n) == nil && string(value) != "null" && n >= p.Min && n <= p.Max
	}
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil || *s == "" {
		return false
	}
	return p.Enum == nil || slices.Contains(p.Enum, *s)
}

func (p Param) expects() string {
	switch {
	case p.Integer:
		return fmt.Sprintf("a number from %d to %d", p.Min, p.Max)
	case p.Enum != nil:
		return "one of " + strings.Join(p.Enum, ", ")
	}
	return "text"
}

// Args are the validated arguments of a call.
type Args map[string]json.RawMessage

// Text returns a text argument; "" if there is none.
func (a Args) Text(name string) string {
	var s string
	if json.Unmarshal(a[name], &s) != nil {
		return ""
	}
	return s
}

// Int returns a whole-number argument; 0 if there is none.
func (a Args) Int(name string) int {
	var n int
	if json.Unmarshal(a[name], &n) != nil {
		return 0
	}
	return n
}

// mustJSON marshals values that this package or a domain's author built; it panics if that
// fails.
func mustJSON(v any) json.RawMessage {
	data, err := chat.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("workbench: %T as JSON: %v", v, err))
	}
	return data
}
