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
type Times struct {
	Header time.Duration // for the head of a request: 10 s
	Body   time.Duration // for its body: 60 s
	Unread time.Duration // in all while an answer is written, because it does not read: 30 s
	Idle   time.Duration // between requests: 2 minutes
}

func (t Times) whole() Times {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&t.Header, 10 * time.Second}, {&t.Body, time.Minute}, {&t.Unread, 30 * time.Second}, {&t.Idle, 2 * time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return t
}

// HTTP returns a server for h, with its bounds on connections and times. The
// contexts of requests are made from the one that is given.
func (h *Handler) HTTP(requests context.Context) *http.Server {
	return &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: h.o.Times.Header, IdleTimeout: h.o.Times.Idle, MaxHeaderBytes: 64 << 10,
		ConnContext: h.crowd.come, ConnState: h.crowd.change,
	}
}

// hurry bounds the reading of a body, and the writing of an answer until the
// handler has something to write. Go lifts the first bound once the body is there;
// until then it holds too while an unread body is skipped behind a refusal.
func (h *Handler) hurry(w http.ResponseWriter, r *http.Request) {
	control, now, body := http.NewResponseController(w), time.Now(), h.o.Times.Body
	if h.draining.Load() {
		body = min(body, time.Second)
	}
	if r.ContentLength != 0 {
		control.SetReadDeadline(now.Add(body)) //nolint:errcheck // where there are none, none are needed
	}
	control.SetWriteDeadline(now.Add(h.o.Times.Unread)) //nolint:errcheck // the same
}

// crowd bounds the connections. Where one comes too many, the one that has been
// without an answer under way for longest is closed: whoever merely holds
// connections cannot keep out a client that asks for something.
type crowd struct {
	max   int
	mu    sync.Mutex
	conns map[net.Conn]*guest
}

// guest is a connection.
type guest struct {
	served int       // answers under way or queued for
	since  time.Time // when it came, or was last served
}

type guestKey struct{}

// come takes a new connection in.
func (c *crowd) come(ctx context.Context, conn net.Conn) context.Context {
	g := &guest{since: time.Now()}
	c.mu.Lock()
	c.conns[conn] = g
	var worst net.Conn
	if len(c.conns) > c.max {
		worst = c.idlest()
		delete(c.conns, worst)
	}
	c.mu.Unlock()
	if worst != nil {
		worst.Close() //nolint:errcheck // it is of no use to anybody
	}
	return context.WithValue(ctx, guestKey{}, g)
}

func (c *crowd) idlest() (worst net.Conn) {
	for conn, g := range c.conns {
		if g.served == 0 && (worst == nil || g.since.Before(c.conns[worst].since)) {
			worst = conn
		}
	}
	return worst
}

// change forgets connections that have ended.
func (c *crowd) change(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}
}

// serve keeps the connection of a request from being closed until done is called.
func (c *crowd) serve(ctx context.Context) (done func()) {
	g, ok := ctx.Value(guestKey{}).(*guest)
	if !ok { // not by HTTP
		return func() {}
	}
	count := func(n int) {
		c.mu.Lock()
		g.served += n
		g.since = time.Now()
		c.mu.Unlock()
	}
	count(1)
	return func() { count(-1) }
}

// hush makes connections without an answer under way end: nothing more is read from
// them, so that half a request does not hold up the end of the server.
func (c *crowd) hush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, g := range c.conns {
		if g.served == 0 {
			conn.SetReadDeadline(time.Now()) //nolint:errcheck // it has ended already
		}
	}
}

func (c *crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

const bodies = 32 // of the largest size that may be held at once; of smaller ones, more

var errFull = errors.New("too many large requests are under way")

// load counts the bytes of a body while a request is under way, among those of all.
type load struct {
	all  *atomic.Int64
	most int64
	body io.Reader
	held int64
}

// Read reads a part of the body, unless all requests together hold too much.
func (l *load) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	l.held += int64(n)
	if l.all.Add(int64(n)) > l.most {
		return n, errFull
	}
	return n, err
}

func (l *load) release() { l.all.Add(-l.held) }
