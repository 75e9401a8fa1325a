package model

import (
	"context"
	"fmt"

	"envace/internal/kernel"
	"envace/internal/weights"
)

// Entry requests the log-probability of Target after batch row Row.
type Entry struct{ Row, Target int }

// headFloats limits the number of logits held at once.
const headFloats = 8 << 20

// headRows returns the number of rows of logits held at once.
func headRows(c weights.Config) int { return min(1024, max(128, headFloats/c.Vocab)) }

// HeadFloats returns the scratch memory of an output layer, in floats.
func HeadFloats(c weights.Config) int { return headRows(c) * (c.Vocab + 3*c.Width) }

// head is the scratch memory of the output layer: logits of a few rows at a time.
type head struct {
	m          *Model
	x, h, dh   []float32 // (rows, Width)
	rstd       []float32
	logits     []float32 // (rows, Vocab)
	soft       []kernel.Softmax
	grads, lps []float32
	parts      []float32
	starts     []int
}

func newHead(m *Model) *head {
	c := m.Config
	n := headRows(c)
	return &head{m: m, x: make([]float32, n*c.Width), h: make([]float32, n*c.Width), dh: make([]float32, n*c.Width),
		rstd: make([]float32, n), logits: make([]float32, n*c.Vocab), soft: make([]kernel.Softmax, n),
		parts: make([]float32, (n+chunk-1)/chunk*c.Width)}
}

// rows computes the logits of up to headRows rows of the residual stream, given by
// row, into h.logits. They are not yet exponentiated.
func (h *head) rows(n int, row func(i int) []float32) {
	c := h.m.Config
	h.m.each(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(h.x[i*c.Width:(i+1)*c.Width], row(i))
		}
		kernel.RMSNorm(h.h[lo*c.Width:], h.rstd[lo:], h.x[lo*c.Width:], h.m.norm.W, hi-lo, c.Width, c.Eps)
	})
	h.m.head.forward(h.m.pool, h.logits, h.h, nil, n)
}

// each runs f over chunks of n rows.
func (m *Model) each(n int, f func(lo, hi int)) {
	m.pool.Run((n+chunk-1)/chunk, func(i int) { f(i*chunk, min(n, (i+1)*chunk)) })
}

// Slope returns the derivative of the loss with respect to lp, the log-probability of
// entry i. It is called once per entry, concurrently.
type Slope func(i int, lp float32) float32

// run computes the log-probabilities of the entries, which are sorted by Row, from
// the residual stream x, in chunks of whole rows. If dx is not nil, the gradient
// given by slope is written into the entries' rows of dx, which must be zero. It stops
// between chunks with an error if ctx is done.
func (h *head) run(ctx context.Context, x, dx []float32, entries []Entry, slope Slope) error {
	for from := 0; from < len(entries); {
		if from > 0 { // the layers before have looked already
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		h.starts = h.starts[:0]
		to := from
		for ; to < len(entries); to++ {
			if to == from || entries[to].Row != entries[to-1].Row {
				if len(h.starts) == len(h.soft) {
					break
				}
				h.starts = append(h.starts, to-from)
			}
		}
		if err := h.chunk(x, dx, entries[from:to], func(i int, lp float32) float32 { return slope(from+i, lp) }); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// of returns the entries of row i of the chunk.
func (h *head) of(i, n int) (lo, hi int) {
	if i+1 < len(h.starts) {
		return h.starts[i], h.starts[i+1]
	}
	return h.starts[i], n
}

func (h *head) chunk(x, dx []float32, entries []Entry, slope Slope) error {
	c, n := h.m.Config, len(h.starts)
	row := func(i int) int { return entries[h.starts[i]].Row }
	h.rows(n, func(i int) []float32 { return x[row(i)*c.Width : (row(i)+1)*c.Width] })
	h.lps, h.grads = grown(h.lps, len(entries)), grown(h.grads, len(entries))
	h.m.each(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			h.measure(i, entries)
		}
	})
	for i := range n {
		if !h.soft[i].Finite() {
			return fmt.Errorf("the logits are not finite (NaN or infinite): the output layer has diverged")
		}
	}
	for i, lp := range h.lps {
		h.grads[i] = slope(i, lp)
	}
	if dx == nil {
		return nil
	}
	h.m.each(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			h.turn(i, entries)
		}
	})
	h.back(n, dx, row)
	return nil
}

// measure exponentiates row i and records the log-probabilities of its entries.
func (h *head) measure(i int, entries []Entry) {
	v := h.m.Config.Vocab
	z := h.logits[i*v : (i+1)*v]
	lo, hi := h.of(i, len(entries))
	for e := lo; e < hi; e++ {
		h.lps[e] = z[entries[e].Target]
	}
	h.soft[i] = kernel.SoftmaxExp(z)
	for e := lo; e < hi; e++ {
		h.lps[e] = h.soft[i].Logprob(h.lps[e])
	}
}

// turn converts row i from exponentials to the gradient of its logits.
func (h *head) turn(i int, entries []Entry) {
	v := h.m.Config.Vocab
	z := h.logits[i*v : (i+1)*v]
	lo, hi := h.of(i, len(entries))
	var total float32
	for e := lo; e < hi; e++ {
		total += h.grads[e]
	}
	kernel.XentBack(z, h.soft[i], total)
	for e := lo; e < hi; e++ {
		z[entries[e].Target] += h.grads[e]
	}
}

// back propagates the gradient of n rows of logits to the residual stream.
func (h *head) back(n int, dx []float32, row func(i int) int) {
	m, c := h.m, h.m.Config.Width
	var dh []float32
	if m.lowest < len(m.layers) || m.norm.G != nil {
		dh = h.dh
	}
	m.head.backward(m.pool, dh, h.logits, h.h, nil, n)
	if dh == nil {
		return
	}
	if m.norm.G != nil {
		clear(h.parts)
	}
	m.each(n, func(lo, hi int) {
		var dw []float32
		if m.norm.G != nil {
			dw = h.parts[lo/chunk*c : (lo/chunk+1)*c]
		}
		kernel.RMSNormBack(dh[lo*c:hi*c], dw, dh[lo*c:hi*c], h.x[lo*c:], m.norm.W, h.rstd[lo:], hi-lo, c)
		for i := lo; i < hi; i++ {
			copy(dx[row(i)*c:(row(i)+1)*c], dh[i*c:(i+1)*c])
		}
	})
	if m.norm.G != nil {
		sumParts(m.norm.G, h.parts, c, 0, (n+chunk-1)/chunk)
	}
}

func grown(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n, n+n/4)
	}
	return x[:n]
}
