package model

import "envace/internal/kernel"

// linear is y = x·Wᵀ, with an optional adapter: y += scale·(x·Aᵀ)·Bᵀ.
type linear struct {
	in, out  int
	w        *Param
	fwd, bwd *kernel.Packed // Wᵀ for y, W for dx; bwd is made when first needed
	a, b     *Param         // (r, in) and (out, r), or nil
	scale    float32
}

// rank is the adapter's, 0 without one.
func (l *linear) rank() int {
	if l.a == nil {
		return 0
	}
	return l.a.Shape[0]
}

func (l *linear) set(pool *kernel.Pool, w *Param) {
	l.w, l.out, l.in = w, w.Shape[0], w.Shape[1]
	l.fwd = pool.Pack(l.transposed(), l.in, l.out)
}

func (l *linear) plain() kernel.Mat      { return kernel.Mat{Data: l.w.W, Row: l.in, Col: 1} }
func (l *linear) transposed() kernel.Mat { return kernel.Mat{Data: l.w.W, Row: 1, Col: l.in} }

func (l *linear) repack(pool *kernel.Pool) {
	pool.Repack(l.fwd, l.transposed())
	if l.bwd != nil {
		pool.Repack(l.bwd, l.plain())
	}
}

// forward writes y (n rows, ld apart) of x (n, in). u is scratch of n·rank.
func (l *linear) forward(pool *kernel.Pool, y []float32, ld int, x, u []float32, n int) {
	xm := kernel.Mat{Data: x, Row: l.in, Col: 1}
	pool.GemmPacked(y, ld, xm, l.fwd, n, false)
	if r := l.rank(); r > 0 {
		u = l.down(pool, u, xm, n)
		pool.Gemm(y, ld, kernel.Mat{Data: u, Row: r, Col: 1}, kernel.Mat{Data: l.b.W, Row: 1, Col: r}, n, l.out, r, true)
	}
}

// down writes scale·x·Aᵀ into u and returns it.
func (l *linear) down(pool *kernel.Pool, u []float32, x kernel.Mat, n int) []float32 {
	r := l.rank()
	pool.Gemm(u, r, x, kernel.Mat{Data: l.a.W, Row: 1, Col: l.in}, n, r, l.in, false)
	kernel.Scale(u[:n*r], l.scale)
	return u[:n*r]
}

// backward adds the gradients of whatever is trained in l, given dy (n rows, ld
// apart) and x (n, in). Where dx is not nil, that of x is written there, or added.
func (l *linear) backward(pool *kernel.Pool, dx []float32, add bool, dy []float32, ld int, x, u []float32, n int) {
	dym, dyt := kernel.Mat{Data: dy, Row: ld, Col: 1}, kernel.Mat{Data: dy, Row: 1, Col: ld}
	xm := kernel.Mat{Data: x, Row: l.in, Col: 1}
	if dx != nil {
		if l.bwd == nil {
			l.bwd = pool.Pack(l.plain(), l.out, l.in)
		}
		pool.GemmPacked(dx, l.in, dym, l.bwd, n, add)
	}
	if l.w.G != nil {
		pool.Gemm(l.w.G, l.in, dyt, xm, l.out, l.in, n, true)
	}
	r := l.rank()
	if r == 0 {
		return
	}
	u = l.down(pool, u, xm, n)
	pool.Gemm(l.b.G, r, dyt, kernel.Mat{Data: u, Row: r, Col: 1}, l.out, r, n, true)
	pool.Gemm(u, r, dym, kernel.Mat{Data: l.b.W, Row: r, Col: 1}, n, r, l.out, false)
	kernel.Scale(u, l.scale)
	pool.Gemm(l.a.G, l.in, kernel.Mat{Data: u, Row: 1, Col: r}, xm, r, l.in, n, true)
	if dx != nil {
		pool.Gemm(dx, l.in, kernel.Mat{Data: u, Row: r, Col: 1}, kernel.Mat{Data: l.a.W, Row: l.in, Col: 1}, n, l.in, r, true)
	}
}
