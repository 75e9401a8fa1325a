package serve

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/internal/grammar"
	"envace/internal/openai"
	"envace/render"
)

// chatRequest is a parsed and validated request for a chat completion.
type chatRequest struct {
	chatBody
	msgs     []chat.Message
	tools    []chat.Function
	sampling sampling
	n        int
	params   engine.Params
	top      int              // alternatives per token; -1: no log-probabilities
	grammar  *grammar.Grammar // that constrains the completion, or nil
}

// chatBody is a ChatRequest whose messages are not decoded yet.
type chatBody struct {
	openai.ChatRequest
	Messages []json.RawMessage `json:"messages"`
}

func (h *Handler) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	start := time.Now()
	data, releaseBody, err := h.readBody(w, r)
	abandoned := false
	defer func() {
		if !abandoned {
			releaseBody()
		}
	}()
	if err != nil {
		return err
	}
	req, err := h.parseChat(data)
	if err != nil {
		return err
	}
	releaseSlots, err := h.admit(r, req.n)
	if err != nil {
		return err
	}
	defer releaseSlots()
	work := h.prepareApart(req)
	var gen generation
	select {
	case done := <-work:
		if gen, err = done.gen, done.err; err != nil {
			return err
		}
	case <-r.Context().Done(): // the slot is free at once, the memory when the work has ended
		abandoned = true
		go func() { <-work; releaseBody() }()
		return r.Context().Err()
	}
	resp := &chatResponse{h: h, req: req, gen: gen, start: start, id: newID("chatcmpl-"), created: start.Unix()}
	if req.Stream {
		return resp.stream(r.Context(), w)
	}
	return resp.respond(r.Context(), w)
}

func (h *Handler) parseChat(data []byte) (req *chatRequest, err error) {
	req = &chatRequest{}
	if err := decodeStrict(data, &req.chatBody, ignoredFields, ""); err != nil {
		return nil, err
	}
	if err := h.checkModel(req.Model); err != nil {
		return nil, err
	}
	if req.msgs, err = parseMessages(req.Messages); err != nil {
		return nil, err
	}
	if req.tools, err = parseTools(req.Tools); err != nil {
		return nil, err
	}
	req.sampling = sampling{maxTokens: req.MaxCompletionTokens, tokensField: "max_completion_tokens", temperature: req.Temperature, topP: req.TopP,
		seed: req.Seed, n: req.N, stop: req.Stop, Extensions: req.Extensions}
	if req.MaxTokens != nil {
		if req.MaxCompletionTokens != nil && *req.MaxCompletionTokens != *req.MaxTokens {
			return nil, badRequest("max_tokens", "max_tokens and max_completion_tokens differ: set one of them")
		}
		req.sampling.maxTokens, req.sampling.tokensField = req.MaxTokens, "max_tokens"
	}
	if req.params, req.n, err = req.sampling.params(append(h.chat.Stop(), h.chat.Control()...)); err != nil {
		return nil, err
	}
	if err := req.applyToolChoice(); err != nil {
		return nil, err
	}
	if err := req.validate(); err != nil {
		return nil, err
	}
	req.grammar, err = h.grammarFor(req)
	return req, err
}

// applyToolChoice checks tool_choice, and hides the tools from the model if it is none.
func (req *chatRequest) applyToolChoice() error {
	if req.ToolChoice == nil {
		return nil
	}
	c := *req.ToolChoice
	switch {
	case c.Mode == "none":
		req.tools = nil
	case len(req.tools) == 0:
		return badRequest("tool_choice", "tool_choice requires tools")
	case c.Name != "" && !slices.ContainsFunc(req.tools, func(f chat.Function) bool { return f.Name == c.Name }):
		return badRequest("tool_choice", "tool_choice names %q, which is not in tools", c.Name)
	}
	return nil
}

func (req *chatRequest) validate() error {
	req.top = -1
	logprobs := req.Logprobs != nil && *req.Logprobs
	switch {
	case req.StreamOptions != nil && !req.Stream:
		return badRequest("stream_options", "stream_options requires stream to be true")
	case req.TopLogprobs != nil && !logprobs:
		return badRequest("top_logprobs", "top_logprobs requires logprobs to be true")
	case req.TopLogprobs != nil && (*req.TopLogprobs < 0 || *req.TopLogprobs > maxTop):
		return badRequest("top_logprobs", "top_logprobs is %d: want 0 to %d", *req.TopLogprobs, maxTop)
	case req.ParallelToolCalls != nil && len(req.Tools) == 0:
		return badRequest("parallel_tool_calls", "parallel_tool_calls requires tools")
	}
	if logprobs {
		req.top = 0
	}
	if req.TopLogprobs != nil {
		req.top = *req.TopLogprobs
	}
	return nil
}

type prepared struct {
	gen generation
	err error
}

// prepareApart is prepare on a goroutine of its own: it takes seconds for a large dialogue.
func (h *Handler) prepareApart(req *chatRequest) <-chan prepared {
	out := make(chan prepared, 1)
	go func() {
		defer func() {
			if x := recover(); x != nil {
				out <- prepared{err: panicked("rendering", x)}
			}
		}()
		gen, err := h.prepare(req)
		out <- prepared{gen, err}
	}()
	return out
}

// prepare renders the prompt.
func (h *Handler) prepare(req *chatRequest) (g generation, err error) {
	o := render.Options{}
	if req.TemplateKwargs != nil {
		o.Thinking = req.TemplateKwargs.EnableThinking
	}
	prompt, err := h.chat.Prompt(req.msgs, req.tools, o)
	if err != nil {
		return g, badRequest("messages", "the chat template rejects the messages: %v", err)
	}
	if req.params.MaxTokens, err = req.sampling.tokenLimit(len(prompt), h.opts.Window, h.opts.MaxTokens); err != nil {
		return g, err
	}
	g = generation{h: h, prompt: prompt, params: req.params, stopTexts: req.Stop, top: max(req.top, 0), read: render.ReadOptions{Tools: req.tools}}
	if req.ParallelToolCalls != nil && !*req.ParallelToolCalls {
		g.read.MaxCalls = 1
	}
	return g, h.constrain(req, &g)
}
