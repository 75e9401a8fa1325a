package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/internal/guide"
	"envace/internal/token"
	"envace/render"
)

// chatBody is a ChatRequest whose messages have yet to be read.
type chatBody struct {
	ChatRequest
	Messages []json.RawMessage `json:"messages"`
}

// talk is a chat request that has been understood.
type chatRequest struct {
	chatBody
	msgs     []chat.Message
	tools    []chat.Function
	sampling sampling
	n        int
	params   engine.Params
	top      int            // alternatives wanted; below 0, no log-probabilities at all
	grammar  *guide.Grammar // that the answer must have; nil is any
}

func (h *Handler) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	data, release, err := h.readBody(w, r)
	defer release()
	if err != nil {
		return err
	}
	t, err := h.parseChat(data)
	if err != nil {
		return err
	}
	leave, err := h.admit(r, t.n)
	if err != nil {
		return err
	}
	defer leave()
	g, err := h.prepare(t)
	if err != nil {
		return err
	}
	out := &chatResponse{h: h, req: t, gen: g, began: began, id: newID("chatcmpl-"), created: began.Unix()}
	if t.Stream {
		return out.stream(r, w)
	}
	return out.respond(r, w)
}

// understand reads a request and refuses what cannot be done.
func (h *Handler) parseChat(data []byte) (t *chatRequest, err error) {
	t = &chatRequest{}
	if err := decodeStrict(data, &t.chatBody, ignoredFields, ""); err != nil {
		return nil, err
	}
	if err := h.checkModel(t.Model); err != nil {
		return nil, err
	}
	if t.msgs, err = parseMessages(t.Messages); err != nil {
		return nil, err
	}
	if t.tools, err = parseTools(t.Tools); err != nil {
		return nil, err
	}
	t.sampling = sampling{maxTokens: t.MaxCompletionTokens, tokensField: "max_completion_tokens", temperature: t.Temperature, topP: t.TopP,
		seed: t.Seed, n: t.N, stop: t.Stop, Extensions: t.Extensions}
	if t.MaxTokens != nil {
		if t.MaxCompletionTokens != nil && *t.MaxCompletionTokens != *t.MaxTokens {
			return nil, badRequest("max_tokens", "max_tokens and max_completion_tokens are given and differ")
		}
		t.sampling.maxTokens, t.sampling.tokensField = t.MaxTokens, "max_tokens"
	}
	if t.params, t.n, err = t.sampling.params(h.chat.Stop()); err != nil {
		return nil, err
	}
	if err := t.applyToolChoice(); err != nil {
		return nil, err
	}
	if err := t.validate(); err != nil {
		return nil, err
	}
	t.grammar, err = h.grammarFor(t)
	return t, err
}

// choose applies tool_choice to the tools.
func (t *chatRequest) applyToolChoice() error {
	if t.ToolChoice == nil {
		return nil
	}
	c := *t.ToolChoice
	switch {
	case c.Mode == "none":
		t.tools = nil
	case len(t.tools) == 0:
		return badRequest("tool_choice", "tool_choice is given, but there are no tools")
	case c.Name != "" && !slices.ContainsFunc(t.tools, func(f chat.Function) bool { return f.Name == c.Name }):
		return badRequest("tool_choice", "tool_choice names %q, which is not among the tools", c.Name)
	}
	return nil
}

func (t *chatRequest) validate() error {
	t.top = -1
	logprobs := t.Logprobs != nil && *t.Logprobs
	switch {
	case t.StreamOptions != nil && !t.Stream:
		return badRequest("stream_options", "stream_options is given, but stream is not true")
	case t.TopLogprobs != nil && !logprobs:
		return badRequest("top_logprobs", "top_logprobs is given, but logprobs is not true")
	case t.TopLogprobs != nil && (*t.TopLogprobs < 0 || *t.TopLogprobs > maxTop):
		return badRequest("top_logprobs", "top_logprobs is %d: want 0 to %d", *t.TopLogprobs, maxTop)
	case t.ParallelToolCalls != nil && len(t.Tools) == 0:
		return badRequest("parallel_tool_calls", "parallel_tool_calls is given, but there are no tools")
	}
	if logprobs {
		t.top = 0
	}
	if t.TopLogprobs != nil {
		t.top = *t.TopLogprobs
	}
	return nil
}

// prepare renders the prompt.
func (h *Handler) prepare(t *chatRequest) (g generation, err error) {
	o := render.Options{}
	if t.TemplateKwargs != nil {
		o.Thinking = t.TemplateKwargs.EnableThinking
	}
	prompt, err := h.chat.Prompt(t.msgs, t.tools, o)
	if err != nil {
		return g, badRequest("messages", "the model's chat template refuses the dialogue: %v", err)
	}
	if t.params.MaxTokens, err = t.sampling.tokenLimit(len(prompt), h.opts.Window, h.opts.MaxTokens); err != nil {
		return g, err
	}
	g = generation{h: h, prompt: prompt, params: t.params, stopTexts: t.Stop, top: max(t.top, 0), read: render.ReadOptions{Tools: t.tools}}
	if t.ParallelToolCalls != nil && !*t.ParallelToolCalls {
		g.read.MaxCalls = 1
	}
	return g, h.constrain(t, &g)
}

// chatAnswer writes the answer to a chat.
type chatResponse struct {
	h       *Handler
	req     *chatRequest
	gen     generation
	began   time.Time
	id      string
	created int64
	usage   Usage
}

// count keeps the usage.
func (a *chatResponse) count(x delta) {
	if a.usage.CompletionTokens == 0 && len(x.tokens) > 0 {
		a.h.metrics.firstToken(time.Since(a.began))
	}
	a.usage.CompletionTokens += len(x.tokens)
	a.usage.TotalTokens = a.usage.PromptTokens + a.usage.CompletionTokens
}

// run samples the answers and hands out their news.
func (a *chatResponse) run(r *http.Request, each func(delta) error) error {
	a.usage = Usage{PromptTokens: len(a.gen.prompt), TotalTokens: len(a.gen.prompt)}
	defer func() { a.h.metrics.tokens(a.usage.PromptTokens, a.usage.CompletionTokens) }()
	return generateAll(r.Context(), []generation{a.gen}, a.req.n, func(x delta) error {
		a.count(x)
		return each(x)
	})
}

// whole answers with one body: the sum of what a stream would have told.
func (a *chatResponse) respond(r *http.Request, w http.ResponseWriter) error {
	choices := make([]ChatChoice, a.req.n)
	texts := make([]strings.Builder, a.req.n)
	for i := range choices {
		choices[i] = ChatChoice{Index: i, Message: Message{Role: "assistant"}}
		if a.req.top >= 0 {
			choices[i].Logprobs = &ChatLogprobs{Content: []TokenLogprob{}}
		}
	}
	err := a.run(r, func(x delta) error {
		c := &choices[x.index]
		c.Message.Reasoning += x.thinking
		texts[x.index].WriteString(x.content)
		for _, call := range x.calls {
			call.Index = nil
			c.Message.ToolCalls = append(c.Message.ToolCalls, call)
		}
		if l := a.logprobs(x); l != nil {
			c.Logprobs.Content = append(c.Logprobs.Content, l.Content...)
		}
		c.Sampled = joinSampled(c.Sampled, a.sampled(x))
		c.FinishReason = x.finish
		return nil
	})
	if err != nil {
		return err
	}
	for i := range choices {
		text := Content(texts[i].String())
		if text != "" || len(choices[i].Message.ToolCalls) == 0 {
			choices[i].Message.Content = &text
		}
	}
	answer := ChatResponse{ID: a.id, Object: "chat.completion", Created: a.created, Model: a.h.opts.Name, Choices: choices, Usage: &a.usage}
	if a.req.ReturnTokenIDs {
		answer.PromptTokenIDs = a.gen.prompt
	}
	return writeJSON(w, answer)
}

// stream answers with events. The first of each answer says who speaks.
func (a *chatResponse) stream(r *http.Request, w http.ResponseWriter) error {
	out := newEventStream(w, a.h.opts.Timeouts.Write)
	spoken := make([]bool, a.req.n)
	chunk := ChatChunk{ID: a.id, Object: "chat.completion.chunk", Created: a.created, Model: a.h.opts.Name}
	err := a.run(r, func(x delta) error {
		first := !spoken[x.index]
		for _, c := range a.chunks(x, first) {
			chunk.Choices, chunk.PromptTokenIDs = []ChunkChoice{c}, nil
			if a.req.ReturnTokenIDs && !out.started {
				chunk.PromptTokenIDs = a.gen.prompt
			}
			if err := out.send(chunk); err != nil {
				return err
			}
			spoken[x.index] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if a.req.StreamOptions != nil && a.req.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.PromptTokenIDs, chunk.Usage = []ChunkChoice{}, nil, &a.usage
		if err := out.send(chunk); err != nil {
			return err
		}
	}
	return out.event("[DONE]")
}

// pieces turns news into what a stream tells of them: one piece each of thinking,
// content and calls, in this order, and one for the end.
func (a *chatResponse) chunks(x delta, first bool) []ChunkChoice {
	var list []ChunkChoice
	add := func(d Delta) { list = append(list, ChunkChoice{Index: x.index, Delta: d}) }
	if first {
		empty := ""
		add(Delta{Role: "assistant", Content: &empty})
	}
	if x.thinking != "" {
		add(Delta{Reasoning: x.thinking})
	}
	if x.content != "" {
		add(Delta{Content: &x.content})
	}
	if len(x.calls) > 0 {
		add(Delta{ToolCalls: x.calls})
	}
	l, s := a.logprobs(x), a.sampled(x)
	if len(list) == 0 && (l != nil && len(l.Content) > 0 || len(s.TokenIDs) > 0) {
		add(Delta{})
	}
	if len(list) > 0 {
		list[len(list)-1].Logprobs, list[len(list)-1].Sampled = l, s
	}
	if x.finish != "" {
		add(Delta{})
		list[len(list)-1].FinishReason = &x.finish
	}
	return list
}

// sampled returns the exact tokens of news, if they are asked for.
func (a *chatResponse) sampled(x delta) Sampled {
	if !a.req.ReturnTokenIDs {
		return Sampled{}
	}
	return sampledOf(x.tokens)
}

func sampledOf(tokens []engine.Token) (s Sampled) {
	for _, t := range tokens {
		s.TokenIDs = append(s.TokenIDs, t.ID)
		s.TokenLogprobs = append(s.TokenLogprobs, t.Logprob)
		s.SampleLogprobs = append(s.SampleLogprobs, t.SampleLogprob)
	}
	return s
}

// joinSampled concatenates s and t.
func joinSampled(s, t Sampled) Sampled {
	return Sampled{append(s.TokenIDs, t.TokenIDs...), append(s.TokenLogprobs, t.TokenLogprobs...), append(s.SampleLogprobs, t.SampleLogprobs...)}
}

// logprobs returns the log-probabilities of news, if they are asked for.
func (a *chatResponse) logprobs(x delta) *ChatLogprobs {
	if a.req.top < 0 || len(x.tokens) == 0 {
		return nil
	}
	tok := a.h.chat.Tokenizer()
	l := &ChatLogprobs{Content: []TokenLogprob{}}
	for _, t := range x.textTokens() {
		one := TokenLogprob{Alternative: alternative(tok, t.ID, t.Logprob), Top: []Alternative{}}
		for _, other := range t.Top {
			one.Top = append(one.Top, alternative(tok, other.ID, other.Logprob))
		}
		l.Content = append(l.Content, one)
	}
	return l
}

// spoken are the tokens without the one that ended the answer.
func (n delta) textTokens() []engine.Token {
	if n.stopped {
		return n.tokens[:len(n.tokens)-1]
	}
	return n.tokens
}

func alternative(tok *token.Tokenizer, id int, logprob float32) Alternative {
	raw := tok.Bytes(id)
	a := Alternative{Token: tok.Decode([]int{id}, false), Logprob: logprob, Bytes: make([]int, len(raw))}
	for i, b := range raw {
		a.Bytes[i] = int(b)
	}
	return a
}
