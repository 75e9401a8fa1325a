package cpu

import (
	"context"
	"math"
	"runtime"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
	"pgregory.net/rapid"
)

// tiny is a model small enough to run thousands of times.
func tiny(arch string) weights.Config {
	return weights.Config{Arch: arch, Vocab: 37, Width: 24, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, MLP: 40,
		Eps: 1e-6, RopeTheta: 1e4, Tied: arch == weights.Qwen3, Context: 160, BOS: -1, PAD: -1}
}

// lively returns a tiny engine whose weights are large enough to have opinions.
func lively(t rapid.TB, arch string, o Options) *Engine {
	t.Helper()
	e, err := New(tiny(arch), o)
	if err != nil {
		t.Fatal(err)
	}
	stir(e, 11)
	return e
}

// stir makes the weights, or an adapter's, larger.
func stir(e *Engine, seed uint64) {
	rnd := model.NewRand(seed)
	m := e.state.m
	list := m.Params()
	if m.LoRA() != nil {
		list = m.Trained()
	}
	for _, p := range list {
		for i := range p.W {
			p.W[i] += float32(rnd.Normal() * 0.15)
		}
	}
	m.Repack()
}

// randomRow makes ids from a small alphabet, so that rows share prefixes.
func forestRows(rnd *model.Rand, n, longest, vocab int) [][]int {
	var rows [][]int
	for range n {
		var row []int
		if len(rows) > 0 && rnd.Float64() < 0.8 {
			from := rows[rnd.Uint64()%uint64(len(rows))]
			row = append(row, from[:1+rnd.Uint64()%uint64(len(from))]...)
		}
		for len(row) < 2 || rnd.Float64() > 2/float64(longest) && len(row) < longest {
			row = append(row, int(rnd.Uint64()%uint64(vocab)))
		}
		rows = append(rows, row)
	}
	return rows
}

// forestData makes a policy-gradient datum of each row.
func forestData(rnd *model.Rand, rows [][]int) []engine.Datum {
	var data []engine.Datum
	for _, row := range rows {
		n := len(row) - 1
		d := engine.Datum{Input: row[:n], Target: append([]int(nil), row[1:]...), Weight: make([]float32, n), Logprobs: make([]float32, n),
			Advantage: make([]float32, n), Reference: make([]float32, n)}
		for i := range n {
			if rnd.Float64() < 0.7 {
				d.Weight[i] = float32(rnd.Float64())
			}
			d.Logprobs[i], d.Reference[i] = float32(-3.6+rnd.Normal()*0.2), float32(-3.6+rnd.Normal()*0.2)
			d.Advantage[i] = float32(rnd.Normal())
		}
		data = append(data, d)
	}
	return data
}

// gradients copies all gradients and clears them.
func gradients(e *Engine) [][]float32 {
	var list [][]float32
	for _, p := range e.state.m.Trained() {
		list = append(list, append([]float32(nil), p.G...))
	}
	e.state.m.ZeroGrad()
	return list
}

// relative is the Euclidean distance of all of got from want, by want's length.
func relative(got, want [][]float32) float64 {
	var diff, size float64
	for i := range want {
		for j, w := range want[i] {
			d := float64(got[i][j]) - float64(w)
			diff, size = diff+d*d, size+float64(w)*float64(w)
		}
	}
	return math.Sqrt(diff / size)
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

func logprobs(t testing.TB, e *Engine, rows [][]int) [][]float32 {
	t.Helper()
	s, err := e.Sampler(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Logprobs(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var adam = engine.Adam{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, ClipNorm: 1}

func optimStep(t testing.TB, e *Engine) float64 {
	t.Helper()
	norm, err := e.OptimStep(context.Background(), adam)
	if err != nil {
		t.Fatal(err)
	}
	return norm
}

// allocated is the number of bytes allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
