// Package serve serves a language model over OpenAI's HTTP API: chat completions
// with tools, text completions, streaming and structured outputs, along with a chat
// page and Prometheus metrics.
//
//	h, err := serve.New(serve.Options{Name: "qwen3", Chat: chat, Sampler: sampler, Window: window})
//	…
//	err = h.Server(ctx).ListenAndServe()
package serve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"envace/engine"
	"envace/internal/grammar"
	"envace/render"
)

// Options configure a Handler. Name, Chat, Sampler and Window are required.
type Options struct {
	Name      string         // model name in the API
	Chat      *render.Chat   // chat format of the model: see render.Open
	Sampler   engine.Sampler // must also implement engine.Streamer
	Window    int            // context window in tokens, prompt and completion together
	MaxTokens int            // default completion limit of chats; 0 means the rest of the window
	APIKey    string         // API key; "" disables authentication and serves localhost only
	Slots     int            // completions generated concurrently; 0 means 32
	Queue     int            // requests that may wait for a slot; 0 means 256, negative means none
	MaxBody   int64          // request body limit in bytes; 0 means 8 MiB
	MaxConns  int            // open connections; 0 means 1024 plus Slots and Queue
	Timeouts  Timeouts
}

// Timeouts limit how long a client can hold resources. Zero fields take the default.
type Timeouts struct {
	Header time.Duration // reading the request header: 10 s
	Body   time.Duration // reading the request body: 60 s
	Write  time.Duration // blocked on a client that does not read, in total per response: 30 s
	Idle   time.Duration // between requests on a keep-alive connection: 2 min
}

func (o Options) withDefaults() Options {
	setDefault(&o.Slots, 32)
	setDefault(&o.Queue, 256)
	setDefault(&o.MaxBody, 8<<20)
	setDefault(&o.MaxConns, 1024+o.Slots+max(o.Queue, 0))
	setDefault(&o.Timeouts.Header, 10*time.Second)
	setDefault(&o.Timeouts.Body, time.Minute)
	setDefault(&o.Timeouts.Write, 30*time.Second)
	setDefault(&o.Timeouts.Idle, 2*time.Minute)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// New returns a Handler for the model that o describes.
func New(o Options) (*Handler, error) {
	if o.Chat == nil {
		return nil, fmt.Errorf("serve %s: no chat format given", o.Name)
	}
	streamer, ok := o.Sampler.(engine.Streamer)
	if !ok {
		return nil, fmt.Errorf("serve %s: the sampler (%T) does not implement engine.Streamer", o.Name, o.Sampler)
	}
	o = o.withDefaults()
	h := &Handler{
		opts: o, chat: o.Chat, streamer: streamer, mux: http.NewServeMux(), created: time.Now(),
		admission: newAdmission(o.Slots, max(o.Queue, 0)),
		conns:     connLimiter{max: o.MaxConns, conns: map[net.Conn]*trackedConn{}},
	}
	h.metrics = newMetrics(h)
	h.vocabulary = sync.OnceValue(func() *grammar.Vocabulary { return newVocabulary(o.Chat) })
	h.routes()
	return h, nil
}

// Server returns an HTTP server for h with its timeouts and connection limit. ctx is
// the base context of all requests. Once Shutdown is called, new requests get status
// 503, and Shutdown does not wait for clients that are still sending a request.
func (h *Handler) Server(ctx context.Context) *http.Server {
	s := &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: h.opts.Timeouts.Header, IdleTimeout: h.opts.Timeouts.Idle, MaxHeaderBytes: 64 << 10,
		ConnContext: h.conns.track, ConnState: h.conns.stateChanged,
	}
	s.RegisterOnShutdown(h.drain)
	return s
}

// drain refuses new requests and disconnects clients without a completion in
// progress, such as those that have sent half a request.
func (h *Handler) drain() {
	h.draining.Store(true)
	h.conns.expireIdle()
}
