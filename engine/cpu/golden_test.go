package cpu

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"envace/engine"
	"envace/internal/oracle"
	"envace/internal/weights"
	"pgregory.net/rapid"
)

// expected reads tensors of a golden file.
type expected struct {
	t *testing.T
	*weights.Tensors
}

func expect(t *testing.T, path string) expected {
	t.Helper()
	ts, err := weights.OpenTensors(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ts.Close() })
	return expected{t, ts}
}

func (e expected) flat(name string) []float32 {
	e.t.Helper()
	info, ok := e.Info(name)
	if !ok {
		e.t.Fatalf("no tensor %s", name)
	}
	x := make([]float32, info.Len())
	if err := e.Read(name, x); err != nil {
		e.t.Fatal(err)
	}
	return x
}

func (e expected) rows(name string) [][]float32 {
	info, _ := e.Info(name)
	return slices.Collect(slices.Chunk(e.flat(name), info.Shape[len(info.Shape)-1]))
}

func (e expected) ids(name string) [][]int {
	var rows [][]int
	for _, row := range e.rows(name) {
		ids := make([]int, len(row))
		for i, v := range row {
			ids[i] = int(v)
		}
		rows = append(rows, ids)
	}
	return rows
}

func close1(t *testing.T, what string, got float64, want float32, tol float64) {
	t.Helper()
	oracle.Near(t, what, []float32{float32(got)}, []float32{want}, tol)
}

// goldenData makes data whose losses are means, as the golden ones are.
func goldenData(e expected) []engine.Datum {
	weight := e.rows("weight")
	var sum float64
	for _, row := range weight {
		for _, w := range row {
			sum += float64(w)
		}
	}
	var data []engine.Datum
	for i, ids := range e.ids("ids") {
		for j := range weight[i] {
			weight[i][j] = float32(float64(weight[i][j]) / sum)
		}
		n := len(ids)
		data = append(data, engine.Datum{Input: ids[:n-1], Target: ids[1:], Weight: weight[i],
			Logprobs: e.rows("old")[i], Advantage: e.rows("advantage")[i], Reference: e.rows("ref")[i]})
	}
	return data
}

var goldenPPO = engine.Loss{Objective: engine.PPO, ClipLow: 0.2, ClipHigh: 0.2, DualClip: 3, KL: 0.05}

// eachGolden runs f for every golden model.
func eachGolden(t *testing.T, f func(t *testing.T, dir string, e expected)) {
	for _, path := range oracle.Glob(t, "engine/*/config.json") {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) { f(t, dir, expect(t, filepath.Join(dir, "expect.safetensors"))) })
	}
}

func open(t testing.TB, path string, o Options) *Engine {
	t.Helper()
	e, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func forwardBackward(t rapid.TB, e *Engine, data []engine.Datum, loss engine.Loss) engine.Result {
	t.Helper()
	res, err := e.ForwardBackward(context.Background(), data, loss)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestGoldenLogprobs(t *testing.T) {
	eachGolden(t, func(t *testing.T, dir string, want expected) {
		e := open(t, dir, Options{})
		s, _ := e.Sampler(context.Background())
		got, err := s.Logprobs(context.Background(), want.ids("ids"))
		if err != nil {
			t.Fatal(err)
		}
		oracle.Near(t, "logprobs", slices.Concat(got...), want.flat("logprobs"), 1e-4)
	})
}

func TestGoldenGradients(t *testing.T) {
	eachGolden(t, func(t *testing.T, dir string, want expected) {
		e := open(t, dir, Options{})
		data := goldenData(want)
		res := forwardBackward(t, e, data, engine.Loss{Objective: engine.CrossEntropy})
		close1(t, "ce.loss", res.Loss, want.flat("ce.loss")[0], 1e-4)
		checkGradients(t, e, want, "ce.grad.")

		res = forwardBackward(t, e, data, goldenPPO)
		close1(t, "ppo.loss", res.Loss, want.flat("ppo.loss")[0], 1e-4)
		close1(t, "ppo.kl", res.KL, want.flat("ppo.kl")[0], 1e-4)
		close1(t, "ppo.clipfrac", res.ClipFraction, want.flat("ppo.clipfrac")[0], 1e-4)
		checkGradients(t, e, want, "ppo.grad.")
	})
}

// checkGradients compares every gradient, and clears them.
func checkGradients(t *testing.T, e *Engine, want expected, prefix string) {
	t.Helper()
	for _, p := range e.state.m.Trained() {
		oracle.Near(t, prefix+p.Name, p.G, want.flat(prefix+p.Name), 1e-3)
	}
	e.state.m.ZeroGrad()
}

func TestGoldenAdamW(t *testing.T) {
	eachGolden(t, func(t *testing.T, dir string, want expected) {
		e := open(t, dir, Options{})
		data := goldenData(want)
		var losses, norms []float32
		for range want.flat("adamw.losses") {
			res := forwardBackward(t, e, data, engine.Loss{Objective: engine.CrossEntropy})
			norm, err := e.OptimStep(context.Background(), engine.Adam{LR: 3e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, ClipNorm: 1})
			if err != nil {
				t.Fatal(err)
			}
			losses, norms = append(losses, float32(res.Loss)), append(norms, float32(norm))
		}
		oracle.Near(t, "losses", losses, want.flat("adamw.losses"), 1e-4)
		oracle.Near(t, "norms", norms, want.flat("adamw.gradnorms"), 1e-3)
	})
}

func TestGoldenGreedy(t *testing.T) {
	eachGolden(t, func(t *testing.T, dir string, want expected) {
		e := open(t, dir, Options{})
		s, _ := e.Sampler(context.Background())
		ids := want.ids("greedy")[0]
		got, err := s.Sample(context.Background(), ids[:20], 1, engine.Params{MaxTokens: len(ids) - 20})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[0].Tokens, ids[20:]) {
			t.Errorf("greedy tokens %v, want %v", got[0].Tokens, ids[20:])
		}
	})
}

func TestGoldenLoRA(t *testing.T) {
	eachGolden(t, func(t *testing.T, dir string, base expected) {
		e := open(t, dir, Options{Adapter: filepath.Join(dir, "lora")})
		want := expect(t, filepath.Join(dir, "lora", "expect.safetensors"))
		res := forwardBackward(t, e, goldenData(base), engine.Loss{Objective: engine.CrossEntropy})
		close1(t, "loss", res.Loss, want.flat("loss")[0], 1e-4)
		for _, p := range e.state.m.Trained() {
			name := "grad.base_model.model." + p.Name + ".default.weight"
			oracle.Near(t, name, p.G, want.flat(name), 1e-3)
		}
	})
}
