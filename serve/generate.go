package serve

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"envace/engine"
	"envace/internal/openai"
	"envace/render"
)

// Finish reasons.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishCalls  = "tool_calls"
)

// delta is what a choice has gained since its last delta.
type delta struct {
	index    int
	thinking string
	content  string
	calls    []openai.ToolCall
	tokens   []engine.Token // sampled, including the stop token
	stopped  bool           // the last token is a stop token
	finish   string         // finish reason, or ""
	err      error
}

func (d delta) isEmpty() bool {
	return d.thinking == "" && d.content == "" && len(d.calls) == 0 && len(d.tokens) == 0 && d.finish == ""
}

// generation is what to sample for one prompt.
type generation struct {
	h          *Handler
	prompt     []int
	params     engine.Params
	stopTexts  []string
	top        int
	raw        bool // plain text: do not parse thinking and calls
	read       render.ReadOptions
	constraint func() engine.Constraint // nil: unconstrained
	check      func(delta) error        // of a whole choice; nil: none
}

// generateAll samples n choices of each generation concurrently and calls each with
// their deltas, one at a time. It returns when all have finished, or at the first error.
func generateAll(ctx context.Context, gens []generation, n int, each func(delta) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	out := make(chan delta)
	for i := range len(gens) * n {
		g := gens[i/n]
		g.params.Seed = openai.ChoiceSeed(g.params.Seed, i%n)
		wg.Go(func() {
			g.run(ctx, func(d delta) {
				d.index = i
				select {
				case out <- d:
				case <-ctx.Done():
				}
			})
		})
	}
	for left := len(gens) * n; left > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d := <-out:
			if d.err != nil {
				return d.err
			}
			if err := each(d); err != nil {
				return err
			}
			if d.finish != "" {
				left--
			}
		}
	}
	return nil
}

// maxDraws limits how often a choice is drawn whose grammar leaves something to check.
const maxDraws = 8

// run samples one choice. If it must be checked, it is emitted whole, and drawn again with
// other seeds until it conforms.
func (g generation) run(ctx context.Context, emit func(delta)) {
	if g.check == nil {
		g.draw(ctx, emit)
		return
	}
	var err error
	for i := range maxDraws {
		again := g
		if again.params.Seed = openai.ChoiceSeed(g.params.Seed, i*maxChoices); i > 0 && g.params.Temperature == 0 {
			again.params.Temperature = 1 // else it would be the same
		}
		var whole delta
		again.draw(ctx, func(d delta) { whole.add(d) })
		if whole.err == nil {
			err = g.check(whole)
		}
		if whole.err != nil || err == nil {
			emit(whole)
			return
		}
	}
	emit(delta{err: newAPIError(http.StatusUnprocessableEntity, "invalid_request_error", "", codeSchema, fmt.Sprintf("%d answers were drawn: %v", maxDraws, err))})
}

// add appends the later delta of the same choice.
func (d *delta) add(next delta) {
	d.thinking += next.thinking
	d.content += next.content
	d.calls = append(d.calls, next.calls...)
	d.tokens = append(d.tokens, next.tokens...)
	d.stopped, d.finish, d.err = next.stopped, next.finish, next.err
}

// draw samples one choice once.
func (g generation) draw(ctx context.Context, emit func(delta)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := newTokenQueue()
	watch := engine.Watch{Each: queue.put, Top: g.top}
	if g.constraint != nil {
		watch.Constraint = g.constraint()
	}
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		stop, err := g.h.streamer.Stream(ctx, g.prompt, g.params, watch)
		queue.end(stop, err)
	}()
	dec := g.newDecoder()
	for dec.delta.finish == "" && dec.delta.err == nil {
		tokens, stop, err := queue.take(ctx)
		dec.delta = delta{err: err}
		for _, t := range tokens {
			if dec.delta.finish == "" {
				dec.token(t)
			}
		}
		if dec.delta.finish == "" && err == nil && stop != "" {
			dec.end(stop != engine.StopToken)
		}
		if !dec.delta.isEmpty() || dec.delta.err != nil {
			emit(dec.delta)
		}
	}
}

func (g *generation) isStop(id int) bool { return slices.Contains(g.params.Stop, id) }

// tokenQueue buffers sampled tokens, so that the engine never blocks on a client. It
// is bounded by the length of the completion.
type tokenQueue struct {
	mu     sync.Mutex
	tokens []engine.Token
	stop   engine.StopReason
	err    error
	done   bool
	signal chan struct{} // of capacity 1
}

func newTokenQueue() *tokenQueue { return &tokenQueue{signal: make(chan struct{}, 1)} }

func (q *tokenQueue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

func (q *tokenQueue) put(t engine.Token) {
	q.mu.Lock()
	q.tokens = append(q.tokens, t)
	q.mu.Unlock()
	q.wake()
}

func (q *tokenQueue) end(stop engine.StopReason, err error) {
	q.mu.Lock()
	q.stop, q.err, q.done = stop, err, true
	q.mu.Unlock()
	q.wake()
}

// take waits for tokens or the end, and returns all that are queued.
func (q *tokenQueue) take(ctx context.Context) ([]engine.Token, engine.StopReason, error) {
	for {
		q.mu.Lock()
		tokens, stop, err, over := q.tokens, q.stop, q.err, q.done
		q.tokens = nil
		q.mu.Unlock()
		switch {
		case len(tokens) > 0 && !over:
			return tokens, "", nil
		case over:
			return tokens, stop, err
		}
		select {
		case <-q.signal:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
}
