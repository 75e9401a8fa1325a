package train

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/rollout"
	"envace/task"
)

// spoken is an entry with a sampled turn.
func spoken(role rollout.Role, m chat.Message) rollout.Entry {
	return rollout.Entry{Message: m, Turn: &rollout.Turn{Role: role, Speaker: rollout.Learner, Prompt: []int{1}, Sequence: engine.Sequence{Tokens: []int{2}, Logprobs: []float32{-1}}}}
}

// exchange is a call of ACT and REHEARSE's answer.
func exchange(id, args, result string) []rollout.Entry {
	return []rollout.Entry{
		spoken(act, chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: id, Name: "get", Arguments: json.RawMessage(args)}}}),
		spoken(tool, chat.Message{Role: chat.Tool, CallID: id, Content: result}),
	}
}

// recorded is a task in which get {"id":1} was answered twice.
func recorded() task.Task {
	said := func(args, result string) []chat.Message {
		return []chat.Message{
			{Role: chat.Assistant, Calls: []chat.Call{{ID: "r", Name: "get", Arguments: json.RawMessage(args)}}},
			{Role: chat.Tool, CallID: "r", Content: result},
		}
	}
	return task.Task{ID: "t", Turns: []task.Turn{
		{Expert: slices.Concat(said(`{"id":1}`, `{"v":1}`), said(`{"id":2}`, `{"error":"none"}`))},
		{Expert: said(`{"id":1}`, `{"v":2}`)},
	}}
}

func TestRows(t *testing.T) {
	reply := spoken(act, chat.Message{Role: chat.Assistant, Content: "done"})
	user := rollout.Entry{Message: chat.Message{Role: chat.User}}
	whole := slices.Concat([]rollout.Entry{user}, exchange("1", `{"id":1}`, `{"v":1.0}`), []rollout.Entry{reply})
	broken := []rollout.Verdict{{Known: true}, {Broken: true}}
	others := exchange("1", `{"id":1}`, `{"v":1}`)
	others[1].Turn.Speaker = "frozen"
	silent := exchange("1", `{"id":1}`, `{"v":1}`)
	silent[1].Turn.Sequence = engine.Sequence{}
	asked := spoken("", chat.Message{Role: chat.User})
	asked.Turn.Speaker = "user"
	for _, tt := range []struct {
		name string
		ep   rollout.Episode
		want []rollout.Role
	}{
		{"another rehearsed", rollout.Episode{Entries: others, Stop: rollout.StopDone}, []rollout.Role{act}},
		{"no tokens", rollout.Episode{Entries: silent, Stop: rollout.StopDone}, []rollout.Role{act}},
		{"a simulated user", rollout.Episode{Entries: []rollout.Entry{asked, reply}, Stop: rollout.StopDone}, []rollout.Role{act}},
		{"one a sampled turn", rollout.Episode{Entries: whole, Stop: rollout.StopDone}, []rollout.Role{act, tool, act}},
		{"stopped by the judge", rollout.Episode{Entries: whole, Stop: rollout.StopJudge}, []rollout.Role{act, tool, act}},
		{"too many turns", rollout.Episode{Entries: whole, Stop: rollout.StopTurns}, []rollout.Role{act, tool, act}},
		{"a message at its cap", rollout.Episode{Entries: whole, Stop: rollout.StopTokens}, []rollout.Role{act, tool, act}},
		{"malformed", rollout.Episode{Entries: whole, Stop: rollout.StopParse}, []rollout.Role{act, tool, act}},
		{"cut off by the window", rollout.Episode{Entries: whole, Stop: rollout.StopWindow}, nil},
		{"cut off by the clock", rollout.Episode{Entries: whole, Stop: rollout.StopTime}, nil},
		{"cut off by the world", rollout.Episode{Entries: whole, Stop: rollout.StopWorld}, nil},
		{"a world that makes no sense", rollout.Episode{Entries: whole, Stop: rollout.StopDone, Verdict: broken}, []rollout.Role{tool}},
		{"nothing was decided", rollout.Episode{Entries: whole, Stop: rollout.StopDone}, nil},
		{"nothing sampled", rollout.Episode{Entries: []rollout.Entry{user}, Stop: rollout.StopDone}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.ep.Task, tt.ep.Reward, tt.ep.Judged = task.Task{ID: "t"}, 0.75, tt.name != "nothing was decided"
			var roles []rollout.Role
			seen := map[*rollout.Turn]bool{}
			for _, r := range Rows([]*rollout.Episode{&tt.ep}, rollout.Learner, Credit{}) {
				roles = append(roles, r.Role)
				if r.Task != "t" || r.Reward != 0.75 || r.Turn.Role != r.Role || seen[r.Turn] {
					t.Errorf("row %+v", r)
				}
				seen[r.Turn] = true
			}
			if !slices.Equal(roles, tt.want) {
				t.Errorf("rows of %v, want %v", roles, tt.want)
			}
		})
	}
}

func TestRowsFidelity(t *testing.T) {
	for _, tt := range []struct {
		name, args, result string
		want               float64
	}{
		{"the recorded result", `{"id":1}`, `{"v":1}`, 0.9},
		{"the same value", `{"id":1.0}`, `{ "v": 1.0 }`, 0.9},
		{"of a later turn's record", `{"id":1}`, `{"v":2}`, 0.4},
		{"another result", `{"id":1}`, `{"v":3}`, 0.4},
		{"an error where none is due", `{"id":1}`, `{"error":"none"}`, 0.4},
		{"the recorded error", `{"id":2}`, `{"error":"none"}`, 0.9},
		{"a result where an error is due", `{"id":2}`, `{"v":1}`, 0.4},
		{"never recorded", `{"id":3}`, `{"v":1}`, 0.8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := &rollout.Episode{Task: recorded(), Entries: exchange("1", tt.args, tt.result), Stop: rollout.StopDone, Reward: 0.8, Judged: true}
			rows := Rows([]*rollout.Episode{ep}, rollout.Learner, Credit{Fidelity: true})
			if rows[0].Role != act || rows[0].Reward != 0.8 {
				t.Errorf("ACT gets %g", rows[0].Reward)
			}
			if math.Abs(rows[1].Reward-tt.want) > 1e-12 {
				t.Errorf("REHEARSE gets %g, want %g", rows[1].Reward, tt.want)
			}
			if shared := Rows([]*rollout.Episode{ep}, rollout.Learner, Credit{}); shared[1].Reward != 0.8 {
				t.Errorf("without the credit REHEARSE gets %g", shared[1].Reward)
			}
		})
	}
	t.Run("each answer has its own call", func(t *testing.T) {
		entries := slices.Concat(exchange("1", `{"id":1}`, `{"v":1}`), exchange("2", `{"id":3}`, `{"v":1}`), exchange("1", `{"id":2}`, `{"v":1}`))
		rows := Rows([]*rollout.Episode{{Task: recorded(), Entries: entries, Stop: rollout.StopDone, Reward: 1, Judged: true}}, rollout.Learner, Credit{Fidelity: true})
		if got := []float64{rows[1].Reward, rows[3].Reward, rows[5].Reward}; !near(got, []float64{1, 1, 0.5}, 0) {
			t.Errorf("REHEARSE gets %v", got)
		}
	})
}

// The credit and the measurement decide alike whether a result agrees with the record:
// of its own user turn, else of the nearest before, else of the nearest after.
func TestAgreementIsOne(t *testing.T) {
	said := func(results ...string) (list []chat.Message) {
		for i, r := range results {
			id := string(rune('a' + i))
			list = append(list,
				chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: id, Name: "get", Arguments: json.RawMessage(`{"id":1}`)}}},
				chat.Message{Role: chat.Tool, CallID: id, Name: "get", Content: r})
		}
		return list
	}
	const one, two, three, failed = `{"v":1}`, `{"v":2}`, `{"v":3}`, `{"error":"none"}`
	for _, tt := range []struct {
		name     string
		recorded [][]string // results of the call, by user turn
		user     int
		result   string
		want     rollout.Tally // of one call; zero: nothing to compare with
	}{
		{"the record", [][]string{{one}}, 0, `{ "v": 1.0 }`, rollout.Tally{Calls: 1, Class: 1, Exact: 1}},
		{"another value", [][]string{{one}}, 0, two, rollout.Tally{Calls: 1, Class: 1}},
		{"an error instead", [][]string{{one}}, 0, failed, rollout.Tally{Calls: 1}},
		{"no record", [][]string{{}}, 0, one, rollout.Tally{}},
		{"of its own turn, first", [][]string{{}, {one, two}}, 1, one, rollout.Tally{Calls: 1, Class: 1, Exact: 1}},
		{"of its own turn, last", [][]string{{}, {one, two}}, 1, two, rollout.Tally{Calls: 1, Class: 1, Exact: 1}},
		{"of its own turn, neither", [][]string{{}, {one, two}}, 1, three, rollout.Tally{Calls: 1, Class: 1}},
		{"of its own turn, class of the other", [][]string{{failed, one}}, 0, two, rollout.Tally{Calls: 1, Class: 1}},
		{"an earlier turn's, where its own has one", [][]string{{one}, {two}}, 1, one, rollout.Tally{Calls: 1, Class: 1}},
		{"a later turn's, where its own has one", [][]string{{one}, {two}}, 0, two, rollout.Tally{Calls: 1, Class: 1}},
		{"the nearest turn before", [][]string{{one}, {two}, {}, {three}}, 2, two, rollout.Tally{Calls: 1, Class: 1, Exact: 1}},
		{"not the first of two turns before", [][]string{{one}, {two}, {}, {three}}, 2, one, rollout.Tally{Calls: 1, Class: 1}},
		{"not one after, where one is before", [][]string{{one}, {}, {three}}, 1, three, rollout.Tally{Calls: 1, Class: 1}},
		{"the nearest turn after", [][]string{{}, {two}, {three}}, 0, two, rollout.Tally{Calls: 1, Class: 1, Exact: 1}},
		{"not the last of two turns after", [][]string{{}, {two}, {three}}, 0, three, rollout.Tally{Calls: 1, Class: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := &rollout.Episode{Entries: exchange("1", `{"id":1}`, tt.result), Stop: rollout.StopDone, Reward: 0.8, Judged: true}
			for i := range ep.Entries {
				ep.Entries[i].User = tt.user
			}
			ep.Entries[1].Source = rollout.FromImagined
			for _, results := range tt.recorded {
				ep.Task.Turns = append(ep.Task.Turns, task.Turn{Expert: said(results...)})
			}
			if got := rollout.MeasureRecorded(ep); got.Tally != tt.want {
				t.Errorf("measured %+v, want %+v", got, tt.want)
			}
			reward := 0.8
			if tt.want.Calls > 0 {
				reward = 0.4 + float64(tt.want.Exact)/2
			}
			if rows := Rows([]*rollout.Episode{ep}, rollout.Learner, Credit{Fidelity: true}); math.Abs(rows[1].Reward-reward) > 1e-12 {
				t.Errorf("rewarded %g, want %g", rows[1].Reward, reward)
			}
		})
	}
}

// What REHEARSE earns: not what contradicts the record, nor what breaks its form.
func TestRowsOfREHEARSE(t *testing.T) {
	for _, tt := range []struct {
		name      string
		undue     float64
		malformed bool
		fidelity  bool
		args      string
		want      float64
	}{
		{"the shared reward", 0, false, false, `{"id":3}`, 0.75},
		{"less what is undue", 0.5, false, false, `{"id":3}`, 0.25},
		{"nothing for a malformed result", 0, true, false, `{"id":3}`, 0},
		{"nor where it agrees by chance", 0, true, true, `{"id":1}`, 0},
		{"half for agreement", 0.25, false, true, `{"id":1}`, 0.75},
		{"no agreement to be had", 0.25, false, true, `{"id":3}`, 0.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := &rollout.Episode{Task: recorded(), Entries: exchange("1", tt.args, `{"v":1}`), Stop: rollout.StopDone, Reward: 0.75, Undue: tt.undue, Judged: true}
			if tt.malformed {
				ep.Entries[1].Turn.Errors = []render.CallError{{Code: "X"}}
			}
			rows := Rows([]*rollout.Episode{ep}, rollout.Learner, Credit{Fidelity: tt.fidelity})
			if rows[0].Reward != 0.75 || rows[1].Reward != tt.want {
				t.Errorf("ACT earns %g, REHEARSE %g: want %g", rows[0].Reward, rows[1].Reward, tt.want)
			}
		})
	}
}

// fataler is a testing.T or a rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// data is Data of rows that are sound.
func data(t fataler, rows []Row, c Credit) []engine.Datum {
	t.Helper()
	out, err := Data(rows, c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDataRefusesRowsThatDoNotFit(t *testing.T) {
	nan := float32(math.NaN())
	for _, tt := range []struct {
		name string
		bend func(r *Row)
		want string
	}{
		{"fewer log-probabilities", func(r *Row) { r.Turn.Sequence.Logprobs = r.Turn.Sequence.Logprobs[:3] }, "5 sampled tokens have 3 log-probabilities"},
		{"more log-probabilities", func(r *Row) { r.Turn.Sequence.Logprobs = append(r.Turn.Sequence.Logprobs, -1) }, "5 sampled tokens have 6 log-probabilities"},
		{"none", func(r *Row) { r.Turn.Sequence.Logprobs = nil }, "5 sampled tokens have 0 log-probabilities"},
		{"fewer of the reference", func(r *Row) { r.Reference = []float32{-1} }, "5 sampled tokens have 1 log-probabilities of the reference"},
		{"no tokens", func(r *Row) { r.Turn.Sequence = engine.Sequence{} }, "no sampled tokens"},
		{"no prompt", func(r *Row) { r.Turn.Prompt = nil }, "no prompt"},
		{"not a number", func(r *Row) { r.Turn.Sequence.Logprobs[2] = nan }, "not a finite number"},
		{"an infinite reference", func(r *Row) { r.Reference = []float32{-1, -1, float32(math.Inf(-1)), -1, -1} }, "not a finite number"},
		{"an advantage that is none", func(r *Row) { r.Advantage = math.NaN() }, "its advantage is NaN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := sampled(act, 2, 5)
			tt.bend(&r)
			out, err := Data([]Row{sampled(act, 1, 1), r}, Credit{})
			if out != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "row 1 (task t, act): ") {
				t.Errorf("%v, %v", out, err)
			}
		})
	}
}

// sampled is a row of the given sizes.
func sampled(role rollout.Role, prompt, tokens int) Row {
	r := Row{Task: "t", Role: role, Turn: &rollout.Turn{Role: role}, Advantage: 0.5}
	for i := range prompt {
		r.Turn.Prompt = append(r.Turn.Prompt, 100+i)
	}
	for i := range tokens {
		r.Turn.Sequence.Tokens = append(r.Turn.Sequence.Tokens, 200+i)
		r.Turn.Sequence.Logprobs = append(r.Turn.Sequence.Logprobs, -1-float32(i))
	}
	return r
}

func TestDataShiftsByOne(t *testing.T) {
	r := sampled(act, 3, 2)
	r.Reference = []float32{-7, -8}
	got := data(t, []Row{r}, Credit{})[0]
	want := engine.Datum{
		Input:     []int{100, 101, 102, 200},
		Target:    []int{101, 102, 200, 201},
		Weight:    []float32{0, 0, 0.5, 0.5},
		Logprobs:  []float32{0, 0, -1, -2},
		Advantage: []float32{0, 0, 0.5, 0.5},
		Reference: []float32{0, 0, -7, -8},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	r.Reference = nil
	if d := data(t, []Row{r}, Credit{})[0]; d.Reference != nil {
		t.Errorf("a reference out of nothing: %v", d.Reference)
	}
	if d := data(t, []Row{sampled(act, 1, 1)}, Credit{})[0]; !slices.Equal(d.Input, []int{100}) || !slices.Equal(d.Target, []int{200}) || d.Weight[0] != 1 {
		t.Errorf("the smallest row became %+v", d)
	}
}

func TestDataNormalisers(t *testing.T) {
	rows := []Row{sampled(act, 2, 6), sampled(tool, 2, 1), sampled(tool, 3, 1)}
	for _, tt := range []struct {
		name   string
		rows   []Row
		credit Credit
		want   []float64 // weight of a token of each row
	}{
		{"token mean", rows, Credit{}, []float64{1. / 8, 1. / 8, 1. / 8}},
		{"row mean", rows, Credit{RowMean: true}, []float64{1. / 18, 1. / 3, 1. / 3}},
		{"half for REHEARSE, by tokens", rows, Credit{Rehearse: 0.5}, []float64{0.5 / 6, 0.25, 0.25}},
		{"a fifth for REHEARSE, by rows", rows, Credit{Rehearse: 0.2, RowMean: true}, []float64{0.8 / 6, 0.1, 0.1}},
		{"one role alone takes all", rows[1:], Credit{Rehearse: 0.2}, []float64{0.5, 0.5}},
		{"ACT alone takes all", rows[:1], Credit{Rehearse: 0.2}, []float64{1. / 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sum := 0.0
			for i, d := range data(t, tt.rows, tt.credit) {
				for j, w := range d.Weight {
					sum += float64(w)
					want := tt.want[i]
					if j < len(tt.rows[i].Turn.Prompt)-1 {
						want = 0
					}
					if math.Abs(float64(w)-want) > 1e-7 {
						t.Errorf("row %d, position %d weighs %g, want %g", i, j, w, want)
					}
				}
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Errorf("the weights add up to %g", sum)
			}
		})
	}
}

// TestMinibatchesKeepTheNormalisersOfTheStep: however the rows of a step are cut,
// each counts once, with the weight that it has in the whole.
func TestMinibatchesKeepTheNormalisersOfTheStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []Row
		for range rapid.IntRange(1, 12).Draw(t, "rows") {
			role := rapid.SampledFrom([]rollout.Role{act, tool}).Draw(t, "role")
			rows = append(rows, sampled(role, rapid.IntRange(1, 5).Draw(t, "prompt"), rapid.IntRange(1, 9).Draw(t, "tokens")))
		}
		c := Credit{RowMean: rapid.Bool().Draw(t, "row mean"), Rehearse: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "share")}
		n := rapid.IntRange(0, 13).Draw(t, "minibatch")
		whole := data(t, rows, c)
		var parts []engine.Datum
		for batch := range minibatches(data(t, rows, c), n) {
			if len(batch) == 0 || n > 0 && len(batch) > n {
				t.Fatalf("a minibatch of %d rows", len(batch))
			}
			parts = append(parts, batch...)
		}
		if !reflect.DeepEqual(parts, whole) {
			t.Fatalf("cut into %d, the rows became\n%+v\nwant\n%+v", n, parts, whole)
		}
		sum := 0.0
		for i, d := range parts {
			weighed := 0
			for _, w := range d.Weight {
				sum += float64(w)
				if w != 0 {
					weighed++
				}
			}
			if want := len(rows[i].Turn.Sequence.Tokens); weighed != want {
				t.Fatalf("row %d has %d weighed positions, %d sampled tokens", i, weighed, want)
			}
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Fatalf("the weights add up to %g", sum)
		}
	})
	for range minibatches(nil, 3) {
		t.Error("a minibatch of nothing")
	}
	for range minibatches(nil, 0) {
		t.Error("a minibatch of nothing")
	}
}

func TestDataLeavesTurnsAlone(t *testing.T) {
	r := sampled(act, 2, 3)
	before := fmt.Sprint(*r.Turn)
	for i, d := range data(t, []Row{r, r}, Credit{}) {
		for j := range d.Input {
			d.Input[j], d.Target[j], d.Logprobs[j] = -i, -1, 9
		}
	}
	if after := fmt.Sprint(*r.Turn); after != before {
		t.Errorf("the turn became %s", after)
	}
}
