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
type news struct {
	index    int
	thinking string
	content  string
	calls    []ToolCall
	tokens   []engine.Token // drawn, the one that ends the answer included
	ended    bool           // the last of tokens ended it
	finish   string         // why the answer is over; "" while it is not
	err      error          // what broke it
}

func (n news) empty() bool {
	return n.thinking == "" && n.content == "" && len(n.calls) == 0 && len(n.tokens) == 0 && n.finish == ""
}

// generation is what is sampled after one prompt.
type generation struct {
	h      *Handler
	prompt []int
	params engine.Params
	stops  []string
	top    int
	raw    bool // text alone is wanted, without thinking and calls
	read   render.ReadOptions
	guide  func() engine.Guide // nil: any text
}

// all samples n answers to each of gens at once, and hands out their news one at a
// time, in the order in which they come. It returns when all are over, or each
// gives up.
func all(ctx context.Context, gens []generation, n int, each func(news) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	out := make(chan news)
	for i := range len(gens) * n {
		g := gens[i/n]
		g.params.Seed = seedOf(g.params.Seed, i%n)
		wg.Go(func() {
			g.one(ctx, func(x news) {
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
func (g generation) one(ctx context.Context, tell func(news)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	drawn := newQueue()
	watch := engine.Watch{Each: drawn.put, Top: g.top}
	if g.guide != nil {
		watch.Guide = g.guide()
	}
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		stop, err := g.h.sampler.Stream(ctx, g.prompt, g.params, watch)
		drawn.end(stop, err)
	}()
	a := g.newAnswer()
	for a.x.finish == "" && a.x.err == nil {
		tokens, stop, err := drawn.take(ctx)
		a.x = news{err: err}
		for _, t := range tokens {
			if a.x.finish == "" {
				a.token(t)
			}
		}
		if a.x.finish == "" && err == nil && stop != "" {
			a.end(stop != engine.StopToken)
		}
		if !a.x.empty() || a.x.err != nil {
			tell(a.x)
		}
	}
}

// reply turns tokens into news.
type reply struct {
	g      *generation
	chars  characters
	stop   stopper
	reader *render.Reader
	calls  int
	x      news
}

func (g *generation) newAnswer() *reply {
	a := &reply{g: g, stop: stopper{stops: g.stops}}
	if !g.raw {
		a.reader = g.h.chat.Reader(g.prompt, g.read, a.piece)
	}
	return a
}

// token takes the next token, and ends the answer where what it says does.
func (a *reply) token(t engine.Token) {
	a.x.tokens = append(a.x.tokens, t)
	if a.g.ends(t.ID) {
		a.x.ended = true
		return
	}
	a.text(a.stop.add(a.chars.add(a.g.h.chat.Tokenizer().Bytes(t.ID))))
	switch {
	case a.stop.hit:
		a.end(false)
	case a.reader != nil && a.reader.Done():
		a.finish(false)
	}
}

// end takes what is held back; cut tells that a limit ended the answer.
func (a *reply) end(cut bool) {
	if !a.stop.hit {
		a.text(a.stop.add(a.chars.end()))
	}
	if a.stop.hit {
		cut = false
	}
	a.text(a.stop.end())
	if a.reader != nil {
		a.reader.Close(cut)
	}
	a.finish(cut)
}

func (a *reply) finish(cut bool) {
	switch {
	case cut:
		a.x.finish = finishLength
	case a.calls > 0:
		a.x.finish = finishCalls
	default:
		a.x.finish = finishStop
	}
}

func (a *reply) text(s string) {
	switch {
	case s == "":
	case a.reader == nil:
		a.x.content += s
	default:
		a.reader.Write(s)
	}
}

func (a *reply) piece(p render.Piece) {
	a.x.thinking += p.Thinking
	a.x.content += p.Content
	if p.Call != nil {
		a.x.calls = append(a.x.calls, a.call(*p.Call))
	}
}

// call gives a call its index and ID. The ID depends on prompt, seed and index
// alone, and has the form that the strictest template wants: nine letters or digits.
func (a *reply) call(c chat.Call) ToolCall {
	h := fnv.New64a()
	fmt.Fprintln(h, a.g.prompt, a.g.params.Seed, a.calls)
	id := "c" + fmt.Sprintf("%08s", strconv.FormatUint(h.Sum64()%(1<<40), 36))
	index := a.calls
	a.calls++
	return ToolCall{Index: &index, ID: id, Type: "function", Function: FunctionCall{c.Name, string(c.Arguments)}}
}

func (g *generation) ends(id int) bool { return slices.Contains(g.params.Stop, id) }

// queue holds drawn tokens until they are taken, so that the engine never waits.
// It is bounded by the length of the answer.
type queue struct {
	mu     sync.Mutex
	tokens []engine.Token
	stop   engine.StopReason
	err    error
	over   bool
	signal chan struct{} // has room for one
}

func newQueue() *queue { return &queue{signal: make(chan struct{}, 1)} }

func (q *queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

func (q *queue) put(t engine.Token) {
	q.mu.Lock()
	q.tokens = append(q.tokens, t)
	q.mu.Unlock()
	q.wake()
}

func (q *queue) end(stop engine.StopReason, err error) {
	q.mu.Lock()
	q.stop, q.err, q.over = stop, err, true
	q.mu.Unlock()
	q.wake()
}

// take waits for tokens or the end, and returns all there are.
func (q *queue) take(ctx context.Context) ([]engine.Token, engine.StopReason, error) {
	for {
		q.mu.Lock()
		tokens, stop, err, over := q.tokens, q.stop, q.err, q.over
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
