package cpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/oracle"
	"envace/internal/weights"
)

// losses are all objectives, with all estimators of the KL term.
func losses() []engine.Loss {
	var list []engine.Loss
	for _, kind := range []engine.KLKind{"", engine.K1, engine.K2, engine.K3} {
		kl := 0.1
		if kind == "" {
			kl = 0
		}
		list = append(list, engine.Loss{Objective: engine.CrossEntropy, KL: kl, KLKind: kind},
			engine.Loss{Objective: engine.ImportanceSampling, KL: kl, KLKind: kind},
			engine.Loss{Objective: engine.PPO, ClipLow: 0.2, ClipHigh: 0.25, DualClip: 3, KL: kl, KLKind: kind})
	}
	return list
}

// woods are rows of every relation: forestRows, and some rows twice, cut short, or
// continued by another.
func woods(t *rapid.T, rnd *model.Rand) [][]int {
	rows := forestRows(rnd, rapid.IntRange(1, 12).Draw(t, "rows"), rapid.IntRange(3, 90).Draw(t, "longest"), rapid.IntRange(2, 6).Draw(t, "alphabet"))
	for range rapid.IntRange(0, 4).Draw(t, "more rows") {
		row := rows[rnd.Uint64()%uint64(len(rows))]
		switch rapid.SampledFrom([]string{"twice", "cut", "continued"}).Draw(t, "row") {
		case "cut":
			row = row[:2+rnd.Uint64()%uint64(len(row)-1)]
		case "continued":
			row = slices.Concat(row, rows[0])[:min(len(row)+len(rows[0]), 150)]
		}
		rows = append(rows, row)
	}
	shuffle(rnd, len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// Packed into a forest, rows give the losses and gradients that they give alone,
// and so they do where a small budget cuts its trees.
func TestForestEqualsSeparateRows(t *testing.T) {
	engines := map[string]*Engine{
		"qwen3": lively(t, weights.Qwen3, Options{}),
		"llama": lively(t, weights.Llama, Options{}),
		"lora":  lively(t, weights.Qwen3, Options{LoRA: &LoRA{Rank: 3, Alpha: 6}}),
		"some":  lively(t, weights.Llama, Options{LoRA: &LoRA{Rank: 2, Alpha: 6, Targets: []string{"v_proj", "down_proj"}}}),
	}
	rapid.Check(t, func(t *rapid.T) {
		e := engines[rapid.SampledFrom([]string{"qwen3", "llama", "lora", "some"}).Draw(t, "engine")]
		rnd := model.NewRand(rapid.Uint64().Draw(t, "seed"))
		data := forestData(&rnd, woods(t, &rnd))
		loss := rapid.SampledFrom(losses()).Draw(t, "loss")
		budget := rapid.SampledFrom([]int{1, 30, 150, 1 << 14}).Draw(t, "budget")
		e.runner = model.NewRunner(e.state.m, budget, true)
		checkForest(t, e, data, loss, budget)
	})
}

func checkForest(t rapid.TB, e *Engine, data []engine.Datum, loss engine.Loss, budget int) {
	want, alone, nodes, size := separately(t, e, data, loss)
	got := forwardBackward(t, e, data, loss)
	for i, g := range gradients(e) {
		// A tensor whose gradient cancels, as that of keys that are all equal, is left
		// with the rounding of far larger terms: it is held to the row's whole gradient.
		off := difference(g, alone[i].sum)
		if off > 1e-5*alone[i].terms && off > 1e-6*alone[i].rows {
			t.Errorf("gradient of %s is off by %g of %g, %g", e.state.m.Trained()[i].Name, off, alone[i].terms, alone[i].rows)
		}
	}
	if math.Abs(got.Loss-want.Loss) > 1e-9*size || math.Abs(got.KL-want.KL) > 1e-9*size {
		t.Errorf("loss %g and KL %g, alone %g and %g", got.Loss, got.KL, want.Loss, want.KL)
	}
	cut := got.TokensComputed > nodes && got.TokensComputed <= want.TokensRows && budget/model.Lanes(e.cfg.Params()) < nodes
	if got.TokensRows != want.TokensRows || got.TokensComputed != nodes && !cut {
		t.Errorf("budget %d: tokens %d of %d, want %d of %d", budget, got.TokensComputed, got.TokensRows, nodes, want.TokensRows)
	}
	for i := range data {
		if !sameBits(got.Logprobs[i], want.Logprobs[i]) {
			t.Errorf("row %d: log-probabilities %v, alone %v", i, got.Logprobs[i], want.Logprobs[i])
		}
	}
}

// addedUp is a tensor's gradient, the sum of those of separate rows. terms is the sum
// of their lengths, rows that of the lengths of the rows' gradients of all tensors.
type addedUp struct {
	sum         []float32
	terms, rows float64
}

// separately runs each row on its own. nodes are the different tokens of all rows,
// size is the sum of what the losses could be off by, relatively.
func separately(t rapid.TB, e *Engine, data []engine.Datum, loss engine.Loss) (sum engine.Result, grads []addedUp, nodes int, size float64) {
	seen := map[string]bool{}
	grads = make([]addedUp, len(e.state.m.Trained()))
	for _, d := range data {
		res := forwardBackward(t, e, []engine.Datum{d}, loss)
		row := gradients(e)
		for i, g := range row {
			a := &grads[i]
			if a.sum == nil {
				a.sum = make([]float32, len(g))
			}
			for j, v := range g {
				a.sum[j] += v
			}
			a.terms += norm(row[i : i+1])
			a.rows += norm(row)
		}
		sum.Loss += res.Loss
		sum.KL += res.KL
		sum.Logprobs = append(sum.Logprobs, res.Logprobs...)
		sum.TokensRows += len(d.Input)
		size += math.Abs(res.Loss) + math.Abs(res.KL) + 1
		for i := range d.Input {
			key := make([]byte, i+1)
			for j := range key {
				key[j] = byte(d.Input[j])
			}
			seen[string(key)] = true
		}
	}
	return sum, grads, len(seen), size
}

// difference is the Euclidean distance of a from b.
func difference(a, b []float32) float64 {
	var s float64
	for i, v := range a {
		d := float64(v) - float64(b[i])
		s += d * d
	}
	return math.Sqrt(s)
}

func norm(list [][]float32) float64 {
	var s float64
	for _, x := range list {
		for _, v := range x {
			s += float64(v) * float64(v)
		}
	}
	return math.Sqrt(s)
}

// A tree that does not fit is cut, with the same result.
func TestBatchTokensDoNotMatter(t *testing.T) {
	rnd := model.NewRand(5)
	data := forestData(&rnd, forestRows(&rnd, 40, 60, 4))
	var want engine.Result
	var wantG [][]float32
	for _, budget := range []int{1 << 14, 200, 64, 1} {
		e := lively(t, weights.Qwen3, Options{BatchTokens: budget})
		got := forwardBackward(t, e, data, goldenPPO)
		g := gradients(e)
		if budget == 1<<14 {
			want, wantG = got, g
			continue
		}
		if r := relative(g, wantG); r > 1e-5 {
			t.Errorf("budget %d: gradients are off by %g", budget, r)
		}
		for i := range got.Logprobs {
			if !sameBits(got.Logprobs[i], want.Logprobs[i]) {
				t.Errorf("budget %d: row %d differs in its log-probabilities", budget, i)
			}
		}
		if got.TokensComputed < want.TokensComputed {
			t.Errorf("budget %d: %d tokens computed, fewer than %d", budget, got.TokensComputed, want.TokensComputed)
		}
	}
}

// Threads change no bit: not of results, gradients, or weights after steps.
func TestThreadsChangeNothing(t *testing.T) {
	rnd := model.NewRand(6)
	data := forestData(&rnd, forestRows(&rnd, 30, 100, 4))
	for _, o := range []Options{{}, {LoRA: &LoRA{Rank: 2, Alpha: 4}}} {
		run := func(threads int) (out [][]float32) {
			o.Threads = threads
			e := lively(t, weights.Qwen3, o)
			for range 3 {
				out = append(out, forwardBackward(t, e, data, goldenPPO).Logprobs...)
				out = append(out, []float32{float32(optimStep(t, e))})
			}
			for _, p := range e.state.m.Trained() {
				out = append(out, p.W)
			}
			return out
		}
		one, two := run(1), run(2)
		for i := range one {
			if !sameBits(one[i], two[i]) {
				t.Fatalf("lora %v: part %d differs between 1 and 2 threads", o.LoRA != nil, i)
			}
		}
	}
}

func TestZeroWeights(t *testing.T) {
	rnd := model.NewRand(31)
	data := forestData(&rnd, forestRows(&rnd, 9, 40, 4))
	for i := range data {
		clear(data[i].Weight)
	}
	still := engine.Adam{LR: 1, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	for _, o := range []Options{{BatchTokens: 50}, {LoRA: &LoRA{Rank: 2, Alpha: 4}}} {
		e := lively(t, weights.Llama, o)
		before := slices.Clone(e.state.m.Trained()[0].W)
		for _, loss := range losses() {
			res := forwardBackward(t, e, data, loss)
			if res.Loss != 0 || res.KL != 0 || res.ClipFraction != 0 || res.RatioMax != 0 {
				t.Errorf("%+v: result %+v", loss, res)
			}
			if n, err := e.OptimStep(context.Background(), still); n != 0 || err != nil {
				t.Errorf("%+v: norm %g, error %v", loss, n, err)
			}
		}
		if !sameBits(before, e.state.m.Trained()[0].W) {
			t.Error("steps without a gradient have moved weights")
		}
	}
}

func TestNoWeights(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	for _, w := range [][]float32{nil, {0, 0}} {
		res := forwardBackward(t, e, []engine.Datum{{Input: []int{1, 2}, Target: []int{2, 3}, Weight: w}}, goldenPPO)
		if res.Loss != 0 || res.ClipFraction != 0 || res.RatioMax != 0 {
			t.Errorf("weights %v: result %+v", w, res)
		}
		if n := norm(gradients(e)); n != 0 {
			t.Errorf("weights %v: gradient norm %g", w, n)
		}
	}
	if n := optimStep(t, e); n != 0 {
		t.Errorf("norm %g of no gradient", n)
	}
}

// Nil slices read as zeros.
func TestNilSlices(t *testing.T) {
	e := lively(t, weights.Llama, Options{})
	w := []float32{1, 2}
	short := forwardBackward(t, e, []engine.Datum{{Input: []int{1, 2}, Weight: w}}, goldenPPO)
	zero := make([]float32, 2)
	long := forwardBackward(t, e, []engine.Datum{{Input: []int{1, 2}, Target: []int{0, 0}, Weight: w,
		Logprobs: zero, Advantage: zero, Reference: zero}}, goldenPPO)
	if short.Loss != long.Loss || short.RatioMax != long.RatioMax || !sameBits(short.Logprobs[0], long.Logprobs[0]) {
		t.Errorf("nil slices give %+v, zeros %+v", short, long)
	}
}

func TestBadData(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	ok := engine.Datum{Input: []int{1, 2}, Target: []int{2, 3}, Weight: []float32{1, 1}}
	with := func(f func(*engine.Datum)) []engine.Datum {
		d := ok
		f(&d)
		return []engine.Datum{ok, d}
	}
	nan := float32(math.NaN())
	for _, tt := range []struct {
		name, want string
		data       []engine.Datum
	}{
		{"no data", "no data", nil},
		{"empty row", "datum 1: input is empty", with(func(d *engine.Datum) { d.Input = nil })},
		{"input id", "datum 1: input: token 1 has id 37: the vocabulary size is 37", with(func(d *engine.Datum) { d.Input = []int{1, 37} })},
		{"negative id", "token 0 has id -1", with(func(d *engine.Datum) { d.Input = []int{-1, 3} })},
		{"target id", "datum 1: target at position 1 is token 99: the vocabulary size is 37", with(func(d *engine.Datum) { d.Target = []int{1, 99} })},
		{"target length", "datum 1: target has length 1, input has length 2", with(func(d *engine.Datum) { d.Target = []int{1} })},
		{"weight length", "weight has length 3", with(func(d *engine.Datum) { d.Weight = []float32{1, 2, 3} })},
		{"advantage length", "advantage has length 0", with(func(d *engine.Datum) { d.Advantage = []float32{} })},
		{"weight nan", "weight at position 0 is NaN", with(func(d *engine.Datum) { d.Weight = []float32{nan, 1} })},
		{"too long", "input has 161 tokens, the context window holds 160", with(func(d *engine.Datum) { *d = engine.Datum{Input: make([]int, 161)} })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := e.ForwardBackward(context.Background(), tt.data, engine.Loss{Objective: engine.CrossEntropy})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if _, err := e.ForwardBackward(context.Background(), []engine.Datum{ok}, engine.Loss{Objective: "hinge"}); err == nil {
		t.Error("an unknown objective is taken")
	}
	if n := norm(gradients(e)); n != 0 {
		t.Errorf("refused data left a gradient of norm %g", n)
	}
}

func TestGradientNotFinite(t *testing.T) {
	e := lively(t, weights.Llama, Options{})
	before := slices.Clone(e.state.m.Params()[3].W)
	data := []engine.Datum{{Input: []int{5}}, {Input: []int{1, 1}, Target: []int{2, 2}, Weight: []float32{0, 1}, Advantage: []float32{1, float32(math.Inf(1))}}}
	_, err := e.ForwardBackward(context.Background(), data, engine.Loss{Objective: engine.ImportanceSampling})
	if !errors.Is(err, engine.ErrNotFinite) || !strings.Contains(err.Error(), "datum 1, position 1: loss has derivative -Inf") {
		t.Errorf("forward backward: error %v, want ErrNotFinite at datum 1, position 1", err)
	}
	for _, tt := range []struct {
		g, clip float64
		want    string
	}{
		{math.NaN(), 1, "the first parameter with a NaN or infinity is model.layers.1.self_attn.q_proj.weight"},
		{math.Inf(-1), 0, "the first parameter with a NaN or infinity is model.layers.1.self_attn.q_proj.weight"},
		{1e20, 0, "its norm is 1"},
		{1e20, 1, ""},
	} {
		forwardBackward(t, e, []engine.Datum{{Input: []int{1}, Target: []int{2}, Weight: []float32{1}}}, engine.Loss{Objective: engine.CrossEntropy})
		for _, p := range e.state.m.Params() {
			if strings.HasSuffix(p.Name, ".self_attn.q_proj.weight") {
				p.G[2] = float32(tt.g)
			}
		}
		a := adam
		a.ClipNorm = tt.clip
		_, err := e.OptimStep(context.Background(), a)
		if tt.want == "" {
			if err != nil {
				t.Errorf("a large gradient that is clipped: %v", err)
			}
			continue
		}
		if !errors.Is(err, engine.ErrNotFinite) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("gradient %g: error %v, want ErrNotFinite with %q", tt.g, err, tt.want)
		}
		if !sameBits(before, e.state.m.Params()[3].W) || norm(gradients(e)) != 0 {
			t.Errorf("gradient %g: weights or gradients are left changed", tt.g)
		}
	}
}

func TestBadAdam(t *testing.T) {
	e := lively(t, weights.Llama, Options{})
	for name, f := range map[string]func(*engine.Adam){
		"eps 0":        func(a *engine.Adam) { a.Eps = 0 },
		"eps too fine": func(a *engine.Adam) { a.Eps = 1e-60 },
		"beta1":        func(a *engine.Adam) { a.Beta1 = 1 },
		"beta2":        func(a *engine.Adam) { a.Beta2 = -0.1 },
		"rate":         func(a *engine.Adam) { a.LR = math.NaN() },
		"decay":        func(a *engine.Adam) { a.WeightDecay = -1 },
		"clip":         func(a *engine.Adam) { a.ClipNorm = math.Inf(1) },
	} {
		a := adam
		f(&a)
		if _, err := e.OptimStep(context.Background(), a); err == nil {
			t.Errorf("%s: %+v is taken", name, a)
		}
	}
}

func TestNaNNamesLayer(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	for _, p := range e.state.m.Params() {
		if p.Name == "model.layers.1.mlp.up_proj.weight" {
			p.W[5] = float32(math.NaN())
		}
	}
	e.state.m.Repack()
	data := []engine.Datum{{Input: []int{1, 2}, Target: []int{2, 3}, Weight: []float32{1, 1}}}
	_, err := e.ForwardBackward(context.Background(), data, engine.Loss{Objective: engine.CrossEntropy})
	if err == nil || !strings.Contains(err.Error(), "layer 1 ") {
		t.Errorf("forward backward: error %v does not name layer 1", err)
	}
	s, _ := e.Sampler(context.Background())
	if _, err := s.Sample(context.Background(), []int{1, 2}, 1, engine.Params{MaxTokens: 3}); err == nil || !strings.Contains(err.Error(), "layer 1 ") {
		t.Errorf("sample: error %v does not name layer 1", err)
	}
	if _, err := s.Logprobs(context.Background(), [][]int{{1, 2}}); err == nil || !strings.Contains(err.Error(), "layer 1 ") {
		t.Errorf("logprobs: error %v does not name layer 1", err)
	}
}

func TestCancelledForwardBackward(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	data := []engine.Datum{{Input: []int{1, 2}, Target: []int{2, 3}, Weight: []float32{1, 1}}}
	if _, err := e.ForwardBackward(ctx, data, engine.Loss{Objective: engine.CrossEntropy}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// An adapter trains itself and nothing else, and a tiny model learns a rule.
func TestLearning(t *testing.T) {
	for _, o := range []Options{{}, {LoRA: &LoRA{Rank: 4, Alpha: 8}}, {LoRA: &LoRA{Rank: 4, Alpha: 8, Targets: []string{"gate_proj", "v_proj"}}}} {
		e := lively(t, weights.Qwen3, o)
		base := slices.Clone(e.state.m.Params()[5].W)
		data := []engine.Datum{{Input: []int{1, 2, 3, 4}, Target: []int{2, 3, 4, 1}, Weight: []float32{1, 1, 1, 1}}}
		first := forwardBackward(t, e, data, engine.Loss{Objective: engine.CrossEntropy}).Loss
		e.state.m.ZeroGrad()
		last := first
		for range 60 {
			last = forwardBackward(t, e, data, engine.Loss{Objective: engine.CrossEntropy}).Loss
			optimStep(t, e)
		}
		// A frozen output matrix of small numbers bounds what an adapter can say.
		if o.LoRA == nil && last > first/4 || last > first-1 {
			t.Errorf("%+v: the loss went from %g to %g", o.LoRA, first, last)
		}
		if o.LoRA != nil && !sameBits(base, e.state.m.Params()[5].W) {
			t.Errorf("%+v: a frozen weight has moved", o.LoRA)
		}
	}
}

// Once a step has been taken, further ones need no memory but small change.
func TestStepsAllocateLittle(t *testing.T) {
	if oracle.Race {
		t.Skip("the race detector allocates too")
	}
	e := lively(t, weights.Qwen3, Options{Threads: 1})
	rnd := model.NewRand(3)
	data := forestData(&rnd, forestRows(&rnd, 20, 80, 4))
	step := func() {
		forwardBackward(t, e, data, goldenPPO)
		optimStep(t, e)
	}
	step()
	before := allocated()
	const steps = 5
	for range steps {
		step()
	}
	if got := (allocated() - before) / steps; got > 256<<10 {
		t.Errorf("a step allocates %d bytes", got)
	}
}
