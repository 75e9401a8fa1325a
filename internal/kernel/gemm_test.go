package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"envace/internal/oracle"
)

// on is the pool with another instruction set.
func (p *Pool) on(isa ISA) *Pool {
	q := NewPool(p.Threads())
	q.isa = isa
	return q
}

func numbers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// view lays a (rows, cols) matrix out in one of three ways, with a margin between
// its rows or columns.
func view(r *rand.Rand, kind, rows, cols, margin int) Mat {
	var m Mat
	switch kind {
	case 0:
		m = Mat{Row: cols + margin, Col: 1}
	case 1:
		m = Mat{Row: 1, Col: rows + margin}
	default:
		m = Mat{Row: 2*cols + margin, Col: 2}
	}
	m.Data = numbers(r, (rows-1)*m.Row+(cols-1)*m.Col+1)
	return m
}

// chain computes one element of a product as the contract says.
func chain(c float32, a, b Mat, i, j, k int) float32 {
	for l := range k {
		c = fma32(a.Data[i*a.Row+l*a.Col], b.Data[l*b.Row+j*b.Col], c)
	}
	return c
}

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func wantSame(t failer, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Every element has the bits of its chain, whatever the shape, the strides, the
// threads, the instruction set and the way of calling.
func TestGemmBitsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		m, n := rapid.IntRange(1, 40).Draw(t, "m"), rapid.IntRange(1, 170).Draw(t, "n")
		k := rapid.IntRange(1, 70).Draw(t, "k")
		if rapid.IntRange(0, 7).Draw(t, "long") == 0 {
			k += 2*blockK - 40
		}
		a := view(r, rapid.IntRange(0, 2).Draw(t, "a"), m, k, rapid.IntRange(0, 3).Draw(t, "margin a"))
		b := view(r, rapid.IntRange(0, 2).Draw(t, "b"), k, n, rapid.SampledFrom([]int{0, 1, 3, 40}).Draw(t, "margin b"))
		add := rapid.Bool().Draw(t, "add")
		checkGemm(t, r, a, b, m, n, k, rapid.IntRange(0, 5).Draw(t, "margin c"), add)
	})
}

func checkGemm(t failer, r *rand.Rand, a, b Mat, m, n, k, margin int, add bool) {
	ldc := n + margin
	start := numbers(r, m*ldc)
	want := append([]float32(nil), start...)
	for i := range m {
		for j := range n {
			var c float32
			if add {
				c = start[i*ldc+j]
			}
			want[i*ldc+j] = chain(c, a, b, i, j, k)
		}
	}
	row := r.IntN(m)
	for _, isa := range available() {
		for threads := 1; threads <= 3; threads += 2 {
			p := NewPool(threads).on(isa)
			c := append([]float32(nil), start...)
			p.Gemm(c, ldc, a, b, m, n, k, add)
			wantSame(t, isa.String()+" Gemm", c, want)

			w := p.Pack(b, k, n)
			copy(c, start)
			p.GemmPacked(c, ldc, a, w, m, add)
			wantSame(t, isa.String()+" GemmPacked", c, want)

			copy(c, start)
			one := c[row*ldc : row*ldc+n]
			p.GemmPacked(one, ldc, a.from(row, 0), w, 1, add)
			wantSame(t, isa.String()+" one row", one, want[row*ldc:row*ldc+n])
			copy(c, start)
			p.Gemm(one, ldc, a.from(row, 0), b, 1, n, k, add)
			wantSame(t, isa.String()+" one row, not packed", one, want[row*ldc:row*ldc+n])
		}
	}
}

// Shapes at the edges of tiles, tasks and blocks.
func TestGemmEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][3]int{
		{1, 1, 1}, {14, 32, blockK}, {15, 33, blockK + 1}, {28, 64, 8}, {taskRows, 32, 9}, {taskRows + 1, 31, 16}, {171, 97, 5},
		{2, 32 * taskPanels, 3}, {3, 32*taskPanels + 1, 3}, {1, 32*taskPanels + 129, 7}, {6, 16, 2 * blockK}, {7, 17, 2*blockK + 1},
		{350, 200, 11}, {60, 130, farApart + 5}, {farApart + 5, 130, 4},
	} {
		for kind := range 3 {
			for _, add := range []bool{false, true} {
				m, n, k := s[0], s[1], s[2]
				checkGemm(t, r, view(r, kind, m, k, 0), view(r, (kind+1)%3, k, n, 0), m, n, k, 0, add)
			}
		}
	}
}

func TestGemmEveryRowCount(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for m := 1; m <= 30; m++ {
		for _, n := range []int{31, 64, 129} {
			checkGemm(t, r, view(r, 0, m, 19, 1), view(r, 0, 19, n, 0), m, n, 19, 3, m%2 == 0)
		}
	}
}

func TestGemmEmpty(t *testing.T) {
	p := NewPool(2)
	c := []float32{1, 2, 3, 4}
	p.Gemm(c, 2, Mat{nil, 0, 1}, Mat{nil, 2, 1}, 2, 2, 0, true)
	wantSame(t, "add of nothing", c, []float32{1, 2, 3, 4})
	p.Gemm(nil, 0, Mat{}, Mat{}, 0, 0, 3, false)
	p.GemmPacked(nil, 0, Mat{}, p.Pack(Mat{}, 3, 0), 2, false)
	p.GemmPacked(c, 2, Mat{nil, 0, 1}, p.Pack(Mat{nil, 2, 1}, 0, 2), 2, false)
	wantSame(t, "product of nothing", c, []float32{0, 0, 0, 0})
}

func TestGemmPanicsOnShape(t *testing.T) {
	x := make([]float32, 12)
	for name, f := range map[string]func(p *Pool){
		"a short":     func(p *Pool) { p.Gemm(x, 4, Mat{x, 5, 1}, Mat{x, 4, 1}, 3, 4, 3, false) },
		"b short":     func(p *Pool) { p.Gemm(x, 4, Mat{x, 4, 1}, Mat{x, 4, 1}, 3, 4, 4, false) },
		"c short":     func(p *Pool) { p.Gemm(x[:11], 4, Mat{x, 3, 1}, Mat{x, 4, 1}, 3, 4, 3, false) },
		"c overlaps":  func(p *Pool) { p.Gemm(x, 3, Mat{x, 3, 1}, Mat{x, 4, 1}, 2, 4, 3, false) },
		"pack short":  func(p *Pool) { p.Pack(Mat{x, 4, 1}, 4, 4) },
		"minus":       func(p *Pool) { p.Gemm(x, 4, Mat{x, -1, 1}, Mat{x, 4, 1}, 3, 4, 3, false) },
		"repack less": func(p *Pool) { p.Repack(p.Pack(Mat{x, 4, 1}, 3, 4), Mat{x[:8], 4, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(NewPool(2))
		})
	}
}

// A product in the steady state allocates nothing.
func TestGemmAllocations(t *testing.T) {
	if oracle.Race {
		t.Skip("the race detector allocates too")
	}
	r := rand.New(rand.NewPCG(5, 6))
	a, b := view(r, 0, 200, 300, 0), view(r, 1, 300, 200, 0)
	c := make([]float32, 200*200)
	p := NewPool(2)
	w := p.Pack(b, 300, 200)
	for name, f := range map[string]func(){
		"Gemm":       func() { p.Gemm(c, 200, a, b, 200, 200, 300, false) },
		"GemmPacked": func() { p.GemmPacked(c, 200, a, w, 200, true) },
		"decode":     func() { p.GemmPacked(c, 200, a, w, 1, false) },
		"Repack":     func() { NewPool(1).Repack(w, b) },
	} {
		// The garbage collector may empty a sync.Pool now and then.
		if n := testing.AllocsPerRun(20, f); n > 2 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// fma32 rounds once, also at ties and in the subnormal range.
func TestFMARounding(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	draw := func() float32 {
		e := r.IntN(60) - 30
		switch r.IntN(4) {
		case 0:
			e = r.IntN(250) - 125
		case 1:
			return float32(r.IntN(1<<12)) * float32(math.Ldexp(1, e))
		}
		return float32(math.Ldexp(r.Float64()*2-1, e))
	}
	check := func(a, b, c float32) {
		x := new(big.Float).SetPrec(600).SetFloat64(float64(a))
		x.Mul(x, big.NewFloat(float64(b)).SetPrec(600))
		x.Add(x, big.NewFloat(float64(c)))
		want, _ := x.Float32()
		if got := fma32(a, b, c); got != want {
			t.Fatalf("fma32(%g, %g, %g) = %g, want %g", a, b, c, got, want)
		}
	}
	for range 200_000 {
		check(draw(), draw(), draw())
	}
	// A product just beside the middle between two numbers.
	tiny := float32(math.Ldexp(1, -70))
	for _, c := range []float32{1 + 1.0/(1<<23), -1 - 1.0/(1<<23), 1, -1} {
		for _, half := range []float32{1.0 / (1 << 24), -1.0 / (1 << 24)} {
			check(half, 1+1.0/(1<<23), c)
			check(half, 1-1.0/(1<<23), c)
			check(half, 1, c)
			check(tiny, tiny, c)
		}
	}
}
