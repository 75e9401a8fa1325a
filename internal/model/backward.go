package model

import (
	"context"
	"math"

	"envace/internal/kernel"
)

// backward propagates dx, the gradient of the residual stream after the last layer,
// back through the layers of the batch kept by forward, and adds the gradients of
// all trained parameters. It stops at the lowest layer with trained parameters, or
// with an error if ctx is done.
func (p *pass) backward(ctx context.Context, b *Batch, layer int) error {
	m, n, c := p.m, len(b.IDs), p.m.Config.Width
	for l := len(m.layers) - 1; l >= m.lowest; l-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		below := l > m.lowest || m.embed.G != nil
		a := p.at(l)
		p.mlpBack(l, n, a, below || m.layers[l].trainsAttention())
		if below || m.layers[l].trainsAttention() {
			p.attentionBack(l, b, a, layer, below)
		}
	}
	if m.embed.G == nil {
		return nil
	}
	// Sequentially: several rows may have the same token.
	for i, id := range b.IDs {
		kernel.Add(m.embed.G[id*c:(id+1)*c], p.dx[i*c:(i+1)*c])
	}
	return nil
}

// trainsAttention reports whether any parameter in the attention half is trained.
func (l *layer) trainsAttention() bool {
	return l.qkv.trained() || l.o.trained()
}

// mlpBack turns dx, the gradient of a layer's output, into the gradient of mid.
func (p *pass) mlpBack(l, n int, a acts, below bool) {
	c, w, pool := p.m.Config, &p.m.layers[l], p.m.pool
	p.rows(n, func(lo, hi int) {
		kernel.RMSNormAgain(p.h[lo*c.Width:], a.rstd2[lo:], a.mid[lo*c.Width:], w.norm2.W, hi-lo, c.Width)
		p.gated(a, lo, hi)
	})
	w.dn.backward(pool, p.dff, p.dx, p.ff, p.u, n)
	f := c.MLP
	p.rows(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			gu := a.gu[2*i*f : 2*(i+1)*f]
			kernel.SiluMulBack(gu[:f], gu[f:], p.dff[i*f:(i+1)*f], gu[:f], gu[f:])
		}
	})
	dh := p.dh
	if !below {
		dh = nil
	}
	w.gateUp.backward(pool, dh, a.gu, p.h, p.u, n)
	if below {
		p.normBack(w.norm2, a.mid, a.rstd2, n)
	}
}

// normBack propagates dh back through a norm and adds the result to dx.
func (p *pass) normBack(w *Param, x, rstd []float32, n int) {
	c := p.m.Config.Width
	if w.G != nil {
		clear(p.parts)
	}
	p.rows(n, func(lo, hi int) {
		var dw []float32
		if w.G != nil {
			dw = p.parts[lo/chunk*c : (lo/chunk+1)*c]
		}
		dh := p.dh[lo*c : hi*c]
		kernel.RMSNormBack(dh, dw, dh, x[lo*c:], w.W, rstd[lo:], hi-lo, c)
		kernel.Add(p.dx[lo*c:hi*c], dh)
	})
	if w.G != nil {
		sumParts(w.G, p.parts, c, 0, (n+chunk-1)/chunk)
	}
}

// sumParts adds the parts, which start at offset at and are ld apart, to g in order.
func sumParts(g, parts []float32, ld, at, n int) {
	for i := range n {
		kernel.Add(g, parts[i*ld+at:i*ld+at+len(g)])
	}
}

// attentionBack turns dx, the gradient of mid, into the gradient of the layer's
// input. Without below, it computes only the parameter gradients of this half.
func (p *pass) attentionBack(l int, b *Batch, a acts, layer int, below bool) {
	m, n, c := p.m, len(b.IDs), p.m.Config
	w, pool := &m.layers[l], m.pool
	w.o.backward(pool, p.dh, p.dx, a.o, p.u, n)
	p.attendBack(b, a, l*layer)
	p.rows(n, func(lo, hi int) {
		p.placeBack(w, b, a, lo, hi)
		kernel.RMSNormAgain(p.h[lo*c.Width:], a.rstd1[lo:], a.x[lo*c.Width:], w.norm1.W, hi-lo, c.Width)
	})
	if w.qNorm != nil && w.qNorm.G != nil {
		sumParts(w.qNorm.G, p.dqk, 2*c.HeadDim, 0, (n+chunk-1)/chunk)
		sumParts(w.kNorm.G, p.dqk, 2*c.HeadDim, c.HeadDim, (n+chunk-1)/chunk)
	}
	dh := p.dh
	if !below {
		dh = nil
	}
	w.qkv.backward(pool, dh, p.dqkv, p.h, p.u, n)
	if below {
		p.normBack(w.norm1, a.x, a.rstd1, n)
	}
}

// attendBack is the backward pass of attend, from dh into dqkv. The blocks of a tree
// add to the same keys, so they run sequentially.
func (p *pass) attendBack(b *Batch, a acts, layer int) {
	c, h := p.m.Config, p.m.heads
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	ld := q + 2*kv
	qs, o, do := kernel.Rows{Data: a.qkv, Row: ld}, kernel.Rows{Data: a.o, Row: q}, kernel.Rows{Data: p.dh, Row: q}
	dq := kernel.Rows{Data: p.dqkv, Row: ld}
	dk, dv := kernel.Rows{Data: p.dqkv[q:], Row: ld}, kernel.Rows{Data: p.dqkv[q+kv:], Row: ld}
	p.rows(len(b.IDs), func(lo, hi int) { clear(p.dqkv[lo*ld : hi*ld]) })
	back := func(pool *kernel.Pool, i int) {
		end := len(b.blocks)
		if t := i/h.KV + 1; t < len(b.trees) {
			end = b.trees[t]
		}
		for j := b.trees[i/h.KV]; j < end; j++ {
			blk := &b.blocks[j]
			s := p.borrow(blk.ScratchBack(h))
			blk.AttendBack(pool, dq, dk, dv, do, o, a.lse, qs, h, i%h.KV, layer, s)
			p.giveBack(s)
		}
	}
	// Left-over heads, which would leave threads idle, are computed by all threads
	// together.
	n := len(b.trees) * h.KV
	alone := n - n%p.m.pool.Threads()
	p.m.pool.Run(alone, func(i int) { back(nil, i) })
	for i := alone; i < n; i++ {
		back(p.m.pool, i)
	}
}

// placeBack propagates dqkv back through scaling, rotation and the norms of heads.
func (p *pass) placeBack(w *layer, b *Batch, a acts, lo, hi int) {
	c := p.m.Config
	heads, d := c.Heads+c.KVHeads, c.HeadDim
	q, qk, ld := c.Heads*d, heads*d, (heads+c.KVHeads)*d
	scale := float32(1 / math.Sqrt(float64(d)))
	var dwq, dwk []float32
	if w.qNorm != nil && w.qNorm.G != nil {
		part := p.dqk[lo/chunk*2*d : (lo/chunk+1)*2*d]
		clear(part)
		dwq, dwk = part[:d], part[d:]
	}
	for i := lo; i < hi; i++ {
		row := p.dqkv[i*ld : i*ld+qk]
		kernel.Scale(row[:q], scale)
		cos, sin := p.rope.at(b.Pos[i], d/2)
		kernel.RopeBack(row, cos, sin, heads, d)
		if w.qNorm != nil {
			x, rstd := a.qk[i*qk:(i+1)*qk], a.rstdQK[i*heads:(i+1)*heads]
			kernel.RMSNormBack(row[:q], dwq, row[:q], x[:q], w.qNorm.W, rstd, c.Heads, d)
			kernel.RMSNormBack(row[q:], dwk, row[q:], x[q:], w.kNorm.W, rstd[c.Heads:], c.KVHeads, d)
		}
	}
}
