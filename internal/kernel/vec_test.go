package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// vecCase runs one vector kernel; what it writes and what it returns come back as
// numbers.
type vecCase struct {
	name string
	run  func(s ISA, x [5][]float32) []float32
}

var testFactors = (&Adam{LR: 0.01, B1: 0.9, B2: 0.999, Eps: 1e-8, Decay: 0.1, C1: 0.19, C2: 0.002, Grad: 0.5}).factors()

// both puts a float64 into two numbers, so that its bits are compared.
func both(x float64) []float32 {
	u := math.Float64bits(x)
	return []float32{float32(u >> 40), float32(u >> 16 & 0xffffff), float32(u & 0xffff)}
}

var vecCases = []vecCase{
	{"dot", func(s ISA, x [5][]float32) []float32 { return []float32{s.dot(x[0], x[1])} }},
	{"sumSquares", func(s ISA, x [5][]float32) []float32 { return both(s.sumSquares(x[0])) }},
	{"max", func(s ISA, x [5][]float32) []float32 { return []float32{s.max(x[0])} }},
	{"sumZero", func(s ISA, x [5][]float32) []float32 { return []float32{s.sumZero(x[0])} }},
	{"add", func(s ISA, x [5][]float32) []float32 { s.add(x[0], x[1]); return nil }},
	{"mul", func(s ISA, x [5][]float32) []float32 { s.mul(x[0], x[1]); return nil }},
	{"scale", func(s ISA, x [5][]float32) []float32 { s.scale(x[0], 1.7); return nil }},
	{"axpy", func(s ISA, x [5][]float32) []float32 { s.axpy(x[0], -0.3, x[1]); return nil }},
	{"scaleMul", func(s ISA, x [5][]float32) []float32 { s.scaleMul(x[0], 1.3, x[1], x[2]); return nil }},
	{"scaleMul in place", func(s ISA, x [5][]float32) []float32 { s.scaleMul(x[0], 1.3, x[0], x[1]); return nil }},
	{"addScaleMul", func(s ISA, x [5][]float32) []float32 { s.addScaleMul(x[0], 1.3, x[1], x[2]); return nil }},
	{"exp", func(s ISA, x [5][]float32) []float32 { s.exp(x[0], x[1]); return nil }},
	{"exp in place", func(s ISA, x [5][]float32) []float32 { s.exp(x[0], x[0]); return nil }},
	{"expSum", func(s ISA, x [5][]float32) []float32 { return both(s.expSum(x[0], 1.5)) }},
	{"siluMul", func(s ISA, x [5][]float32) []float32 { s.siluMul(x[0], x[1], x[2]); return nil }},
	{"siluMulBack", func(s ISA, x [5][]float32) []float32 { s.siluMulBack(x[0], x[1], x[2], x[3], x[4]); return nil }},
	{"siluMulBack in place", func(s ISA, x [5][]float32) []float32 {
		s.siluMulBack(x[1], x[2], x[0], x[1], x[2])
		return nil
	}},
	{"adamW", func(s ISA, x [5][]float32) []float32 {
		s.mul(x[3], x[3]) // a second moment is never negative
		s.adamW(x[0], x[1], x[2], x[3], &testFactors)
		return nil
	}},
}

// Every instruction set gives the bits of plain Go, at every size and alignment,
// and writes nothing beyond the end.
func TestVecBits(t *testing.T) {
	sizes := []int{1000, 1023, 4099}
	for n := range 200 {
		sizes = append(sizes, n)
	}
	for _, c := range vecCases {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range sizes {
				checkVec(t, c, n, n%5)
			}
		})
	}
}

func checkVec(t *testing.T, c vecCase, n, start int) {
	const margin = 16
	r := rand.New(rand.NewPCG(uint64(n), 9))
	var x [5][]float32
	for i := range x {
		x[i] = numbers(r, start+n+margin)
		if n > 64 && n%2 == 0 {
			spice(r, x[i])
		}
	}
	run := func(s ISA) []float32 {
		var whole, part [5][]float32
		for i := range x {
			whole[i] = append([]float32(nil), x[i]...)
			part[i] = whole[i][start : start+n]
		}
		out := c.run(s, part)
		for i := range whole {
			out = append(out, whole[i]...)
		}
		return out
	}
	want := run(Generic)
	for _, s := range available()[1:] {
		wantSame(t, s.String(), run(s), want)
	}
}

// spice puts in what does not behave like a number.
func spice(r *rand.Rand, x []float32) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range []float32{0, float32(math.Copysign(0, -1)), inf, -inf, nan, 1e-42, -1e-42, 3e38, -3e38, 88.8, -103.5, -90, 200, -200} {
		x[r.IntN(len(x))] = v
	}
}

// Sums do not depend on where the slice begins in memory.
func TestSumsIgnoreAlignment(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	x, y := numbers(r, 333), numbers(r, 333)
	want := []float32{Dot(x, y), float32(SumSquares(x)), Max(x)}
	for shift := range 17 {
		a := append(make([]float32, shift), x...)[shift:]
		b := append(make([]float32, 2*shift), y...)[2*shift:]
		wantSame(t, "shifted", []float32{Dot(a, b), float32(SumSquares(a)), Max(a)}, want)
	}
}

// ulps is how far got is from want, in units of the last place of want.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	unit := float64(math.Nextafter32(w, float32(math.Inf(1)))) - float64(w)
	return math.Abs(float64(got)-want) / unit
}

func TestExpAccuracy(t *testing.T) {
	var x []float32
	for v := -87.3; v < 88.7; v += 0.00037 {
		x = append(x, float32(v))
	}
	for e := -40; e < 6; e++ {
		x = append(x, float32(math.Ldexp(1.1, e)), float32(-math.Ldexp(1.1, e)))
	}
	y := make([]float32, len(x))
	Exp(y, x)
	worst := 0.0
	for i, v := range x {
		worst = max(worst, ulps(y[i], math.Exp(float64(v))))
	}
	if worst > 1 {
		t.Errorf("greatest error %.3f ulp", worst)
	}
	t.Logf("greatest error %.3f ulp", worst)
}

func TestExpEnds(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, s := range available() {
		for _, c := range []struct{ x, low, high float32 }{
			{-inf, 0, 0}, {-1e30, 0, 0}, {-104, 0, 0}, {-103.9, 0, 1e-45}, {-100, 3e-44, 4.5e-44}, {0, 1, 1},
			{float32(math.Copysign(0, -1)), 1, 1}, {88.72, 3.3e38, math.MaxFloat32}, {88.73, inf, inf}, {inf, inf, inf},
		} {
			y := []float32{0}
			if s.exp(y, []float32{c.x}); !(y[0] >= c.low && y[0] <= c.high) {
				t.Errorf("%v: e^%v = %v, want from %v to %v", s, c.x, y[0], c.low, c.high)
			}
		}
		y := []float32{0}
		if s.exp(y, []float32{float32(math.NaN())}); y[0] == y[0] {
			t.Errorf("%v: e^NaN = %v", s, y[0])
		}
	}
}

func TestMaxAndHasNaNOrInf(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	if got := Max(nil); got != -inf {
		t.Errorf("Max of nothing = %v", got)
	}
	if got := Max([]float32{-5, nan, -7}); got != -5 {
		t.Errorf("Max beside NaN = %v", got)
	}
	for n := 1; n < 150; n++ {
		x := make([]float32, n)
		if HasNaNOrInf(x) {
			t.Fatalf("%d zeros are said to hold NaN or Inf", n)
		}
		for _, v := range []float32{nan, inf, -inf} {
			x[n*7/11] = v
			if !HasNaNOrInf(x) {
				t.Fatalf("%v of %d numbers not found", v, n)
			}
		}
		x[n*7/11] = math.MaxFloat32
		if HasNaNOrInf(x) {
			t.Fatal("the greatest number is no infinity")
		}
	}
}

// The kernels against float64 arithmetic.
func TestVecAccuracy(t *testing.T) {
	const n = 1003
	r := rand.New(rand.NewPCG(4, 4))
	a, b := numbers(r, n), numbers(r, n)
	var dot, squares, size, sum float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		size += math.Abs(float64(a[i]) * float64(b[i]))
		squares += float64(a[i]) * float64(a[i])
		sum += math.Exp(float64(float32(a[i] - 2)))
	}
	if got := float64(Dot(a, b)); math.Abs(got-dot) > 1e-6*size {
		t.Errorf("Dot = %v, want %v", got, dot)
	}
	if got := SumSquares(a); math.Abs(got-squares) > 1e-12*squares {
		t.Errorf("SumSquares = %v, want %v", got, squares)
	}
	x := append([]float32(nil), a...)
	if got := float64(ExpSum(x, 2)); math.Abs(got-sum) > 2e-7*sum {
		t.Errorf("ExpSum = %v, want %v", got, sum)
	}
}

func silu(g, u float64) float64 { return g / (1 + math.Exp(-g)) * u }

func TestSiluMul(t *testing.T) {
	const n = 501
	r := rand.New(rand.NewPCG(5, 5))
	gate, up, dy := numbers(r, n), numbers(r, n), numbers(r, n)
	Scale(gate, 5)
	y, dgate, dup := make([]float32, n), make([]float32, n), make([]float32, n)
	SiluMul(y, gate, up)
	SiluMulBack(dgate, dup, dy, gate, up)
	near := func(what string, i int, got float32, want float64) {
		if math.Abs(float64(got)-want) > 1e-6*(math.Abs(want)+1e-2) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got, want)
		}
	}
	for i := range y {
		const h = 1e-5
		g, u, d := float64(gate[i]), float64(up[i]), float64(dy[i])
		near("y", i, y[i], silu(g, u))
		near("dgate", i, dgate[i], d*(silu(g+h, u)-silu(g-h, u))/(2*h))
		near("dup", i, dup[i], d*silu(g, 1))
	}
	SiluMul(y[:2], []float32{-1e4, 1e4}, []float32{3, 3})
	wantSame(t, "saturated", y[:2], []float32{float32(math.Copysign(0, -1)), 3e4})
}

// Three steps against the formula in float64.
func TestAdamW(t *testing.T) {
	a := Adam{LR: 0.01, B1: 0.9, B2: 0.999, Eps: 1e-8, Decay: 0.1, Grad: 0.5}
	const n = 37
	r := rand.New(rand.NewPCG(6, 6))
	p, m, v := numbers(r, n), make([]float32, n), make([]float32, n)
	p64, m64, v64 := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range p {
		p64[i] = float64(p[i])
	}
	for step := 1.0; step <= 3; step++ {
		g := numbers(r, n)
		a.C1, a.C2 = 1-math.Pow(a.B1, step), 1-math.Pow(a.B2, step)
		AdamW(p, g, m, v, a)
		for i := range g {
			gi := float64(g[i]) * a.Grad
			m64[i] = a.B1*m64[i] + (1-a.B1)*gi
			v64[i] = a.B2*v64[i] + (1-a.B2)*gi*gi
			p64[i] -= a.LR * a.Decay * p64[i]
			p64[i] -= a.LR * (m64[i] / a.C1) / (math.Sqrt(v64[i]/a.C2) + a.Eps)
		}
	}
	for i := range p {
		if math.Abs(float64(p[i])-p64[i]) > 3e-7*(math.Abs(p64[i])+0.1) {
			t.Errorf("p[%d] = %v, want %v", i, p[i], p64[i])
		}
	}
}

func TestVecPanicsOnLengths(t *testing.T) {
	x, y := make([]float32, 4), make([]float32, 3)
	for name, f := range map[string]func(){
		"Dot":         func() { Dot(x, y) },
		"Axpy":        func() { Axpy(x, 1, y) },
		"Add":         func() { Add(y, x) },
		"Mul":         func() { Mul(x, y) },
		"ScaleMul":    func() { ScaleMul(x, 1, x, y) },
		"AddScaleMul": func() { AddScaleMul(x, 1, y, x) },
		"Exp":         func() { Exp(x, y) },
		"SiluMul":     func() { SiluMul(x, x, y) },
		"SiluMulBack": func() { SiluMulBack(x, x, x, y, x) },
		"AdamW":       func() { AdamW(x, x, y, x, Adam{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
