package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"
)

// admission is a weighted semaphore with a bounded queue that is fair between
// clients: they are admitted round-robin, and each one's requests in order.
type admission struct {
	mu        sync.Mutex
	free      int                  // slots
	queueFree int                  // places in the queue
	rotation  []string             // clients that wait, next first
	waiting   map[string][]*waiter // by client
}

type waiter struct {
	weight int
	ready  chan struct{}
}

func newAdmission(slots, queue int) *admission {
	return &admission{free: slots, queueFree: queue, waiting: map[string][]*waiter{}}
}

// acquire takes weight slots for a client, and waits for them if necessary. Each
// success must be followed by a release.
func (a *admission) acquire(ctx context.Context, client string, weight int) error {
	a.mu.Lock()
	if len(a.rotation) == 0 && a.free >= weight {
		a.free -= weight
		a.mu.Unlock()
		return nil
	}
	if a.queueFree == 0 {
		a.mu.Unlock()
		return newAPIError(http.StatusTooManyRequests, "rate_limit_error", "", codeBusy, "the request queue is full: retry later")
	}
	w := &waiter{weight, make(chan struct{})}
	a.queueFree--
	if len(a.waiting[client]) == 0 {
		a.rotation = append(a.rotation, client)
	}
	a.waiting[client] = append(a.waiting[client], w)
	a.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		a.cancel(client, w)
		return ctx.Err()
	}
}

// cancel removes a waiter from the queue, or returns its slots if it was just admitted.
func (a *admission) cancel(client string, w *waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.waiting[client], w); i >= 0 {
		a.remove(client, i)
	} else {
		a.free += w.weight
	}
	a.dispatch()
}

func (a *admission) remove(client string, i int) {
	a.queueFree++
	a.waiting[client] = slices.Delete(a.waiting[client], i, i+1)
	if len(a.waiting[client]) == 0 {
		delete(a.waiting, client)
		a.rotation = slices.DeleteFunc(a.rotation, func(c string) bool { return c == client })
	}
}

// release returns weight slots.
func (a *admission) release(weight int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free += weight
	a.dispatch()
}

// dispatch admits waiters in turn while there is room for the next one.
func (a *admission) dispatch() {
	for len(a.rotation) > 0 {
		client := a.rotation[0]
		w := a.waiting[client][0]
		if w.weight > a.free {
			return
		}
		a.free -= w.weight
		a.remove(client, 0)
		if len(a.waiting[client]) > 0 { // to the back of the rotation
			a.rotation = append(a.rotation[1:], client)
		}
		close(w.ready)
	}
}

// load returns the number of free slots and of waiting requests.
func (a *admission) load() (free, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range a.waiting {
		waiting += len(list)
	}
	return a.free, waiting
}
