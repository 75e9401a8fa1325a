package serve

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the Prometheus metrics of a Handler.
type metrics struct {
	handler          http.Handler
	requests         *prometheus.CounterVec
	active           prometheus.Gauge
	promptTokens     prometheus.Counter
	completionTokens prometheus.Counter
	timeToFirstToken prometheus.Histogram
	duration         prometheus.Histogram
}

func newMetrics(h *Handler) *metrics {
	buckets := []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
	m := &metrics{
		requests:         prometheus.NewCounterVec(prometheus.CounterOpts{Name: "envace_requests_total", Help: "Completed requests."}, []string{"path", "status"}),
		active:           prometheus.NewGauge(prometheus.GaugeOpts{Name: "envace_requests_active", Help: "Requests in progress."}),
		promptTokens:     prometheus.NewCounter(prometheus.CounterOpts{Name: "envace_prompt_tokens_total", Help: "Prompt tokens."}),
		completionTokens: prometheus.NewCounter(prometheus.CounterOpts{Name: "envace_completion_tokens_total", Help: "Sampled tokens."}),
		timeToFirstToken: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "envace_first_token_seconds", Help: "Time to first token.", Buckets: buckets}),
		duration:         prometheus.NewHistogram(prometheus.HistogramOpts{Name: "envace_request_seconds", Help: "Duration of requests.", Buckets: buckets}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m.requests, m.active, m.promptTokens, m.completionTokens, m.timeToFirstToken, m.duration,
		gauge("envace_requests_waiting", "Requests waiting for a slot.", func() int { _, waiting := h.admission.load(); return waiting }),
		gauge("envace_slots_free", "Free completion slots.", func() int { free, _ := h.admission.load(); return free }),
		gauge("envace_connections", "Open connections.", h.conns.open),
		gauge("envace_goroutines", "Goroutines of the process.", runtime.NumGoroutine))
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{DisableCompression: true})
	return m
}

// startRequest counts a request; the caller must call finish when it has ended.
func (m *metrics) startRequest(path string) (finish func(status int)) {
	start := time.Now()
	m.active.Inc()
	return func(status int) {
		m.active.Dec()
		m.duration.Observe(time.Since(start).Seconds())
		m.requests.WithLabelValues(path, strconv.Itoa(status)).Inc()
	}
}

func (m *metrics) firstToken(after time.Duration) { m.timeToFirstToken.Observe(after.Seconds()) }

func (m *metrics) tokens(prompt, completion int) {
	m.promptTokens.Add(float64(prompt))
	m.completionTokens.Add(float64(completion))
}

func (h *Handler) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	h.metrics.handler.ServeHTTP(w, r)
	return nil
}
