package task

import (
	"encoding/json"
	"iter"
	"sort"
	"strconv"
)

// scalars yields path and text of every string and number in a JSON value, keys
// in sorted order.
func scalars(v json.RawMessage, path string) iter.Seq2[string, string] {
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
