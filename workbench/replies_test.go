package workbench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"envace/judge"
	"envace/rollout"
	"envace/task"
	"envace/workbench"
	"envace/workbench/domains"
)

// TestLooseRepliesFail gives an expert's episode other last words: the same ones in
// another order, which are right, and such as belong to another key, entity or kind
// of task in the same state, which are not.
func TestLooseRepliesFail(t *testing.T) {
	for _, d := range domains.All() {
		t.Run(d.Name, func(t *testing.T) {
			others := replies(t, d)
			tried := map[string]int{}
			for _, tk := range drawn(t, d, "test", 30) {
				right := said(rollout.Recorded(tk))
				for _, words := range []string{right, turned(right)} {
					if ok, why := told(t, d, tk, words); !ok {
						t.Errorf("%s: %q for %q fails: %s", tk.ID, words, right, why)
					}
				}
				for name, list := range loose(tk, right, others) {
					for _, words := range list {
						tried[name]++
						if ok, _ := told(t, d, tk, words); ok {
							t.Errorf("%s: %s: %q passes for %q\n%s", tk.ID, name, words, right, tk.Turns[len(tk.Turns)-1].User)
						}
					}
				}
			}
			t.Log(tried)
			for _, name := range []string{"another key", "a key beside", "another entity", "an entity beside", "another kind", "a word less"} {
				if tried[name] < 20 {
					t.Errorf("%s: only %d tried", name, tried[name])
				}
			}
		})
	}
}

// said is the last message of an episode.
func said(ep *rollout.Episode) string { return ep.Entries[len(ep.Entries)-1].Message.Content }

// turned says the same words, the last first.
func turned(text string) string {
	words := strings.Fields(text)
	slices.Reverse(words)
	return strings.Join(words, " ")
}

// told plays an expert's episode with other last words.
func told(t *testing.T, d workbench.Domain, tk task.Task, words string) (ok bool, why string) {
	t.Helper()
	ep := rollout.Recorded(tk)
	ep.Entries[len(ep.Entries)-1].Message.Content = words
	ok, why, err := workbench.Worlds{Domains: []workbench.Domain{d}}.Success(tk, ep)
	if err != nil {
		t.Fatal(err)
	}
	ep.User = len(tk.Turns) - 1
	v, err := judge.Checklist{}.Judge(context.Background(), ep)
	if err != nil {
		t.Fatal(err)
	}
	if whole := v.Reward > 1-1e-9; whole != ok {
		t.Errorf("%s: %q: success is %v, the reward %f", tk.ID, words, ok, v.Reward)
	}
	return ok, why
}

// replies are right ones, one for each wording of each kind of a domain, with X for
// names.
func replies(t *testing.T, d workbench.Domain) []string {
	set := map[string]bool{}
	for _, tk := range drawn(t, d, "sft", 80) {
		set[names.ReplaceAllString(said(rollout.Recorded(tk)), "X")] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// loose makes wrong last words, by what is wrong with them.
func loose(tk task.Task, right string, others []string) map[string][]string {
	out := map[string][]string{}
	user := tk.Turns[len(tk.Turns)-1].User
	about := append(names.FindAllString(user, -1), names.FindAllString(right, -1)...)
	name := append(about, "no-body")[0]
	for _, other := range others {
		if words := strings.ReplaceAll(other, "X", name); !same(words, right) {
			out["another kind"] = append(out["another kind"], words)
		}
	}
	for _, m := range tk.Turns[len(tk.Turns)-1].Expert {
		for key, value := range values(m.Content) {
			words := fmt.Sprintf("the %s of %s is %s.", key, name, value)
			if unnamed := !strings.Contains(right, name); unnamed && task.Mentions(right, key) && task.Mentions(right, value) {
				continue // the receipt of an account, where any receipt will do
			}
			if !same(words, right) && value != name {
				out["another key"] = append(out["another key"], words)
			}
			if !task.Mentions(right+" "+user, value) {
				out["a key beside"] = append(out["a key beside"], right+" "+words)
			}
		}
	}
	for _, n := range names.FindAllString(right, -1) {
		out["another entity"] = append(out["another entity"], strings.ReplaceAll(right, n, "no-body"))
	}
	out["an entity beside"] = append(out["an entity beside"], right+" so is no-body.")
	words := strings.Fields(right)
	for i, w := range words {
		if w = strings.Trim(w, ",."); len(w) > 3 && !slices.Contains([]string{"done", "goes", "sorry", "that"}, w) {
			out["a word less"] = append(out["a word less"], strings.Join(slices.Delete(slices.Clone(words), i, i+1), " "))
		}
	}
	return out
}

// same reports whether two replies have the same words, in whatever order.
func same(a, b string) bool {
	words := func(text string) []string {
		return slices.Sorted(slices.Values(strings.Fields(strings.NewReplacer(",", "", ".", "").Replace(text))))
	}
	return slices.Equal(words(a), words(b))
}

// values are the texts and numbers of a result, by key.
func values(result string) map[string]string {
	var object map[string]any
	if json.Unmarshal([]byte(result), &object) != nil {
		return nil
	}
	out := map[string]string{}
	for k, v := range object {
		switch v.(type) {
		case string, float64:
			if k != "error" {
				out[k] = fmt.Sprint(v)
			}
		}
	}
	return out
}
