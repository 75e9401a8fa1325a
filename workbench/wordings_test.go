package workbench_test

import (
	"testing"

	"envace/workbench/domains"
)

// TestWordingsAreMany: each request has a wording for tests alone and two for
// training at least.
func TestWordingsAreMany(t *testing.T) {
	for _, d := range domains.All() {
		seen := map[string]bool{}
		d.Wordings(func(kind string, wordings []string) {
			seen[kind] = true
			if len(wordings) < 3 {
				t.Errorf("%s, %s: only %d wordings: %q", d.Name, kind, len(wordings), wordings)
			}
		})
		if len(seen) != len(d.Kinds) {
			t.Errorf("%s: wordings of %d kinds, want %d", d.Name, len(seen), len(d.Kinds))
		}
	}
}

// TestWordingsOfTestsAreNew: but for names and numbers, no request of a test is
// one that training has.
func TestWordingsOfTestsAreNew(t *testing.T) {
	known := map[string]string{}
	for _, d := range domains.Train() {
		for split, n := range map[string]int{"sft": 334, "rl": 500} { // 5,004 in all
			for _, tk := range drawn(t, d, split, n) {
				for _, turn := range tk.Turns {
					known[varying.ReplaceAllString(turn.User, "X")] = turn.User
				}
			}
		}
	}
	for _, d := range domains.All() {
		for _, tk := range drawn(t, d, "test", 300) {
			for _, turn := range tk.Turns {
				if other, ok := known[varying.ReplaceAllString(turn.User, "X")]; ok {
					t.Errorf("%s: %q, and training has %q", tk.ID, turn.User, other)
				}
			}
		}
	}
}
