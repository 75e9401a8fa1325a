package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"envace/engine"
	"envace/internal/openai"
)

// Offsets count the characters of the text as it stands, also where tokens split them.
func TestTextOffsets(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	url := served(t, p, nil)
	offsets := func(prompt, answer string) (list []int, text string, tokens []string) {
		p.text = answer
		_, body := post(t, url+"/v1/completions", fmt.Sprintf(`{"model":"m","prompt":%q,"max_tokens":50,"echo":true,"logprobs":0}`, prompt))
		var r openai.Completion
		if err := json.Unmarshal([]byte(body), &r); err != nil || len(r.Choices) != 1 {
			t.Fatal(body)
		}
		return r.Choices[0].Logprobs.TextOffset, r.Choices[0].Text, r.Choices[0].Logprobs.Tokens
	}
	for _, tt := range []struct{ prompt, answer string }{
		{"안녕", "한국 x"}, {"a", "é😀b"}, {"日本", "語"}, {"x", "a\u0301z"}, {"ab", "cd"},
	} {
		for p.seed = range uint64(3) {
			list, text, tokens := offsets(tt.prompt, tt.answer)
			if text != tt.prompt+tt.answer || len(list) != len(tokens) {
				t.Fatalf("%q: %v %v", text, list, tokens)
			}
			runes := []rune(text)
			if last := list[len(list)-1]; last != len(runes)-1 && p.seed == 0 {
				t.Errorf("%q: the last of %v is at %d", text, list, last)
			}
			for i, token := range tokens {
				at := list[i]
				if at < 0 || at >= len(runes) || i > 0 && at < list[i-1] || !strings.Contains(token, "\uFFFD") && !strings.HasPrefix(string(runes[at:]), token) {
					t.Errorf("%q: token %q at %d of %v", text, token, at, list)
				}
			}
		}
	}
}

// likely emits one token with given alternatives.
type likely struct {
	*fakeSampler
	top []engine.Likely
}

func (l *likely) Stream(_ context.Context, _ []int, p engine.Params, w engine.Watch) (engine.StopReason, error) {
	w.Each(engine.Token{ID: l.top[0].ID, Top: l.top})
	return engine.StopLength, nil
}

// Of alternatives with the same text the most likely one counts, even with certainty.
func TestAlternativesOfOneText(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	var split []int // tokens that are parts of characters: the same text U+FFFD
	for id := range p.chat.Tokenizer().Size() {
		if p.chat.Tokenizer().Decode([]int{id}, false) == "\uFFFD" {
			split = append(split, id)
		}
	}
	for _, tt := range []struct{ first, second, want float32 }{{0, -20, 0}, {-20, 0, 0}, {-1, -2, -1}, {-3, -2, -2}} {
		l := &likely{p, []engine.Likely{{ID: split[0], Logprob: tt.first}, {ID: split[1], Logprob: tt.second}}}
		_, body := post(t, served(t, p, func(o *Options) { o.Sampler = l })+"/v1/completions", `{"model":"m","prompt":"a","max_tokens":1,"logprobs":2}`)
		var r openai.Completion
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(body)
		}
		if got, ok := r.Choices[0].Logprobs.TopLogprobs[0]["\uFFFD"]; !ok || got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
