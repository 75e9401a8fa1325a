package cpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"envace/engine"
	"envace/internal/model"
)

// call is one call of Sample: n sequences that go their own ways.
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
	watch  *engine.Watch // of Stream; its call has one sequence
}

// sequence is one continuation under way.
type sequence struct {
	call *call
	i    int
	ids  []int      // prompt and what has been drawn
	seq  *model.Seq // nil while it waits for memory
	next drawn
	top  []engine.Likely // of next, where it is watched
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
	prefillTokens = 512 // tokens that one step computes, beyond those just drawn
	maxActive     = 512 // sequences that a step advances
)

// schedule is what the scheduler's goroutine works on; nobody else touches it.
type schedule struct {
	active  []*sequence // have memory, in the order in which they got it
	waiting []*sequence // wait for memory, first come first served
	seqs    []*model.Seq
}

// run advances all sequences until there are none, step by step: each step
// computes one token of every active sequence, and some of the prompts' tokens.
func (s *Sampler) run() {
	for s.take() {
		if err := s.step(); err != nil {
			s.fail(err)
		}
	}
}

// take admits what has arrived; with nothing to do, it ends the goroutine.
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

// fail ends all calls under way. The cache may hold half a step, so it is dropped.
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

// count adds a step that computed some tokens to the sampler's usage. Of a
// sequence that has drawn before, a token computed alone is the one drawn last.
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

// drop removes the sequences of calls that nobody waits for any more.
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

// admit gives memory to waiting sequences, if it leaves some for the active ones to
// grow. One alone always gets it.
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

// advance appends what was drawn, and ends and moves sequences accordingly.
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

// pause takes the memory of the sequence that got it last, which waits from then
// on and is computed again: it draws the same tokens, whatever the batch.
func (b *schedule) pause(q *sequence) {
	q.seq.Close()
	q.seq = nil
	b.active = b.active[:len(b.active)-1]
	b.waiting = slices.Insert(b.waiting, 0, q)
}

// take appends the drawn token to the sequence's result and ends it if it must.
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
