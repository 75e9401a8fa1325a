package openai

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const completionTokens = 16 // sampled where a request does not say, as the protocol has it

// completion is a request for completions that has been understood.
type completion struct {
	CompletionRequest
	h       *Handler
	draw    draw
	n       int // answers to each prompt
	prompts [][]int
	gens    []generation
	began   time.Time
	id      string
	scores  [][]float32 // of the prompts, where they are echoed with log-probabilities
}

func (h *Handler) completions(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	data, release, err := h.readBody(w, r)
	defer release()
	if err != nil {
		return err
	}
	c := &completion{h: h, began: began, id: newID("cmpl-")}
	if err := c.understand(data); err != nil {
		return err
	}
	leave, err := h.enter(r, c.n*len(c.prompts))
	if err != nil {
		return err
	}
	defer leave()
	if c.Echo && c.Logprobs != nil {
		if c.scores, err = h.o.Sampler.Logprobs(r.Context(), c.prompts); err != nil {
			return err
		}
	}
	if c.Stream {
		return c.stream(r.Context(), w)
	}
	return c.whole(r.Context(), w)
}

func (c *completion) understand(data []byte) error {
	if err := decodeStrict(data, &c.CompletionRequest, withoutEffect, ""); err != nil {
		return err
	}
	if err := c.h.named(c.Model); err != nil {
		return err
	}
	c.draw = draw{maxTokens: c.MaxTokens, tokensField: "max_tokens", temperature: c.Temperature, topP: c.TopP, seed: c.Seed, n: c.N, stop: c.Stop, Extensions: c.Extensions}
	p, n, err := c.draw.params(c.h.chat.Stop())
	if err != nil {
		return err
	}
	if c.n = n; c.MaxTokens == nil {
		limit := completionTokens
		c.draw.maxTokens = &limit
	}
	switch {
	case c.Logprobs != nil && (*c.Logprobs < 0 || *c.Logprobs > maxTop):
		return refuse("logprobs", "logprobs is %d: want 0 to %d", *c.Logprobs, maxTop)
	case c.Logprobs != nil && *c.Logprobs > 0 && c.Echo:
		return refuse("logprobs", "logprobs is %d: with echo, only 0 is supported", *c.Logprobs)
	case c.StreamOptions != nil && !c.Stream:
		return refuse("stream_options", "stream_options is given, but stream is not true")
	}
	if err := c.readPrompts(); err != nil {
		return err
	}
	for _, prompt := range c.prompts {
		g := generation{h: c.h, prompt: prompt, params: p, stops: c.Stop, raw: true}
		if c.Logprobs != nil {
			g.top = *c.Logprobs
		}
		if !c.scoring() {
			if g.params.MaxTokens, err = c.draw.room(len(prompt), c.h.o.Window, 0); err != nil {
				return err
			}
		}
		c.gens = append(c.gens, g)
	}
	return nil
}

// scoring: nothing is sampled, the prompts are only measured.
func (c *completion) scoring() bool {
	return c.Echo && c.MaxTokens != nil && *c.MaxTokens == 0
}

func (c *completion) readPrompts() error {
	tok := c.h.chat.Tokenizer()
	c.prompts = slices.Clone(c.Prompt.Tokens)
	for _, text := range c.Prompt.Texts {
		c.prompts = append(c.prompts, tok.Encode(text))
	}
	if len(c.prompts) == 0 {
		return refuse("prompt", "prompt is missing")
	}
	for i, p := range c.prompts {
		switch {
		case len(p) == 0:
			return refuse("prompt", "prompt %d has no tokens", i)
		case len(p) > c.h.o.Window:
			return newFault(http.StatusBadRequest, "invalid_request_error", "prompt", codeWindow, fmt.Sprintf("prompt %d has %d tokens, the window %d", i, len(p), c.h.o.Window))
		}
		for _, id := range p {
			if id < 0 || id >= tok.Size() {
				return refuse("prompt", "prompt %d has the token %d: the vocabulary has %d", i, id, tok.Size())
			}
		}
	}
	return nil
}

// run hands out the news of all answers; those that are echoed begin with the
// prompt. It returns what was used.
func (c *completion) run(ctx context.Context, each func(CompletionChoice) error) (Usage, error) {
	var u Usage
	offsets := make([]int, len(c.gens)*c.n)
	for i, g := range c.gens {
		u.PromptTokens += len(g.prompt)
		for k := range c.n {
			if err := c.begin(i, i*c.n+k, &offsets[i*c.n+k], each); err != nil {
				return u, err
			}
		}
	}
	defer func() { c.h.metrics.tokens(u.PromptTokens, u.CompletionTokens) }()
	if c.scoring() {
		u.TotalTokens = u.PromptTokens
		return u, nil
	}
	err := all(ctx, c.gens, c.n, func(x news) error {
		if u.CompletionTokens == 0 && len(x.tokens) > 0 {
			c.h.metrics.firstToken(time.Since(c.began))
		}
		u.CompletionTokens += len(x.tokens)
		return each(c.choice(x, &offsets[x.index]))
	})
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u, err
}

// begin tells what comes before anything is sampled.
func (c *completion) begin(prompt, index int, offset *int, each func(CompletionChoice) error) error {
	first := CompletionChoice{Index: index}
	if c.ReturnTokenIDs {
		first.PromptTokenIDs = c.prompts[prompt]
	}
	if c.Echo {
		first.Text = c.h.chat.Text(c.prompts[prompt])
	}
	if c.Echo && c.Logprobs != nil {
		first.Logprobs = newTextLogprobs()
		for i, id := range c.prompts[prompt] {
			var lp *float32
			if i > 0 {
				lp = &c.scores[prompt][i-1]
			}
			first.Logprobs.add(c.text(id), lp, nil, offset)
		}
	}
	if c.scoring() {
		stop := finishLength
		first.FinishReason = &stop
	}
	if first.Text == "" && first.PromptTokenIDs == nil && first.FinishReason == nil {
		return nil
	}
	*offset = utf8.RuneCountInString(first.Text)
	return each(first)
}

func (c *completion) text(id int) string { return c.h.chat.Tokenizer().Decode([]int{id}, false) }

// choice turns news into a choice that tells what is new.
func (c *completion) choice(x news, offset *int) CompletionChoice {
	out := CompletionChoice{Index: x.index, Text: x.content}
	if x.finish != "" {
		out.FinishReason = &x.finish
	}
	if c.ReturnTokenIDs {
		out.Sampled = sampledOf(x.tokens)
	}
	if c.Logprobs == nil || len(x.tokens) == 0 {
		return out
	}
	out.Logprobs = newTextLogprobs()
	for _, t := range x.spoken() {
		top := map[string]float32{}
		for _, other := range t.Top {
			if text := c.text(other.ID); top[text] == 0 { // of tokens with the same text, the likeliest
				top[text] = other.Logprob
			}
		}
		out.Logprobs.add(c.text(t.ID), &t.Logprob, top, offset)
	}
	return out
}

func newTextLogprobs() *TextLogprobs {
	return &TextLogprobs{Tokens: []string{}, TokenLogprobs: []*float32{}, TopLogprobs: []map[string]float32{}, TextOffset: []int{}}
}

func (l *TextLogprobs) add(text string, logprob *float32, top map[string]float32, offset *int) {
	l.Tokens = append(l.Tokens, text)
	l.TokenLogprobs = append(l.TokenLogprobs, logprob)
	l.TopLogprobs = append(l.TopLogprobs, top)
	l.TextOffset = append(l.TextOffset, *offset)
	*offset += utf8.RuneCountInString(text)
}

// join appends the lists of m.
func (l *TextLogprobs) join(m *TextLogprobs) *TextLogprobs {
	if l == nil || m == nil {
		return cmp.Or(l, m)
	}
	l.Tokens = append(l.Tokens, m.Tokens...)
	l.TokenLogprobs = append(l.TokenLogprobs, m.TokenLogprobs...)
	l.TopLogprobs = append(l.TopLogprobs, m.TopLogprobs...)
	l.TextOffset = append(l.TextOffset, m.TextOffset...)
	return l
}

func (c *completion) body(choices []CompletionChoice) Completion {
	return Completion{ID: c.id, Object: "text_completion", Created: c.began.Unix(), Model: c.h.o.Name, Choices: choices}
}

func (c *completion) whole(ctx context.Context, w http.ResponseWriter) error {
	choices := make([]CompletionChoice, len(c.gens)*c.n)
	texts := make([]strings.Builder, len(choices))
	usage, err := c.run(ctx, func(x CompletionChoice) error {
		all := &choices[x.Index]
		texts[x.Index].WriteString(x.Text)
		all.Logprobs = all.Logprobs.join(x.Logprobs)
		all.Sampled = all.Sampled.with(x.Sampled)
		all.FinishReason = x.FinishReason
		if x.PromptTokenIDs != nil {
			all.PromptTokenIDs = x.PromptTokenIDs
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range choices {
		choices[i].Index, choices[i].Text = i, texts[i].String()
	}
	answer := c.body(choices)
	answer.Usage = &usage
	return reply200(w, answer)
}

func (c *completion) stream(ctx context.Context, w http.ResponseWriter) error {
	out := newStream(w, c.h.o.Times.Unread)
	usage, err := c.run(ctx, func(x CompletionChoice) error { return out.send(c.body([]CompletionChoice{x})) })
	if err != nil {
		return err
	}
	if c.StreamOptions != nil && c.StreamOptions.IncludeUsage {
		last := c.body([]CompletionChoice{})
		last.Usage = &usage
		if err := out.send(last); err != nil {
			return err
		}
	}
	return out.line("[DONE]")
}
