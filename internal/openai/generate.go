package openai

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"

	"envace/chat"
	"envace/engine"
	"envace/render"
)

// The reasons for which an answer ends.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishCalls  = "tool_calls"
)

// news is what has come of one answer since its last news.
type delta struct {
	index    int
	thinking string
	content  string
	calls    []ToolCall
	tokens   []engine.Token // drawn, the one that ends the answer included
	stopped  bool           // the last of tokens ended it
	finish   string         // why the answer is over; "" while it is not
	err      error          // what broke it
}

func (n delta) isEmpty() bool {
	return n.thinking == "" && n.content == "" && len(n.calls) == 0 && len(n.tokens) == 0 && n.finish == ""
}

// generation is what is sampled after one prompt.
type generation struct {
	h          *Handler
	prompt     []int
	params     engine.Params
	stopTexts  []string
	top        int
	raw        bool // text alone is wanted, without thinking and calls
	read       render.ReadOptions
	constraint func() engine.Constraint // nil: any text
}

// all samples n answers to each of gens at once, and hands out their news one at a
// time, in the order in which they come. It returns when all are over, or each
// gives up.
func generateAll(ctx context.Context, gens []generation, n int, each func(delta) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	out := make(chan delta)
	for i := range len(gens) * n {
		g := gens[i/n]
		g.params.Seed = ChoiceSeed(g.params.Seed, i%n)
		wg.Go(func() {
			g.run(ctx, func(x delta) {
				x.index = i
				select {
				case out <- x:
				case <-ctx.Done():
				}
			})
		})
	}
	for left := len(gens) * n; left > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case x := <-out:
			if x.err != nil {
				return x.err
			}
			if err := each(x); err != nil {
				return err
			}
			if x.finish != "" {
				left--
			}
		}
	}
	return nil
}

// one samples one answer.
func (g generation) run(ctx context.Context, tell func(delta)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	drawn := newTokenQueue()
	watch := engine.Watch{Each: drawn.put, Top: g.top}
	if g.constraint != nil {
		watch.Constraint = g.constraint()
	}
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		stop, err := g.h.sampler.Stream(ctx, g.prompt, g.params, watch)
		drawn.end(stop, err)
	}()
	a := g.newDecoder()
	for a.delta.finish == "" && a.delta.err == nil {
		tokens, stop, err := drawn.take(ctx)
		a.delta = delta{err: err}
		for _, t := range tokens {
			if a.delta.finish == "" {
				a.token(t)
			}
		}
		if a.delta.finish == "" && err == nil && stop != "" {
			a.end(stop != engine.StopToken)
		}
		if !a.delta.isEmpty() || a.delta.err != nil {
			tell(a.delta)
		}
	}
}

// reply turns tokens into news.
type decoder struct {
	gen    *generation
	utf8   utf8Decoder
	stop   stopMatcher
	reader *render.Reader
	calls  int
	delta  delta
}

func (g *generation) newDecoder() *decoder {
	a := &decoder{gen: g, stop: stopMatcher{stops: g.stopTexts}}
	if !g.raw {
		a.reader = g.h.chat.Reader(g.prompt, g.read, a.onPiece)
	}
	return a
}

// token takes the next token, and ends the answer where what it says does.
func (a *decoder) token(t engine.Token) {
	a.delta.tokens = append(a.delta.tokens, t)
	if a.gen.isStop(t.ID) {
		a.delta.stopped = true
		return
	}
	a.text(a.stop.add(a.utf8.add(a.gen.h.chat.Tokenizer().Bytes(t.ID))))
	switch {
	case a.stop.matched:
		a.end(false)
	case a.reader != nil && a.reader.Done():
		a.finish(false)
	}
}

// end takes what is held back; cut tells that a limit ended the answer.
func (a *decoder) end(cut bool) {
	if !a.stop.matched {
		a.text(a.stop.add(a.utf8.end()))
	}
	if a.stop.matched {
		cut = false
	}
	a.text(a.stop.end())
	if a.reader != nil {
		a.reader.Close(cut)
	}
	a.finish(cut)
}

func (a *decoder) finish(cut bool) {
	switch {
	case cut:
		a.delta.finish = finishLength
	case a.calls > 0:
		a.delta.finish = finishCalls
	default:
		a.delta.finish = finishStop
	}
}

func (a *decoder) text(s string) {
	switch {
	case s == "":
	case a.reader == nil:
		a.delta.content += s
	default:
		a.reader.Write(s)
	}
}

func (a *decoder) onPiece(p render.Piece) {
	a.delta.thinking += p.Thinking
	a.delta.content += p.Content
	if p.Call != nil {
		a.delta.calls = append(a.delta.calls, a.toolCall(*p.Call))
	}
}

// call gives a call its index and ID. The ID depends on prompt, seed and index
// alone, and has the form that the strictest template wants: nine letters or digits.
func (a *decoder) toolCall(c chat.Call) ToolCall {
	h := fnv.New64a()
	fmt.Fprintln(h, a.gen.prompt, a.gen.params.Seed, a.calls)
	id := "c" + fmt.Sprintf("%08s", strconv.FormatUint(h.Sum64()%(1<<40), 36))
	index := a.calls
	a.calls++
	return ToolCall{Index: &index, ID: id, Type: "function", Function: FunctionCall{c.Name, string(c.Arguments)}}
}

func (g *generation) isStop(id int) bool { return slices.Contains(g.params.Stop, id) }

// queue holds drawn tokens until they are taken, so that the engine never waits.
// It is bounded by the length of the answer.
type tokenQueue struct {
	mu     sync.Mutex
	tokens []engine.Token
	stop   engine.StopReason
	err    error
	done   bool
	signal chan struct{} // has room for one
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

// take waits for tokens or the end, and returns all there are.
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
