package openai

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/internal/guide"
	"envace/render"
)

// Server is what a Handler serves, and within which bounds.
type Options struct {
	Name      string // the model's, as clients name it
	Chat      *render.Chat
	Sampler   engine.Sampler // must be an engine.Streamer too
	Window    int            // most tokens of a prompt with its answer
	MaxTokens int            // of an answer whose request does not say; 0: as the window allows
	Key       string         // that clients must send; "" asks for none and serves this machine alone
	Slots     int            // answers under way at once; 0 means 32
	Queue     int            // requests that may wait beside them; 0 means 256, below 0 none
	MaxBody   int64          // bytes of a request; 0 means 8 MiB
	MaxConns  int            // connections at once; 0 means 1024 beside slots and queue
	Timeouts  Timeouts       // how long a client may keep the server waiting
}

// Handler serves a model by OpenAI's protocol, and a page to chat with it.
type Handler struct {
	opts       Options
	chat       *render.Chat
	sampler    engine.Streamer
	mux        *http.ServeMux
	admission  *admission
	conns      connLimiter
	bodyBytes  atomic.Int64 // bytes of bodies
	metrics    metrics
	created    time.Time
	draining   atomic.Bool
	vocabulary func() *guide.Vocabulary // made when first needed
}

// NewHandler returns a handler for s.
func New(s Options) (*Handler, error) {
	streamer, ok := s.Sampler.(engine.Streamer)
	if !ok {
		return nil, fmt.Errorf("serve %s: its engine cannot tell tokens one by one", s.Name)
	}
	if s.Slots == 0 {
		s.Slots = 32
	}
	if s.Queue == 0 {
		s.Queue = 256
	}
	if s.MaxBody == 0 {
		s.MaxBody = 8 << 20
	}
	if s.MaxConns == 0 {
		s.MaxConns = 1024 + s.Slots + max(s.Queue, 0)
	}
	s.Timeouts = s.Timeouts.withDefaults()
	h := &Handler{opts: s, chat: s.Chat, sampler: streamer, mux: http.NewServeMux(), admission: newAdmission(s.Slots, max(s.Queue, 0)), created: time.Now()}
	h.conns = connLimiter{max: s.MaxConns, conns: map[net.Conn]*trackedConn{}}
	h.vocabulary = sync.OnceValue(h.newVocabulary)
	h.routes()
	return h, nil
}

func (h *Handler) routes() {
	h.page()
	h.handle("GET /health", h.health)
	h.handle("GET /metrics", h.serveMetrics)
	h.handle("GET /v1/models", h.models)
	h.handle("GET /v1/models/{id...}", h.model)
	h.handle("POST /v1/chat/completions", h.chatCompletions)
	h.handle("POST /v1/completions", h.completions)
	h.handle("POST /v1/embeddings", func(http.ResponseWriter, *http.Request) error {
		return badRequest("", "embeddings are not supported: this server writes text")
	})
	for _, path := range []string{"/health", "/metrics", "/v1/models", "/v1/chat/completions", "/v1/completions", "/v1/embeddings"} {
		h.handle(path, func(_ http.ResponseWriter, r *http.Request) error {
			return newAPIError(http.StatusMethodNotAllowed, "invalid_request_error", "", "", fmt.Sprintf("%s does not take %s", r.URL.Path, r.Method))
		})
	}
	h.handle("/", func(_ http.ResponseWriter, r *http.Request) error {
		return newAPIError(http.StatusNotFound, "invalid_request_error", "", "", fmt.Sprintf("there is nothing at %s %s", r.Method, r.URL.Path))
	})
}

// handle answers what serve returns as an error, unless the answer has begun.
func (h *Handler) handle(pattern string, serve func(http.ResponseWriter, *http.Request) error) {
	_, path, _ := strings.Cut(pattern, " ")
	if path == "" {
		path = "other"
	}
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		over := h.metrics.startRequest(path)
		out := &responseWriter{ResponseWriter: w, timeout: h.opts.Timeouts.Write}
		defer func() { over(out.status) }()
		defer func() {
			if x := recover(); x != nil {
				slog.Error("panic in a request", "path", path, "panic", x, "stack", string(debug.Stack()))
				out.writeError(newAPIError(http.StatusInternalServerError, "server_error", "", "", "the server has a fault: see its log"))
			}
		}()
		err := h.authorize(r, path)
		if err == nil {
			err = serve(out, r)
		}
		if err != nil {
			out.writeError(err)
		}
	})
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.setDeadlines(w, r)
	h.mux.ServeHTTP(w, r)
}

// Drain makes /health say, and new requests hear, that the server is stopping. Who
// has begun to send a request is not waited for.
func (h *Handler) Drain() {
	h.draining.Store(true)
	h.conns.expireIdle()
}

// check admits a request: pages of other sites are kept out (a browser names the
// site, or was led here by a name of its own), and with a key, whoever lacks it.
func (h *Handler) authorize(r *http.Request, path string) error {
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return newAPIError(http.StatusForbidden, "invalid_request_error", "", "", "requests from pages of other sites are refused")
		}
	}
	if h.opts.Key == "" && !isLocalhost(r.Host) {
		return newAPIError(http.StatusForbidden, "invalid_request_error", "", "", fmt.Sprintf("the host is called %.100q: without a key only localhost is served", r.Host))
	}
	if h.draining.Load() && r.Method == http.MethodPost {
		return errShuttingDown()
	}
	if path == "/health" || h.opts.Key == "" {
		return nil
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(h.opts.Key)) != 1 {
		return newAPIError(http.StatusUnauthorized, "authentication_error", "", codeKey, "the key is missing or wrong: send it as Authorization: Bearer KEY")
	}
	return nil
}

// local reports whether a Host header names this machine to itself.
func isLocalhost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

func (h *Handler) health(w http.ResponseWriter, _ *http.Request) error {
	if h.draining.Load() {
		return errShuttingDown()
	}
	return writeJSON(w, map[string]string{"status": "ok"})
}

func errShuttingDown() error {
	return newAPIError(http.StatusServiceUnavailable, "server_error", "", "", "the server is stopping")
}

func (h *Handler) serveMetrics(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	h.admission.mu.Lock()
	slots, waiting := h.admission.free, 0
	for _, list := range h.admission.waiting {
		waiting += len(list)
	}
	h.admission.mu.Unlock()
	var text bytes.Buffer // so that nobody waits for who reads it slowly
	h.metrics.write(&text, slots, waiting, h.conns.open())
	w.Write(text.Bytes()) //nolint:errcheck // the client has gone
	return nil
}

func (h *Handler) modelInfo() Model {
	return Model{ID: h.opts.Name, Object: "model", Created: h.created.Unix(), OwnedBy: "envace", Window: h.opts.Window}
}

func (h *Handler) models(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, Models{Object: "list", Data: []Model{h.modelInfo()}})
}

func (h *Handler) model(w http.ResponseWriter, r *http.Request) error {
	if err := h.checkModel(r.PathValue("id")); err != nil {
		return err
	}
	return writeJSON(w, h.modelInfo())
}

// named checks the model that a request names.
func (h *Handler) checkModel(model string) error {
	switch model {
	case h.opts.Name:
		return nil
	case "":
		return badRequest("model", "model is missing: this server has %q", h.opts.Name)
	}
	return newAPIError(http.StatusNotFound, "invalid_request_error", "model", codeModel, fmt.Sprintf("there is no model %.100q: this server has %q", model, h.opts.Name))
}

// enter waits for room for n answers; the caller must call leave.
func (h *Handler) admit(r *http.Request, n int) (leave func(), err error) {
	if h.draining.Load() {
		return nil, errShuttingDown()
	}
	if n > h.opts.Slots {
		return nil, badRequest("n", "the request wants %d answers: this server writes %d at once", n, h.opts.Slots)
	}
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	done := h.conns.markActive(r.Context())
	if err := h.admission.acquire(r.Context(), client+" "+r.Header.Get("Authorization"), n); err != nil {
		done()
		return nil, err
	}
	return func() { h.admission.release(n); done() }, nil
}

// writer notes what has been answered. From the first byte on, the client has a
// bounded time to read.
type responseWriter struct {
	http.ResponseWriter
	timeout time.Duration
	status  int
}

func (w *responseWriter) setStatus(status int) {
	if w.status == 0 {
		w.status = status
		w.extendDeadline()
	}
}

// due gives the client time anew.
func (w *responseWriter) extendDeadline() {
	http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout)) //nolint:errcheck // where there are none, none are needed
}

// WriteHeader notes the status.
func (w *responseWriter) WriteHeader(status int) {
	w.setStatus(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.setStatus(http.StatusOK)
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fail answers err: as a body of its own, or as the last event of a stream that
// has begun.
func (w *responseWriter) writeError(err error) {
	f := asAPIError(err)
	data, _ := chat.Marshal(ErrorResponse{f.body}) // strings alone cannot fail
	if w.status != 0 {
		w.extendDeadline()
		fmt.Fprintf(w, "data: %s\n\n", data)
		return
	}
	if f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	w.Write(append(data, '\n')) //nolint:errcheck // the client has gone
}

// reply200 answers with v.
func writeJSON(w http.ResponseWriter, v any) error {
	data, err := chat.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(data, '\n')) //nolint:errcheck // the client has gone
	return nil
}

// newID returns an identifier with a prefix.
func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails: it ends the program instead
	return prefix + hex.EncodeToString(b[:])
}

// stream writes events. A client that keeps it waiting for too long in all is given
// up: however slowly it reads, its slot is not held for much longer than the answer
// takes to be sampled.
type eventStream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	budget     time.Duration // to wait for the client
	started    bool
}

var errSlowReader = errors.New("the client does not read")

func newEventStream(w http.ResponseWriter, unread time.Duration) *eventStream {
	return &eventStream{w: w, controller: http.NewResponseController(w), budget: unread}
}

// send writes one event.
func (s *eventStream) send(v any) error {
	data, err := chat.Marshal(v)
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return s.event(string(data))
}

func (s *eventStream) event(data string) error {
	if !s.started {
		s.started = true
		s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s.w.Header().Set("Cache-Control", "no-store")
	}
	began := time.Now()
	defer func() { s.budget -= time.Since(began) }()
	s.controller.SetWriteDeadline(began.Add(s.budget)) //nolint:errcheck // where there are none, none are needed
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", data); err != nil {
		return fmt.Errorf("%w: %w", errSlowReader, err)
	}
	if err := s.controller.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errSlowReader, err)
	}
	return nil
}
