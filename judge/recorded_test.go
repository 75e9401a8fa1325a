package judge_test

import (
	"path/filepath"
	"strings"
	"testing"

	"envace/internal/oracle"
	"envace/rollout"
	"envace/task"
)

// TestExpertsOfRecordedDialogues judges recorded dialogues by the checklists
// derived of them: nothing decided may go against the expert.
func TestExpertsOfRecordedDialogues(t *testing.T) {
	dir := oracle.Need(t, filepath.Join(oracle.Shared(), "data", "trajectories", "normalized"))
	lists, err := filepath.Glob(filepath.Join(dir, "*.checklists.jsonl"))
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	for _, path := range lists {
		name := strings.TrimSuffix(filepath.Base(path), ".checklists.jsonl")
		t.Run(name, func(t *testing.T) {
			tasks, err := task.Load(filepath.Join(dir, name+".jsonl"), true)
			if tasks == nil {
				t.Fatal(err)
			}
			judged, _, err := task.AddChecklists(tasks, path, true)
			if judged == nil {
				t.Fatal(err)
			}
			outcomes := map[rollout.Outcome]int{}
			for _, tk := range judged {
				tk.Relate()
				ep := rollout.Recorded(tk)
				for u := range tk.Turns {
					ep.User = u
					for _, item := range judgeTurn(t, ep).Items {
						outcomes[item.Outcome]++
						if item.Outcome == rollout.Fail && item.Why != "no reply" { // some records break off before one
							t.Errorf("%s, turn %d: %s fails the expert: %s", tk.ID, u, item.ID, item.Why)
						}
					}
				}
			}
			t.Logf("%d dialogues: %v", len(judged), outcomes)
			if outcomes[rollout.Pass] == 0 {
				t.Error("nothing is decided")
			}
		})
	}
}
