package serve

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"envace/engine"
	"envace/internal/grammar"
	"envace/internal/openai"
	"envace/render"
)

// Handler is the HTTP handler of one model: see New.
type Handler struct {
	opts       Options
	chat       *render.Chat
	streamer   engine.Streamer
	mux        *http.ServeMux
	admission  *admission
	conns      connLimiter
	bodyBytes  atomic.Int64 // of all request bodies in memory
	metrics    *metrics
	created    time.Time
	draining   atomic.Bool
	vocabulary func() *grammar.Vocabulary // built on first use
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
		return badRequest("", "embeddings are not supported")
	})
	for _, path := range []string{"/health", "/metrics", "/v1/models", "/v1/chat/completions", "/v1/completions", "/v1/embeddings"} {
		h.handle(path, func(_ http.ResponseWriter, r *http.Request) error {
			return newAPIError(http.StatusMethodNotAllowed, "invalid_request_error", "", "", fmt.Sprintf("method %s is not allowed for %s", r.Method, r.URL.Path))
		})
	}
	h.handle("/", func(_ http.ResponseWriter, r *http.Request) error {
		return newAPIError(http.StatusNotFound, "invalid_request_error", "", "", fmt.Sprintf("unknown route: %s %s", r.Method, r.URL.Path))
	})
}

// handle registers serve. An error that it returns becomes the response, or the last
// event of a stream that has started.
func (h *Handler) handle(pattern string, serve func(http.ResponseWriter, *http.Request) error) {
	_, path, _ := strings.Cut(pattern, " ")
	if path == "" {
		path = "other"
	}
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		finish := h.metrics.startRequest(path)
		out := &responseWriter{ResponseWriter: w, timeout: h.opts.Timeouts.Write}
		defer func() { finish(out.status) }()
		defer func() {
			if x := recover(); x != nil {
				out.writeError(panicked(path, x))
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

// panicked logs a panic while it is recovered, and returns the error response.
func panicked(where string, x any) error {
	slog.Error("panic in a request", "path", where, "panic", x, "stack", string(debug.Stack()))
	return newAPIError(http.StatusInternalServerError, "server_error", "", "", "internal server error: see the server log")
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.setDeadlines(w, r)
	h.mux.ServeHTTP(w, r)
}

// setDeadlines limits reading the body, and writing until the handler has something
// to write. net/http clears the read deadline at the end of the body; until then it
// also covers the rest of a body that an error response leaves unread.
func (h *Handler) setDeadlines(w http.ResponseWriter, r *http.Request) {
	rc, now, body := http.NewResponseController(w), time.Now(), h.opts.Timeouts.Body
	if h.draining.Load() {
		body = min(body, time.Second)
	}
	if r.ContentLength != 0 {
		rc.SetReadDeadline(now.Add(body)) //nolint:errcheck // unsupported by test recorders
	}
	rc.SetWriteDeadline(now.Add(h.opts.Timeouts.Write)) //nolint:errcheck // the same
}

// authorize checks origin, host and API key. Checking the Origin and Host headers
// keeps web pages from using a local server through the user's browser (CSRF and DNS
// rebinding).
func (h *Handler) authorize(r *http.Request, path string) error {
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return newAPIError(http.StatusForbidden, "invalid_request_error", "", "", "cross-origin requests are not allowed")
		}
	}
	if h.opts.APIKey == "" && !isLocalhost(r.Host) {
		return newAPIError(http.StatusForbidden, "invalid_request_error", "", "", fmt.Sprintf("host %.100q is not allowed: without an API key only localhost is served", r.Host))
	}
	if h.draining.Load() && r.Method == http.MethodPost {
		return errShuttingDown()
	}
	if path == "/health" || h.opts.APIKey == "" {
		return nil
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(h.opts.APIKey)) != 1 {
		return newAPIError(http.StatusUnauthorized, "authentication_error", "", codeKey, "missing or invalid API key: send it as Authorization: Bearer KEY")
	}
	return nil
}

// isLocalhost reports whether a Host header is localhost or a loopback address.
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
	return newAPIError(http.StatusServiceUnavailable, "server_error", "", "", "the server is shutting down")
}

func (h *Handler) modelInfo() openai.Model {
	return openai.Model{ID: h.opts.Name, Object: "model", Created: h.created.Unix(), OwnedBy: "envace", Window: h.opts.Window}
}

func (h *Handler) models(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, openai.Models{Object: "list", Data: []openai.Model{h.modelInfo()}})
}

func (h *Handler) model(w http.ResponseWriter, r *http.Request) error {
	if err := h.checkModel(r.PathValue("id")); err != nil {
		return err
	}
	return writeJSON(w, h.modelInfo())
}

func (h *Handler) checkModel(name string) error {
	switch name {
	case h.opts.Name:
		return nil
	case "":
		return badRequest("model", "model is missing: this server has %q", h.opts.Name)
	}
	return newAPIError(http.StatusNotFound, "invalid_request_error", "model", codeModel, fmt.Sprintf("model %.100q does not exist: this server has %q", name, h.opts.Name))
}

// admit waits for n slots. The caller must call release when it is done.
func (h *Handler) admit(r *http.Request, n int) (release func(), err error) {
	if h.draining.Load() {
		return nil, errShuttingDown()
	}
	if n > h.opts.Slots {
		return nil, badRequest("n", "the request asks for %d completions: this server generates at most %d at once", n, h.opts.Slots)
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
