package cpu

import (
	"context"
	"slices"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

// Where memory is short, calls are served in the order in which they came: small
// ones do not overtake a large one.
func TestFirstComeFirstServed(t *testing.T) {
	for _, prefill := range []int{9, prefillTokens} {
		s := sampler(t, mixed(t, mix{kind: weights.Llama, Options: Options{Threads: 1, CacheTokens: 1}, prefill: prefill}))
		rnd := model.NewRand(3)
		var order, want []int
		var calls []*call
		for i := range 30 {
			n := []int{20, 150, 64, 90}[i%4]
			c := newCall(context.Background(), randomIDs(&rnd, n, 37), 1, engine.Params{MaxTokens: 9, Temperature: 1})
			c.watch = &engine.Watch{Each: func(engine.Token) {
				if !slices.Contains(order, i) {
					order = append(order, i)
				}
			}}
			calls, want = append(calls, c), append(want, i)
		}
		carryOut(s, calls...)
		if !slices.Equal(order, want) {
			t.Errorf("prompts in steps of %d: served in the order %v", prefill, order)
		}
	}
}

// A long prompt does not hold back those who are already drawing.
func TestLongPromptHoldsNobodyBack(t *testing.T) {
	s := sampler(t, mixed(t, mix{kind: weights.Llama, Options: Options{Threads: 1}, prefill: 7}))
	drawn, before := 0, -1
	short := newCall(context.Background(), []int{5}, 1, engine.Params{MaxTokens: 60})
	short.watch = &engine.Watch{Each: func(engine.Token) { drawn++ }}
	long := newCall(context.Background(), make([]int, 140), 1, engine.Params{MaxTokens: 1})
	long.watch = &engine.Watch{Each: func(engine.Token) { before = drawn }}
	carryOut(s, short, long)
	if before < 140/7-1 {
		t.Errorf("%d tokens were drawn while a prompt of 140 was read in steps of 7", before)
	}
}

// Usage counts prompts, what the cache saved of them, and steps.
func TestUsage(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{Threads: 1})
	s := sampler(t, e)
	check := func(what string, want engine.Usage) {
		t.Helper()
		got := s.Usage()
		if got.Sampled > 0 && got.PrefillSeconds <= 0 || got.Decoded > 0 && got.DecodeSeconds <= 0 {
			t.Errorf("%s: no time in %+v", what, got)
		}
		got.PrefillSeconds, got.DecodeSeconds = 0, 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("nothing", engine.Usage{})
	rnd := model.NewRand(1)
	prompt := randomIDs(&rnd, 70, 37)
	p := engine.Params{MaxTokens: 5, Temperature: 1}
	turn := sample(t, s, prompt, 2, p)[0]
	check("two sequences", engine.Usage{Prompt: 140, Prefilled: 70, Sampled: 10, Decoded: 8, Steps: 5})
	sample(t, s, slices.Concat(prompt, turn.Tokens, []int{1, 2, 3}), 1, engine.Params{MaxTokens: 1})
	check("the next turn", engine.Usage{Prompt: 140 + 78, Prefilled: 70 + 4, Sampled: 11, Decoded: 8, Steps: 6})
	logprobs(t, e, [][]int{{1, 2, 3}, {1, 2, 4, 5}, {7}})
	check("logprobs", engine.Usage{Prompt: 218, Prefilled: 74, Sampled: 11, Decoded: 8, Steps: 6, Rows: 5, RowsComputed: 3})
	// New weights have a cache of their own, in the same memory.
	size := s.decoder.Cache().Tokens()
	forwardBackward(t, e, everything(37), goldenPPO)
	optimStep(t, e)
	s = sampler(t, e)
	sample(t, s, prompt, 2, p)
	check("after a step", engine.Usage{Prompt: 140, Prefilled: 70, Sampled: 10, Decoded: 8, Steps: 5})
	if got := s.decoder.Cache().Tokens(); got > size {
		t.Errorf("the cache holds %d tokens after a step, before %d", got, size)
	}
}
