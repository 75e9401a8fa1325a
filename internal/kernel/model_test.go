package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func normals(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// checkGradient compares grad, the gradient of Σ f·dy by x, with central
// differences of f, a float64 copy of the kernel.
func checkGradient(t *testing.T, what string, x, grad, dy []float32, f func(x []float64) []float64) {
	t.Helper()
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	total := func() float64 {
		var s float64
		for i, v := range f(wide) {
			s += v * float64(dy[i])
		}
		return s
	}
	const h = 1e-5
	for i := range x {
		old := wide[i]
		wide[i] = old + h
		up := total()
		wide[i] = old - h
		down := total()
		wide[i] = old
		want := (up - down) / (2 * h)
		if got := float64(grad[i]); math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("%s: gradient %d is %g, differences say %g", what, i, got, want)
		}
	}
}

func rmsNorm64(x, w []float64, n, c int, eps float64) []float64 {
	y := make([]float64, n*c)
	for i := range n {
		var s float64
		for _, v := range x[i*c : (i+1)*c] {
			s += v * v
		}
		r := 1 / math.Sqrt(s/float64(c)+eps)
		for j := range c {
			y[i*c+j] = x[i*c+j] * r * w[j]
		}
	}
	return y
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func TestRMSNormGradient(t *testing.T) {
	for _, c := range []int{1, 5, 16, 33} {
		const n, eps = 3, 1e-5
		r := rand.New(rand.NewPCG(1, uint64(c)))
		x, w, dy := normals(r, n*c), normals(r, c), normals(r, n*c)
		y, rstd, dx, dw := make([]float32, n*c), make([]float32, n), make([]float32, n*c), make([]float32, c)
		RMSNorm(y, rstd, x, w, n, c, eps)
		again := make([]float32, n*c)
		RMSNormAgain(again, rstd, x, w, n, c)
		for i := range y {
			if y[i] != again[i] {
				t.Fatalf("c=%d: element %d is %g, again %g", c, i, y[i], again[i])
			}
		}
		RMSNormBack(dx, dw, dy, x, w, rstd, n, c)
		checkGradient(t, fmt.Sprintf("dx, c=%d", c), x, dx, dy, func(x []float64) []float64 { return rmsNorm64(x, widen(w), n, c, eps) })
		checkGradient(t, fmt.Sprintf("dw, c=%d", c), w, dw, dy, func(w []float64) []float64 { return rmsNorm64(widen(x), w, n, c, eps) })
	}
}

func TestRMSNormBackInPlace(t *testing.T) {
	const n, c = 2, 7
	r := rand.New(rand.NewPCG(2, 2))
	x, w, dy := normals(r, n*c), normals(r, c), normals(r, n*c)
	y, rstd, dx := make([]float32, n*c), make([]float32, n), make([]float32, n*c)
	RMSNorm(y, rstd, x, w, n, c, 1e-6)
	RMSNormBack(dx, nil, dy, x, w, rstd, n, c)
	RMSNormBack(dy, nil, dy, x, w, rstd, n, c)
	for i := range dx {
		if dx[i] != dy[i] {
			t.Errorf("element %d is %g in place, %g apart", i, dy[i], dx[i])
		}
	}
}

func TestRopeBackUndoesRope(t *testing.T) {
	const heads, d = 3, 6
	r := rand.New(rand.NewPCG(3, 3))
	x := normals(r, heads*d)
	var cos, sin []float32
	for i := range d / 2 {
		s, c := math.Sincos(float64(i) * 1.3)
		cos, sin = append(cos, float32(c)), append(sin, float32(s))
	}
	y := append([]float32(nil), x...)
	Rope(y, cos, sin, heads, d)
	if got, want := y[1], x[1]*cos[1]-x[1+d/2]*sin[1]; math.Abs(float64(got-want)) > 1e-6 {
		t.Errorf("element 1 is %g, want %g", got, want)
	}
	RopeBack(y, cos, sin, heads, d)
	for i := range x {
		if math.Abs(float64(x[i]-y[i])) > 1e-6 {
			t.Errorf("element %d comes back as %g, was %g", i, y[i], x[i])
		}
	}
}

func TestXent(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	z := normals(r, 11)
	targets, coef := []int{3, 3, 7}, []float32{0.5, -2, 1.25}
	f := func(z []float64) []float64 {
		var s float64
		for _, v := range z {
			s += math.Exp(v)
		}
		var out []float64
		for _, id := range targets {
			out = append(out, z[id]-math.Log(s))
		}
		return out
	}
	e := append([]float32(nil), z...)
	s := SoftmaxExp(e)
	for i, want := range f(widen(z)) {
		if got := s.Logprob(z[targets[i]]); math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("log-probability %d is %g, want %g", i, got, want)
		}
	}
	XentBack(e, s, coef[0]+coef[1]+coef[2])
	for i, id := range targets {
		e[id] += coef[i]
	}
	checkGradient(t, "logits", z, e, coef, f)
}

func TestSoftmaxFinite(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tt := range []struct {
		z    []float32
		want bool
	}{
		{[]float32{1, 2}, true}, {[]float32{1, -inf}, true}, {[]float32{-inf, -inf}, false},
		{[]float32{1, inf}, false}, {[]float32{1, nan}, false}, {[]float32{nan, nan}, false},
	} {
		if got := SoftmaxExp(append([]float32(nil), tt.z...)).Finite(); got != tt.want {
			t.Errorf("%v: finite %v, want %v", tt.z, got, tt.want)
		}
	}
}

// testBlock is a batch of one tree: a root of 5 tokens, then two branches behind
// its first 3 and all 5 tokens.
type testBlock struct {
	h       Heads
	n       int
	parents []int // of each row
	q, k, v []float32
}

func newTestBlock() *testBlock {
	b := &testBlock{h: Heads{Heads: 4, KV: 2, Dim: 3}, parents: []int{-1, 0, 1, 2, 3, 2, 5, 4, 7, 8}}
	b.n = len(b.parents)
	r := rand.New(rand.NewPCG(5, 5))
	b.q, b.k, b.v = normals(r, b.n*12), normals(r, b.n*6), normals(r, b.n*6)
	return b
}

// block describes the tree, with keys as columns and values as rows in data.
func (b *testBlock) block() *Block {
	data := make([]float32, 2*b.n*6)
	for i := range b.n {
		for d := range 6 {
			data[d*b.n+i] = b.k[i*6+d]
		}
	}
	copy(data[b.n*6:], b.v)
	span := func(row, start, n, lo, hi int) Span {
		return Span{Data: data, K: row, KRow: b.n, V: b.n*6 + row*6, VRow: 6, Start: start, N: n, Lo: lo, Hi: hi, Row: row}
	}
	return &Block{N: b.n, Width: 8, Pos: []int{0, 1, 2, 3, 4, 3, 4, 5, 6, 7}, End: []int{5, 5, 5, 5, 5, 5, 5, 8, 8, 8},
		Spans: []Span{span(0, 0, 5, 0, 5), span(0, 0, 3, 5, 7), span(5, 3, 2, 5, 7), span(0, 0, 5, 7, 10), span(7, 5, 3, 7, 10)}}
}

// attend64 is plain attention of each row to its ancestors.
func (b *testBlock) attend64(q, k, v []float64) []float64 {
	h := b.h
	o := make([]float64, b.n*h.Heads*h.Dim)
	for i := range b.n {
		for head := range h.Heads {
			kv := head / h.Group()
			var sum float64
			out := o[(i*h.Heads+head)*h.Dim:][:h.Dim]
			for j := i; j >= 0; j = b.parents[j] {
				var s float64
				for d := range h.Dim {
					s += q[(i*h.Heads+head)*h.Dim+d] * k[(j*h.KV+kv)*h.Dim+d]
				}
				e := math.Exp(s)
				sum += e
				for d := range h.Dim {
					out[d] += e * v[(j*h.KV+kv)*h.Dim+d]
				}
			}
			for d := range out {
				out[d] /= sum
			}
		}
	}
	return o
}

func TestAttention(t *testing.T) {
	b := newTestBlock()
	blk, h := b.block(), b.h
	o, lse := make([]float32, b.n*12), make([]float32, b.n*4)
	scratch := make([]float32, max(blk.Scratch(h), blk.ScratchBack(h)))
	q := Rows{b.q, 12}
	for kv := range h.KV {
		blk.Attend(Rows{o, 12}, lse, q, h, kv, 0, scratch)
	}
	for i, want := range b.attend64(widen(b.q), widen(b.k), widen(b.v)) {
		if math.Abs(float64(o[i])-want) > 1e-5 {
			t.Errorf("output %d is %g, want %g", i, o[i], want)
		}
	}
	r := rand.New(rand.NewPCG(6, 6))
	do := normals(r, len(o))
	dq, dk, dv := make([]float32, len(b.q)), make([]float32, len(b.k)), make([]float32, len(b.v))
	for kv := range h.KV {
		blk.AttendBack(nil, Rows{dq, 12}, Rows{dk, 6}, Rows{dv, 6}, Rows{do, 12}, Rows{o, 12}, lse, q, h, kv, 0, scratch)
	}
	k, v := widen(b.k), widen(b.v)
	checkGradient(t, "dq", b.q, dq, do, func(x []float64) []float64 { return b.attend64(x, k, v) })
	checkGradient(t, "dk", b.k, dk, do, func(x []float64) []float64 { return b.attend64(widen(b.q), x, v) })
	checkGradient(t, "dv", b.v, dv, do, func(x []float64) []float64 { return b.attend64(widen(b.q), k, x) })
}
