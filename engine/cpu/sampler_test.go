package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sampler(t rapid.TB, e *Engine) *Sampler {
	t.Helper()
	s, err := e.Sampler(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Sampler)
}

func sample(t rapid.TB, s engine.Sampler, prompt []int, n int, p engine.Params) []engine.Sequence {
	t.Helper()
	out, err := s.Sample(context.Background(), prompt, n, p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSampleStops(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	s := sampler(t, e)
	free := sample(t, s, []int{1, 2, 3}, 1, engine.Params{})[0]
	if free.Stop != engine.StopWindow || len(free.Tokens) != e.Window()-3 {
		t.Errorf("without bounds: stop %q after %d tokens", free.Stop, len(free.Tokens))
	}
	short := sample(t, s, []int{1, 2, 3}, 1, engine.Params{MaxTokens: 5})[0]
	if short.Stop != engine.StopLength || !slices.Equal(short.Tokens, free.Tokens[:5]) {
		t.Errorf("5 tokens: %+v", short)
	}
	for _, lp := range short.SampleLogprobs {
		if lp != 0 {
			t.Errorf("greedy sample log-probability %g", lp)
		}
	}
	stop := sample(t, s, []int{1, 2, 3}, 1, engine.Params{Stop: []int{free.Tokens[2]}})[0]
	at := slices.Index(free.Tokens, free.Tokens[2])
	if stop.Stop != engine.StopToken || !slices.Equal(stop.Tokens, free.Tokens[:at+1]) {
		t.Errorf("stop token %d: %+v", free.Tokens[2], stop)
	}
}

func TestSampleErrors(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{}))
	for _, tt := range []struct {
		name   string
		prompt []int
		n      int
		p      engine.Params
		want   string
	}{
		{"empty prompt", nil, 1, engine.Params{}, "prompt is empty"},
		{"token", []int{1, 40}, 1, engine.Params{}, "token 1 has id 40: the vocabulary size is 37"},
		{"no sequences", []int{1}, 0, engine.Params{}, "number of sequences is 0"},
		{"full window", make([]int, 160), 1, engine.Params{}, "prompt has 160 tokens, the context window holds 160"},
		{"beyond the window", make([]int, 500), 1, engine.Params{}, "prompt has 500 tokens, the context window holds 160"},
		{"temperature", []int{1}, 1, engine.Params{Temperature: -1}, "temperature is -1"},
		{"top p", []int{1}, 1, engine.Params{TopP: 2}, "top p is 2"},
		{"top k", []int{1}, 1, engine.Params{TopK: -2}, "top k is -2"},
		{"min p", []int{1}, 1, engine.Params{MinP: -1}, "min p is -1"},
		{"max tokens", []int{1}, 1, engine.Params{MaxTokens: -1}, "max tokens is -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Sample(context.Background(), tt.prompt, tt.n, tt.p)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if windows := strings.Contains(tt.want, "window"); windows != errors.Is(err, engine.ErrWindow) {
				t.Errorf("error %v: ErrWindow is %v", err, !windows)
			}
		})
	}
	if _, err := s.Logprobs(context.Background(), [][]int{{1, 2}, {}}); err == nil {
		t.Error("Logprobs takes an empty row")
	}
	if got, err := s.Logprobs(context.Background(), [][]int{{4}}); err != nil || len(got[0]) != 0 {
		t.Errorf("Logprobs of one token: %v, %v", got, err)
	}
}

func TestStale(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	ctx := context.Background()
	s := sampler(t, e)
	pinned, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	row := []int{1, 2, 3, 4}
	before := logprobs(t, e, [][]int{row})
	if same := sampler(t, e); same != s {
		t.Error("two samplers of the same weights")
	}
	data := []engine.Datum{{Input: row[:3], Target: row[1:], Weight: []float32{1, 1, 1}}}
	forwardBackward(t, e, data, engine.Loss{Objective: engine.CrossEntropy})
	optimStep(t, e)
	if _, err := s.Sample(ctx, row, 1, engine.Params{}); !errors.Is(err, engine.ErrStale) {
		t.Errorf("sample: error %v, want ErrStale", err)
	}
	if _, err := s.Logprobs(ctx, [][]int{row}); !errors.Is(err, engine.ErrStale) {
		t.Errorf("logprobs: error %v, want ErrStale", err)
	}
	after := logprobs(t, e, [][]int{row})
	if sameBits(before[0], after[0]) {
		t.Error("a step has changed nothing")
	}
	got, err := pinned.Logprobs(ctx, [][]int{row})
	if err != nil || !sameBits(got[0], before[0]) {
		t.Errorf("pinned weights: %v %v, want %v", got, err, before)
	}
}

func TestStaleUnderWay(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	s := sampler(t, e)
	errs := make(chan error, 20)
	for i := range 20 {
		go func() {
			_, err := s.Sample(context.Background(), []int{1, i}, 8, engine.Params{Temperature: 1})
			errs <- err
		}()
	}
	for !busy(s) {
		runtime.Gosched()
	}
	optimStep(t, e)
	for range 20 {
		if err := <-errs; err != nil && !errors.Is(err, engine.ErrStale) {
			t.Errorf("error %v, want none or ErrStale", err)
		}
	}
}

func busy(s *Sampler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

func TestSnapshotWithAdapter(t *testing.T) {
	ctx := context.Background()
	row := []int{3, 1, 4, 1, 5}
	base, err := New(tiny(weights.Llama), Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(tiny(weights.Llama), Options{LoRA: &LoRA{Rank: 2, Alpha: 4}})
	if err != nil {
		t.Fatal(err)
	}
	pin := func() engine.Sampler {
		s, err := e.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	zero := pin()
	stir(e, 3)
	moved := logprobs(t, e, [][]int{row})
	second := pin()
	stir(e, 4)
	for _, tt := range []struct {
		name string
		s    engine.Sampler
		want [][]float32
	}{{"of the zero adapter", zero, logprobs(t, base, [][]int{row})}, {"of the moved adapter", second, moved}} {
		got, err := tt.s.Logprobs(ctx, [][]int{row})
		if err != nil || !sameBits(got[0], tt.want[0]) {
			t.Errorf("pin %s: %v %v, want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestCancelledSample(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{}))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err := s.Sample(ctx, []int{1}, 64, engine.Params{Temperature: 1})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	for busy(s) {
		time.Sleep(time.Millisecond)
	}
	if len(s.batch.active)+len(s.batch.waiting) > 0 {
		t.Error("sequences of a cancelled call are left")
	}
	sample(t, s, []int{1}, 1, engine.Params{MaxTokens: 3})
}

// Sequences of a call draw differently, and those of the same seed alike.
func TestSampleMany(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{}))
	p := engine.Params{MaxTokens: 12, Temperature: 1, Seed: 9}
	out := sample(t, s, []int{5, 6}, 6, p)
	if !sameSequences(out[:2], sample(t, s, []int{5, 6}, 2, p)) {
		t.Error("the first two sequences depend on how many there are")
	}
	seen := map[string]bool{}
	for _, q := range out {
		seen[fmt.Sprint(q.Tokens)] = true
	}
	if len(seen) < 5 {
		t.Errorf("%d different sequences of 6", len(seen))
	}
}

// Equal prompts that arrive together are computed once, and so are continued ones.
func TestPromptsAreComputedOnce(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{}))
	prompt := forestRows(ptr(model.NewRand(2)), 1, 100, 30)[0]
	for len(prompt) < 70 {
		prompt = append(prompt, len(prompt)%30)
	}
	var list []request
	for i := range 10 {
		list = append(list, request{prompt, 2, engine.Params{MaxTokens: 1, Temperature: 1, Seed: uint64(i)}})
	}
	sampleAll(t, s, list)
	// A call that comes after the first step computes the last token again.
	if got := s.decoder.Computed(); got > len(prompt)+len(list) {
		t.Errorf("%d tokens computed for 20 sequences behind one prompt of %d", got, len(prompt))
	}
	out := sample(t, s, prompt, 1, engine.Params{MaxTokens: 10})[0]
	before := s.decoder.Computed()
	sample(t, s, slices.Concat(prompt, out.Tokens, []int{1, 2, 3}), 1, engine.Params{MaxTokens: 1})
	if got := s.decoder.Computed() - before; got != 4 {
		t.Errorf("%d tokens computed for a turn of 4 new ones", got)
	}
}

func ptr[T any](x T) *T { return &x }

// Ten thousand calls, of which some are cancelled, take no more memory than a few.
func TestMemoryDoesNotGrow(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{CacheTokens: 2048}))
	rnd := model.NewRand(8)
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var start uint64
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		var list []request
		for range 990 {
			list = append(list, request{randomIDs(&rnd, 10, 37), 1, engine.Params{MaxTokens: 2, Temperature: 1, Seed: rnd.Uint64()}})
		}
		sampleAll(t, s, list)
		for i := range 10 {
			ctx, cancel := context.WithCancel(context.Background())
			c := newCall(ctx, list[i].prompt, 2, engine.Params{})
			c.watch = &engine.Watch{Each: func(engine.Token) { cancel() }}
			if err := s.await(c); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want context.Canceled", err)
			}
			cancel()
		}
		if round == 1 {
			start = used()
		}
	}
	if end := used(); end > start+1<<20 {
		t.Errorf("heap grew from %d to %d bytes", start, end)
	}
	for busy(s) { // a cancelled call ends before its step does
		time.Sleep(time.Millisecond)
	}
	if got := s.decoder.Cache().Tokens(); got > 2048 {
		t.Errorf("the cache holds %d tokens, its limit is 2048", got)
	}
}

// Sampling and training at once disturb neither.
func TestSampleWhileTraining(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	rnd := model.NewRand(12)
	data := forestData(&rnd, forestRows(&rnd, 10, 60, 4))
	s := sampler(t, e)
	p := engine.Params{MaxTokens: 20, Temperature: 1}
	wantSample := sample(t, s, []int{1, 2}, 2, p)
	want := forwardBackward(t, e, data, goldenPPO)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got, err := s.Sample(context.Background(), []int{1, 2}, 2, p); err != nil || !sameSequences(got, wantSample) {
				t.Errorf("sample: %v, other than before", err)
			}
		})
		wg.Go(func() {
			if got := forwardBackward(t, e, data, goldenPPO); got.Loss != want.Loss {
				t.Errorf("loss %g, before %g", got.Loss, want.Loss)
			}
		})
	}
	wg.Wait()
}
