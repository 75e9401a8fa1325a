package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/rollout"
	"envace/task"
)

// runes is a renderer whose tokens are runes; 0 ends a message, and the template
// writes a line break behind it.
type runes struct{}

func (runes) Prompt(msgs []chat.Message, tools []chat.Function, o render.Options) ([]int, error) {
	var b strings.Builder
	for _, f := range tools {
		b.WriteString("(" + f.Name + ")")
	}
	for _, m := range msgs {
		fmt.Fprintf(&b, "%s:%s", m.Role, m.Content)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "[%s %s]", c.Name, c.Arguments)
		}
		b.WriteString("\x00\n")
	}
	if !o.Continue {
		b.WriteString("assistant:")
	}
	var ids []int
	for _, r := range b.String() {
		ids = append(ids, int(r))
	}
	return ids, nil
}

func (runes) Extend([]int, []chat.Message) ([]int, error)        { return nil, errors.New("not here") }
func (runes) Parse([]int) (m chat.Message, e []render.CallError) { return m, e }
func (runes) Stop() []int                                        { return []int{0} }

func (runes) Text(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteRune(rune(id))
	}
	return b.String()
}

func lesson() task.Task {
	tk := recorded()
	tk.System, tk.Tools = "be kind", []chat.Function{{Name: "get"}}
	tk.Turns[0].User, tk.Turns[1].User = "get both", "again"
	tk.Turns[0].Expert = append(tk.Turns[0].Expert, chat.Message{Role: chat.Assistant, Content: "1 and none"})
	return tk
}

func TestTeacherAct(t *testing.T) {
	examples, err := Teacher{Renderer: runes{}}.Act(lesson())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`[get {"id":1}]` + "\x00", `[get {"id":2}]` + "\x00", "1 and none\x00", `[get {"id":1}]` + "\x00"}
	var got []string
	for i, e := range examples {
		got = append(got, runes{}.Text(e.Target))
		prompt := runes{}.Text(e.Prompt)
		if e.Role != act || e.Task != "t" || !strings.HasPrefix(prompt, "(get)system:be kind\x00\nuser:get both") || !strings.HasSuffix(prompt, "\nassistant:") {
			t.Errorf("example %d of %s, %s after %q", i, e.Task, e.Role, prompt)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("targets %q, want %q", got, want)
	}
	if p := (runes{}).Text(examples[3].Prompt); !strings.Contains(p, "tool:{\"v\":1}\x00\n") || !strings.Contains(p, "1 and none\x00\nuser:again\x00\n") {
		t.Errorf("the last prompt lacks what went before: %q", p)
	}
}

func TestTeacherRehearse(t *testing.T) {
	tk := lesson()
	tk.Turns[1].Expert[1].Content = "not JSON" // no result that REHEARSE may write
	shown := 0
	for seed := range uint64(20) {
		h := Teacher{Renderer: runes{}, Brief: seed%2 == 0, FewShot: rollout.FewShotAll, Seed: seed}
		examples, err := h.Rehearse(tk)
		if err != nil {
			t.Fatal(err)
		}
		if len(examples) != 2 {
			t.Fatalf("%d examples", len(examples))
		}
		for i, want := range []string{`{"v":1}`, `{"error":"none"}`} {
			e := examples[i]
			if got, bad := render.ParseResult(runes{}.Text(e.Target)); bad != nil || got != want || e.Role != tool || e.Target[len(e.Target)-1] != 0 {
				t.Errorf("example %d teaches %s to say %q", i, e.Role, runes{}.Text(e.Target))
			}
			if strings.Contains(runes{}.Text(e.Prompt), "not JSON") {
				shown++
			}
		}
		if p := (runes{}).Text(examples[1].Prompt); !strings.Contains(p, `{"v":1}`) {
			t.Errorf("the second call does not see the first one's result: %q", p)
		}
	}
	if shown < 10 || shown > 30 {
		t.Errorf("records are shown in %d of 40 examples, want about half", shown)
	}
}

// Results that a data set recorded in another order than their calls are learnt
// beside their own calls.
func TestTeacherRehearseOfSwappedResults(t *testing.T) {
	var tk task.Task
	if err := json.Unmarshal([]byte(`{"uuid":"t","messages":[{"role":"user","content":"get both"},
		{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"get","arguments":"{\"id\":1}"}},{"id":"b","function":{"name":"put","arguments":"{\"id\":2}"}}]},
		{"role":"tool","tool_call_id":"b","content":"{\"v\":2}"},{"role":"tool","tool_call_id":"a","content":"{\"v\":1}"},
		{"role":"assistant","content":"done"}]}`), &tk); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		h    Teacher
		ends []string // of the prompts
	}{
		{"brief", Teacher{Renderer: runes{}, Brief: true}, []string{`get {"id":1} =`, `put {"id":2} =`}},
		{"full", Teacher{Renderer: runes{}}, []string{`{"name": "get", "arguments": {"id":1}}` + "\n</tool_call>", `{"name": "put", "arguments": {"id":2}}` + "\n</tool_call>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			examples, err := tt.h.Rehearse(tk)
			if err != nil || len(examples) != 2 {
				t.Fatal(len(examples), err)
			}
			for i, want := range []string{`{"v":1}`, `{"v":2}`} {
				e := examples[i]
				if prompt := strings.TrimSuffix(runes{}.Text(e.Prompt), "\x00\nassistant:"); !strings.HasSuffix(prompt, tt.ends[i]) {
					t.Errorf("prompt %d ends in %q", i, prompt[max(0, len(prompt)-80):])
				}
				if got, bad := render.ParseResult(runes{}.Text(e.Target)); bad != nil || got != want {
					t.Errorf("answer %d is %s, want %s", i, got, want)
				}
			}
		})
	}
	t.Run("what ACT reads", func(t *testing.T) {
		examples, err := Teacher{Renderer: runes{}}.Act(tk)
		if err != nil {
			t.Fatal(err)
		}
		if p := (runes{}).Text(examples[1].Prompt); strings.Index(p, `{"v":1}`) > strings.Index(p, `{"v":2}`) {
			t.Errorf("results do not stand in the order of their calls: %q", p)
		}
	})
}

func TestExampleRefusesATemplateThatRewrites(t *testing.T) {
	h := Teacher{Renderer: rewriter{}}
	if _, err := h.Act(lesson()); err == nil || !strings.Contains(err.Error(), "task t: the template does not continue its own prompt") {
		t.Errorf("got %v", err)
	}
}

// rewriter writes the number of messages first.
type rewriter struct{ runes }

func (r rewriter) Prompt(msgs []chat.Message, tools []chat.Function, o render.Options) ([]int, error) {
	ids, err := r.runes.Prompt(msgs, tools, o)
	return append([]int{len(msgs)}, ids...), err
}

func TestExampleDatum(t *testing.T) {
	d := Example{Prompt: []int{1, 2, 3}, Target: []int{4, 5}}.Datum(0.25)
	if !slices.Equal(d.Input, []int{1, 2, 3, 4}) || !slices.Equal(d.Target, []int{2, 3, 4, 5}) || !slices.Equal(d.Weight, []float32{0, 0, 0.25, 0.25}) {
		t.Errorf("became %+v", d)
	}
}

// toySFT teaches the toy's right words.
func toySFT(e *table, log *lines, steps int) *SFT {
	return &SFT{
		Trainer: e, Steps: steps, Batch: 2, Seed: 3, Log: log,
		Examples: []Example{{Role: act, Prompt: []int{actPrompt}, Target: []int{right}}, {Role: tool, Prompt: []int{toolPrompt}, Target: []int{right}}, {Role: act, Prompt: []int{actPrompt, right, answered}, Target: []int{done}}},
		Adam:     func(int) engine.Adam { return engine.Adam{LR: 4} },
	}
}

func TestSFTLearnsBothRoles(t *testing.T) {
	e, log := &table{}, &lines{}
	if err := toySFT(e, log, 40).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if e.chance(0) < 0.95 || e.chance(1) < 0.95 {
		t.Errorf("right with probability %.3f and %.3f", e.chance(0), e.chance(1))
	}
	if first := log.values[0]["loss"]; first < 0.3 || last(log, "loss", 3) > 0.05 {
		t.Errorf("loss from %.3f to %.3f", first, last(log, "loss", 3))
	}
}

func TestSFTResumes(t *testing.T) {
	whole, parts, e := &lines{}, &lines{}, &table{}
	half := toySFT(e, parts, 5)
	rest := toySFT(e, parts, 12)
	rest.Start = 5
	for _, s := range []*SFT{toySFT(&table{}, whole, 12), half, rest} {
		if err := s.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(whole.steps, parts.steps) || !strings.HasPrefix(whole.steps[11], "sft 11 ") {
		t.Errorf("a resumed run ends in\n%s\nwant\n%s", parts.steps[11], whole.steps[11])
	}
}

func TestSFTBatches(t *testing.T) {
	s := SFT{Batch: 2, Seed: 1}
	for i := range 3 {
		s.Examples = append(s.Examples, Example{Prompt: []int{i}, Target: make([]int, i+1)})
	}
	seen := map[int]int{}
	for step := range 6 {
		sum := 0.0
		data, err := s.batch(step)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range data {
			seen[d.Input[0]]++
			for _, w := range d.Weight {
				sum += float64(w)
			}
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("step %d: the weights add up to %g", step, sum)
		}
	}
	for i := range 3 {
		if seen[i] != 4 {
			t.Errorf("example %d came %d times in four rounds", i, seen[i])
		}
	}
	extra := engine.Datum{Input: []int{7}}
	s.Extra = func(step int) ([]engine.Datum, error) { return []engine.Datum{extra}, nil }
	if data, err := s.batch(0); err != nil || len(data) != 3 || data[2].Input[0] != 7 {
		t.Errorf("a step with an extra row has %v, %v", data, err)
	}
	s.Examples = nil
	if data, err := s.batch(0); err != nil || len(data) != 1 {
		t.Errorf("a step of extra rows alone has %v, %v", data, err)
	}
}

func TestScheduleAt(t *testing.T) {
	const peak = 0.5
	for _, tt := range []struct {
		name string
		s    Schedule
		want map[int]float64
	}{
		{"constant", Schedule{}, map[int]float64{0: 1, 9: 1}},
		{"warm-up, then constant", Schedule{Warmup: 4}, map[int]float64{0: 0.25, 3: 1, 4: 1, 99: 1}},
		{"to nothing", Schedule{Steps: 10}, map[int]float64{0: 1, 5: 0.5, 9: 0.1, 10: 0, 11: 0}},
		{"to a tenth", Schedule{Steps: 10, Final: 0.1}, map[int]float64{0: 1, 5: 0.55, 10: 0.1, 20: 0.1}},
		{"both", Schedule{Warmup: 2, Steps: 12, Final: 0.5}, map[int]float64{0: 0.5, 1: 1, 2: 1, 7: 0.75, 12: 0.5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.LR, tt.s.Beta1, tt.s.ClipNorm = peak, 0.9, 1
			for step, want := range tt.want {
				got := tt.s.At(step)
				if math.Abs(got.LR-peak*want) > 1e-12 || got.Beta1 != 0.9 || got.ClipNorm != 1 {
					t.Errorf("step %d: %+v, want %g of the peak", step, got, want)
				}
			}
		})
	}
}

func TestSummary(t *testing.T) {
	call := func(id, result string, from rollout.Source) []rollout.Entry {
		out := exchange(id, `{}`, result)
		out[0].Source, out[1].Source = rollout.FromPolicy, from
		return out
	}
	eps := []*rollout.Episode{
		{Reward: 1, Judged: true, Stop: rollout.StopDone, Entries: slices.Concat(call("1", `{"v":1}`, rollout.FromImagined), call("2", `{"error":"x"}`, rollout.FromImagined))},
		{Reward: 0.5, Judged: true, Stop: rollout.StopTurns, Verdict: []rollout.Verdict{{Broken: true}}, Entries: call("1", `{"error":"x"}`, rollout.FromHarness)},
		{Reward: 1, Judged: true, Undue: 0.5, Stop: rollout.StopDone}, // by contradiction
		{Stop: rollout.StopDone}, // of which nothing could be decided
	}
	eps[0].Entries[3].Turn.Errors = []render.CallError{{Code: "X"}}
	want := map[string]float64{
		"episodes": 4, "reward": 2.5 / 3, "solved": 0.25, "broken": 0.25, "undecided": 0.25, "stop_done": 0.75, "stop_turns": 0.25, "imagined_malformed": 0.5,
		"tokens_act": 3, "tokens_rehearse": 3, "prompt_act": 3, "prompt_rehearse": 3, "turns_act": 3, "turns_rehearse": 3, "imagined_errors": 0.5,
	}
	got, err := json.Marshal(Summary(eps))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(want); err != nil || string(text) != string(got) {
		t.Errorf("got  %s\nwant %s", got, text)
	}
	if s := Summary(nil); s["episodes"] != 0 || s["reward"] != 0 || len(s) != 2 {
		t.Errorf("of no episodes: %v", s)
	}
}

// Shared prefixes count once, whoever shares them.
func TestPlayedCountsUniqueTokens(t *testing.T) {
	turn := func(prompt, tokens []int) rollout.Entry {
		return rollout.Entry{Turn: &rollout.Turn{Prompt: prompt, Sequence: engine.Sequence{Tokens: tokens}}}
	}
	eps := []*rollout.Episode{
		{Entries: []rollout.Entry{turn([]int{1, 2}, []int{3}), turn([]int{1, 2, 3, 4}, []int{5}), {}}},
		{Entries: []rollout.Entry{turn([]int{1, 2}, []int{6}), turn([]int{9}, []int{9})}},
	}
	if got := played(eps); got != 8 { // 1 2 3 4 5, 6, 9 9
		t.Errorf("%d tokens, want 8", got)
	}
	if got := played(nil); got != 0 {
		t.Errorf("%d tokens of nothing", got)
	}
}
