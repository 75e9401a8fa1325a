package workbench_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"envace/task"
	"envace/workbench"
	"envace/workbench/domains"
)

// groups are the domains whose difficulty is measured together.
func groups() map[string][]workbench.Domain {
	return map[string][]workbench.Domain{"training": domains.Train(), "held out": domains.HeldOut()}
}

// TestBranchesDecide: who has perfect plans, reads every value and ignores every
// branch fails most tasks, and so does who heeds nothing that a tool returns.
func TestBranchesDecide(t *testing.T) {
	const n = 300 // a domain
	for name, group := range groups() {
		t.Run(name, func(t *testing.T) {
			won, all := map[string]float64{}, 0.0
			yes, no := 0, 0
			for _, d := range group {
				tasks := drawn(t, d, "test", n)
				a, b, err := d.Decided(tasks)
				if err != nil {
					t.Fatal(err)
				}
				if share := float64(a) / float64(a+b); share < 0.35 || share > 0.65 {
					t.Errorf("%s: %.2f of its branches go the first way", d.Name, share)
				}
				yes, no, all = yes+a, no+b, all+n
				usual := usual(t, d)
				kinds := map[string][4]float64{} // wins of yes and no among one-turn tasks, their number
				for _, yes := range []bool{true, false} {
					for _, blind := range []bool{false, true} {
						script := workbench.Script{Yes: yes}
						if blind {
							script.Guess = usual
						}
						for _, tk := range tasks {
							ok := succeeds(t, d, tk, script)
							if ok {
								won[agentName(yes, blind)]++
							}
							note(kinds, tk, ok, yes, blind)
						}
					}
				}
				t.Log(d.Name, float64(a)/float64(a+b))
				for _, kind := range slices.Sorted(maps.Keys(kinds)) {
					k := kinds[kind]
					t.Logf("  %-10s %4.0f tasks: yes %.2f, no %.2f, blind %.2f", kind, k[3], k[0]/k[3], k[1]/k[3], k[2]/k[3])
				}
			}
			t.Logf("branches: %d first way, %d second", yes, no)
			for _, agent := range slices.Sorted(maps.Keys(won)) {
				t.Logf("%s: %.3f", agent, won[agent]/all)
			}
			for _, yes := range []bool{true, false} {
				if got := won[agentName(yes, false)] / all; got > 0.35 {
					t.Errorf("%s: %.3f succeed, want at most 0.35", agentName(yes, false), got)
				}
				if got := won[agentName(yes, true)] / all; got > 0.15 {
					t.Errorf("%s: %.3f succeed, want at most 0.15", agentName(yes, true), got)
				}
			}
		})
	}
}

func note(kinds map[string][4]float64, tk task.Task, ok, yes, blind bool) {
	o, _ := workbench.Describe(tk)
	if len(o.Kinds) > 1 {
		return
	}
	k := kinds[o.Kinds[0]]
	win := 0.0
	if ok {
		win = 1
	}
	switch {
	case blind:
		k[2] += win / 2
	case yes:
		k[0] += win
		k[3]++
	default:
		k[1] += win
	}
	kinds[o.Kinds[0]] = k
}

func agentName(yes, blind bool) string {
	name := fmt.Sprintf("always %s", map[bool]string{true: "yes", false: "no"}[yes])
	if blind {
		name += ", guesses values"
	}
	return name
}

func drawn(t *testing.T, d workbench.Domain, split string, n int) []task.Task {
	t.Helper()
	tasks, err := d.Tasks(7, split, n)
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

func succeeds(t *testing.T, d workbench.Domain, tk task.Task, script workbench.Script) bool {
	t.Helper()
	ep, err := d.Play(tk, script)
	if err != nil {
		t.Fatal(err)
	}
	ok, _, err := workbench.Worlds{Domains: []workbench.Domain{d}}.Success(tk, ep)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// usual guesses for each reference the value that it has most often in training.
func usual(t *testing.T, d workbench.Domain) func(kind, ref string) any {
	learnt, err := d.Learnt(drawn(t, d, "sft", 400))
	if err != nil {
		t.Fatal(err)
	}
	return func(kind, ref string) any {
		best := "none"
		seen := learnt[[2]string{kind, ref}]
		for _, value := range slices.Sorted(maps.Keys(seen)) {
			if best == "none" || cmp.Compare(seen[value], seen[best]) > 0 {
				best = value
			}
		}
		return best
	}
}
