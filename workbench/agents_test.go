package workbench_test

import (
	"maps"
	"slices"
	"testing"

	"envace/task"
	"envace/workbench"
	"envace/workbench/domains"
)

// TestBranchesDecide: who has perfect plans, reads every value and takes the same
// way at every branch fails most tasks; who in place of what tools return guesses the
// commonest value fails nearly all.
func TestBranchesDecide(t *testing.T) {
	const n = 300 // tasks a domain
	for name, group := range map[string][]workbench.Domain{"training": domains.Train(), "held out": domains.HeldOut()} {
		t.Run(name, func(t *testing.T) {
			won := map[string]float64{}
			for _, d := range group {
				tasks := drawn(t, d, "test", n)
				yes, no, err := d.Decided(tasks)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %d branches, %.2f of them go the first way", d.Name, yes+no, float64(yes)/float64(yes+no))
				if share := float64(yes) / float64(yes+no); share < 0.4 || share > 0.6 {
					t.Errorf("%s: its branches do not go either way about as often", d.Name)
				}
				guess := commonest(t, d)
				for agent, script := range map[string]workbench.Script{
					"yes": {Yes: true}, "no": {}, "yes, guesses": {Yes: true, Guess: guess}, "no, guesses": {Guess: guess},
				} {
					won[agent] += wins(t, d, tasks, script) / float64(n*len(group))
				}
			}
			for agent, most := range map[string]float64{"yes": 0.35, "no": 0.35, "yes, guesses": 0.15, "no, guesses": 0.15} {
				t.Logf("always %s: %.3f succeed", agent, won[agent])
				if won[agent] > most {
					t.Errorf("always %s: %.3f succeed, want at most %.2f", agent, won[agent], most)
				}
			}
		})
	}
}

func drawn(t *testing.T, d workbench.Domain, split string, n int) []task.Task {
	t.Helper()
	tasks, err := d.Tasks(7, split, n)
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// wins counts the tasks in which an agent succeeds.
func wins(t *testing.T, d workbench.Domain, tasks []task.Task, script workbench.Script) float64 {
	t.Helper()
	won := 0.0
	for _, tk := range tasks {
		ep, err := d.Play(tk, script)
		if err != nil {
			t.Fatal(err)
		}
		ok, _, err := workbench.Worlds{Domains: []workbench.Domain{d}}.Success(tk, ep)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			won++
		}
	}
	return won
}

// commonest guesses for a reference the value that replies of this kind have most
// often in training.
func commonest(t *testing.T, d workbench.Domain) func(kind, ref string) any {
	learnt, err := d.Learnt(drawn(t, d, "sft", 400))
	if err != nil {
		t.Fatal(err)
	}
	return func(kind, ref string) any {
		best, seen := "nothing", learnt[[2]string{kind, ref}]
		for _, value := range slices.Sorted(maps.Keys(seen)) {
			if seen[value] > seen[best] {
				best = value
			}
		}
		return best
	}
}
