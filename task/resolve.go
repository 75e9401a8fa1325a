package task

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"envace/chat"
)

// Lookup returns the JSON value that r points to in result, the result of the call of
// item r.Item. ok is false if there is no such value.
func (r Ref) Lookup(result string) (value json.RawMessage, ok bool) {
	value = json.RawMessage(result)
	if r.Pick != nil {
		if value, ok = at(value, r.Pick.In); !ok {
			return nil, false
		}
		if value, ok = r.Pick.choose(value); !ok {
			return nil, false
		}
	}
	return at(value, r.Path)
}

// choose returns the element of the list that p picks.
func (p *Pick) choose(list json.RawMessage) (json.RawMessage, bool) {
	var elems []json.RawMessage
	if json.Unmarshal(list, &elems) != nil {
		return nil, false
	}
	var best json.RawMessage
	for _, e := range elems {
		if p.holds(e) && (best == nil || p.better(e, best)) {
			best = e
		}
	}
	return best, best != nil
}

func (p *Pick) holds(elem json.RawMessage) bool {
	for key, want := range p.Where {
		if got, ok := at(elem, key); !ok || !chat.Equal(got, want) {
			return false
		}
	}
	return true
}

func (p *Pick) better(a, b json.RawMessage) bool {
	switch {
	case p.Min != "":
		return key(a, p.Min) < key(b, p.Min)
	case p.Max != "":
		return key(a, p.Max) > key(b, p.Max)
	}
	return false
}

func key(elem json.RawMessage, name string) float64 {
	v, ok := at(elem, name)
	if !ok {
		return 0
	}
	f, _ := number(v)
	return f
}

// at follows a path of keys and indices.
func at(value json.RawMessage, path string) (json.RawMessage, bool) {
	if !json.Valid(value) {
		return nil, false
	}
	if path == "" {
		return bytes.TrimSpace(value), true
	}
	for part := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(value, &object) == nil && object != nil:
			v, ok := object[part]
			if !ok {
				return nil, false
			}
			value = v
		case json.Unmarshal(value, &list) == nil:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(list) {
				return nil, false
			}
			value = list[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// number reads a JSON number, or a string that holds one.
func number(v json.RawMessage) (float64, bool) {
	f, err := strconv.ParseFloat(strings.Trim(string(v), `"`), 64)
	return f, err == nil
}

// IsError reports whether a tool's result is an error: a JSON object with a
// non-empty "error" or "exception" (or the historical "error_tool_call"), or text
// that starts with "error".
func IsError(result string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &object) != nil {
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(result)), "error")
	}
	for _, k := range []string{"error", "exception", "error_tool_call"} {
		if v, ok := object[k]; ok && !empty(v) {
			return true
		}
	}
	return false
}

// empty reports whether v is null, false, or an empty string, list or object.
func empty(v json.RawMessage) bool {
	text, err := chat.Canonical(v)
	if err != nil {
		return len(bytes.TrimSpace(v)) == 0
	}
	switch string(text) {
	case "null", `""`, "[]", "{}", "false":
		return true
	}
	return false
}

// Results returns the result of the call that satisfied a tool_call item in the judged
// episode; ok is false if no call did.
type Results func(item string) (result string, ok bool)

// Holds reports whether c holds. known is false if the call that c refers to was not
// made, a value to compare with is missing, or an order is asked of a value that is not a
// number.
func (c Cond) Holds(results Results) (holds, known bool) {
	result, ok := results(c.Ref.Item)
	if !ok {
		return false, false
	}
	switch c.Op {
	case OpError:
		return IsError(result), true
	case OpOK:
		return !IsError(result), true
	}
	got, there := c.Ref.Lookup(result)
	switch c.Op {
	case OpEmpty:
		return !there || empty(got), true
	case OpFilled:
		return there && !empty(got), true
	}
	want, ok := Value(c.Value, results)
	if !ok {
		return false, false
	}
	switch c.Op {
	case OpEqual:
		return there && chat.Equal(got, want), true
	case OpUnequal:
		return !there || !chat.Equal(got, want), true
	}
	a, oka := number(got)
	b, okb := number(want)
	if !oka || !okb {
		return false, false
	}
	switch c.Op {
	case OpLess:
		return a < b, true
	case OpAtLeast:
		return a >= b, true
	}
	return false, false // an unknown operator
}

// Value resolves a literal or a {"$ref": Ref}.
func Value(v json.RawMessage, results Results) (json.RawMessage, bool) {
	ref, ok := AsRef(v)
	if !ok {
		return v, len(v) > 0
	}
	result, ok := results(ref.Item)
	if !ok {
		return nil, false
	}
	return ref.Lookup(result)
}

// AsRef reads {"$ref": Ref}.
func AsRef(v json.RawMessage) (Ref, bool) {
	var w struct {
		Ref *Ref `json:"$ref"`
	}
	if !bytes.Contains(v, []byte(`"$ref"`)) || json.Unmarshal(v, &w) != nil || w.Ref == nil {
		return Ref{}, false
	}
	return *w.Ref, true
}
