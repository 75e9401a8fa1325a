package serve

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"envace/chat"
	"envace/internal/openai"
)

// responseWriter records the status and sets the write deadline when the response
// starts.
type responseWriter struct {
	http.ResponseWriter
	timeout time.Duration
	status  int // 0 until the response starts
}

func (w *responseWriter) start(status int) {
	if w.status == 0 {
		w.status = status
		w.extendDeadline()
	}
}

func (w *responseWriter) extendDeadline() {
	http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout)) //nolint:errcheck // unsupported by test recorders
}

// WriteHeader sends the status.
func (w *responseWriter) WriteHeader(status int) {
	w.start(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write writes part of the body.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.start(http.StatusOK)
	return w.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeError sends err as the response, or as the last event of a stream that has
// started.
func (w *responseWriter) writeError(err error) {
	e := asAPIError(err)
	data, _ := chat.Marshal(openai.ErrorResponse{Error: e.body}) // strings only: cannot fail
	if w.status != 0 {
		w.extendDeadline()
		fmt.Fprintf(w, "data: %s\n\n", data)
		return
	}
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	w.Write(append(data, '\n')) //nolint:errcheck // the client is gone
}

func writeJSON(w http.ResponseWriter, v any) error {
	data, err := chat.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(data, '\n')) //nolint:errcheck // the client is gone
	return nil
}

func newID(prefix string) string {
	var b [12]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return prefix + hex.EncodeToString(b[:])
}

// eventStream writes server-sent events. The time that all writes of a stream may
// block is limited in total, so that a client that reads slowly cannot hold its slot
// for much longer than the sampling takes.
type eventStream struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	budget  time.Duration
	started bool
}

var errSlowReader = errors.New("the client does not read the stream")

func newEventStream(w http.ResponseWriter, budget time.Duration) *eventStream {
	return &eventStream{w: w, rc: http.NewResponseController(w), budget: budget}
}

// send writes v as an event.
func (s *eventStream) send(v any) error {
	data, err := chat.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return s.event(string(data))
}

func (s *eventStream) event(data string) error {
	if !s.started {
		s.started = true
		s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s.w.Header().Set("Cache-Control", "no-store")
	}
	start := time.Now()
	defer func() { s.budget -= time.Since(start) }()
	s.rc.SetWriteDeadline(start.Add(s.budget)) //nolint:errcheck // unsupported by test recorders
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", data); err != nil {
		return fmt.Errorf("%w: %w", errSlowReader, err)
	}
	if err := s.rc.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errSlowReader, err)
	}
	return nil
}
