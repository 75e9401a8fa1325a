package cpu

import (
	"context"
	"testing"

	"envace/engine"
	"envace/internal/weights"
)

// The longest and the shortest of everything.
func TestEdges(t *testing.T) {
	ctx := context.Background()
	e := lively(t, weights.Qwen3, Options{})
	s := sampler(t, e)
	window := e.Window()
	full := make([]int, window)
	for i := range full {
		full[i] = i % 37
	}
	for _, tt := range []struct {
		name   string
		prompt []int
		n, max int
		tokens int
		stop   engine.StopReason
	}{
		{"a prompt that leaves one place", full[:window-1], 1, 0, 1, engine.StopWindow},
		{"a prompt that leaves one place, for more", full[:window-1], 3, 9, 1, engine.StopWindow},
		{"one place, one token", full[:window-1], 2, 1, 1, engine.StopLength},
		{"one token after one", full[:1], 1, 1, 1, engine.StopLength},
		{"all of the window", full[:1], 1, 0, window - 1, engine.StopWindow},
	} {
		for i, q := range sample(t, s, tt.prompt, tt.n, engine.Params{MaxTokens: tt.max, Temperature: 1}) {
			if len(q.Tokens) != tt.tokens || q.Stop != tt.stop {
				t.Errorf("%s: sequence %d has %d tokens and ends by %q, want %d and %q", tt.name, i, len(q.Tokens), q.Stop, tt.tokens, tt.stop)
			}
		}
	}
	one := func(n int) engine.Datum {
		d := engine.Datum{Input: full[:n], Target: full[:n], Weight: make([]float32, n)}
		d.Weight[n-1] = 1
		return d
	}
	whole := forwardBackward(t, e, []engine.Datum{one(1), one(window), one(1)}, engine.Loss{Objective: engine.CrossEntropy})
	if whole.TokensComputed != window || whole.Logprobs[0][0] != whole.Logprobs[2][0] {
		t.Errorf("rows of 1 and %d tokens: %d computed, log-probabilities %g and %g", window, whole.TokensComputed, whole.Logprobs[0][0], whole.Logprobs[2][0])
	}
	lps, err := s.Logprobs(ctx, [][]int{full, full[:2], full[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if len(lps[0]) != window-1 || len(lps[1]) != 1 || lps[1][0] != lps[0][0] || len(lps[2]) != 0 {
		t.Errorf("log-probabilities of rows of %d, 2 and 1 tokens: %d, %d, %d", window, len(lps[0]), len(lps[1]), len(lps[2]))
	}
	if none, err := s.Logprobs(ctx, nil); err != nil || len(none) != 0 {
		t.Errorf("log-probabilities of no rows: %v, %v", none, err)
	}
}
