package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// told is a report of two systems with outcomes, written and read again.
func told(t *testing.T) (Report, map[string]any) {
	t.Helper()
	d := create(t)
	tasks, a, b := []string{}, []bool{}, []bool{}
	for i := range 40 {
		tasks = append(tasks, fmt.Sprintf("desk-%d", (i*7)%40))
		a, b = append(a, i%3 > 0), append(b, i%2 > 0)
	}
	system := func(name string, success []bool) System {
		s := NewSystem(name, Real, "known", 5, success)
		s.Outcomes, s.Tokens = NewOutcomes(tasks, success), 3
		return s
	}
	r := Report{Title: "Made up", Version: "v9", Seed: 5, Systems: []System{system("rehearsed", a), system("sft", b), NewSystem("old", Real, "known", 5, a)}}
	c, err := Compare(r.Systems[0], r.Systems[1], r.Seed)
	if err != nil {
		t.Fatal(err)
	}
	r.Comparisons = []Comparison{c, NewComparison("rehearsed", "old", "known", 5, a, a)}
	if err := d.WriteReport(r); err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(d.Path, ReportFile))
	var plain map[string]any
	if err != nil || json.Unmarshal(data, &plain) != nil {
		t.Fatal(err)
	}
	return got, plain
}

// Whoever has a written report can compute its intervals: Wilson's, and the paired
// bootstrap in the order of the task ids.
func TestIntervalsFromAWrittenReport(t *testing.T) {
	r, plain := told(t)
	if plain["version"] != "v9" {
		t.Errorf("version %v", plain["version"])
	}
	by := map[string][]bool{}
	for _, s := range plain["systems"].([]any) {
		s := s.(map[string]any)
		outcomes, ok := s["outcomes"].(map[string]any)
		if !ok {
			continue
		}
		var ids []string
		hits := 0
		for id, ok := range outcomes {
			if ids = append(ids, id); ok.(bool) {
				hits++
			}
		}
		slices.Sort(ids)
		for _, id := range ids {
			by[s["name"].(string)] = append(by[s["name"].(string)], outcomes[id].(bool))
		}
		lo, hi := Wilson(hits, len(ids))
		if got := s["ci95"].([]any); got[0] != lo || got[1] != hi || s["n"] != float64(len(ids)) {
			t.Errorf("%v: [%v, %v] by the outcomes", s, lo, hi)
		}
	}
	diff, lo, hi := PairedBootstrap(by["rehearsed"], by["sft"], r.Seed, Resamples)
	if c := r.Comparisons[0]; c.Diff != diff || c.CI95 != [2]float64{lo, hi} || c.N != 40 {
		t.Errorf("%+v; %v [%v, %v] by the outcomes", c, diff, lo, hi)
	}
}

func TestRecompute(t *testing.T) {
	want, _ := told(t)
	for _, tt := range []struct {
		name    string
		spoil   func(*Report)
		changed int
	}{
		{"as written", func(*Report) {}, 0},
		{"a rate", func(r *Report) { r.Systems[0].Success = 1 }, 1},
		{"an interval", func(r *Report) { r.Systems[1].CI95[0] = 0 }, 1},
		{"a number of tasks", func(r *Report) { r.Systems[1].N++ }, 1},
		{"a difference", func(r *Report) { r.Comparisons[0].Diff += 0.1 }, 1},
		{"all", func(r *Report) {
			r.Systems[0].N, r.Systems[1].Success, r.Comparisons[0].CI95 = 3, 0, [2]float64{}
		}, 3},
	} {
		got, _ := told(t)
		tt.spoil(&got)
		changed, err := got.Recompute()
		if err != nil || len(changed) != tt.changed || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", tt.name, changed, err)
		}
	}
	other, _ := told(t)
	delete(other.Systems[0].Outcomes, "desk-3")
	if _, err := other.Recompute(); err == nil || !strings.Contains(err.Error(), "not of the same tasks") {
		t.Errorf("other tasks: %v", err)
	}
	undecided, _ := told(t)
	delete(undecided.Systems[0].Outcomes, "desk-3")
	undecided.Systems[0].Undecided = 1
	if _, err := undecided.Recompute(); err != nil {
		t.Errorf("an undecided task: %v", err)
	}
	if c := undecided.Comparisons[0]; c.N != want.Comparisons[0].N-1 || undecided.Systems[0].Undecided != 1 || undecided.Systems[1].N != want.Systems[1].N {
		t.Errorf("an undecided task: compared on %d, of %d and %d", c.N, undecided.Systems[0].N, undecided.Systems[1].N)
	}
	flipped, _ := told(t)
	flipped.Systems[0].Outcomes["desk-3"] = !flipped.Systems[0].Outcomes["desk-3"]
	if changed, err := flipped.Recompute(); err != nil || len(changed) != 2 {
		t.Errorf("an outcome: %q, %v", changed, err)
	}
	old := madeUpReport()
	before := fmt.Sprint(old.Systems, old.Comparisons)
	if changed, err := old.Recompute(); err != nil || len(changed) > 0 || fmt.Sprint(old.Systems, old.Comparisons) != before {
		t.Errorf("a report of older versions: %q, %v", changed, err)
	}
}

func TestOutcomesOfOneID(t *testing.T) {
	o := NewOutcomes([]string{"a", "b", "a", "a#2", "a"}, []bool{true, false, false, true, true})
	if len(o) != 5 || !o["a"] || o["b"] || o["a#2"] || !o["a#2#2"] || !o["a#3"] {
		t.Errorf("%v", o)
	}
}
