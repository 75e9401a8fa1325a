package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"envace/internal/openai"
)

const defaultCompletionTokens = 16 // as OpenAI has it

// completionRequest is a request for text completions, parsed and validated.
type completionRequest struct {
	openai.CompletionRequest
	h           *Handler
	sampling    sampling
	n           int // completions per prompt
	prompts     [][]int
	generations []generation
	start       time.Time
	id          string
	scores      [][]float32 // log-probabilities of the prompts, if they are echoed
}

func (h *Handler) completions(w http.ResponseWriter, r *http.Request) error {
	start := time.Now()
	data, releaseBody, err := h.readBody(w, r)
	defer releaseBody()
	if err != nil {
		return err
	}
	c := &completionRequest{h: h, start: start, id: newID("cmpl-")}
	if err := c.parse(data); err != nil {
		return err
	}
	releaseSlots, err := h.admit(r, c.n*len(c.prompts))
	if err != nil {
		return err
	}
	defer releaseSlots()
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
		return badRequest("logprobs", "logprobs is %d: only 0 is supported with echo", *c.Logprobs)
	case c.StreamOptions != nil && !c.Stream:
		return badRequest("stream_options", "stream_options requires stream to be true")
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

// scoring reports whether the request only asks for the log-probabilities of prompts.
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
			return badRequest("prompt", "prompt %d is empty", i)
		case len(p) > c.h.opts.Window:
			return newAPIError(http.StatusBadRequest, "invalid_request_error", "prompt", codeWindow, fmt.Sprintf("prompt %d has %d tokens, which exceeds the context window of %d", i, len(p), c.h.opts.Window))
		}
		for _, id := range p {
			if id < 0 || id >= c.h.chat.Vocabulary() {
				return badRequest("prompt", "prompt %d contains token %d, which is outside the vocabulary of %d", i, id, c.h.chat.Vocabulary())
			}
		}
	}
	return nil
}

// run generates the completions and calls each with every delta, starting with the
// echoed prompts.
func (c *completionRequest) run(ctx context.Context, each func(openai.CompletionChoice) error) (openai.Usage, error) {
	var u openai.Usage
	offsets := make([]offset, len(c.generations)*c.n)
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
	err := generateAll(ctx, c.generations, c.n, func(d delta) error {
		if u.CompletionTokens == 0 && len(d.tokens) > 0 {
			c.h.metrics.firstToken(time.Since(c.start))
		}
		u.CompletionTokens += len(d.tokens)
		return each(c.choice(d, &offsets[d.index]))
	})
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u, err
}

// preamble is the delta of a choice before anything is sampled: the echoed prompt.
func (c *completionRequest) preamble(prompt, index int, at *offset, each func(openai.CompletionChoice) error) error {
	first := openai.CompletionChoice{Index: index}
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
			appendToken(first.Logprobs, c.text(id), lp, nil, at.next(c.h.chat.Tokenizer().Bytes(id)))
		}
	}
	if c.scoring() {
		stop := finishLength
		first.FinishReason = &stop
	}
	if first.Text == "" && first.PromptTokenIDs == nil && first.FinishReason == nil {
		return nil
	}
	*at = offset{count: utf8.RuneCountInString(first.Text)}
	return each(first)
}

func (c *completionRequest) text(id int) string { return c.h.chat.Tokenizer().Decode([]int{id}, false) }

// choice converts a delta.
func (c *completionRequest) choice(d delta, at *offset) openai.CompletionChoice {
	out := openai.CompletionChoice{Index: d.index, Text: d.content}
	if d.finish != "" {
		out.FinishReason = &d.finish
	}
	if c.ReturnTokenIDs {
		out.Sampled = sampledOf(d.tokens)
	}
	if c.Logprobs == nil || len(d.tokens) == 0 {
		return out
	}
	out.Logprobs = newTextLogprobs()
	for _, t := range d.textTokens() {
		top := map[string]float32{}
		for _, other := range t.Top {
			text := c.text(other.ID)
			if most, ok := top[text]; !ok || other.Logprob > most { // of tokens with equal text
				top[text] = other.Logprob
			}
		}
		appendToken(out.Logprobs, c.text(t.ID), &t.Logprob, top, at.next(c.h.chat.Tokenizer().Bytes(t.ID)))
	}
	return out
}

func newTextLogprobs() *openai.TextLogprobs {
	return &openai.TextLogprobs{Tokens: []string{}, TokenLogprobs: []*float32{}, TopLogprobs: []map[string]float32{}, TextOffset: []int{}}
}

// appendToken adds a token that starts at the character offset.
func appendToken(l *openai.TextLogprobs, text string, logprob *float32, top map[string]float32, offset int) {
	l.Tokens = append(l.Tokens, text)
	l.TokenLogprobs = append(l.TokenLogprobs, logprob)
	l.TopLogprobs = append(l.TopLogprobs, top)
	l.TextOffset = append(l.TextOffset, offset)
}

// joinLogprobs appends the lists of m to those of l.
func joinLogprobs(l, m *openai.TextLogprobs) *openai.TextLogprobs {
	if l == nil || m == nil {
		return cmp.Or(l, m)
	}
	l.Tokens = append(l.Tokens, m.Tokens...)
	l.TokenLogprobs = append(l.TokenLogprobs, m.TokenLogprobs...)
	l.TopLogprobs = append(l.TopLogprobs, m.TopLogprobs...)
	l.TextOffset = append(l.TextOffset, m.TextOffset...)
	return l
}

func (c *completionRequest) response(choices []openai.CompletionChoice) openai.Completion {
	return openai.Completion{ID: c.id, Object: "text_completion", Created: c.start.Unix(), Model: c.h.opts.Name, Choices: choices}
}

func (c *completionRequest) respond(ctx context.Context, w http.ResponseWriter) error {
	choices := make([]openai.CompletionChoice, len(c.generations)*c.n)
	texts := make([]strings.Builder, len(choices))
	usage, err := c.run(ctx, func(x openai.CompletionChoice) error {
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
	body := c.response(choices)
	body.Usage = &usage
	return writeJSON(w, body)
}

func (c *completionRequest) stream(ctx context.Context, w http.ResponseWriter) error {
	out := newEventStream(w, c.h.opts.Timeouts.Write)
	usage, err := c.run(ctx, func(x openai.CompletionChoice) error { return out.send(c.response([]openai.CompletionChoice{x})) })
	if err != nil {
		return err
	}
	if c.StreamOptions != nil && c.StreamOptions.IncludeUsage {
		last := c.response([]openai.CompletionChoice{})
		last.Usage = &usage
		if err := out.send(last); err != nil {
			return err
		}
	}
	return out.event("[DONE]")
}
