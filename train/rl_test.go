package train

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"envace/chat"
	"envace/engine"
	"envace/rollout"
	"envace/task"
)

// toyRL trains e on the toy for the given steps.
func toyRL(e *table, log *lines, steps int) *RL {
	return &RL{
		Trainer: e, Policy: rollout.Policy{Renderer: toyRenderer{}, Params: engine.Params{Temperature: 1}},
		Judge: bothRight{}, Tasks: task.Order{Tasks: []task.Task{toy("a"), toy("b"), toy("c")}},
		Steps: steps, Batch: 4, Group: 8,
		Loss: engine.Loss{Objective: engine.PPO, ClipLow: 0.2, ClipHigh: 0.2, DualClip: 3},
		Adam: func(int) engine.Adam { return engine.Adam{LR: 5} }, Seed: 1, Log: log,
	}
}

func run(t *testing.T, r *RL) {
	t.Helper()
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// last is the mean of a figure over the last n steps.
func last(log *lines, name string, n int) float64 {
	sum := 0.0
	for _, m := range log.values[len(log.values)-n:] {
		sum += m[name]
	}
	return sum / float64(n)
}

func (e *table) chance(role int) float64 { return math.Exp(e.logp([]int{actPrompt + role}, right)) }

func TestRLLearnsBothRoles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*RL)
	}{
		{"as the paper", func(*RL) {}},
		{"standard deviation", func(r *RL) { r.Credit.Std = true; r.Adam = func(int) engine.Adam { return engine.Adam{LR: 2} } }},
		{"rows alike", func(r *RL) { r.Credit.RowMean = true }},
		{"half for REHEARSE", func(r *RL) { r.Credit.Rehearse = 0.5 }},
		{"minibatches", func(r *RL) { r.Minibatch = 24 }},
		{"importance sampling", func(r *RL) { r.Loss = engine.Loss{Objective: engine.ImportanceSampling, ClipLow: 1e9, ClipHigh: 1e9} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, log := &table{}, &lines{}
			r := toyRL(e, log, 60)
			tt.change(r)
			run(t, r)
			if first := log.values[0]["reward"]; math.Abs(first-0.25) > 0.15 {
				t.Errorf("starts with reward %.2f, want 0.25", first)
			}
			if got := last(log, "reward", 5); got <= 0.95 {
				t.Errorf("ends with reward %.3f", got)
			}
			for role, name := range []string{"act", "rehearse"} {
				if got := e.chance(role); got <= 0.9 {
					t.Errorf("%s is right with probability %.3f", name, got)
				}
			}
		})
	}
}

func TestRLFreshSamplesHaveRatioOne(t *testing.T) {
	log := &lines{}
	run(t, toyRL(&table{}, log, 20))
	for step, m := range log.values {
		if m["ratio_max"] != 0 {
			t.Errorf("step %d: a ratio is off by %g", step, m["ratio_max"])
		}
	}
}

// exact is a table that promises bits. Its rehearsing sampler keeps the promise up to off.
type exact struct {
	table
	off float32
}

func (*exact) BitExact() bool { return true }

func (e *exact) Sampler(ctx context.Context) (engine.Sampler, error) {
	s, err := e.table.Sampler(ctx)
	return &counting{Sampler: s, off: e.off}, err
}

// counting is a sampler that counts, and is off by a little where it rehearses.
type counting struct {
	engine.Sampler
	off   float32
	mu    sync.Mutex
	usage engine.Usage
}

func (s *counting) Sample(ctx context.Context, prompt []int, n int, p engine.Params) ([]engine.Sequence, error) {
	out, err := s.Sampler.Sample(ctx, prompt, n, p)
	if prompt[0] == toolPrompt {
		out[0].Logprobs[0] += s.off
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.Prompt += 2
	s.usage.Prefilled++
	s.usage.Sampled++
	s.usage.Decoded++
	s.usage.Steps++
	s.usage.DecodeSeconds += 0.5
	return out, err
}

func (s *counting) Logprobs(ctx context.Context, rows [][]int) ([][]float32, error) {
	for _, row := range rows {
		s.usage.Rows += len(row)
		s.usage.RowsComputed++
	}
	return s.Sampler.Logprobs(ctx, rows)
}

func (s *counting) Usage() engine.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Where the engine promises bits, a fresh sample whose ratio is not 1 ends the run
// before its step is taken; later minibatches of a step may differ.
func TestRLHoldsAnExactEngineToItsPromise(t *testing.T) {
	e := &exact{}
	r := toyRL(nil, &lines{}, 3)
	r.Trainer, r.Minibatch = e, 10
	run(t, r)
	for step, m := range r.Log.(*lines).values {
		if m["ratio_fresh"] != 0 || m["ratio_max"] == 0 {
			t.Errorf("step %d: ratios of fresh samples are off by %g, of all by %g", step, m["ratio_fresh"], m["ratio_max"])
		}
	}
	e = &exact{off: 1e-7}
	r = toyRL(nil, &lines{}, 3)
	r.Trainer = e
	err := r.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "step 0: row 1 (task ") || !strings.Contains(err.Error(), ", rehearse): token 1 was sampled with log-probability -0.69") {
		t.Errorf("a broken promise ends with %v", err)
	}
	if slices.Contains(e.calls, "step") {
		t.Error("a step was taken on samples of other weights")
	}
}

func TestRLTellsWhatSamplersDid(t *testing.T) {
	e, log := &exact{}, &lines{}
	r := toyRL(nil, log, 2)
	r.Trainer, r.Loss.KL = e, 0.1
	reference, err := e.Sampler(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r.Reference = reference
	run(t, r)
	for step, m := range log.values {
		for name, want := range map[string]float64{"sampler_hits": 0.5, "sampler_batch": 1, "sampler_decode": 2, "reference_computed": m["rows"], "reference_rows": m["rows"] * 8 / 3} {
			if got := m[name]; math.Abs(got-want) > 1e-9 {
				t.Errorf("step %d: %s is %g, want %g", step, name, got, want)
			}
		}
		if _, ok := m["sampler_prefill"]; ok {
			t.Errorf("step %d: a speed where no time was counted", step)
		}
	}
}

func TestRLSameSeedSameBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	play := func(procs int, seed uint64) []string {
		runtime.GOMAXPROCS(procs)
		log := &lines{}
		r := toyRL(&table{}, log, 25)
		r.Seed = seed
		run(t, r)
		return log.steps
	}
	one := play(1, 1)
	if four := play(4, 1); !slices.Equal(one, four) {
		t.Errorf("one processor gives\n%s\nfour give\n%s", one[len(one)-1], four[len(four)-1])
	}
	if slices.Equal(one, play(1, 2)) {
		t.Error("another seed gives the same")
	}
}

func TestRLResumes(t *testing.T) {
	whole := &lines{}
	run(t, toyRL(&table{}, whole, 20))

	parts, e := &lines{}, &table{}
	run(t, toyRL(e, parts, 7))
	rest := toyRL(&table{logits: e.logits}, parts, 20)
	rest.Start = 7
	run(t, rest)
	if !slices.Equal(whole.steps, parts.steps) {
		t.Errorf("a resumed run ends in\n%s\nwant\n%s", parts.steps[19], whole.steps[19])
	}
}

func TestRLWithReference(t *testing.T) {
	e, log := &table{}, &lines{}
	r := toyRL(e, log, 60)
	r.Loss.KL = 2
	reference, err := e.Sampler(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r.Reference = reference
	run(t, r)
	if got := e.chance(0); got > 0.75 {
		t.Errorf("a strong KL term lets ACT move to %.2f", got)
	}
	if got := last(log, "kl", 5); got <= 0 || got > 0.2 {
		t.Errorf("KL is %g", got)
	}
}

func TestRLReadsNothingTwice(t *testing.T) {
	e, log := &table{}, &lines{}
	r := toyRL(e, log, 1)
	r.Minibatch = 10
	run(t, r)
	rows, sum := 0, 0.0
	for _, batch := range e.data {
		rows += len(batch)
		if len(batch) > 10 {
			t.Errorf("a minibatch has %d rows", len(batch))
		}
		for _, d := range batch {
			for _, w := range d.Weight {
				sum += float64(w)
			}
		}
	}
	if want := 4 * 8 * 3; rows != want || log.values[0]["rows"] != float64(want) {
		t.Errorf("%d rows were learnt from, %g are told, %d were sampled", rows, log.values[0]["rows"], want)
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("the weights of all minibatches add up to %g", sum)
	}
	if steps := strings.Count(strings.Join(e.calls, " "), "step"); steps != 10 {
		t.Errorf("%d optimiser steps for 96 rows in tens", steps)
	}
}

// deaf are tools that cannot answer.
type deaf struct{}

func (deaf) OpenTools(context.Context, task.Task, uint64) (rollout.Tools, error) { return deaf{}, nil }
func (deaf) Call(context.Context, *rollout.Episode, chat.Call) (rollout.Result, error) {
	return rollout.Result{}, errors.New("no answer")
}
func (deaf) Close() error { return nil }

func TestRLStepWithoutRows(t *testing.T) {
	e, log := &table{}, &lines{}
	r := toyRL(e, log, 2)
	r.Worlds = func(rollout.Cast) rollout.Worlds { return rollout.Pair{Tools: deaf{}} }
	run(t, r)
	if len(e.calls) != 0 {
		t.Errorf("nothing was learnt by %v", e.calls)
	}
	if m := log.values[1]; m["rows"] != 0 || m["stop_world"] != 1 || m["episodes"] != 32 {
		t.Errorf("the log says %v", m)
	}
}

// shut are tools that cannot be opened.
type shut struct{}

func (shut) OpenTools(context.Context, task.Task, uint64) (rollout.Tools, error) {
	return nil, errors.New("no server")
}

func TestRLWhereAWorldCannotBeOpened(t *testing.T) {
	e, log := &table{}, &lines{}
	r := toyRL(e, log, 1)
	r.Worlds = func(rollout.Cast) rollout.Worlds { return rollout.Pair{Tools: shut{}} }
	run(t, r)
	if ep := log.eps[0][0]; ep.Stop != rollout.StopWorld || ep.Detail != "open the world: open tools: no server" || len(e.calls) != 0 {
		t.Errorf("ends by %s (%s), learnt by %v", ep.Stop, ep.Detail, e.calls)
	}
}

// remote is a rehearser behind a server: it always writes the right result.
type remote struct{}

func (remote) Complete(context.Context, []chat.Message, []chat.Function, chat.Options) (chat.Message, chat.Usage, error) {
	m := chat.Message{Role: chat.Assistant, Content: `<execution_result>{"n":1}</execution_result>`}
	return m, chat.Usage{Prompt: 9, Completion: 5}, nil
}

// fixed returns a policy of weights that do not move.
func fixed(t *testing.T, e engine.Trainer) rollout.Policy {
	t.Helper()
	s, err := e.Sampler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rollout.Policy{Name: "frozen", Renderer: toyRenderer{}, Sampler: s, Params: engine.Params{Temperature: 1}}
}

// Whoever speaks beside the learner is heard and not trained on.
func TestRLCasts(t *testing.T) {
	always := &table{}
	always.logits[1][right] = 20 // a rehearser that has learnt already
	always.logits[0][right] = 20
	for _, tt := range []struct {
		name string
		cast func(learner rollout.Policy) rollout.Cast
		rows rollout.Role // of the learner alone
	}{
		{"a rehearser without tokens", func(l rollout.Policy) rollout.Cast {
			return rollout.Cast{Act: l, Rehearse: rollout.Policy{Name: "server", Completer: remote{}}}
		}, rollout.Act},
		{"a frozen rehearser", func(l rollout.Policy) rollout.Cast { return rollout.Cast{Act: l, Rehearse: fixed(t, always)} }, rollout.Act},
		{"a frozen actor", func(l rollout.Policy) rollout.Cast { return rollout.Cast{Act: fixed(t, always), Rehearse: l} }, rollout.Rehearse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, log := &exact{}, &lines{}
			r := toyRL(nil, log, 40)
			r.Trainer, r.Cast = e, tt.cast
			run(t, r)
			for _, batch := range e.data {
				for _, d := range batch {
					if role := roleOf(d.Input); role != map[rollout.Role]int{rollout.Act: 0, rollout.Rehearse: 1}[tt.rows] {
						t.Fatalf("a turn of role %d became a row", role)
					}
				}
			}
			if log.values[0]["turns_rehearse"] == 0 || log.values[0]["turns_act"] == 0 {
				t.Errorf("the log says %v", log.values[0])
			}
			if got := last(log, "reward", 5); got <= 0.9 {
				t.Errorf("ends with reward %.3f", got)
			}
			if m := log.values[0]; m["ratio_fresh"] != 0 {
				t.Errorf("ratios of fresh samples are off by %g", m["ratio_fresh"])
			}
		})
	}
	r := toyRL(&table{}, &lines{}, 1)
	r.Cast = func(rollout.Policy) rollout.Cast { return rollout.Alone(fixed(t, always)) }
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "policy learner neither acts nor rehearses") {
		t.Errorf("a cast without the learner: %v", err)
	}
	r = toyRL(&table{}, &lines{}, 1)
	r.Policy.Completer = remote{}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "uses a server") {
		t.Errorf("a learner behind a server: %v", err)
	}
}

// faulty is an engine of which one part breaks.
type faulty struct {
	table
	forward, step, sampler, sample error
}

func (e *faulty) ForwardBackward(ctx context.Context, data []engine.Datum, l engine.Loss) (engine.Result, error) {
	if e.forward != nil {
		return engine.Result{}, e.forward
	}
	return e.table.ForwardBackward(ctx, data, l)
}

func (e *faulty) OptimStep(ctx context.Context, a engine.Adam) (float64, error) {
	if e.step != nil {
		return 0, e.step
	}
	return e.table.OptimStep(ctx, a)
}

func (e *faulty) Sampler(ctx context.Context) (engine.Sampler, error) {
	s, _ := e.table.Sampler(ctx)
	return faultySampler{s, e.sample}, e.sampler
}

type faultySampler struct {
	engine.Sampler
	err error
}

func (s faultySampler) Sample(ctx context.Context, prompt []int, n int, p engine.Params) ([]engine.Sequence, error) {
	if s.err != nil && prompt[0] == toolPrompt {
		return nil, s.err
	}
	return s.Sampler.Sample(ctx, prompt, n, p)
}

func TestRLBrokenEngine(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		e    faulty
	}{
		{"sampler", faulty{sampler: broken}},
		{"while rehearsing", faulty{sample: broken}},
		{"forward", faulty{forward: broken}},
		{"optimiser", faulty{step: engine.ErrNotFinite}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := toyRL(nil, &lines{}, 3)
			r.Trainer = &tt.e
			err := r.Run(context.Background())
			if !errors.Is(err, broken) && !errors.Is(err, engine.ErrNotFinite) {
				t.Fatalf("ends with %v", err)
			}
			if !strings.Contains(err.Error(), "step 0") {
				t.Errorf("%q does not say where", err)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		r := toyRL(&table{}, &lines{}, 1000)
		r.After = func(_ context.Context, step int) error {
			if step == 2 {
				cancel()
			}
			return ctx.Err()
		}
		if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("ends with %v", err)
		}
	})
}
