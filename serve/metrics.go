package serve

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
)

// metrics are the Prometheus metrics of a Handler.
type metrics struct {
	mu               sync.Mutex
	requests         map[string]int // by labels
	active           int            // requests under way
	prompt           int            // tokens
	completion       int
	timeToFirstToken histogram // seconds to the first token
	duration         histogram // seconds of a request
}

// bounds of the histograms, in seconds.
var bounds = [...]float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}

type histogram struct {
	counts [len(bounds) + 1]int
	sum    float64
}

func (h *histogram) observe(d time.Duration) {
	s := d.Seconds()
	i, _ := slices.BinarySearch(bounds[:], s)
	h.counts[i]++
	h.sum += s
}

func (h *histogram) write(w io.Writer, name, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	n := 0
	for i, b := range bounds {
		n += h.counts[i]
		fmt.Fprintf(w, "%s_bucket{le=\"%g\"} %d\n", name, b, n)
	}
	n += h.counts[len(bounds)]
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, n, name, h.sum, name, n)
}

// begin counts a request; what it returns is called when it is over.
func (m *metrics) startRequest(path string) (over func(status int)) {
	began := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active++
	return func(status int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.active--
		m.duration.observe(time.Since(began))
		if m.requests == nil {
			m.requests = map[string]int{}
		}
		m.requests[fmt.Sprintf("path=%q,status=\"%d\"", path, status)]++
	}
}

func (m *metrics) tokens(prompt, completion int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompt += prompt
	m.completion += completion
}

func (m *metrics) firstToken(after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timeToFirstToken.observe(after)
}

// write writes the Prometheus text format.
func (m *metrics) write(w io.Writer, slots, waiting, conns int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fmt.Fprintf(w, "# HELP envace_requests_total Completed requests.\n# TYPE envace_requests_total counter\n")
	for _, labels := range slices.Sorted(maps.Keys(m.requests)) {
		fmt.Fprintf(w, "envace_requests_total{%s} %d\n", labels, m.requests[labels])
	}
	for _, c := range []struct {
		name, kind, help string
		n                int
	}{
		{"envace_requests_active", "gauge", "Requests in progress.", m.active},
		{"envace_requests_waiting", "gauge", "Requests waiting for a slot.", waiting},
		{"envace_slots_free", "gauge", "Free completion slots.", slots},
		{"envace_connections", "gauge", "Open connections.", conns},
		{"envace_goroutines", "gauge", "Goroutines of the process.", runtime.NumGoroutine()},
		{"envace_prompt_tokens_total", "counter", "Prompt tokens.", m.prompt},
		{"envace_completion_tokens_total", "counter", "Sampled tokens.", m.completion},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", c.name, c.help, c.name, c.kind, c.name, c.n)
	}
	m.timeToFirstToken.write(w, "envace_first_token_seconds", "Time to first token.")
	m.duration.write(w, "envace_request_seconds", "Duration of requests.")
}

func (h *Handler) serveMetrics(w http.ResponseWriter, _ *http.Request) error {
	free, waiting := h.admission.load()
	var text bytes.Buffer // so that a slow client does not hold the lock
	h.metrics.write(&text, free, waiting, h.conns.open())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(text.Bytes()) //nolint:errcheck // the client is gone
	return nil
}
