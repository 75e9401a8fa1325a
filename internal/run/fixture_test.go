package run

import (
	"encoding/json"
	"math"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/rollout"
	"envace/task"
)

// madeUpEpisode is an invented episode whose one call is answered by from.
func madeUpEpisode(id string, from rollout.Source, reward float64) *rollout.Episode {
	turn := func(role rollout.Role, prompt, sampled int) *rollout.Turn {
		return &rollout.Turn{Role: role, Prompt: make([]int, prompt), Sequence: engine.Sequence{Tokens: make([]int, sampled)}}
	}
	call := chat.Call{ID: "call_1", Name: "find_booking", Arguments: json.RawMessage(`{"name":"Ada <Lovelace>","day":"friday"}`)}
	ep := &rollout.Episode{
		Task: task.Task{ID: id, Source: "hotel", System: "You work at the front desk. Look before you change anything."},
		Stop: rollout.StopDone, Reward: reward, Judged: true, Seed: 7, Member: 1,
		Entries: []rollout.Entry{
			{Message: chat.Message{Role: chat.User, Content: "Which room does Ada Lovelace have on Friday?"}, Source: rollout.FromUser},
			{Message: chat.Message{Role: chat.Assistant, Thinking: "The booking tells the room.", Calls: []chat.Call{call}},
				Source: rollout.FromPolicy, Turn: turn(rollout.Act, 212, 31)},
			{Message: chat.Message{Role: chat.Tool, CallID: "call_1", Name: "find_booking",
				Content: `{"bookings":[{"id":"B12","room":"204","nights":2,"paid":true},{"id":"B19","room":"118","nights":1,"paid":false}]}`}, Source: from},
			{Message: chat.Message{Role: chat.Assistant, Content: "Room 204, for two nights."}, Source: rollout.FromPolicy, Turn: turn(rollout.Act, 290, 9)},
		},
		Verdict: []rollout.Verdict{{Known: true, Reward: reward, Items: []rollout.ItemVerdict{
			{ID: "call", Outcome: rollout.Pass}, {ID: "reply", Outcome: rollout.Pass, Why: "names 204"}}}},
		Metrics: map[string]float64{"fidelity_class": 1, "undefined": math.NaN()},
	}
	if from == rollout.FromImagined {
		ep.Entries[2].Turn = turn(rollout.Rehearse, 180, 44)
	}
	if reward < 1 {
		ep.Entries = append(ep.Entries[:3], rollout.Entry{Source: rollout.FromHarness,
			Message: chat.Message{Role: chat.Tool, Content: "JSON_DECODE_ERROR: the block is not JSON"}}, ep.Entries[3])
		ep.Verdict[0].Items[1] = rollout.ItemVerdict{ID: "reply", Outcome: rollout.Fail, Why: "no word of 118"}
	}
	return ep
}

// madeUpReport is an invented report that fills every part of the page.
func madeUpReport() Report {
	r := Report{
		Title: "Rehearsal on a made-up desk", Summary: "Invented numbers, to see the page.",
		Recipe: "made-up", Version: "v0.0.0", Seed: 11, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 4825,
		Machine: Machine{CPU: "Made-up CPU 9000", ISA: "avx2", Threads: 2},
		Model:   Model{Name: "tiny", Arch: "qwen3", Params: 3_412_992, Layers: 6, Width: 192, Vocab: 1024},
		Systems: []System{
			NewSystem("expert imitation", Real, "known domains", 1, outcomes(204, 300)),
			NewSystem("rehearsed", Real, "known domains", 1, outcomes(251, 300)),
			NewSystem("rehearsed", Rehearsal, "known domains", 1, outcomes(262, 300)),
			NewSystem("expert imitation", Real, "unseen domains", 1, outcomes(96, 300)),
			NewSystem("rehearsed", Real, "unseen domains", 1, outcomes(150, 300)),
			NewSystem("nobody", Real, "no tasks", 1, nil),
		},
		Comparisons: []Comparison{
			NewComparison("rehearsed", "expert imitation", "known domains", 1, outcomes(251, 300), outcomes(204, 300)),
			NewComparison("rehearsed", "real tools", "known domains", 1, outcomes(251, 300), append(outcomes(120, 150), outcomes(128, 150)...)),
		},
		Fidelity: map[string]float64{"same outcome": 0.93, "same value": 0.71},
		Cost: Cost{
			Roles:  []RoleCost{{"act", 81234, 21_400_000, 2_030_411}, {"rehearse", 40117, 9_120_000, 1_204_000}},
			Stages: []StageCost{{"sft", 300, 1_500_000}, {"play", 2900, 3_234_411}, {"train", 1400, 3_100_000}, {"idle", 0, 0}},
		},
		Notes: []string{"One seed only.", "No other model size was tried."},
	}
	for s := range 12 {
		f := float64(s)
		r.Curve = append(r.Curve, Point{Stage: "sft", Step: s * 10, Values: map[string]float64{"loss": 3 / (1 + f)}})
	}
	for s := range 60 {
		f := float64(s) / 59
		v := map[string]float64{
			"reward_act": .45 + .4*f + .03*math.Sin(float64(s)), "reward_rehearse": .5 + .4*f + .04*math.Cos(float64(3*s)),
			"groups": 32, "groups_dead": math.Round(3 + 10*f), "imagined_errors": .2 - .05*f, "tokens_act": 5200 - 900*f, "tokens_rehearse": 3100 + 300*math.Sin(float64(s)), "kl": .001 * f, "never_finite": math.NaN()}
		if s%10 == 0 || s == 59 {
			v["success"] = .68 + .15*f
			v["fidelity_class"], v["fidelity_exact"] = .82+.11*f, .55+.16*f
		}
		r.Curve = append(r.Curve, Point{Stage: "rl", Step: s, Values: v})
	}
	for i, from := range []rollout.Source{rollout.FromImagined, rollout.FromReal, rollout.FromRecord, rollout.FromImagined} {
		ep := madeUpEpisode("hotel-"+string(rune('a'+i)), from, []float64{1, 0.5}[i/2])
		r.Examples = append(r.Examples, NewEpisode("evaluate", 60, Labels{"rehearsed", "known domains"}, ep,
			func(ids []int) string { return "<tool_call>…</tool_call>" }))
	}
	return r
}

// outcomes is k successes of n.
func outcomes(k, n int) []bool {
	out := make([]bool, n)
	for i := range k {
		out[i] = true
	}
	return out
}
