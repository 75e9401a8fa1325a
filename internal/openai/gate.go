package openai

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// gate bounds how many answers are under way. Requests beyond that wait, fairly:
// clients take turns, and each one's requests go in order. So one that sends a
// hundred delays another by a single turn.
type gate struct {
	mu      sync.Mutex
	slots   int // free ones
	queue   int // requests that may yet wait
	turns   []string
	waiting map[string][]*ticket // by client
}

type ticket struct {
	weight int
	ready  chan struct{}
}

func newGate(slots, queue int) *gate {
	return &gate{slots: slots, queue: queue, waiting: map[string][]*ticket{}}
}

// enter takes weight slots for a client, and waits for them if it must. Whoever
// enters must leave.
func (g *gate) enter(ctx context.Context, client string, weight int) error {
	g.mu.Lock()
	if len(g.turns) == 0 && g.slots >= weight {
		g.slots -= weight
		g.mu.Unlock()
		return nil
	}
	if g.queue == 0 {
		g.mu.Unlock()
		return newFault(http.StatusTooManyRequests, "rate_limit_error", "", codeBusy, "too many requests are waiting: try again in a moment")
	}
	t := &ticket{weight, make(chan struct{})}
	g.queue--
	if len(g.waiting[client]) == 0 {
		g.turns = append(g.turns, client)
	}
	g.waiting[client] = append(g.waiting[client], t)
	g.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		g.giveUp(client, t)
		return ctx.Err()
	}
}

// giveUp takes a ticket out of its queue, or gives back what it was just given.
func (g *gate) giveUp(client string, t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting[client], t)
	if at < 0 {
		g.slots += t.weight
		g.admit()
		return
	}
	g.remove(client, at)
	g.admit()
}

func (g *gate) remove(client string, at int) {
	g.queue++
	g.waiting[client] = slices.Delete(g.waiting[client], at, at+1)
	if len(g.waiting[client]) == 0 {
		delete(g.waiting, client)
		g.turns = slices.DeleteFunc(g.turns, func(c string) bool { return c == client })
	}
}

// leave gives weight slots back.
func (g *gate) leave(weight int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots += weight
	g.admit()
}

// admit lets in whoever's turn it is, as long as there is room.
func (g *gate) admit() {
	for len(g.turns) > 0 {
		client := g.turns[0]
		t := g.waiting[client][0]
		if t.weight > g.slots {
			return
		}
		g.slots -= t.weight
		g.remove(client, 0)
		if len(g.waiting[client]) > 0 { // to the end of the row
			g.turns = append(g.turns[1:], client)
		}
		close(t.ready)
	}
}
