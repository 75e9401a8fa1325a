package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"

	"envace/engine"
	"envace/internal/kernel"
)

var _ engine.Streamer = (*Sampler)(nil)

// Stream draws one continuation and passes each token to w: see engine.Streamer.
func (s *Sampler) Stream(ctx context.Context, prompt []int, p engine.Params, w engine.Watch) (engine.StopReason, error) {
	if err := s.checkSample(prompt, 1, p); err != nil {
		return "", fmt.Errorf("stream: %w", err)
	}
	c := newCall(ctx, prompt, 1, p)
	c.watch = &w
	if err := s.await(c); err != nil {
		return "", fmt.Errorf("stream: %w", err)
	}
	return c.out[0].Stop, nil
}

// tell passes the token just drawn to the watcher.
func (q *sequence) tell() {
	if w := q.call.watch; w != nil && w.Each != nil {
		d := q.next
		w.Each(engine.Token{ID: d.id, Logprob: d.logprob, SampleLogprob: d.sample, Top: q.top})
	}
}

// pick draws the sequence's next token from the logits z.
func (q *sequence) pick(z []float32) drawn {
	pos := len(q.ids) - len(q.call.prompt)
	w := q.call.watch
	if w == nil || w.Constraint == nil && w.Top == 0 {
		return pick(z, q.call.p, q.i, pos)
	}
	k := pickers.Get().(*picker)
	defer pickers.Put(k)
	k.e = append(k.e[:0], z...)
	plain := kernel.SoftmaxExp(k.e)
	if !plain.Finite() {
		return drawn{err: errLogits}
	}
	allowed := z
	if w.Constraint != nil {
		if mask := w.Constraint.Allow(q.ids[len(q.call.prompt):]); mask != nil {
			if allowed = masked(z, mask); allowed == nil {
				q.call.end(engine.ErrConstraint)
				return drawn{id: -1}
			}
		}
	}
	d := pick(allowed, q.call.p, q.i, pos)
	if d.err == nil {
		d.logprob = plain.Logprob(z[d.id])
		q.top = likeliest(z, plain, w.Top)
	}
	return d
}

// masked returns a copy of z with the tokens not in mask set to −Inf, or nil if
// mask allows no token.
func masked(z []float32, mask []uint64) []float32 {
	out := make([]float32, len(z))
	some := false
	for i := range out {
		out[i] = float32(math.Inf(-1))
		if i/64 < len(mask) && mask[i/64]>>(i%64)&1 == 1 {
			out[i], some = z[i], true
		}
	}
	if !some {
		return nil
	}
	return out
}

// likeliest returns the n tokens with the largest logits.
func likeliest(z []float32, s kernel.Softmax, n int) []engine.Likely {
	var ids []int
	for id, v := range z {
		if len(ids) == n && (n == 0 || v <= z[ids[n-1]]) {
			continue
		}
		at := len(ids)
		for at > 0 && v > z[ids[at-1]] {
			at--
		}
		ids = slices.Insert(ids, at, id)
		ids = ids[:min(len(ids), n)]
	}
	top := make([]engine.Likely, len(ids))
	for i, id := range ids {
		top[i] = engine.Likely{ID: id, Logprob: s.Logprob(z[id])}
	}
	return top
}
