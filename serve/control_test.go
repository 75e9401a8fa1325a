package serve

import (
	"context"
	"testing"

	"envace/engine"
)

// A control token in mid-answer ends the answer: nothing of an invented turn is shown,
// parsed or called.
func TestControlTokens(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	id, ok := p.chat.Tokenizer().ID("<|im_start|>")
	if !ok {
		t.Fatal("no control token")
	}
	for _, tt := range []struct {
		name, before, after string
		content             string
		calls               int
	}{
		{"in text", "Hello", "user\nHow?", "Hello", 0},
		{"before a call", "Hello", "assistant\n" + aCall, "Hello", 0},
		{"after a call", aCall, "user\n" + aCall, "", 1},
		{"in a call", `<tool_call>{"name": "f", "arguments": {"a": "`, `x"}}</tool_call>`, `<tool_call>{"name": "f", "arguments": {"a": "`, 0},
		{"at the start", "", aCall, "", 0},
		{"written as text", "a <|im_", "start|> b", "a <|im_", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &control{fakeSampler: p, before: tt.before, after: tt.after, id: id}
			url := served(t, p, func(o *Options) { o.Sampler = c })
			for kind, got := range both(t, url, tools) {
				want := finishStop
				if tt.calls > 0 {
					want = finishCalls
				}
				if got.Message.Text() != tt.content || len(got.Message.ToolCalls) != tt.calls || got.FinishReason != want {
					t.Errorf("%s: %s", kind, asJSON(got))
				}
			}
		})
	}
	p.text = "a <|im_start|> b" // letter by letter
	for kind, got := range both(t, served(t, p, nil), tools) {
		if got.Message.Text() != p.text {
			t.Errorf("%s: %s", kind, asJSON(got))
		}
	}
}

// control emits a token between two texts, and goes on whatever the stop tokens.
type control struct {
	*fakeSampler
	before, after string
	id            int
}

func (c *control) Stream(_ context.Context, _ []int, _ engine.Params, w engine.Watch) (engine.StopReason, error) {
	c.text, c.end = c.before, false
	ids := append(c.tokens(), c.id)
	c.text, c.end = c.after, true
	for _, id := range append(ids, c.tokens()...) {
		w.Each(engine.Token{ID: id})
	}
	return engine.StopToken, nil
}
