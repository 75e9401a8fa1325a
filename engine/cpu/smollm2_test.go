package cpu

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"envace/engine"
	"envace/internal/oracle"
)

// TestGoldenSmolLM2 compares a real model with PyTorch. $ENVACE_SMOLLM2 is the
// path of SmolLM2-135M-Instruct in GGUF.
func TestGoldenSmolLM2(t *testing.T) {
	path := os.Getenv("ENVACE_SMOLLM2")
	if path == "" {
		oracle.Missing(t, "$ENVACE_SMOLLM2")
	}
	data, err := os.ReadFile(oracle.Golden(t, "smollm2/greedy_fp32.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Prompt   []int     `json:"prompt_ids"`
		Greedy   []int     `json:"greedy_ids"`
		TopIDs   []int     `json:"last_logits_top10_ids"`
		Logits   []float32 `json:"last_logits_top10"`
		Logprobs []float32 `json:"last_logprobs_top10"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	e := open(t, path, Options{LoRA: &LoRA{Rank: 1, Alpha: 1}})
	s := sampler(t, e)
	for i, c := range cases {
		got := sample(t, s, c.Prompt, 1, engine.Params{MaxTokens: len(c.Greedy), Stop: e.Config().EOS})[0]
		if !slices.Equal(got.Tokens, c.Greedy) {
			t.Errorf("case %d: greedy tokens %v, want %v", i, got.Tokens, c.Greedy)
		}
		var rows [][]int
		for _, id := range c.TopIDs {
			rows = append(rows, append(slices.Clone(c.Prompt), id))
		}
		lps, err := s.Logprobs(context.Background(), rows)
		if err != nil {
			t.Fatal(err)
		}
		var last []float32
		for _, lp := range lps {
			last = append(last, lp[len(lp)-1])
		}
		oracle.Near(t, "log-probabilities", last, c.Logprobs, 1e-3)
		for j := range last {
			last[j] += c.Logits[0] - c.Logprobs[0]
		}
		oracle.Near(t, "logits", last, c.Logits, 1e-4)
	}
}
