package workbench_test

import (
	"regexp"
	"slices"
	"testing"

	"envace/workbench"
	"envace/workbench/domains"
)

var (
	entity  = regexp.MustCompile(`[a-z]+-[a-z]+`)
	letters = regexp.MustCompile(`[a-zA-Z]+`)
)

// TestNamesAreNoOtherWords: a word of a name occurs in names only.
func TestNamesAreNoOtherWords(t *testing.T) {
	first, second := workbench.Names()
	people := workbench.People()
	if len(first) < 64 || len(second) < 32 {
		t.Errorf("%d first words, %d second words", len(first), len(second))
	}
	names := map[string]bool{}
	for _, list := range [][]string{first, second, people} {
		for _, w := range list {
			if names[w] {
				t.Errorf("%q is twice in the lists", w)
			}
			names[w] = true
		}
	}
	for _, d := range domains.All() {
		d.EachText(func(text string) {
			text = entity.ReplaceAllString(text, " ")
			for _, w := range letters.FindAllString(text, -1) {
				if names[w] && !slices.Contains(people, w) {
					t.Errorf("%s: %q is a word of names, and in %.60q", d.Name, w, text)
				}
			}
		})
	}
}
