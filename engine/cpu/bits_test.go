package cpu

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
	"pgregory.net/rapid"
)

// request is one call of Sample.
type request struct {
	prompt []int
	n      int
	p      engine.Params
}

// randomRequests share prefixes and differ in everything else.
func randomRequests(rnd *model.Rand, n int) []request {
	var list []request
	for _, prompt := range forestRows(rnd, n, 90, 4) {
		p := engine.Params{MaxTokens: 1 + int(rnd.Uint64()%30), Seed: rnd.Uint64(), Stop: []int{int(rnd.Uint64() % 37)}}
		switch rnd.Uint64() % 5 {
		case 1:
			p.Temperature = 1
		case 2:
			p.Temperature, p.TopP = 0.8, 0.9
		case 3:
			p.Temperature, p.TopK = 1.3, 5
		case 4:
			p.Temperature, p.MinP = 1, 0.05
		}
		list = append(list, request{prompt, 1 + int(rnd.Uint64()%4), p})
	}
	return list
}

// sampleAll makes all calls at once and returns their sequences in order.
func sampleAll(t testing.TB, s engine.Sampler, list []request) [][]engine.Sequence {
	t.Helper()
	out := make([][]engine.Sequence, len(list))
	var wg sync.WaitGroup
	for i, r := range list {
		wg.Go(func() {
			var err error
			if out[i], err = s.Sample(context.Background(), r.prompt, r.n, r.p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return out
}

func sameSequences(a, b []engine.Sequence) bool {
	return slices.EqualFunc(a, b, func(x, y engine.Sequence) bool {
		return slices.Equal(x.Tokens, y.Tokens) && sameBits(x.Logprobs, y.Logprobs) && sameBits(x.SampleLogprobs, y.SampleLogprobs) && x.Stop == y.Stop
	})
}

// What a call draws, and every bit of its log-probabilities, depends on the call
// alone, and Logprobs and ForwardBackward find the same bits.
func TestBitsDoNotDependOnTheBatch(t *testing.T) {
	for _, arch := range []string{weights.Qwen3, weights.Llama} {
		rapid.Check(t, func(t *rapid.T) {
			rnd := model.NewRand(rapid.Uint64().Draw(t, "seed"))
			list := randomRequests(&rnd, rapid.IntRange(1, 16).Draw(t, "calls"))
			small := rapid.SampledFrom([]int{64, 640, 1 << 14}).Draw(t, "cache")
			checkBits(t, arch, list, small)
		})
	}
}

func checkBits(t *rapid.T, arch string, list []request, cache int) {
	e := lively2(t, arch, Options{Threads: 2, CacheTokens: cache, BatchTokens: 128})
	one := lively2(t, arch, Options{Threads: 1})
	s1, _ := one.Sampler(context.Background())
	s, _ := e.Sampler(context.Background())
	var got [2][][]engine.Sequence
	got[0], got[1] = rapidSample(t, s, list), rapidSample(t, s, list)
	var rows [][]int
	var want [][]float32
	for i, r := range list {
		alone, err := s1.Sample(context.Background(), r.prompt, r.n, r.p)
		if err != nil {
			t.Fatal(err)
		}
		if !sameSequences(alone, got[0][i]) || !sameSequences(alone, got[1][i]) {
			t.Fatalf("call %d: alone %+v, together %+v and then %+v", i, alone, got[0][i], got[1][i])
		}
		for _, q := range alone {
			rows = append(rows, append(slices.Clone(r.prompt), q.Tokens...))
			want = append(want, q.Logprobs)
		}
	}
	checkLogprobs(t, e, rows, want)
}

// checkLogprobs compares want, of the last tokens of each row, with what Logprobs
// and ForwardBackward find.
func checkLogprobs(t *rapid.T, e *Engine, rows [][]int, want [][]float32) {
	s, _ := e.Sampler(context.Background())
	lps, err := s.Logprobs(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	var data []engine.Datum
	for _, row := range rows {
		n := len(row) - 1
		d := engine.Datum{Input: row[:n], Target: row[1:], Weight: make([]float32, n)}
		for i := range d.Weight {
			d.Weight[i] = 1
		}
		data = append(data, d)
	}
	res, err := e.ForwardBackward(context.Background(), data, engine.Loss{Objective: engine.CrossEntropy})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if tail := lps[i][len(lps[i])-len(w):]; !sameBits(tail, w) {
			t.Fatalf("row %d: sampled with %v, Logprobs says %v", i, w, tail)
		}
		if !sameBits(res.Logprobs[i], lps[i]) {
			t.Fatalf("row %d: Logprobs says %v, ForwardBackward %v", i, lps[i], res.Logprobs[i])
		}
	}
}

// lively2 is lively for property tests.
func lively2(t *rapid.T, arch string, o Options) *Engine {
	e, err := New(tiny(arch), o)
	if err != nil {
		t.Fatal(err)
	}
	stir(e, 11)
	return e
}

func rapidSample(t *rapid.T, s engine.Sampler, list []request) [][]engine.Sequence {
	out := make([][]engine.Sequence, len(list))
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, r := range list {
		wg.Go(func() { out[i], errs[i] = s.Sample(context.Background(), r.prompt, r.n, r.p) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return out
}
