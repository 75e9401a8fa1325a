package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Times bound how long a client may keep a server waiting. A field that is 0 has
// its default.
type Timeouts struct {
	Header time.Duration // for the head of a request: 10 s
	Body   time.Duration // for its body: 60 s
	Write  time.Duration // in all while an answer is written, because it does not read: 30 s
	Idle   time.Duration // between requests: 2 minutes
}

func (t Timeouts) withDefaults() Timeouts {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&t.Header, 10 * time.Second}, {&t.Body, time.Minute}, {&t.Write, 30 * time.Second}, {&t.Idle, 2 * time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return t
}

// HTTP returns a server for h, with its bounds on connections and times. The
// contexts of requests are made from the one that is given.
func (h *Handler) Server(requests context.Context) *http.Server {
	return &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: h.opts.Timeouts.Header, IdleTimeout: h.opts.Timeouts.Idle, MaxHeaderBytes: 64 << 10,
		ConnContext: h.conns.track, ConnState: h.conns.stateChanged,
	}
}

// hurry bounds the reading of a body, and the writing of an answer until the
// handler has something to write. Go lifts the first bound once the body is there;
// until then it holds too while an unread body is skipped behind a refusal.
func (h *Handler) setDeadlines(w http.ResponseWriter, r *http.Request) {
	control, now, body := http.NewResponseController(w), time.Now(), h.opts.Timeouts.Body
	if h.draining.Load() {
		body = min(body, time.Second)
	}
	if r.ContentLength != 0 {
		control.SetReadDeadline(now.Add(body)) //nolint:errcheck // where there are none, none are needed
	}
	control.SetWriteDeadline(now.Add(h.opts.Timeouts.Write)) //nolint:errcheck // the same
}

// crowd bounds the connections. Where one comes too many, the one that has been
// without an answer under way for longest is closed: whoever merely holds
// connections cannot keep out a client that asks for something.
type connLimiter struct {
	max   int
	mu    sync.Mutex
	conns map[net.Conn]*trackedConn
}

// guest is a connection.
type trackedConn struct {
	active    int       // answers under way or queued for
	idleSince time.Time // when it came, or was last served
}

type connKey struct{}

// come takes a new connection in.
func (c *connLimiter) track(ctx context.Context, conn net.Conn) context.Context {
	g := &trackedConn{idleSince: time.Now()}
	c.mu.Lock()
	c.conns[conn] = g
	var worst net.Conn
	if len(c.conns) > c.max {
		worst = c.longestIdle()
		delete(c.conns, worst)
	}
	c.mu.Unlock()
	if worst != nil {
		worst.Close() //nolint:errcheck // it is of no use to anybody
	}
	return context.WithValue(ctx, connKey{}, g)
}

func (c *connLimiter) longestIdle() (worst net.Conn) {
	for conn, g := range c.conns {
		if g.active == 0 && (worst == nil || g.idleSince.Before(c.conns[worst].idleSince)) {
			worst = conn
		}
	}
	return worst
}

// change forgets connections that have ended.
func (c *connLimiter) stateChanged(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}
}

// serve keeps the connection of a request from being closed until done is called.
func (c *connLimiter) markActive(ctx context.Context) (done func()) {
	g, ok := ctx.Value(connKey{}).(*trackedConn)
	if !ok { // not by HTTP
		return func() {}
	}
	count := func(n int) {
		c.mu.Lock()
		g.active += n
		g.idleSince = time.Now()
		c.mu.Unlock()
	}
	count(1)
	return func() { count(-1) }
}

// hush makes connections without an answer under way end: nothing more is read from
// them, so that half a request does not hold up the end of the server.
func (c *connLimiter) expireIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, g := range c.conns {
		if g.active == 0 {
			conn.SetReadDeadline(time.Now()) //nolint:errcheck // it has ended already
		}
	}
}

func (c *connLimiter) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

const maxBodies = 32 // of the largest size that may be held at once; of smaller ones, more

var errBodyMemory = errors.New("too many large requests are under way")

// load counts the bytes of a body while a request is under way, among those of all.
type bodyReader struct {
	total *atomic.Int64
	limit int64
	body  io.Reader
	read  int64
}

// Read reads a part of the body, unless all requests together hold too much.
func (l *bodyReader) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	l.read += int64(n)
	if l.total.Add(int64(n)) > l.limit {
		return n, errBodyMemory
	}
	return n, err
}

func (l *bodyReader) release() { l.total.Add(-l.read) }
