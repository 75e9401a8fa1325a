package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"envace/chat"
	"envace/engine"
	"envace/internal/openai"
)

// SGLang is an [engine.Sampler] that uses SGLang's native endpoint, /generate, at the host
// of Client.BaseURL. Client.Model is not used.
//
// Depending on how the server was started, /generate returns log-probabilities of the
// sampling distribution or of the unmodified logits. If sampling parameters make these
// differ, each sequence is scored with a second request, as prompts always have unmodified
// ones; SampleLogprobs are then NaN (0 if greedy).
//
// Each sequence is a separate request, because n sequences of one request share its seed.
// Servers respect seeds only in deterministic mode. Params.MaxTokens is required.
type SGLang struct{ Client *Client }

// generateRequest is the body of POST /generate.
type generateRequest struct {
	InputIDs []int          `json:"input_ids"`
	Sampling generateParams `json:"sampling_params"`
	Logprobs bool           `json:"return_logprob"`
	From     int            `json:"logprob_start_len"` // in the prompt; -1: its end
}

type generateParams struct {
	MaxNewTokens int     `json:"max_new_tokens"`
	Temperature  float64 `json:"temperature"`
	TopK         int     `json:"top_k"` // -1 is off
	TopP         float64 `json:"top_p"` // 1 is off
	MinP         float64 `json:"min_p"`
	StopTokenIDs []int   `json:"stop_token_ids,omitempty"`
	Seed         int64   `json:"sampling_seed"`
}

// generateResponse is the response.
type generateResponse struct {
	Meta struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Finish     struct {
			Type    string          `json:"type"` // stop, length or abort
			Matched json.RawMessage `json:"matched"`
			Message string          `json:"message"`
		} `json:"finish_reason"`
		Input  []scoredToken `json:"input_token_logprobs"`
		Output []scoredToken `json:"output_token_logprobs"`
	} `json:"meta_info"`
}

// scoredToken is [log-probability or null, id, text or null] on the wire.
type scoredToken struct {
	logprob *float32
	id      int
}

// UnmarshalJSON decodes the array.
func (s *scoredToken) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil || len(list) < 2 {
		return fmt.Errorf("invalid token log-probability %.60q: want [logprob, id, text]", data)
	}
	return errors.Join(json.Unmarshal(list[0], &s.logprob), json.Unmarshal(list[1], &s.id))
}

// Sample draws n continuations of prompt.
func (s SGLang) Sample(ctx context.Context, prompt []int, n int, p engine.Params) ([]engine.Sequence, error) {
	if p.MaxTokens < 1 {
		return nil, errNoMaxTokens
	}
	out := make([]engine.Sequence, n)
	group, ctx := errgroup.WithContext(ctx)
	for i := range out {
		q := p
		q.Seed = openai.ChoiceSeed(p.Seed, i)
		group.Go(func() (err error) {
			out[i], err = s.sampleOne(ctx, prompt, q)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

func (s SGLang) sampleOne(ctx context.Context, prompt []int, p engine.Params) (engine.Sequence, error) {
	q := generateParams{MaxNewTokens: p.MaxTokens, Temperature: p.Temperature, TopK: -1, TopP: 1, MinP: p.MinP, StopTokenIDs: p.Stop, Seed: wireSeed(p.Seed)}
	if p.TopK > 0 {
		q.TopK = p.TopK
	}
	if p.TopP > 0 {
		q.TopP = p.TopP
	}
	got, err := s.generate(ctx, generateRequest{prompt, q, true, -1})
	if err != nil {
		return engine.Sequence{}, err
	}
	seq, err := got.sequence(prompt, p)
	if err != nil {
		return seq, fmt.Errorf("SGLang at %s: %w", s.Client.host(), err)
	}
	if unmodified(p) {
		return seq, nil
	}
	scores, err := s.Logprobs(ctx, [][]int{slices.Concat(prompt, seq.Tokens)})
	if err != nil {
		return seq, err
	}
	seq.Logprobs = scores[0][len(prompt)-1:]
	return seq, nil
}

// sequence converts the response.
func (g generateResponse) sequence(prompt []int, p engine.Params) (s engine.Sequence, err error) {
	m := g.Meta
	switch {
	case m.Finish.Type == "abort":
		return s, fmt.Errorf("the server aborted the request: %s", oneLine(m.Finish.Message))
	case m.Prompt != len(prompt):
		return s, fmt.Errorf("the server reports a prompt of %d tokens, but %d were sent", m.Prompt, len(prompt))
	case len(m.Output) == 0 || len(m.Output) != m.Completion:
		return s, fmt.Errorf("%w (%d of %d)", errNoTokens, len(m.Output), m.Completion)
	}
	for _, t := range m.Output {
		s.Tokens = append(s.Tokens, t.id)
	}
	if s.Logprobs, err = logprobsOf(m.Output); err != nil {
		return s, err
	}
	s.SampleLogprobs = sampleLogprobs(s.Logprobs, p)
	s.Stop = engine.StopToken
	var matched int
	switch last := s.Tokens[len(s.Tokens)-1]; {
	case m.Finish.Type == "length" && len(s.Tokens) < p.MaxTokens:
		s.Stop = engine.StopWindow
	case m.Finish.Type == "length":
		s.Stop = engine.StopLength
	case json.Unmarshal(m.Finish.Matched, &matched) != nil || matched != last:
		return s, fmt.Errorf("the response ended by %.60q, which is not its last token %d", m.Finish.Matched, last)
	}
	return s, nil
}

// logprobsOf returns the log-probabilities of tokens, which must all have one.
func logprobsOf(tokens []scoredToken) ([]float32, error) {
	out := make([]float32, len(tokens))
	for i, t := range tokens {
		if t.logprob == nil {
			return nil, fmt.Errorf("token %d of %d has no log-probability", i, len(tokens))
		}
		out[i] = *t.logprob
	}
	return out, nil
}

// Logprobs returns the log-probabilities of the tokens of each row but the first, with
// one request per row.
func (s SGLang) Logprobs(ctx context.Context, rows [][]int) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		got, err := s.generate(ctx, generateRequest{row, generateParams{TopK: -1, TopP: 1}, true, 0})
		if err != nil {
			return nil, err
		}
		scored := got.Meta.Input
		if !slices.EqualFunc(scored, row, func(t scoredToken, id int) bool { return t.id == id }) {
			return nil, fmt.Errorf("SGLang at %s: the server scored different tokens (%d) than the %d that were sent", s.Client.host(), len(scored), len(row))
		}
		if out[i], err = logprobsOf(scored[1:]); err != nil {
			return nil, fmt.Errorf("SGLang at %s: %w", s.Client.host(), err)
		}
	}
	return out, nil
}

func (s SGLang) generate(ctx context.Context, req generateRequest) (got generateResponse, err error) {
	err = s.Client.postJSON(ctx, strings.TrimSuffix(s.Client.BaseURL, "/v1")+"/generate", req, &got, func() chat.Usage {
		return chat.Usage{Prompt: got.Meta.Prompt, Completion: got.Meta.Completion}
	})
	return got, err
}
