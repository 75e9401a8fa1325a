package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"slices"

	"envace/chat"
	"envace/engine"
	"envace/internal/retry"
)

// Sampler is an [engine.Sampler] by way of a server that takes prompts as tokens
// and gives tokens back: ours, and vLLM as of its field return_token_ids. Any other
// server is refused at its first answer: text is never encoded to guess its tokens.
//
// The log-probabilities are the server's. vLLM gives those of the weights as they
// are unless it was started with another logprobs-mode. Where the server does not
// tell under what distribution a token was drawn and it is not the weights' own,
// SampleLogprobs are NaN.
//
// Params.MaxTokens must be set. The seed is sent without its highest bit, because
// servers take signed numbers; how further answers to one prompt draw from it is the
// server's affair.
type Sampler struct{ Client *Client }

// Sample draws n continuations of prompt.
func (s Sampler) Sample(ctx context.Context, prompt []int, n int, p engine.Params) ([]engine.Sequence, error) {
	if p.MaxTokens < 1 {
		return nil, errNoMaxTokens
	}
	got, err := s.complete(ctx, s.request(prompt, n, p))
	if err != nil {
		return nil, err
	}
	if len(got.Choices) != n {
		return nil, fmt.Errorf("model %s at %s: %d answers, want %d", s.Client.Model, s.Client.host(), len(got.Choices), n)
	}
	out := make([]engine.Sequence, n)
	for _, c := range got.Choices {
		if c.Index < 0 || c.Index >= n || out[c.Index].Stop != "" {
			return nil, fmt.Errorf("model %s at %s: answer with the index %d, out of place", s.Client.Model, s.Client.host(), c.Index)
		}
		if out[c.Index], err = sequence(c, prompt, p); err != nil {
			return nil, fmt.Errorf("model %s at %s: %w", s.Client.Model, s.Client.host(), err)
		}
	}
	return out, nil
}

func (s Sampler) request(prompt []int, n int, p engine.Params) CompletionRequest {
	seed, none := wireSeed(p.Seed), 0
	req := CompletionRequest{
		Model: s.Client.Model, Prompt: Prompt{Tokens: [][]int{prompt}}, MaxTokens: &p.MaxTokens, Temperature: &p.Temperature, Seed: &seed, N: &n,
		Logprobs: &none, Extensions: Extensions{StopTokenIDs: p.Stop, ReturnTokenIDs: true},
	}
	if p.TopP > 0 && p.TopP < 1 {
		req.TopP = &p.TopP
	}
	if p.TopK > 0 {
		req.TopK = &p.TopK
	}
	if p.MinP > 0 {
		req.MinP = &p.MinP
	}
	return req
}

var errNoMaxTokens = errors.New("sample over a network: MaxTokens must be set")

// errNoTokens is a server that only speaks text.
var errNoTokens = errors.New("the server gives no token ids: it can complete a chat, but not sample")

// sequence reads one answer to prompt.
func sequence(c CompletionChoice, prompt []int, p engine.Params) (engine.Sequence, error) {
	s := engine.Sequence{Tokens: c.TokenIDs, Logprobs: c.TokenLogprobs, SampleLogprobs: c.SampleLogprobs}
	if s.Logprobs == nil && c.Logprobs != nil {
		for _, lp := range c.Logprobs.TokenLogprobs {
			if lp == nil {
				return s, errors.New("a sampled token has no log-probability")
			}
			s.Logprobs = append(s.Logprobs, *lp)
		}
	}
	switch {
	case len(s.Tokens) == 0:
		return s, errNoTokens
	case len(s.Logprobs) != len(s.Tokens):
		return s, fmt.Errorf("%d tokens have %d log-probabilities", len(s.Tokens), len(s.Logprobs))
	case c.PromptTokenIDs != nil && !slices.Equal(c.PromptTokenIDs, prompt):
		return s, fmt.Errorf("the server read a prompt of %d tokens, not the %d that it was sent", len(c.PromptTokenIDs), len(prompt))
	}
	if len(s.SampleLogprobs) != len(s.Tokens) {
		s.SampleLogprobs = sampleLogprobs(s.Logprobs, p)
	}
	s.Stop = engine.StopToken
	if deref(c.FinishReason) == "length" {
		if s.Stop = engine.StopLength; len(s.Tokens) < p.MaxTokens {
			s.Stop = engine.StopWindow
		}
	}
	return s, nil
}

// plain reports whether tokens are drawn from the weights' own distribution.
func unmodified(p engine.Params) bool {
	return p.Temperature == 1 && p.TopK == 0 && (p.TopP == 0 || p.TopP == 1) && p.MinP == 0
}

// drawn is what can be said of the distribution that was drawn from.
func sampleLogprobs(logprobs []float32, p engine.Params) []float32 {
	out := slices.Clone(logprobs)
	for i := range out {
		switch {
		case p.Temperature == 0:
			out[i] = 0
		case !unmodified(p):
			out[i] = float32(math.NaN())
		}
	}
	return out
}

// Logprobs asks for the log-probability of each token of rows but the first, given
// those before it: a request a row, which the server batches.
func (s Sampler) Logprobs(ctx context.Context, rows [][]int) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		none := 0
		got, err := s.complete(ctx, CompletionRequest{
			Model: s.Client.Model, Prompt: Prompt{Tokens: [][]int{row}}, MaxTokens: &none, Logprobs: &none, Echo: true, Extensions: Extensions{ReturnTokenIDs: true},
		})
		if err != nil {
			return nil, err
		}
		if out[i], err = promptLogprobs(got, row); err != nil {
			return nil, fmt.Errorf("model %s at %s: %w", s.Client.Model, s.Client.host(), err)
		}
	}
	return out, nil
}

func promptLogprobs(got Completion, row []int) ([]float32, error) {
	if len(got.Choices) != 1 || got.Choices[0].PromptTokenIDs == nil {
		return nil, errNoTokens
	}
	c := got.Choices[0]
	if !slices.Equal(c.PromptTokenIDs, row) || c.Logprobs == nil || len(c.Logprobs.TokenLogprobs) < len(row) {
		return nil, fmt.Errorf("the server scored other tokens than the %d that it was sent", len(row))
	}
	out := []float32{}
	for _, lp := range c.Logprobs.TokenLogprobs[1:len(row)] {
		if lp == nil {
			return nil, errors.New("a token of the prompt has no log-probability")
		}
		out = append(out, *lp)
	}
	return out, nil
}

// complete posts a request for completions.
func (s Sampler) complete(ctx context.Context, req CompletionRequest) (got Completion, err error) {
	err = s.Client.postJSON(ctx, s.Client.BaseURL+"/completions", req, &got, func() chat.Usage {
		if got.Usage == nil {
			return chat.Usage{}
		}
		return chat.Usage{Prompt: got.Usage.PromptTokens, Completion: got.Usage.CompletionTokens}
	})
	return got, err
}

// exchange posts a body and reads the answer into got, a pointer, which each try sets
// anew. used tells what the answer cost.
func (c *Client) postJSON(ctx context.Context, at string, body, got any, used func() chat.Usage) error {
	err := c.post(ctx, at, func(dialect) any { return body }, func(resp *http.Response) (bool, error) {
		const most = 256 << 20
		reflect.ValueOf(got).Elem().SetZero()
		data, err := io.ReadAll(io.LimitReader(resp.Body, most))
		if err == nil {
			err = json.Unmarshal(data, got)
		}
		if err != nil {
			return false, retry.Retryable(fmt.Errorf("the answer is broken: %w", err), 0)
		}
		return false, nil
	}, func() (any, chat.Usage) {
		u := used()
		if u == (chat.Usage{}) {
			return nil, u
		}
		return Usage{u.Prompt, u.Completion, u.Prompt + u.Completion}, u
	})
	if err != nil {
		return fmt.Errorf("model %s at %s: %w", c.Model, c.host(), err)
	}
	return nil
}
