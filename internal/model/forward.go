package model

import (
	"context"
	"math"

	"envace/internal/kernel"
)

// forward runs a batch through the layers. It leaves the residual stream after the
// last layer in after(last). It stops with an error if a layer's output is not finite
// or ctx is done. layer is the stride between layers in the memory of the keys that
// the batch attends to.
func (p *pass) forward(ctx context.Context, b *Batch, layer int) error {
	m, n, c := p.m, len(b.IDs), p.m.Config.Width
	p.rope = m.rope.upTo(b.maxPos + 1)
	x := p.at(0).x
	p.rows(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(x[i*c:(i+1)*c], m.embed.W[b.IDs[i]*c:(b.IDs[i]+1)*c])
		}
	})
	for l := range m.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		a := p.at(l)
		p.attention(l, b, a, layer)
		p.mlp(l, n, a, p.after(l))
		if err := p.err(); err != nil {
			return err
		}
	}
	return nil
}

// attention computes the first half of a layer: mid = x + o(attend(qkv(norm(x)))).
func (p *pass) attention(l int, b *Batch, a acts, layer int) {
	m, n, c := p.m, len(b.IDs), p.m.Config
	w, pool := &m.layers[l], m.pool
	p.rows(n, func(lo, hi int) {
		kernel.RMSNorm(p.h[lo*c.Width:], a.rstd1[lo:], a.x[lo*c.Width:], w.norm1.W, hi-lo, c.Width, c.Eps)
	})
	w.qkv.forward(pool, a.qkv, p.h, p.u, n)
	p.rows(n, func(lo, hi int) {
		p.place(w, b, a, lo, hi)
		p.store(b, a, l*layer, lo, hi)
	})
	p.attend(b, a, l*layer)
	w.o.forward(pool, a.mid, a.o, p.u, n)
	p.rows(n, func(lo, hi int) { kernel.Add(a.mid[lo*c.Width:hi*c.Width], a.x[lo*c.Width:hi*c.Width]) })
}

// place normalises the heads of queries and keys (Qwen3), applies the rotary
// positions, and scales the queries by 1/√D.
func (p *pass) place(w *layer, b *Batch, a acts, lo, hi int) {
	c := p.m.Config
	heads, d := c.Heads+c.KVHeads, c.HeadDim
	qk, ld := heads*d, (heads+c.KVHeads)*d
	scale := float32(1 / math.Sqrt(float64(d)))
	for i := lo; i < hi; i++ {
		row := a.qkv[i*ld : i*ld+qk]
		if w.qNorm != nil {
			copy(a.qk[i*qk:(i+1)*qk], row)
			q, rstd := c.Heads*d, a.rstdQK[i*heads:(i+1)*heads]
			kernel.RMSNorm(row[:q], rstd, row[:q], w.qNorm.W, c.Heads, d, c.Eps)
			kernel.RMSNorm(row[q:], rstd[c.Heads:], row[q:], w.kNorm.W, c.KVHeads, d, c.Eps)
		}
		cos, sin := p.rope.at(b.Pos[i], d/2)
		kernel.Rope(row, cos, sin, heads, d)
		kernel.Scale(row[:c.Heads*d], scale)
	}
}

// store writes keys, as columns, and values to where attention reads them. The
// values of a batch that attends only to itself stay in qkv.
func (p *pass) store(b *Batch, a acts, layer, lo, hi int) {
	c := p.m.Config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	ld := q + 2*kv
	if b.Targets == nil {
		for d := range kv {
			col := a.kt[d*p.cap : (d+1)*p.cap]
			for i := lo; i < hi; i++ {
				col[i] = a.qkv[i*ld+q+d]
			}
		}
		return
	}
	for i := lo; i < hi; i++ {
		if t := b.Targets[i]; t.index >= 0 {
			row := a.qkv[i*ld+q : (i+1)*ld]
			t.node.put(layer, t.index, row[:kv], row[kv:])
		}
	}
}

// attend runs attention over the blocks and key heads.
func (p *pass) attend(b *Batch, a acts, layer int) {
	c, h := p.m.Config, p.m.heads
	ld := (c.Heads + 2*c.KVHeads) * c.HeadDim
	q, o := kernel.Rows{Data: a.qkv, Row: ld}, kernel.Rows{Data: a.o, Row: c.Heads * c.HeadDim}
	var lse []float32
	if p.keep {
		lse = a.lse
	}
	p.m.pool.Run(len(b.blocks)*h.KV, func(i int) {
		blk := &b.blocks[i/h.KV]
		s := p.borrow(blk.Scratch(h))
		blk.Attend(o, lse, q, h, i%h.KV, layer, s)
		p.giveBack(s)
	})
}

// mlp computes the second half: out = mid + down(silu(gate(norm(mid)))·up(…)).
func (p *pass) mlp(l, n int, a acts, out []float32) {
	c, w, pool := p.m.Config, &p.m.layers[l], p.m.pool
	p.rows(n, func(lo, hi int) {
		kernel.RMSNorm(p.h[lo*c.Width:], a.rstd2[lo:], a.mid[lo*c.Width:], w.norm2.W, hi-lo, c.Width, c.Eps)
	})
	w.gateUp.forward(pool, a.gu, p.h, p.u, n)
	p.rows(n, func(lo, hi int) { p.gated(a, lo, hi) })
	w.dn.forward(pool, out, p.ff, p.u, n)
	p.rows(n, func(lo, hi int) {
		lo, hi = lo*c.Width, hi*c.Width
		kernel.Add(out[lo:hi], a.mid[lo:hi])
		p.check(l, out[lo:hi])
	})
}

// gated writes silu(gate)·up of some rows into ff.
func (p *pass) gated(a acts, lo, hi int) {
	f := p.m.Config.MLP
	for i := lo; i < hi; i++ {
		gu := a.gu[2*i*f : 2*(i+1)*f]
		kernel.SiluMul(p.ff[i*f:(i+1)*f], gu[:f], gu[f:])
	}
}
