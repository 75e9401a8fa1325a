package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// connLimiter limits open connections. A connection beyond the limit closes the one
// that has been longest without a completion in progress, so that idle connections
// cannot lock out a client that sends a request.
type connLimiter struct {
	max   int
	mu    sync.Mutex
	conns map[net.Conn]*trackedConn
}

type trackedConn struct {
	active    int       // completions in progress or queued
	idleSince time.Time // when it was accepted, or its last completion changed state
}

type connKey struct{}

// track is the ConnContext hook of http.Server.
func (l *connLimiter) track(ctx context.Context, conn net.Conn) context.Context {
	t := &trackedConn{idleSince: time.Now()}
	l.mu.Lock()
	l.conns[conn] = t
	var evicted net.Conn
	if len(l.conns) > l.max {
		evicted = l.longestIdle()
		delete(l.conns, evicted)
	}
	l.mu.Unlock()
	if evicted != nil {
		evicted.Close() //nolint:errcheck // nobody to tell
	}
	return context.WithValue(ctx, connKey{}, t)
}

func (l *connLimiter) longestIdle() (found net.Conn) {
	for conn, t := range l.conns {
		if t.active == 0 && (found == nil || t.idleSince.Before(l.conns[found].idleSince)) {
			found = conn
		}
	}
	return found
}

// stateChanged is the ConnState hook of http.Server.
func (l *connLimiter) stateChanged(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		l.mu.Lock()
		delete(l.conns, conn)
		l.mu.Unlock()
	}
}

// markActive protects the connection of a request from eviction until done is called.
func (l *connLimiter) markActive(ctx context.Context) (done func()) {
	t, ok := ctx.Value(connKey{}).(*trackedConn)
	if !ok { // not through Handler.Server
		return func() {}
	}
	add := func(n int) {
		l.mu.Lock()
		t.active += n
		t.idleSince = time.Now()
		l.mu.Unlock()
	}
	add(1)
	return func() { add(-1) }
}

// expireIdle stops reading from connections without a completion in progress.
func (l *connLimiter) expireIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn, t := range l.conns {
		if t.active == 0 {
			conn.SetReadDeadline(time.Now()) //nolint:errcheck // already closed
		}
	}
}

func (l *connLimiter) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}
