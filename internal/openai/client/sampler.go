package client

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
	"envace/internal/openai"
	"envace/internal/retry"
)

// Sampler is an [engine.Sampler] that uses the completions endpoint of a server that
// accepts and returns token IDs: envace serve, and vLLM with return_token_ids. Servers
// that return only text are an error, since encoding text again may not give the same
// tokens.
//
// Log-probabilities are the server's. vLLM returns those of the unmodified logits unless
// started with another logprobs-mode. SampleLogprobs are NaN where the server does not
// return them and sampling parameters change the distribution.
//
// Params.MaxTokens is required. Seeds are sent without their highest bit. How a server
// derives the seeds of several sequences is up to the server.
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
		return nil, fmt.Errorf("model %s at %s: %d choices, want %d", s.Client.Model, s.Client.host(), len(got.Choices), n)
	}
	out := make([]engine.Sequence, n)
	for _, c := range got.Choices {
		if c.Index < 0 || c.Index >= n || out[c.Index].Stop != "" {
			return nil, fmt.Errorf("model %s at %s: invalid or duplicate choice index %d", s.Client.Model, s.Client.host(), c.Index)
		}
		if out[c.Index], err = sequence(c, prompt, p); err != nil {
			return nil, fmt.Errorf("model %s at %s: %w", s.Client.Model, s.Client.host(), err)
		}
	}
	return out, nil
}

func (s Sampler) request(prompt []int, n int, p engine.Params) openai.CompletionRequest {
	seed, none := wireSeed(p.Seed), 0
	req := openai.CompletionRequest{
		Model: s.Client.Model, Prompt: openai.Prompt{Tokens: [][]int{prompt}}, MaxTokens: &p.MaxTokens, Temperature: &p.Temperature, Seed: &seed, N: &n,
		Logprobs: &none, Extensions: openai.Extensions{StopTokenIDs: p.Stop, ReturnTokenIDs: true},
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

var errNoMaxTokens = errors.New("remote sampler: MaxTokens must be set")

var errNoTokens = errors.New("the server does not return token ids, which sampling needs")

// sequence converts one choice.
func sequence(c openai.CompletionChoice, prompt []int, p engine.Params) (engine.Sequence, error) {
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
		return s, fmt.Errorf("the server reports a prompt of %d tokens, but %d were sent", len(c.PromptTokenIDs), len(prompt))
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

// unmodified reports whether p samples from the model's own distribution.
func unmodified(p engine.Params) bool {
	return p.Temperature == 1 && p.TopK == 0 && (p.TopP == 0 || p.TopP == 1) && p.MinP == 0
}

// sampleLogprobs returns what logprobs say about the distribution sampled from.
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

// Logprobs returns the log-probabilities of the tokens of each row but the first, with
// one request per row.
func (s Sampler) Logprobs(ctx context.Context, rows [][]int) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		none := 0
		got, err := s.complete(ctx, openai.CompletionRequest{
			Model: s.Client.Model, Prompt: openai.Prompt{Tokens: [][]int{row}}, MaxTokens: &none, Logprobs: &none, Echo: true, Extensions: openai.Extensions{ReturnTokenIDs: true},
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

func promptLogprobs(got openai.Completion, row []int) ([]float32, error) {
	if len(got.Choices) != 1 || got.Choices[0].PromptTokenIDs == nil {
		return nil, errNoTokens
	}
	c := got.Choices[0]
	if !slices.Equal(c.PromptTokenIDs, row) || c.Logprobs == nil || len(c.Logprobs.TokenLogprobs) < len(row) {
		return nil, fmt.Errorf("the server scored different tokens than the %d that were sent", len(row))
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

func (s Sampler) complete(ctx context.Context, req openai.CompletionRequest) (got openai.Completion, err error) {
	err = s.Client.postJSON(ctx, s.Client.BaseURL+"/completions", req, &got, func() chat.Usage {
		if got.Usage == nil {
			return chat.Usage{}
		}
		return chat.Usage{Prompt: got.Usage.PromptTokens, Completion: got.Usage.CompletionTokens}
	})
	return got, err
}

// postJSON posts a body and decodes the response into got, a pointer.
func (c *Client) postJSON(ctx context.Context, url string, body, got any, usage func() chat.Usage) error {
	err := c.post(ctx, url, func(dialect) any { return body }, func(resp *http.Response) (bool, error) {
		const limit = 256 << 20
		reflect.ValueOf(got).Elem().SetZero()
		data, err := io.ReadAll(io.LimitReader(resp.Body, limit))
		if err == nil {
			err = json.Unmarshal(data, got)
		}
		if err != nil {
			return false, retry.Retryable(fmt.Errorf("invalid response: %w", err), 0)
		}
		return false, nil
	}, func() (any, chat.Usage) {
		u := usage()
		if u == (chat.Usage{}) {
			return nil, u
		}
		return openai.Usage{PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Prompt + u.Completion}, u
	})
	if err != nil {
		return fmt.Errorf("model %s at %s: %w", c.Model, c.host(), err)
	}
	return nil
}
