package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"envace/internal/openai"
	"envace/internal/openai/client"
)

// heard is a token with its log-probability and the most likely alternatives.
type heard struct {
	text    string
	logprob float64
	others  map[string]float64
}

// TestLlamaCppGreedyTexts compares greedy completions of both engines. With equal float32
// weights they differ only where two tokens are nearly tied, and common tokens have equal
// log-probabilities. With the quantised file, llama.cpp also quantises activations to 8 bits.
func TestLlamaCppGreedyTexts(t *testing.T) {
	server := os.Getenv("ENVACE_LLAMACPP")
	if server == "" {
		t.Skip("ENVACE_LLAMACPP is not set: bench/peers/llamacpp.sh sets it")
	}
	theirs, _, err := client.ParseTarget(server)
	if err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("ENVACE_SMOLLM2")
	if path == "" {
		t.Fatal("ENVACE_SMOLLM2 is not set")
	}
	ours, _ := serveModel(t, path)
	ours += "/v1"
	prompts := []string{
		"What is the capital of France?", "Write a short poem about the sea.", "Explain in two sentences how a bicycle stays upright.",
		"List three uses of salt.", "Who wrote Hamlet, and when?", "def fibonacci(n):", "The order was placed on Monday, and", "Once upon a time there was a small",
	}
	for _, tt := range []struct {
		model    string
		gap, off float64 // most that may lie between two tokens where they part; and between log-probabilities of tokens in common
	}{{"float32", 0.01, 0.02}, {"plain", 0.5, 0.5}} {
		t.Run(tt.model, func(t *testing.T) {
			same, tokens, off := 0, 0, 0.0
			for i, p := range prompts {
				raw := i >= len(prompts)-3
				a, b := tell(t, ours, "m", p, raw), tell(t, theirs, tt.model, p, raw)
				at := 0
				for ; at < min(len(a), len(b)) && a[at].text == b[at].text; at++ {
					off = max(off, math.Abs(a[at].logprob-b[at].logprob))
				}
				tokens += at
				if at == len(a) && at == len(b) {
					same++
					continue
				}
				if at == len(a) || at == len(b) {
					t.Logf("%q: %d tokens in common, then one of both ends", p, at)
					continue
				}
				here, there := gap(a[at], b[at].text), gap(b[at], a[at].text)
				t.Logf("%q: %d tokens in common, then %q or %q, apart by %.3g here and %.3g there", p, at, a[at].text, b[at].text, here, there)
				if here > tt.gap && there > tt.gap {
					t.Errorf("%q: no tie", p)
				}
			}
			t.Logf("%s: %d of %d texts are equal; %d tokens in common, log-probabilities apart by at most %.2g", tt.model, same, len(prompts), tokens, off)
			if off > tt.off {
				t.Errorf("log-probabilities are apart by %g", off)
			}
		})
	}
}

// gap is by how much the sampled token is more likely than another.
func gap(taken heard, other string) float64 {
	if lp, ok := taken.others[other]; ok {
		return taken.logprob - lp
	}
	return math.Inf(1)
}

// tell completes a prompt with 32 tokens, without llama.cpp's repetition penalty.
func tell(t *testing.T, base, model, prompt string, raw bool) []heard {
	t.Helper()
	more := ""
	if model != "m" {
		more = `,"repeat_penalty":1`
	}
	quoted, _ := json.Marshal(prompt)
	if raw {
		_, body := post(t, base+"/completions", fmt.Sprintf(`{"model":%q,"prompt":%s,"max_tokens":32,"temperature":0,"logprobs":5%s}`, model, quoted, more))
		return completed(t, body)
	}
	_, body := post(t, base+"/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%s}],"max_tokens":32,"temperature":0,"logprobs":true,"top_logprobs":5%s}`, model, quoted, more))
	var r openai.ChatResponse
	if json.Unmarshal([]byte(body), &r) != nil || len(r.Choices) != 1 || r.Choices[0].Logprobs == nil {
		t.Fatalf("%s: %.500s", base, body)
	}
	var out []heard
	for _, c := range r.Choices[0].Logprobs.Content {
		h := heard{c.Token, float64(c.Logprob), map[string]float64{}}
		for _, o := range c.Top {
			h.others[o.Token] = float64(o.Logprob)
		}
		out = append(out, h)
	}
	return out
}

func completed(t *testing.T, body string) (out []heard) {
	t.Helper()
	var r openai.Completion
	if json.Unmarshal([]byte(body), &r) != nil || len(r.Choices) != 1 || r.Choices[0].Logprobs == nil {
		t.Fatalf("%.500s", body)
	}
	l := r.Choices[0].Logprobs
	for i, text := range l.Tokens {
		h := heard{text, float64(*l.TokenLogprobs[i]), map[string]float64{}}
		for o, lp := range l.TopLogprobs[i] {
			h.others[o] = float64(lp)
		}
		out = append(out, h)
	}
	if got := strings.Join(l.Tokens, ""); got != r.Choices[0].Text {
		t.Errorf("tokens %q, text %q", got, r.Choices[0].Text)
	}
	return out
}
