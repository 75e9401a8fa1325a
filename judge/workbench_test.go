package judge_test

import (
	"context"
	"testing"

	"envace/chat"
	"envace/judge"
	"envace/rollout"
	"envace/task"
	"envace/workbench/domains"
)

const seeds = 20

// reward judges every user turn of an episode and returns the mean.
func reward(t *testing.T, ep *rollout.Episode) float64 {
	t.Helper()
	sum := 0.0
	for u := range ep.Task.Turns {
		ep.User = u
		sum += judgeTurn(t, ep).Reward
	}
	return sum / float64(len(ep.Task.Turns))
}

func judgeTurn(t *testing.T, ep *rollout.Episode) rollout.Verdict {
	t.Helper()
	v, err := judge.Checklist{}.Judge(context.Background(), ep)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// silent is what is left of an episode without calls and words.
func silent(tk task.Task) *rollout.Episode {
	ep := &rollout.Episode{Task: tk}
	for u := range tk.Turns {
		ep.Entries = append(ep.Entries, rollout.Entry{Message: chat.Message{Role: chat.Assistant}, Source: rollout.FromPolicy, User: u})
	}
	return ep
}

func TestExpertsOfTheWorkbench(t *testing.T) {
	for _, d := range domains.All() {
		t.Run(d.Name, func(t *testing.T) {
			nothing := 0.0
			for seed := range uint64(seeds) {
				tk, err := d.Task(seed)
				if err != nil {
					t.Fatal(err)
				}
				if got := reward(t, rollout.Recorded(tk)); got < 1-1e-9 {
					t.Errorf("%s: the expert gets %.3f", tk.ID, got)
				}
				nothing += reward(t, silent(tk)) / seeds
			}
			if nothing > 0.2 {
				t.Errorf("doing nothing gets %.3f", nothing)
			}
		})
	}
}
