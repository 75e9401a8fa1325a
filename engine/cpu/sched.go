package cpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"envace/engine"
	"envace/internal/model"
)

// call is one call of Sample: n independent sequences.
type call struct {
	ctx    context.Context
	prompt []int
	p      engine.Params
	out    []engine.Sequence
	left   int
	err    error
	done   chan struct{}
	ended  bool
	fresh  []*sequence
	watch  *engine.Watch // set by Stream, whose calls have one sequence
}

// sequence is one continuation being sampled.
type sequence struct {
	call *call
	i    int
	ids  []int      // prompt and tokens drawn so far
	seq  *model.Seq // nil while waiting for memory
	next drawn
	top  []engine.Likely // alternatives to next, if watched
	over bool
}

func newCall(ctx context.Context, prompt []int, n int, p engine.Params) *call {
	c := &call{ctx: ctx, prompt: prompt, p: p, out: make([]engine.Sequence, n), left: n, done: make(chan struct{})}
	for i := range n {
		c.fresh = append(c.fresh, &sequence{call: c, i: i, ids: slices.Clone(prompt)})
	}
	return c
}

func (c *call) end(err error) {
	if !c.ended {
		c.err, c.ended = err, true
		close(c.done)
	}
}

const (
	prefillTokens = 512 // maximum prompt tokens per step
	maxActive     = 512 // maximum sequences per step
)

// schedule is owned by the scheduler's goroutine.
type schedule struct {
	active  []*sequence // hold memory, in the order they got it
	waiting []*sequence // waiting for memory, in FIFO order
	seqs    []*model.Seq
}

// run advances all sequences until there are none left. Each step computes one
// token of every active sequence and some of the prompt tokens.
func (s *Sampler) run() {
	for s.take() {
		if err := s.step(); err != nil {
			s.fail(err)
		}
	}
}

// take queues incoming calls. It returns false, which ends the goroutine, if there
// is nothing to do.
func (s *Sampler) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.incoming {
		s.usage.Prompt += len(c.fresh) * len(c.prompt)
		s.batch.waiting = append(s.batch.waiting, c.fresh...)
		c.fresh = nil
	}
	s.incoming = s.incoming[:0]
	if len(s.batch.active)+len(s.batch.waiting) > 0 {
		return true
	}
	s.running = false
	if s.stale() != nil {
		s.decoder = nil
	}
	return false
}

// fail ends all running calls. The cache may hold a partial step, so it is dropped.
func (s *Sampler) fail(err error) {
	for _, q := range append(s.batch.active, s.batch.waiting...) {
		q.call.end(err)
	}
	s.batch = schedule{}
	s.mu.Lock()
	s.decoder = nil
	s.mu.Unlock()
}

// step advances every active sequence by one token.
func (s *Sampler) step() (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if err := s.stale(); err != nil {
		return err
	}
	if s.decoder == nil {
		s.setDecoder(model.NewDecoder(s.state.m, s.state.cacheTokens))
	}
	b := &s.batch
	b.drop()
	b.admit(s.decoder.Cache())
	if len(b.active) == 0 {
		return nil
	}
	b.seqs = b.seqs[:0]
	for _, q := range b.active {
		q.next = drawn{id: -1}
		b.seqs = append(b.seqs, q.seq)
	}
	began, before := time.Now(), s.decoder.Computed()
	err = s.decoder.Step(b.seqs, s.state.prefill, func(i int, logits []float32) {
		q := b.active[i]
		q.next = q.pick(logits)
	})
	if err != nil {
		return err
	}
	s.count(s.decoder.Computed()-before, time.Since(began).Seconds())
	return b.advance(s.state.m.Config.Context)
}

// count adds a step to the sampler's usage. A single token computed for a sequence
// that has drawn before is the token it drew last, so it counts as decoded.
func (s *Sampler) count(computed int, seconds float64) {
	decoded, sampled := 0, 0
	for _, q := range s.batch.active {
		if q.next.id < 0 {
			continue
		}
		sampled++
		if len(q.ids) > len(q.call.prompt) && q.seq.Alone() {
			decoded++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.usage
	u.Decoded += decoded
	u.Prefilled += computed - decoded
	u.Sampled += sampled
	if sampled > 0 {
		u.Steps++
	}
	if computed > 0 {
		share := float64(decoded) / float64(computed)
		u.DecodeSeconds += share * seconds
		u.PrefillSeconds += (1 - share) * seconds
	}
}

func (s *Sampler) setDecoder(d *model.Decoder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decoder = d
}

// drop removes the sequences of cancelled and ended calls.
func (b *schedule) drop() {
	gone := func(q *sequence) bool {
		if err := q.call.ctx.Err(); err != nil {
			q.call.end(err)
		}
		if q.call.ended && q.seq != nil {
			q.seq.Close()
			q.seq = nil
		}
		return q.call.ended
	}
	b.active = slices.DeleteFunc(b.active, gone)
	b.waiting = slices.DeleteFunc(b.waiting, gone)
}

// admit gives memory to waiting sequences as long as the active ones keep room to
// grow. A sequence that would be the only active one is always admitted.
func (b *schedule) admit(c *model.Cache) {
	for len(b.waiting) > 0 && len(b.active) < maxActive {
		q := b.waiting[0]
		if q.seq = c.Open(q.ids, len(b.active), len(b.active) == 0); q.seq == nil {
			return
		}
		b.active = append(b.active, q)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// advance appends the drawn tokens, and ends or pauses sequences as needed.
func (b *schedule) advance(window int) error {
	for _, q := range b.active {
		if q.next.id < 0 {
			continue
		}
		if q.next.err != nil {
			return q.next.err
		}
		q.take(window)
	}
	b.active = slices.DeleteFunc(b.active, func(q *sequence) bool { return q.over })
	for i := 0; i < len(b.active); i++ {
		q := b.active[i]
		for q.next.id >= 0 && !q.seq.Append(q.next.id, len(b.active) == 1) {
			last := b.active[len(b.active)-1]
			b.pause(last)
			if last == q {
				break
			}
		}
	}
	return nil
}

// pause takes the memory of q, the sequence that got memory last, and puts it at
// the head of the queue. It is recomputed later and draws the same tokens, since
// draws do not depend on the batch.
func (b *schedule) pause(q *sequence) {
	q.seq.Close()
	q.seq = nil
	b.active = b.active[:len(b.active)-1]
	b.waiting = slices.Insert(b.waiting, 0, q)
}

// take appends the drawn token to the sequence's result and ends the sequence if a
// stop condition holds.
func (q *sequence) take(window int) {
	out, p := &q.call.out[q.i], &q.call.p
	q.ids = append(q.ids, q.next.id)
	out.Tokens = append(out.Tokens, q.next.id)
	out.Logprobs = append(out.Logprobs, q.next.logprob)
	out.SampleLogprobs = append(out.SampleLogprobs, q.next.sample)
	q.tell()
	switch {
	case slices.Contains(p.Stop, q.next.id):
		out.Stop = engine.StopToken
	case len(out.Tokens) == p.MaxTokens:
		out.Stop = engine.StopLength
	case len(q.ids) >= window:
		out.Stop = engine.StopWindow
	default:
		return
	}
	q.over = true
	q.seq.Close()
	q.seq = nil
	if q.call.left--; q.call.left == 0 {
		q.call.end(nil)
	}
}
