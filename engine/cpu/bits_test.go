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
func sampleAll(t rapid.TB, s engine.Sampler, list []request) [][]engine.Sequence {
	t.Helper()
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

func sameSequences(a, b []engine.Sequence) bool {
	return slices.EqualFunc(a, b, func(x, y engine.Sequence) bool {
		return slices.Equal(x.Tokens, y.Tokens) && sameBits(x.Logprobs, y.Logprobs) && sameBits(x.SampleLogprobs, y.SampleLogprobs) && x.Stop == y.Stop
	})
}

// mix is one way of computing what must not depend on it.
type mix struct {
	kind    string // of engine, see mixed
	Options        // bounds and threads
	prefill int    // prompts' tokens in one step
}

// drawMix draws all that may vary but the kind of engine.
func drawMix(t *rapid.T, kind string) mix {
	from := func(name string, list ...int) int { return rapid.SampledFrom(list).Draw(t, name) }
	return mix{kind, Options{
		Threads: from("threads", 1, 2), CacheTokens: from("cache", 1, 640, 1<<14), BatchTokens: from("batch", 1, 40, 128, 1<<14),
	}, from("prefill", 1, 7, 50, prefillTokens)}
}

// mixed returns the engine of a mix: always the same weights for a kind.
func mixed(t rapid.TB, m mix) *Engine {
	t.Helper()
	arch := m.kind
	if m.kind == "lora" {
		arch, m.LoRA = weights.Qwen3, &LoRA{Rank: 3, Alpha: 6}
	}
	e := lively(t, arch, m.Options)
	e.state.prefill = m.prefill
	return e
}

// What a call draws, and every bit of its log-probabilities, depends on the call
// alone, and Logprobs and ForwardBackward find the same bits: in any company, with
// any cache, whatever prompts, rows and trees are cut into, on any threads.
func TestBitsDoNotDependOnTheBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{weights.Qwen3, weights.Llama, "lora"}).Draw(t, "kind")
		rnd := model.NewRand(rapid.Uint64().Draw(t, "seed"))
		list := randomRequests(&rnd, rapid.IntRange(1, 16).Draw(t, "calls"))
		one := mixed(t, mix{kind: kind, Options: Options{Threads: 1}, prefill: prefillTokens})
		other := mixed(t, drawMix(t, kind))
		rows, want := checkSamples(t, one, other, list)
		shuffle(&rnd, len(rows), func(i, j int) { rows[i], rows[j], want[i], want[j] = rows[j], rows[i], want[j], want[i] })
		for len(rows) > 0 {
			n := rapid.IntRange(1, len(rows)).Draw(t, "rows of a call")
			checkLogprobs(t, other, rows[:n], want[:n])
			rows, want = rows[n:], want[n:]
		}
	})
}

func shuffle(rnd *model.Rand, n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(rnd.Uint64()%uint64(i+1)))
	}
}

// checkSamples makes the calls one by one on one engine, and all at once and again
// on the other, and returns what was drawn as rows, and its log-probabilities.
func checkSamples(t rapid.TB, one, other *Engine, list []request) (rows [][]int, want [][]float32) {
	s1, s := sampler(t, one), sampler(t, other)
	var got [2][][]engine.Sequence
	got[0], got[1] = sampleAll(t, s, list), sampleAll(t, s, list)
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
	return rows, want
}

// checkLogprobs compares want, of the last tokens of each row, with what Logprobs
// and ForwardBackward find.
func checkLogprobs(t rapid.TB, e *Engine, rows [][]int, want [][]float32) {
	lps, err := sampler(t, e).Logprobs(context.Background(), rows)
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
