package model

import (
	"fmt"
	"sync"
	"sync/atomic"

	"envace/internal/kernel"
	"envace/internal/weights"
)

// pass is the memory for batches of up to cap rows. With keep set it holds every
// layer's activations for the backward pass, else one layer's.
type pass struct {
	m      *Model
	cap    int
	keep   bool
	slab   []float32
	stride int // between the activations of layers; 0 if not kept
	final  []float32

	h, ff, u   []float32 // scratch: (cap, Width or Heads·HeadDim), (cap, MLP), (cap, rank)
	dx, dh     []float32 // backward: gradients of the residual stream and of a norm's output
	dff, dqkv  []float32
	parts, dqk []float32 // gradients of norms, one a chunk of rows
	bad        atomic.Int64
	rope       *ropeTable

	mu     sync.Mutex
	scores [][]float32
}

// acts are the activations of one layer, with cap rows each.
type acts struct {
	x, rstd1 []float32 // residual stream before the layer
	qk       []float32 // queries and keys before their norm (Qwen3)
	rstdQK   []float32
	qkv      []float32 // after norm and rotation; queries scaled
	kt       []float32 // keys, one column per row of the batch
	o, lse   []float32 // output of attention
	mid      []float32 // residual stream after attention, before the MLP
	rstd2    []float32
	gu       []float32 // gate and up, side by side
}

// sizes are the row lengths of the activations, in the order of acts.
func sizes(c weights.Config) [11]int {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	normed, norms := 0, 0
	if c.Arch == weights.Qwen3 {
		normed, norms = q+kv, c.Heads+c.KVHeads
	}
	return [11]int{c.Width, 1, normed, norms, q + 2*kv, kv, q, c.Heads, c.Width, 1, 2 * c.MLP}
}

// RowFloats returns the memory for one token in training, in floats.
func RowFloats(c weights.Config) int {
	n := 0
	for _, s := range sizes(c) {
		n += s
	}
	return n*c.Layers + c.Width*4 + 2*c.MLP + 2*(c.Heads+2*c.KVHeads)*c.HeadDim
}

// EvalFloats returns the memory for one token in a forward-only pass, in floats.
func EvalFloats(c weights.Config) int {
	n := max(c.Width, c.Heads*c.HeadDim) + c.MLP
	for _, s := range sizes(c) {
		n += s
	}
	return n
}

// chunk is the number of rows per task of an element-wise stage. It is fixed, because
// the order of some sums depends on it.
const chunk = 32

// newPass returns a pass of n rows.
func newPass(m *Model, n int, keep bool) *pass {
	c := m.Config
	p := &pass{m: m, cap: n, keep: keep}
	total := 0
	for _, s := range sizes(c) {
		total += s * n
	}
	if keep {
		p.stride = total
		p.slab = make([]float32, total*c.Layers)
		p.final = make([]float32, n*c.Width)
		p.dx, p.dh = make([]float32, n*c.Width), make([]float32, n*max(c.Width, c.Heads*c.HeadDim))
		p.dff = make([]float32, n*c.MLP)
		p.dqkv = make([]float32, n*(c.Heads+2*c.KVHeads)*c.HeadDim)
		chunks := (n + chunk - 1) / chunk
		p.parts, p.dqk = make([]float32, chunks*c.Width), make([]float32, chunks*2*c.HeadDim)
	} else {
		p.slab = make([]float32, total)
	}
	p.h, p.ff = make([]float32, n*max(c.Width, c.Heads*c.HeadDim)), make([]float32, n*c.MLP)
	if m.lora != nil {
		p.u = make([]float32, n*m.lora.Rank)
	}
	return p
}

// at returns the activations of a layer.
func (p *pass) at(l int) (a acts) {
	rest := p.slab[l*p.stride:]
	sizes := sizes(p.m.Config)
	for i, f := range []*[]float32{&a.x, &a.rstd1, &a.qk, &a.rstdQK, &a.qkv, &a.kt, &a.o, &a.lse, &a.mid, &a.rstd2, &a.gu} {
		*f, rest = rest[:sizes[i]*p.cap], rest[sizes[i]*p.cap:]
	}
	return a
}

// after returns the residual stream after a layer.
func (p *pass) after(l int) []float32 {
	switch {
	case !p.keep:
		return p.at(0).x
	case l+1 == len(p.m.layers):
		return p.final
	}
	return p.at(l + 1).x
}

// keys returns the memory of the keys and values of batch rows from row on, within
// the pass itself.
func (p *pass) keys(row int) run {
	c := p.m.Config
	s := sizes(c)
	qkv := p.cap * (s[0] + s[1] + s[2] + s[3])
	kt := qkv + p.cap*s[4]
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	return run{data: p.slab, k: kt + row, kRow: p.cap, v: qkv + row*s[4] + q + kv, vRow: s[4]}
}

// rows runs f over chunks of n rows.
func (p *pass) rows(n int, f func(lo, hi int)) {
	p.m.pool.Run((n+chunk-1)/chunk, func(i int) { f(i*chunk, min(n, (i+1)*chunk)) })
}

// borrow returns scratch for n scores; giveBack returns it to the pool.
func (p *pass) borrow(n int) []float32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.scores) - 1; last >= 0 {
		s := p.scores[last]
		p.scores = p.scores[:last]
		if cap(s) >= n {
			return s[:n]
		}
	}
	return make([]float32, n+n/4)[:n]
}

func (p *pass) giveBack(s []float32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scores = append(p.scores, s)
}

// check records the first layer whose output contains a NaN or infinity.
func (p *pass) check(l int, x []float32) {
	if kernel.HasNaNOrInf(x) {
		p.bad.CompareAndSwap(0, int64(l+1))
	}
}

// err returns the error recorded by check, and clears it.
func (p *pass) err() error {
	if l := p.bad.Swap(0); l > 0 {
		return fmt.Errorf("the output of layer %d is not finite (NaN or infinite): the weights or their gradients have diverged", l-1)
	}
	return nil
}
