package kernel

import "math"

// fold adds the upper half of the lanes to the lower half until one lane is left.
func fold[T float32 | float64](s []T) T {
	for h := len(s) / 2; h > 0; h /= 2 {
		for j := range h {
			s[j] += s[j+h]
		}
	}
	return s[0]
}

func dotGo(a, b []float32) float32 {
	var s [64]float32
	for i, x := range a {
		s[i%64] = fma32(x, b[i], s[i%64])
	}
	return fold(s[:])
}

func sumSquaresGo(x []float32) float64 {
	var s [32]float64
	for i, v := range x {
		s[i%32] += float64(v) * float64(v)
	}
	return fold(s[:])
}

func maxGo(x []float32) float32 {
	var s [64]float32
	for i := range s {
		s[i] = float32(math.Inf(-1))
	}
	for i, v := range x {
		if v > s[i%64] {
			s[i%64] = v
		}
	}
	for h := 32; h > 0; h /= 2 {
		for j := range h {
			if s[j+h] > s[j] {
				s[j] = s[j+h]
			}
		}
	}
	return s[0]
}

// sumZeroGo returns Σ 0·x: zero, or NaN if x contains a NaN or infinity.
func sumZeroGo(x []float32) float32 {
	var s float32
	for _, v := range x {
		s += v * 0
	}
	return s
}

func addGo(y, x []float32) {
	for i, v := range x {
		y[i] += v
	}
}

func mulGo(y, x []float32) {
	for i, v := range x {
		y[i] *= v
	}
}

func scaleGo(x []float32, alpha float32) {
	for i := range x {
		x[i] *= alpha
	}
}

func axpyGo(y []float32, alpha float32, x []float32) {
	for i, v := range x {
		y[i] = fma32(alpha, v, y[i])
	}
}

func scaleMulGo(y []float32, alpha float32, x, w []float32) {
	for i, v := range x {
		y[i] = float32(alpha*v) * w[i]
	}
}

func addScaleMulGo(y []float32, alpha float32, x, w []float32) {
	for i, v := range x {
		y[i] = fma32(float32(alpha*v), w[i], y[i])
	}
}

func expGo(y, x []float32) {
	for i, v := range x {
		y[i] = exp32(v)
	}
}

func expSumGo(x []float32, max float32) float64 {
	var s [16]float64
	for i, v := range x {
		x[i] = exp32(v - max)
		s[i%16] += float64(x[i])
	}
	return fold(s[:])
}

func siluMulGo(y, gate, up []float32) {
	for i, g := range gate {
		y[i] = float32(g/(1+exp32(-g))) * up[i]
	}
}

func siluMulBackGo(dgate, dup, dy, gate, up []float32) {
	for i, g := range gate {
		sig := 1 / (1 + exp32(-g))
		d, u := dy[i], up[i]
		dup[i] = float32(d*g) * sig
		dgate[i] = float32(float32(d*u)*sig) * fma32(g, 1-sig, 1)
	}
}

// factors are the rounded coefficients of an AdamW step.
type factors struct {
	grad, decay, take1, keep2, take2, root, eps, step float32
}

func (a *Adam) factors() factors {
	return factors{
		grad:  float32(a.Grad),
		decay: float32(1 - a.LR*a.Decay),
		take1: float32(1 - a.B1),
		keep2: float32(a.B2), take2: float32(1 - a.B2),
		root: float32(math.Sqrt(a.C2)),
		eps:  float32(a.Eps),
		step: float32(-a.LR / a.C1),
	}
}

func adamWGo(p, g, m, v []float32, f *factors) {
	for i := range p {
		gi := g[i] * f.grad
		m[i] = fma32(f.take1, gi-m[i], m[i])
		v[i] = fma32(float32(f.take2*gi), gi, float32(v[i]*f.keep2))
		root := float32(math.Sqrt(float64(v[i])))/f.root + f.eps
		p[i] = float32(p[i]*f.decay) + float32(f.step*m[i])/root
	}
}
