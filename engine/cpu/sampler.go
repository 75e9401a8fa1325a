package cpu

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"envace/engine"
	"envace/internal/model"
)

// state holds the weights that samplers read. mu is locked for writing while they
// are updated.
type state struct {
	m           *model.Model
	mu          sync.RWMutex
	version     atomic.Uint64
	cacheTokens int
	batchTokens int
	prefill     int // maximum prompt tokens per step
	budget      budget

	eval   gate          // one scoring at a time
	runner *model.Runner // for Logprobs; created on first use
}

func newState(m *model.Model, o Options, b budget) *state {
	return &state{m: m, cacheTokens: o.CacheTokens, batchTokens: o.BatchTokens, prefill: prefillTokens, budget: b, eval: newGate()}
}

// checkRow returns an error for a row that cannot be trained on or scored.
func (s *state) checkRow(what string, ids []int) error {
	if err := s.checkTokens(what, ids); err != nil {
		return err
	}
	return s.budget.check(what, len(ids), s.budget.row)
}

// checkTokens returns an error for tokens that are not valid input.
func (s *state) checkTokens(what string, ids []int) error {
	c := s.m.Config
	if len(ids) == 0 {
		return fmt.Errorf("%s is empty", what)
	}
	if len(ids) > c.Context {
		return fmt.Errorf("%s has %d tokens, the context window holds %d: %w", what, len(ids), c.Context, engine.ErrWindow)
	}
	for i, id := range ids {
		if id < 0 || id >= c.Vocab {
			return fmt.Errorf("%s: token %d has id %d: the vocabulary size is %d", what, i, id, c.Vocab)
		}
	}
	return nil
}

// Sampler samples from an engine's weights at one point in time. Concurrent calls
// are batched, and share prefixes with each other and with earlier calls through
// the KV cache. It has no goroutine while idle.
type Sampler struct {
	state   *state
	version uint64

	mu       sync.Mutex
	incoming []*call
	running  bool
	decoder  *model.Decoder
	usage    engine.Usage
	batch    schedule
}

var _ engine.Meter = (*Sampler)(nil)

func newSampler(s *state, version uint64) *Sampler { return &Sampler{state: s, version: version} }

func (s *Sampler) stale() error {
	if s.version != s.state.version.Load() {
		return engine.ErrStale
	}
	return nil
}

// Usage returns the usage counters so far.
func (s *Sampler) Usage() engine.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// release takes the decoder from an outdated sampler, if it is idle.
func (s *Sampler) release() *model.Decoder {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.decoder
	if s.running || d == nil {
		return nil
	}
	s.decoder = nil
	d.Cache().Reset()
	return d
}

// Sample draws n continuations of prompt: see engine.Sampler and Params.
// Truncation is applied in the order temperature, top-k, top-p, min-p, each to
// what the one before kept. Tokens tied with the last one kept are kept too. A
// prompt and its continuation never exceed the context window.
func (s *Sampler) Sample(ctx context.Context, prompt []int, n int, p engine.Params) ([]engine.Sequence, error) {
	if err := s.checkSample(prompt, n, p); err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	c := newCall(ctx, prompt, n, p)
	if err := s.await(c); err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	return c.out, nil
}

// await queues c and waits until it or its context is done.
func (s *Sampler) await(c *call) error {
	s.mu.Lock()
	s.incoming = append(s.incoming, c)
	if !s.running {
		s.running = true
		go s.run()
	}
	s.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (s *Sampler) checkSample(prompt []int, n int, p engine.Params) error {
	if err := s.stale(); err != nil {
		return err
	}
	if err := s.state.checkTokens("prompt", prompt); err != nil {
		return err
	}
	if window := s.state.m.Config.Context; len(prompt) >= window {
		return fmt.Errorf("prompt has %d tokens, the context window holds %d: %w", len(prompt), window, engine.ErrWindow)
	}
	if n < 1 {
		return fmt.Errorf("number of sequences is %d: want at least 1", n)
	}
	if err := checkParams(p); err != nil {
		return err
	}
	most := s.state.m.Config.Context
	if p.MaxTokens > 0 {
		most = min(most, len(prompt)+p.MaxTokens)
	}
	return s.state.budget.check("prompt and continuation", most, s.state.budget.sequence)
}

func checkParams(p engine.Params) error {
	switch {
	case p.MaxTokens < 0:
		return fmt.Errorf("max tokens is %d: want 0 (no limit) or more", p.MaxTokens)
	case !(p.Temperature >= 0) || p.Temperature-p.Temperature != 0:
		return fmt.Errorf("temperature is %g: want 0 (greedy) or more", p.Temperature)
	case p.TopK < 0:
		return fmt.Errorf("top k is %d: want 0 (off) or more", p.TopK)
	case !(p.TopP >= 0 && p.TopP <= 1):
		return fmt.Errorf("top p is %g: want a value from 0 (off) to 1", p.TopP)
	case !(p.MinP >= 0 && p.MinP <= 1):
		return fmt.Errorf("min p is %g: want a value from 0 (off) to 1", p.MinP)
	}
	return nil
}

// Logprobs returns, for each row of n tokens, the log-probabilities of tokens
// 1…n−1. Common prefixes of rows are computed once.
func (s *Sampler) Logprobs(ctx context.Context, rows [][]int) (out [][]float32, err error) {
	defer func() {
		if err != nil {
			out, err = nil, fmt.Errorf("logprobs: %w", err)
		}
	}()
	if err := s.stale(); err != nil {
		return nil, err
	}
	out = make([][]float32, len(rows))
	var inputs [][]int
	var asks []model.Ask
	var at []int
	for i, row := range rows {
		if err := s.state.checkRow(fmt.Sprintf("row %d", i), row); err != nil {
			return nil, err
		}
		out[i] = make([]float32, len(row)-1)
		if len(row) == 1 {
			continue
		}
		for pos, id := range row[1:] {
			asks = append(asks, model.Ask{Row: len(inputs), At: pos, Target: id})
		}
		inputs, at = append(inputs, row[:len(row)-1]), append(at, i)
	}
	return out, s.measure(ctx, inputs, asks, func(i int, lp float32) { out[at[asks[i].Row]][asks[i].At] = lp })
}

// measure computes the log-probabilities listed in asks.
func (s *Sampler) measure(ctx context.Context, rows [][]int, asks []model.Ask, got func(i int, lp float32)) (err error) {
	if err := s.state.eval.enter(ctx); err != nil {
		return err
	}
	defer s.state.eval.leave()
	defer func() {
		if x := recover(); x != nil {
			s.state.runner = nil
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if err := s.stale(); err != nil {
		return err
	}
	if s.state.runner == nil {
		s.state.runner = model.NewRunner(s.state.m, s.state.batchTokens, false)
	}
	computed, err := s.state.runner.Run(ctx, rows, asks, func(i int, lp float32) float32 {
		got(i, lp)
		return 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		s.usage.Rows += len(row)
	}
	s.usage.RowsComputed += computed
	return err
}
