package kernel

// The vector kernels are bit-identical on every instruction set. The order of
// summation depends only on the index within the slice: index i goes to lane i mod L,
// each lane adds in order, and the lanes are folded in halves (lane j adds lane
// j + L/2). The slices of one call must have the same length. They may be the same
// memory, but must not overlap otherwise.

// same panics unless every length equals n.
func same(n int, lengths ...int) {
	for _, l := range lengths {
		if l != n {
			panic("kernel: slices of different lengths")
		}
	}
}

// Dot returns Σ a·b, in 64 lanes of fused multiply-adds.
func Dot(a, b []float32) float32 {
	same(len(a), len(b))
	return selected().dot(a, b)
}

// SumSquares returns Σ x², in 32 lanes of float64.
func SumSquares(x []float32) float64 { return selected().sumSquares(x) }

// Max returns the largest element, ignoring NaNs; −Inf if there is none.
func Max(x []float32) float32 { return selected().max(x) }

// HasNaNOrInf reports whether any element is NaN or infinite.
func HasNaNOrInf(x []float32) bool {
	s := selected().sumZero(x)
	return s != s
}

// Add adds x to y.
func Add(y, x []float32) {
	same(len(y), len(x))
	selected().add(y, x)
}

// Mul multiplies y by x, element by element.
func Mul(y, x []float32) {
	same(len(y), len(x))
	selected().mul(y, x)
}

// Scale multiplies x by alpha.
func Scale(x []float32, alpha float32) { selected().scale(x, alpha) }

// Axpy adds alpha·x to y, each a fused multiply-add.
func Axpy(y []float32, alpha float32, x []float32) {
	same(len(y), len(x))
	selected().axpy(y, alpha, x)
}

// ScaleMul writes (alpha·x)·w into y.
func ScaleMul(y []float32, alpha float32, x, w []float32) {
	same(len(y), len(x), len(w))
	selected().scaleMul(y, alpha, x, w)
}

// AddScaleMul adds (alpha·x)·w to y; the last product is fused with the sum.
func AddScaleMul(y []float32, alpha float32, x, w []float32) {
	same(len(y), len(x), len(w))
	selected().addScaleMul(y, alpha, x, w)
}

// Exp writes e^x into y, within 1 ulp if the result is normal. e^−Inf is 0, overflow
// gives +Inf, and NaN stays NaN.
func Exp(y, x []float32) {
	same(len(y), len(x))
	selected().exp(y, x)
}

// ExpSum replaces x by e^(x−max), as Exp computes it, and returns the sum, added
// in 16 lanes of float64 and then rounded.
func ExpSum(x []float32, max float32) float32 { return float32(selected().expSum(x, max)) }

// SiluMul writes silu(gate)·up into y, with silu(g) = g/(1 + e^−g).
func SiluMul(y, gate, up []float32) {
	same(len(y), len(gate), len(up))
	selected().siluMul(y, gate, up)
}

// SiluMulBack writes the gradients of SiluMul into dgate and dup, given dy, the
// gradient of its result: with σ = 1/(1 + e^−gate), dup = dy·gate·σ and
// dgate = dy·up·σ·(1 + gate·(1−σ)). dgate and dup may be gate and up.
func SiluMulBack(dgate, dup, dy, gate, up []float32) {
	same(len(dgate), len(dup), len(dy), len(gate), len(up))
	selected().siluMulBack(dgate, dup, dy, gate, up)
}

// Adam holds the numbers of one AdamW step. B1, B2 are the decay rates of the
// moments; C1 = 1−B1^t and C2 = 1−B2^t correct their bias at step t = 1, 2, …;
// Decay is the decoupled weight decay; Grad scales the gradient first (clipping).
type Adam struct {
	LR, B1, B2, Eps, Decay, C1, C2, Grad float64
}

// AdamW updates the parameters p by one step, in PyTorch's order: g is scaled (but not
// modified), p decays by 1−LR·Decay, the moments m and v are updated with g, and p
// changes by −(LR/C1)·m/(√v/√C2 + Eps). The factors are computed in float64, then
// rounded.
func AdamW(p, g, m, v []float32, a Adam) {
	same(len(p), len(g), len(m), len(v))
	f := a.factors()
	selected().adamW(p, g, m, v, &f)
}
