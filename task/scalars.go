package task

import (
	"encoding/json"
	"iter"
	"sort"
	"strconv"
)

// Plain returns a JSON value as plain text: a string without its quotes.
func Plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// Scalars yields the path and text of every number and non-empty string in a JSON value,
// with keys in sorted order. Paths are as in [Ref] and begin with path.
func Scalars(v json.RawMessage, path string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { walk(v, path, yield) }
}

func walk(v json.RawMessage, path string, yield func(string, string) bool) bool {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	var text string
	var n json.Number
	switch {
	case json.Unmarshal(v, &object) == nil && object != nil:
		keys := make([]string, 0, len(object))
		for k := range object {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if !walk(object[k], join(path, k), yield) {
				return false
			}
		}
	case json.Unmarshal(v, &list) == nil && list != nil:
		for i, e := range list {
			if !walk(e, join(path, strconv.Itoa(i)), yield) {
				return false
			}
		}
	case json.Unmarshal(v, &text) == nil && text != "":
		return yield(path, text)
	case json.Unmarshal(v, &n) == nil && n != "":
		return yield(path, n.String())
	}
	return true
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}
