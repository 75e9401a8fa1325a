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

const defaultCompletionTokens = 16 // sampled where a request does not say, as the protocol has it

// completion is a request for completions that has been understood.
type completionRequest struct {
	CompletionRequest
	h           *Handler
	sampling    sampling
	n           int // answers to each prompt
	prompts     [][]int
	generations []generation
	began       time.Time
	id          string
	scores      [][]float32 // of the prompts, where they are echoed with log-probabilities
}

func (h *Handler) completions(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	data, release, err := h.readBody(w, r)
	defer release()
	if err != nil {
		return err
	}
	c := &completionRequest{h: h, began: began, id: newID("cmpl-")}
	if err := c.parse(data); err != nil {
		return err
	}
	leave, err := h.admit(r, c.n*len(c.prompts))
	if err != nil {
		return err
	}
	defer leave()
	if c.Echo && c.Logprobs != nil {
		if c.scores, err = h.opts.Sampler.Logprobs(r.Context(), c.prompts); err != nil {
			return err
		}
	}
	if c.Stream {
		return c.stream(r.Context(), w)
	}
	return c.respond(r.Context(), w)
}

func (c *completionRequest) parse(data []byte) error {
	if err := decodeStrict(data, &c.CompletionRequest, ignoredFields, ""); err != nil {
		return err
	}
	if err := c.h.checkModel(c.Model); err != nil {
		return err
	}
	c.sampling = sampling{maxTokens: c.MaxTokens, tokensField: "max_tokens", temperature: c.Temperature, topP: c.TopP, seed: c.Seed, n: c.N, stop: c.Stop, Extensions: c.Extensions}
	p, n, err := c.sampling.params(c.h.chat.Stop())
	if err != nil {
		return err
	}
	if c.n = n; c.MaxTokens == nil {
		limit := defaultCompletionTokens
		c.sampling.maxTokens = &limit
	}
	switch {
	case c.Logprobs != nil && (*c.Logprobs < 0 || *c.Logprobs > maxTop):
		return badRequest("logprobs", "logprobs is %d: want 0 to %d", *c.Logprobs, maxTop)
	case c.Logprobs != nil && *c.Logprobs > 0 && c.Echo:
		return badRequest("logprobs", "logprobs is %d: with echo, only 0 is supported", *c.Logprobs)
	case c.StreamOptions != nil && !c.Stream:
		return badRequest("stream_options", "stream_options is given, but stream is not true")
	}
	if err := c.readPrompts(); err != nil {
		return err
	}
	for _, prompt := range c.prompts {
		g := generation{h: c.h, prompt: prompt, params: p, stopTexts: c.Stop, raw: true}
		if c.Logprobs != nil {
			g.top = *c.Logprobs
		}
		if !c.scoring() {
			if g.params.MaxTokens, err = c.sampling.tokenLimit(len(prompt), c.h.opts.Window, 0); err != nil {
				return err
			}
		}
		c.generations = append(c.generations, g)
	}
	return nil
}

// scoring: nothing is sampled, the prompts are only measured.
func (c *completionRequest) scoring() bool {
	return c.Echo && c.MaxTokens != nil && *c.MaxTokens == 0
}

func (c *completionRequest) readPrompts() error {
	tok := c.h.chat.Tokenizer()
	c.prompts = slices.Clone(c.Prompt.Tokens)
	for _, text := range c.Prompt.Texts {
		c.prompts = append(c.prompts, tok.Encode(text))
	}
	if len(c.prompts) == 0 {
		return badRequest("prompt", "prompt is missing")
	}
	for i, p := range c.prompts {
		switch {
		case len(p) == 0:
			return badRequest("prompt", "prompt %d has no tokens", i)
		case len(p) > c.h.opts.Window:
			return newAPIError(http.StatusBadRequest, "invalid_request_error", "prompt", codeWindow, fmt.Sprintf("prompt %d has %d tokens, the window %d", i, len(p), c.h.opts.Window))
		}
		for _, id := range p {
			if id < 0 || id >= tok.Size() {
				return badRequest("prompt", "prompt %d has the token %d: the vocabulary has %d", i, id, tok.Size())
			}
		}
	}
	return nil
}

// run hands out the news of all answers; those that are echoed begin with the
// prompt. It returns what was used.
func (c *completionRequest) run(ctx context.Context, each func(CompletionChoice) error) (Usage, error) {
	var u Usage
	offsets := make([]int, len(c.generations)*c.n)
	for i, g := range c.generations {
		u.PromptTokens += len(g.prompt)
		for k := range c.n {
			if err := c.preamble(i, i*c.n+k, &offsets[i*c.n+k], each); err != nil {
				return u, err
			}
		}
	}
	defer func() { c.h.metrics.tokens(u.PromptTokens, u.CompletionTokens) }()
	if c.scoring() {
		u.TotalTokens = u.PromptTokens
		return u, nil
	}
	err := generateAll(ctx, c.generations, c.n, func(x delta) error {
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
func (c *completionRequest) preamble(prompt, index int, offset *int, each func(CompletionChoice) error) error {
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
			appendToken(first.Logprobs, c.text(id), lp, nil, offset)
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

func (c *completionRequest) text(id int) string { return c.h.chat.Tokenizer().Decode([]int{id}, false) }

// choice turns news into a choice that tells what is new.
func (c *completionRequest) choice(x delta, offset *int) CompletionChoice {
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
	for _, t := range x.textTokens() {
		top := map[string]float32{}
		for _, other := range t.Top {
			if text := c.text(other.ID); top[text] == 0 { // of tokens with the same text, the likeliest
				top[text] = other.Logprob
			}
		}
		appendToken(out.Logprobs, c.text(t.ID), &t.Logprob, top, offset)
	}
	return out
}

func newTextLogprobs() *TextLogprobs {
	return &TextLogprobs{Tokens: []string{}, TokenLogprobs: []*float32{}, TopLogprobs: []map[string]float32{}, TextOffset: []int{}}
}

// appendToken adds a token that starts at *offset, and advances offset past it.
func appendToken(l *TextLogprobs, text string, logprob *float32, top map[string]float32, offset *int) {
	l.Tokens = append(l.Tokens, text)
	l.TokenLogprobs = append(l.TokenLogprobs, logprob)
	l.TopLogprobs = append(l.TopLogprobs, top)
	l.TextOffset = append(l.TextOffset, *offset)
	*offset += utf8.RuneCountInString(text)
}

// joinLogprobs appends the lists of m to those of l.
func joinLogprobs(l, m *TextLogprobs) *TextLogprobs {
	if l == nil || m == nil {
		return cmp.Or(l, m)
	}
	l.Tokens = append(l.Tokens, m.Tokens...)
	l.TokenLogprobs = append(l.TokenLogprobs, m.TokenLogprobs...)
	l.TopLogprobs = append(l.TopLogprobs, m.TopLogprobs...)
	l.TextOffset = append(l.TextOffset, m.TextOffset...)
	return l
}

func (c *completionRequest) response(choices []CompletionChoice) Completion {
	return Completion{ID: c.id, Object: "text_completion", Created: c.began.Unix(), Model: c.h.opts.Name, Choices: choices}
}

func (c *completionRequest) respond(ctx context.Context, w http.ResponseWriter) error {
	choices := make([]CompletionChoice, len(c.generations)*c.n)
	texts := make([]strings.Builder, len(choices))
	usage, err := c.run(ctx, func(x CompletionChoice) error {
		all := &choices[x.Index]
		texts[x.Index].WriteString(x.Text)
		all.Logprobs = joinLogprobs(all.Logprobs, x.Logprobs)
		all.Sampled = joinSampled(all.Sampled, x.Sampled)
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
	answer := c.response(choices)
	answer.Usage = &usage
	return writeJSON(w, answer)
}

func (c *completionRequest) stream(ctx context.Context, w http.ResponseWriter) error {
	out := newEventStream(w, c.h.opts.Timeouts.Write)
	usage, err := c.run(ctx, func(x CompletionChoice) error { return out.send(c.response([]CompletionChoice{x})) })
	if err != nil {
		return err
	}
	if c.StreamOptions != nil && c.StreamOptions.IncludeUsage {
		last := c.response([]CompletionChoice{})
		last.Usage = &usage
		if err := out.send(last); err != nil {
			return err
		}
	}
	return out.event("[DONE]")
}
