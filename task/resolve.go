package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"envace/chat"
)

// Lookup returns the JSON value that r points to in result, the answer of the
// call of item r.Item. ok is false where there is no such value.
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
	var least *big.Rat
	for _, e := range elems {
		if !p.holds(e) {
			continue
		}
		if p.Min == "" && p.Max == "" {
			return e, true
		}
		if n, ok := p.number(e); ok && (least == nil || n.Cmp(least) < 0) {
			best, least = e, n
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

// number is what the picked element has least of; an element without one is not
// picked.
func (p *Pick) number(elem json.RawMessage) (*big.Rat, bool) {
	key := cmp.Or(p.Min, p.Max)
	v, ok := at(elem, key)
	if !ok {
		return nil, false
	}
	n, ok := number(v)
	if ok && p.Min == "" {
		n.Neg(n)
	}
	return n, ok
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

// number reads a JSON number, or a string that holds one, exactly. Numbers whose
// exact value would be huge are none.
func number(v json.RawMessage) (*big.Rat, bool) {
	const mostDigits, mostExponent = 400, 400
	text := Plain(v)
	digits, exponent, scaled := strings.Cut(strings.ToLower(text), "e")
	if scaled {
		if e, err := strconv.Atoi(exponent); err != nil || e > mostExponent || e < -mostExponent {
			return nil, false
		}
	}
	if len(digits) > mostDigits || !decimal.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// decimal is a number as JSON has it, with an optional plus sign or leading point.
var decimal = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

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

// empty reports whether v says nothing: null, false, or no text, element or key.
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

// Null reports whether v is the JSON value null.
func Null(v json.RawMessage) bool { return string(bytes.TrimSpace(v)) == "null" }

// Results gives the answer of the call that satisfied a tool_call item in the
// episode under judgement; ok is false where no call did.
type Results func(item string) (result string, ok bool)

// Holds reports whether c holds; known is false where nothing can be said: the call
// that c asks about was not made, a value that it compares is missing or null, or two
// values have no order because one of them is no number. Only an error lacks a value
// by right: there it counts as empty.
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
	switch {
	case there && !Null(got):
	case (c.Op == OpEmpty || c.Op == OpFilled) && !there && IsError(result):
		return c.Op == OpEmpty, true
	default:
		return false, false
	}
	switch c.Op {
	case OpEmpty:
		return empty(got), true
	case OpFilled:
		return !empty(got), true
	}
	want, ok := Value(c.Value, results)
	if !ok || Null(want) {
		return false, false
	}
	switch c.Op {
	case OpEqual:
		return chat.Equal(got, want), true
	case OpUnequal:
		return !chat.Equal(got, want), true
	}
	a, oka := number(got)
	b, okb := number(want)
	if !oka || !okb {
		return false, false
	}
	switch c.Op {
	case OpLess:
		return a.Cmp(b) < 0, true
	case OpAtLeast:
		return a.Cmp(b) >= 0, true
	}
	return false, false // an operator that does not exist
}

// HoldAll reports whether conds, which lead from one to the next, all hold. What an
// error lacks counts as empty only behind a condition that expects the error:
// otherwise nobody can tell an empty answer from one that did not come.
func HoldAll(conds []Cond, results Results) (holds, known bool) {
	failed := map[string]bool{}
	for _, c := range conds {
		result, _ := results(c.Ref.Item)
		if (c.Op == OpEmpty || c.Op == OpFilled) && IsError(result) && !failed[c.Ref.Item] {
			return false, false
		}
		if holds, known = c.Holds(results); !holds || !known {
			return holds, known
		}
		failed[c.Ref.Item] = failed[c.Ref.Item] || c.Op == OpError
	}
	return true, true
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
