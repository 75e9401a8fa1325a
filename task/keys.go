package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checklists are read strictly: a misspelt key is an error, not silence.
type checklists [][][]Item

// UnmarshalJSON reads checklists[checklist][user turn][item].
func (c *checklists) UnmarshalJSON(data []byte) error {
	var raw [][][]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return errors.New(strings.Replace(fault(err), "the line", "checklists (list, user turn, item)", 1))
	}
	*c = make(checklists, len(raw))
	if len(raw) == 0 {
		return nil
	}
	var found []string
	used := make([][]Item, len(raw[0])) // only the first checklist is used
	for u, list := range raw[0] {
		for i, text := range list {
			var item Item
			why := itemKeys(text)
			if err := json.Unmarshal(text, &item); err != nil {
				why = append(why, strings.TrimPrefix(fault(err), "the line "))
			}
			for _, w := range why {
				found = append(found, place(u, called(i, item.ID))+w)
			}
			used[u] = append(used[u], item)
		}
	}
	(*c)[0] = used
	return told(found)
}

// told joins faults into one error, nil for none.
func told(faults []string) error {
	const shown = 6
	if len(faults) == 0 {
		return nil
	}
	if n := len(faults) - shown; n > 0 {
		faults = append(slices.Clone(faults[:shown]), fmt.Sprintf("and %d more", n))
	}
	return errors.New(strings.Join(faults, "; "))
}

// itemKeys finds misspelt keys of an item. Items may have keys of their own, as CM2's
// do, but none that looks like one of ours; the parts of a check may not.
func itemKeys(text json.RawMessage) []string {
	object := fields(text)
	found := misspelt[Item]("", object, false)
	check := fields(object["check"])
	found = append(found, misspelt[Check]("check: ", check, true)...)
	var when []json.RawMessage
	_ = json.Unmarshal(check["when"], &when) // the item's own decoding says what is wrong
	for _, text := range when {
		cond := fields(text)
		found = append(found, misspelt[Cond]("when: ", cond, true)...)
		found = append(found, refKeys(cond["ref"])...)
	}
	return found
}

func refKeys(text json.RawMessage) []string {
	ref := fields(text)
	return append(misspelt[Ref]("reference: ", ref, true), misspelt[Pick]("pick: ", fields(ref["pick"]), true)...)
}

// misspelt finds keys that T does not have; unless strict, only those that seem to stand
// for one that it has.
func misspelt[T any](where string, object map[string]json.RawMessage, strict bool) []string {
	known := keys(reflect.TypeFor[T]())
	var found []string
	for _, key := range sorted(object) {
		if slices.Contains(known, key) {
			continue
		}
		i := slices.IndexFunc(known, func(k string) bool {
			_, given := object[k]
			return strings.EqualFold(key, k) || near(key, k) && (strict || !given)
		})
		switch {
		case i >= 0:
			found = append(found, fmt.Sprintf("%sunknown key %q: did you mean %q?", where, key, known[i]))
		case strict:
			found = append(found, fmt.Sprintf("%sunknown key %q: want %s", where, key, strings.Join(known, ", ")))
		}
	}
	return found
}

func keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

// near reports whether key looks like a misspelling of known.
func near(key, known string) bool {
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	a, b := plain.Replace(strings.ToLower(key)), plain.Replace(strings.ToLower(known))
	switch {
	case a == b:
		return true
	case strings.HasPrefix(b, "depend"):
		return strings.HasPrefix(a, "depend")
	case len(b) > 5:
		return distance(a, b) <= 2
	}
	return len(b) > 3 && (distance(a, b) <= 1 || letters(a) == letters(b))
}

func letters(s string) string { return string(slices.Sorted(slices.Values([]byte(s)))) }

// distance is Levenshtein's: how many letters to add, drop or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// fields returns the fields of an object, nil of anything else.
func fields(text json.RawMessage) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return nil
	}
	return object
}

// hasRef reports whether there is a "$ref" anywhere in v.
func hasRef(v json.RawMessage) bool {
	if !bytes.Contains(v, []byte(`"$ref"`)) {
		return false
	}
	if object := fields(v); object != nil {
		if _, ok := object["$ref"]; ok {
			return true
		}
		for _, e := range object {
			if hasRef(e) {
				return true
			}
		}
		return false
	}
	var list []json.RawMessage
	return json.Unmarshal(v, &list) == nil && slices.ContainsFunc(list, hasRef)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
