package serve

import (
	"context"
	"net/http"
	"strings"
	"time"

	"envace/engine"
	"envace/internal/openai"
	"envace/internal/token"
)

// chatResponse writes the response to a chat request.
type chatResponse struct {
	h       *Handler
	req     *chatRequest
	gen     generation
	start   time.Time
	id      string
	created int64
	usage   openai.Usage
}

func (resp *chatResponse) count(d delta) {
	if resp.usage.CompletionTokens == 0 && len(d.tokens) > 0 {
		resp.h.metrics.firstToken(time.Since(resp.start))
	}
	resp.usage.CompletionTokens += len(d.tokens)
	resp.usage.TotalTokens = resp.usage.PromptTokens + resp.usage.CompletionTokens
}

// run generates the choices and calls each with every delta.
func (resp *chatResponse) run(ctx context.Context, each func(delta) error) error {
	resp.usage = openai.Usage{PromptTokens: len(resp.gen.prompt), TotalTokens: len(resp.gen.prompt)}
	defer func() { resp.h.metrics.tokens(resp.usage.PromptTokens, resp.usage.CompletionTokens) }()
	return generateAll(ctx, []generation{resp.gen}, resp.req.n, func(d delta) error {
		resp.count(d)
		return each(d)
	})
}

// respond sends one JSON body: the sum of the deltas that a stream would send.
func (resp *chatResponse) respond(ctx context.Context, w http.ResponseWriter) error {
	choices := make([]openai.ChatChoice, resp.req.n)
	texts := make([]strings.Builder, resp.req.n)
	for i := range choices {
		choices[i] = openai.ChatChoice{Index: i, Message: openai.Message{Role: "assistant"}}
		if resp.req.top >= 0 {
			choices[i].Logprobs = &openai.ChatLogprobs{Content: []openai.TokenLogprob{}}
		}
	}
	err := resp.run(ctx, func(d delta) error {
		c := &choices[d.index]
		c.Message.Reasoning += d.thinking
		texts[d.index].WriteString(d.content)
		for _, call := range d.calls {
			call.Index = nil
			c.Message.ToolCalls = append(c.Message.ToolCalls, call)
		}
		if l := resp.logprobs(d); l != nil {
			c.Logprobs.Content = append(c.Logprobs.Content, l.Content...)
		}
		c.Sampled = joinSampled(c.Sampled, resp.sampled(d))
		c.FinishReason = d.finish
		return nil
	})
	if err != nil {
		return err
	}
	for i := range choices {
		text := openai.Content(texts[i].String())
		if text != "" || len(choices[i].Message.ToolCalls) == 0 {
			choices[i].Message.Content = &text
		}
	}
	body := openai.ChatResponse{ID: resp.id, Object: "chat.completion", Created: resp.created, Model: resp.h.opts.Name, Choices: choices, Usage: &resp.usage}
	if resp.req.ReturnTokenIDs {
		body.PromptTokenIDs = resp.gen.prompt
	}
	return writeJSON(w, body)
}

// stream sends server-sent events. The first of each choice has the role.
func (resp *chatResponse) stream(ctx context.Context, w http.ResponseWriter) error {
	out := newEventStream(w, resp.h.opts.Timeouts.Write)
	started := make([]bool, resp.req.n)
	chunk := openai.ChatChunk{ID: resp.id, Object: "chat.completion.chunk", Created: resp.created, Model: resp.h.opts.Name}
	err := resp.run(ctx, func(d delta) error {
		first := !started[d.index]
		for _, c := range resp.chunks(d, first) {
			chunk.Choices, chunk.PromptTokenIDs = []openai.ChunkChoice{c}, nil
			if resp.req.ReturnTokenIDs && !out.started {
				chunk.PromptTokenIDs = resp.gen.prompt
			}
			if err := out.send(chunk); err != nil {
				return err
			}
			started[d.index] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if resp.req.StreamOptions != nil && resp.req.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.PromptTokenIDs, chunk.Usage = []openai.ChunkChoice{}, nil, &resp.usage
		if err := out.send(chunk); err != nil {
			return err
		}
	}
	return out.event("[DONE]")
}

// chunks converts a delta to the chunks of a stream: one each for thinking, content
// and calls, in this order, and one for the finish reason.
func (resp *chatResponse) chunks(d delta, first bool) []openai.ChunkChoice {
	var list []openai.ChunkChoice
	add := func(part openai.Delta) { list = append(list, openai.ChunkChoice{Index: d.index, Delta: part}) }
	if first {
		empty := ""
		add(openai.Delta{Role: "assistant", Content: &empty})
	}
	if d.thinking != "" {
		add(openai.Delta{Reasoning: d.thinking})
	}
	if d.content != "" {
		add(openai.Delta{Content: &d.content})
	}
	if len(d.calls) > 0 {
		add(openai.Delta{ToolCalls: d.calls})
	}
	l, s := resp.logprobs(d), resp.sampled(d)
	if len(list) == 0 && (l != nil && len(l.Content) > 0 || len(s.TokenIDs) > 0) {
		add(openai.Delta{})
	}
	if len(list) > 0 {
		list[len(list)-1].Logprobs, list[len(list)-1].Sampled = l, s
	}
	if d.finish != "" {
		add(openai.Delta{})
		list[len(list)-1].FinishReason = &d.finish
	}
	return list
}

// sampled returns the sampled tokens of d, if the request asks for them.
func (resp *chatResponse) sampled(d delta) openai.Sampled {
	if !resp.req.ReturnTokenIDs {
		return openai.Sampled{}
	}
	return sampledOf(d.tokens)
}

func sampledOf(tokens []engine.Token) (s openai.Sampled) {
	for _, t := range tokens {
		s.TokenIDs = append(s.TokenIDs, t.ID)
		s.TokenLogprobs = append(s.TokenLogprobs, t.Logprob)
		s.SampleLogprobs = append(s.SampleLogprobs, t.SampleLogprob)
	}
	return s
}

// joinSampled concatenates s and t.
func joinSampled(s, t openai.Sampled) openai.Sampled {
	s.TokenIDs = append(s.TokenIDs, t.TokenIDs...)
	s.TokenLogprobs = append(s.TokenLogprobs, t.TokenLogprobs...)
	s.SampleLogprobs = append(s.SampleLogprobs, t.SampleLogprobs...)
	return s
}

// logprobs returns the log-probabilities of d, if the request asks for them.
func (resp *chatResponse) logprobs(d delta) *openai.ChatLogprobs {
	if resp.req.top < 0 || len(d.tokens) == 0 {
		return nil
	}
	tok := resp.h.chat.Tokenizer()
	l := &openai.ChatLogprobs{Content: []openai.TokenLogprob{}}
	for _, t := range d.textTokens() {
		one := openai.TokenLogprob{Alternative: alternative(tok, t.ID, t.Logprob), Top: []openai.Alternative{}}
		for _, other := range t.Top {
			one.Top = append(one.Top, alternative(tok, other.ID, other.Logprob))
		}
		l.Content = append(l.Content, one)
	}
	return l
}

// textTokens returns the tokens without the stop token.
func (d delta) textTokens() []engine.Token {
	if d.stopped {
		return d.tokens[:len(d.tokens)-1]
	}
	return d.tokens
}

func alternative(tok *token.Tokenizer, id int, logprob float32) openai.Alternative {
	raw := tok.Bytes(id)
	a := openai.Alternative{Token: tok.Decode([]int{id}, false), Logprob: logprob, Bytes: make([]int, len(raw))}
	for i, b := range raw {
		a.Bytes[i] = int(b)
	}
	return a
}
