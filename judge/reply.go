package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"envace/rollout"
	"envace/task"
)

func (t *turn) reply(c *task.Check) (rollout.Outcome, string) {
	said, ok := t.ep.Reply(t.ep.User)
	if !ok {
		return rollout.Fail, "no reply"
	}
	var seen []string
	for _, x := range t.calls {
		seen = append(seen, x.Result)
	}
	return Said(said, c, Before{Asked: t.ep.Asked(t.ep.User), Results: t.results, Made: t.made, Seen: seen})
}

// Before is what came before a reply in its user turn.
type Before struct {
	Asked   string                 // what the user said; numbers and names in it may be said
	Results task.Results           // the answers that references point into
	Made    func(item string) bool // whether an item's call was made
	Seen    []string               // all results of the turn
}

// Said decides a reply check on the text of a reply.
func Said(said string, c *task.Check, t Before) (rollout.Outcome, string) {
	right, told := t.Asked, ""
	for _, v := range c.Contains {
		if ref, ok := task.AsRef(v); ok && !t.Made(ref.Item) {
			return rollout.Fail, "the call of " + ref.Item + " was not made"
		}
		value, ok := task.Value(v, t.Results)
		if !ok || !reportable(value) {
			return rollout.Lacking, "the answer holds no value to report"
		}
		if text := task.Plain(value); !task.Mentions(said, text) {
			return rollout.Fail, fmt.Sprintf("the reply does not say %q", text)
		}
		told += "\n" + task.Plain(value)
	}
	right += told
	mentions := func(text string) bool { return task.Mentions(said, text) }
	if len(c.AnyOf) > 0 && !slices.ContainsFunc(c.AnyOf, mentions) {
		return rollout.Fail, fmt.Sprintf("the reply says none of %q", c.AnyOf)
	}
	wrong := func(text string) bool { return mentions(text) && !task.Mentions(told, text) } // what must be said may be
	if i := slices.IndexFunc(c.Excludes, wrong); i >= 0 {
		return rollout.Fail, fmt.Sprintf("the reply says %q", c.Excludes[i])
	}
	if n := len(strings.Fields(said)); c.MaxWords > 0 && n > c.MaxWords {
		return rollout.Fail, fmt.Sprintf("the reply has %d words, %d too many", n, n-c.MaxWords)
	}
	if value, ok := beside(said, right, c, t.Seen); ok {
		return rollout.Fail, fmt.Sprintf("the reply says %s, which nobody asked for", value)
	}
	return rollout.Pass, ""
}

// twoWords is a name that the workbench calls an entity by.
var twoWords = regexp.MustCompile(`\b[a-z]+-[a-z]+\b`)

// beside finds a value in a reply that it must not hold beside the right ones.
func beside(said, right string, c *task.Check, seen []string) (value string, found bool) {
	var suspects []string
	if c.NoOtherNumber {
		suspects = task.Numbers(said)
	}
	if c.NoOtherValue {
		suspects = append(suspects, twoWords.FindAllString(strings.ToLower(said), -1)...)
		for _, result := range seen {
			suspects = texts(suspects, result)
		}
	}
	i := slices.IndexFunc(suspects, func(s string) bool { return task.Mentions(said, s) && !task.Mentions(right, s) })
	if i < 0 {
		return "", false
	}
	return suspects[i], true
}

// texts adds the texts in a JSON result to list, but for the reason of an error.
func texts(list []string, result string) []string {
	var v any
	if json.Unmarshal([]byte(result), &v) != nil {
		return list
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if v != "" {
				list = append(list, v)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if k != "error" {
					walk(v[k])
				}
			}
		}
	}
	walk(v)
	return list
}

// reportable reports whether v can be said: a text, a number, or true or false.
func reportable(v json.RawMessage) bool {
	switch text := strings.TrimSpace(string(v)); {
	case task.Null(v), strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return false
	}
	return strings.TrimSpace(task.Plain(v)) != ""
}

func isRef(v json.RawMessage) bool {
	_, ok := task.AsRef(v)
	return ok
}
