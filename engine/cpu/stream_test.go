package cpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"envace/engine"
	"envace/internal/weights"
)

// A watched sequence is the one that Sample draws, bit for bit, told token by token.
func TestStreamEqualsSample(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{}))
	for _, p := range []engine.Params{
		{MaxTokens: 12},
		{MaxTokens: 12, Temperature: 0.8, TopP: 0.9, Seed: 7},
		{MaxTokens: 30, Temperature: 1, Stop: []int{3, 4, 5, 6, 7, 8}, Seed: 9},
	} {
		want := sample(t, s, []int{1, 2, 3}, 1, p)[0]
		for _, w := range []engine.Watch{{}, {Top: 5}, {Constraint: all{}}, {Constraint: all{37}, Top: 40}} {
			var got engine.Sequence
			w.Each = func(tok engine.Token) {
				got.Tokens = append(got.Tokens, tok.ID)
				got.Logprobs = append(got.Logprobs, tok.Logprob)
				got.SampleLogprobs = append(got.SampleLogprobs, tok.SampleLogprob)
				if n := min(w.Top, 37); len(tok.Top) != n {
					t.Errorf("%d tokens are named as the likeliest, want %d", len(tok.Top), n)
				}
				checkTop(t, tok)
			}
			var err error
			if got.Stop, err = s.Stream(context.Background(), []int{1, 2, 3}, p, w); err != nil {
				t.Fatal(err)
			}
			if got.Stop != want.Stop || !slices.Equal(got.Tokens, want.Tokens) || !slices.Equal(got.Logprobs, want.Logprobs) ||
				!slices.Equal(got.SampleLogprobs, want.SampleLogprobs) {
				t.Errorf("%+v\nstreams %+v\nsamples %+v", p, got, want)
			}
		}
	}
}

func checkTop(t *testing.T, tok engine.Token) {
	t.Helper()
	for i, l := range tok.Top {
		if i > 0 && l.Logprob > tok.Top[i-1].Logprob {
			t.Errorf("likeliest tokens out of order: %v", tok.Top)
		}
		if l.ID == tok.ID && l.Logprob != tok.Logprob {
			t.Errorf("token %d has log-probability %g and %g", tok.ID, tok.Logprob, l.Logprob)
		}
	}
}

// all is a constraint that allows every token of a vocabulary, by a mask or, at 0, nil.
type all [1]int

func (a all) Allow([]int) []uint64 {
	if a[0] == 0 {
		return nil
	}
	return []uint64{1<<a[0] - 1}
}

// stairs allows a token and the next one by turns; after its end, none.
type stairs struct{ from, steps int }

func (s stairs) Allow(drawn []int) []uint64 {
	if len(drawn) == s.steps {
		return []uint64{0}
	}
	return []uint64{3 << (s.from + len(drawn))}
}

func TestStreamObeysConstraint(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{}))
	for _, p := range []engine.Params{{}, {Temperature: 1, Seed: 4}, {Temperature: 0.5, TopK: 3, TopP: 0.7, MinP: 0.1}, {Temperature: 1e-30}} {
		var got []int
		free := sample(t, s, []int{1, 2, 3}, 1, engine.Params{MaxTokens: 3})
		_, err := s.Stream(context.Background(), []int{1, 2, 3}, p, engine.Watch{Constraint: stairs{10, 8}, Each: func(tok engine.Token) {
			if l := float64(tok.Logprob); math.IsNaN(l) || math.IsInf(l, 0) {
				t.Errorf("log-probability %g", tok.Logprob)
			}
			got = append(got, tok.ID)
		}})
		if !errors.Is(err, engine.ErrConstraint) {
			t.Errorf("where nothing is allowed: error %v", err)
		}
		for i, id := range got {
			if id != 10+i && id != 11+i {
				t.Errorf("token %d is %d, which the constraint does not allow", i, id)
			}
		}
		if len(got) != 8 {
			t.Errorf("%d tokens, want 8", len(got))
		}
		if again := sample(t, s, []int{1, 2, 3}, 1, engine.Params{MaxTokens: 3}); !slices.Equal(free[0].Logprobs, again[0].Logprobs) {
			t.Error("a constraint changed what others draw")
		}
	}
}
