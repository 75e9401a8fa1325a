package recipe

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"envace/internal/run"
	"envace/rollout"
	"envace/train"
)

// What the report says a run cost is the sum of what its steps counted.
func TestCost(t *testing.T) {
	type values = map[string]float64
	for _, tt := range []struct {
		name   string
		points []run.Point
		roles  []run.RoleCost
		stages []run.StageCost
	}{
		{"nothing", nil, nil, nil},
		{"supervised steps have no turns", []run.Point{
			{Stage: "sft", Values: values{"seconds": 2, "tokens_computed": 30}},
			{Stage: "sft", Step: 1, Values: values{"seconds": 3, "tokens_computed": 40}},
		}, nil, []run.StageCost{{Stage: "sft", Seconds: 5, Tokens: 70}}},
		{"turns are counts", []run.Point{
			{Stage: "rl", Values: values{"episodes": 3, "turns_act": 7, "turns_rehearse": 1, "tokens_act": 70, "tokens_rehearse": 9, "prompt_act": 700, "prompt_rehearse": 90, "seconds": 5, "seconds_sample": 3, "seconds_train": 2, "tokens_computed": 500}},
			{Stage: "rl", Step: 1, Values: values{"episodes": 7, "turns_act": 5, "tokens_act": 30, "prompt_act": 300, "seconds": 2, "seconds_sample": 1, "seconds_train": 1, "tokens_computed": 300}},
		}, []run.RoleCost{{Role: "act", Turns: 12, Prompt: 1000, Sampled: 100}, {Role: "rehearse", Turns: 1, Prompt: 90, Sampled: 9}},
			[]run.StageCost{{Stage: "rl: play", Seconds: 4, Tokens: 109}, {Stage: "rl: learn", Seconds: 3, Tokens: 800}}},
		{"whatever the number of episodes", []run.Point{{Stage: "rl", Values: values{"turns_act": 1}}, {Stage: "rl", Step: 1, Values: values{"episodes": 1000, "turns_act": 2}}},
			[]run.RoleCost{{Role: "act", Turns: 3}}, nil},
		{"more than a float32 can count", []run.Point{{Stage: "rl", Values: values{"episodes": 1 << 20, "turns_rehearse": 1<<24 + 1}}},
			[]run.RoleCost{{Role: "rehearse", Turns: 1<<24 + 1}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if c := cost(tt.points); !slices.Equal(c.Roles, tt.roles) || !slices.Equal(c.Stages, tt.stages) {
				t.Errorf("cost %+v, want %+v and %+v", c, tt.roles, tt.stages)
			}
		})
	}
	t.Run("of episodes", func(t *testing.T) {
		var eps []*rollout.Episode
		for n := range 7 { // 0 + 1 + … + 6 turns
			ep := &rollout.Episode{Stop: rollout.StopDone}
			for range n {
				ep.Entries = append(ep.Entries, rollout.Entry{Turn: &rollout.Turn{Role: rollout.Act, Prompt: []int{1}}})
			}
			eps = append(eps, ep)
		}
		line, err := json.Marshal(run.Point{Stage: "rl", Values: train.Summary(eps)})
		if err != nil {
			t.Fatal(err)
		}
		var p run.Point
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		if c := cost([]run.Point{p}); len(c.Roles) != 1 || c.Roles[0].Turns != 21 || c.Roles[0].Prompt != 21 {
			t.Errorf("%s costs %+v", line, c.Roles)
		}
	})
}

// The report of a run has the outcome of each task, as its episodes have it, and they
// give its figures.
func TestReportHasOutcomes(t *testing.T) {
	out := whole(t, tiny(t, "base.steps=0", "sft.steps=1", "rl.steps=1", "with=[]", "eval.tasks=5", "eval.held_out=3"))
	r, err := run.ReadReport(out)
	if err != nil {
		t.Fatal(err)
	}
	if r.Version == "" || len(r.Systems) == 0 || len(r.Comparisons) == 0 {
		t.Fatalf("version %q, systems %v, comparisons %v", r.Version, r.Systems, r.Comparisons)
	}
	played := map[string]run.Outcomes{}
	err = run.ReadEpisodes(out, func(ep run.Episode) bool {
		if strings.HasPrefix(ep.Stage, "test ") && ep.World != run.Rehearsal {
			key := ep.System + ", " + ep.Split
			if played[key] == nil {
				played[key] = run.Outcomes{}
			}
			played[key][ep.Task] = ep.Success
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Systems {
		if len(s.Outcomes) != s.N {
			t.Errorf("%s, %s, %s: %d outcomes of %d tasks", s.Name, s.World, s.Split, len(s.Outcomes), s.N)
		}
		for id, ok := range played[s.Name+", "+s.Split] {
			if had, known := s.Outcomes[id]; s.World == run.Real && (!known || had != ok) {
				t.Errorf("%s, %s, %s: task %s is %v, %v; its episode says %v", s.Name, s.World, s.Split, id, had, known, ok)
			}
		}
	}
	if changed, err := r.Recompute(); err != nil || len(changed) > 0 {
		t.Errorf("recomputed, %q are others, %v", changed, err)
	}
}
