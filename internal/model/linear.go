package model

import "envace/internal/kernel"

// linear is y = x·Wᵀ. Adapters add scale·(x·Aᵀ)·Bᵀ to some columns of y.
type linear struct {
	in, out  int
	at       int            // offset of w in the slab of all weights
	w, g     []float32      // (out, in); g is nil if W is frozen
	fwd, bwd *kernel.Packed // Wᵀ for y, W for dx; bwd is packed on first use
	adapters []adapter
}

// adapter is a trained product of two small matrices on columns at … at+out.
type adapter struct {
	at, out, rank int
	scale         float32
	a, b          *Param // (rank, in) and (out, rank)
}

func (l *linear) plain() kernel.Mat      { return kernel.Mat{Data: l.w, Row: l.in, Col: 1} }
func (l *linear) transposed() kernel.Mat { return kernel.Mat{Data: l.w, Row: 1, Col: l.in} }

// trained reports whether any parameter of l takes a gradient.
func (l *linear) trained() bool { return l.g != nil || len(l.adapters) > 0 }

func (l *linear) repack(pool *kernel.Pool) {
	pool.Repack(l.fwd, l.transposed())
	if l.bwd != nil {
		pool.Repack(l.bwd, l.plain())
	}
}

func (l *linear) packBackward(pool *kernel.Pool) {
	if l.bwd == nil {
		l.bwd = pool.Pack(l.plain(), l.out, l.in)
	}
}

// forward writes y (n, out) of x (n, in). u is scratch of n·rank.
func (l *linear) forward(pool *kernel.Pool, y, x, u []float32, n int) {
	xm := kernel.Mat{Data: x, Row: l.in, Col: 1}
	pool.GemmPacked(y, l.out, xm, l.fwd, n, false)
	for i := range l.adapters {
		ad := &l.adapters[i]
		um := ad.down(pool, u, xm, n)
		pool.Gemm(y[ad.at:], l.out, um, kernel.Mat{Data: ad.b.W, Row: 1, Col: ad.rank}, n, ad.out, ad.rank, true)
	}
}

// down writes scale·x·Aᵀ (n, rank) into u.
func (ad *adapter) down(pool *kernel.Pool, u []float32, x kernel.Mat, n int) kernel.Mat {
	in := ad.a.Shape[1]
	pool.Gemm(u, ad.rank, x, kernel.Mat{Data: ad.a.W, Row: 1, Col: in}, n, ad.rank, in, false)
	kernel.Scale(u[:n*ad.rank], ad.scale)
	return kernel.Mat{Data: u, Row: ad.rank, Col: 1}
}

// backward adds the gradients of the trained parameters of l, given dy (n, out) and
// x (n, in). If dx is not nil, it writes the gradient of x there.
func (l *linear) backward(pool *kernel.Pool, dx, dy, x, u []float32, n int) {
	dym, dyt := kernel.Mat{Data: dy, Row: l.out, Col: 1}, kernel.Mat{Data: dy, Row: 1, Col: l.out}
	xm := kernel.Mat{Data: x, Row: l.in, Col: 1}
	if dx != nil {
		l.packBackward(pool)
		pool.GemmPacked(dx, l.in, dym, l.bwd, n, false)
	}
	if l.g != nil {
		pool.Gemm(l.g, l.in, dyt, xm, l.out, l.in, n, true)
	}
	for i := range l.adapters {
		l.adapters[i].backward(pool, dx, kernel.Mat{Data: dy[l.adapters[i].at:], Row: l.out, Col: 1}, xm, u, n)
	}
}

// backward adds the adapter's gradients and, if dx is not nil, its part of dx.
func (ad *adapter) backward(pool *kernel.Pool, dx []float32, dy, x kernel.Mat, u []float32, n int) {
	in, r := ad.a.Shape[1], ad.rank
	um := ad.down(pool, u, x, n)
	pool.Gemm(ad.b.G, r, kernel.Mat{Data: dy.Data, Row: 1, Col: dy.Row}, um, ad.out, r, n, true)
	pool.Gemm(u, r, dy, kernel.Mat{Data: ad.b.W, Row: r, Col: 1}, n, r, ad.out, false)
	kernel.Scale(u[:n*r], ad.scale)
	pool.Gemm(ad.a.G, in, kernel.Mat{Data: u, Row: 1, Col: r}, x, r, in, n, true)
	if dx != nil {
		pool.Gemm(dx, in, um, kernel.Mat{Data: ad.a.W, Row: in, Col: 1}, n, in, r, true)
	}
}
