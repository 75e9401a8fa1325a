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
type admission struct {
	mu        sync.Mutex
	free      int // free ones
	queueFree int // requests that may yet wait
	rotation  []string
	waiting   map[string][]*waiter // by client
}

type waiter struct {
	weight int
	ready  chan struct{}
}

func newAdmission(slots, queue int) *admission {
	return &admission{free: slots, queueFree: queue, waiting: map[string][]*waiter{}}
}

// enter takes weight slots for a client, and waits for them if it must. Whoever
// enters must leave.
func (g *admission) acquire(ctx context.Context, client string, weight int) error {
	g.mu.Lock()
	if len(g.rotation) == 0 && g.free >= weight {
		g.free -= weight
		g.mu.Unlock()
		return nil
	}
	if g.queueFree == 0 {
		g.mu.Unlock()
		return newAPIError(http.StatusTooManyRequests, "rate_limit_error", "", codeBusy, "too many requests are waiting: try again in a moment")
	}
	t := &waiter{weight, make(chan struct{})}
	g.queueFree--
	if len(g.waiting[client]) == 0 {
		g.rotation = append(g.rotation, client)
	}
	g.waiting[client] = append(g.waiting[client], t)
	g.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		g.cancel(client, t)
		return ctx.Err()
	}
}

// giveUp takes a ticket out of its queue, or gives back what it was just given.
func (g *admission) cancel(client string, t *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting[client], t)
	if at < 0 {
		g.free += t.weight
		g.dispatch()
		return
	}
	g.remove(client, at)
	g.dispatch()
}

func (g *admission) remove(client string, at int) {
	g.queueFree++
	g.waiting[client] = slices.Delete(g.waiting[client], at, at+1)
	if len(g.waiting[client]) == 0 {
		delete(g.waiting, client)
		g.rotation = slices.DeleteFunc(g.rotation, func(c string) bool { return c == client })
	}
}

// leave gives weight slots back.
func (g *admission) release(weight int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += weight
	g.dispatch()
}

// admit lets in whoever's turn it is, as long as there is room.
func (g *admission) dispatch() {
	for len(g.rotation) > 0 {
		client := g.rotation[0]
		t := g.waiting[client][0]
		if t.weight > g.free {
			return
		}
		g.free -= t.weight
		g.remove(client, 0)
		if len(g.waiting[client]) > 0 { // to the end of the row
			g.rotation = append(g.rotation[1:], client)
		}
		close(t.ready)
	}
}
