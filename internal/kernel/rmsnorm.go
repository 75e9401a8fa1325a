package kernel

import "math"

// RMSNorm writes x/rms(x)·w into y, with rms(x) = √(mean(x²) + eps). x, y are
// (N, C) and may be the same memory; w is (C); rstd (N) takes 1/rms, kept for
// RMSNormBack.
func RMSNorm(y, rstd, x, w []float32, n, c int, eps float64) {
	for i := range n {
		xi := x[i*c : (i+1)*c]
		rstd[i] = float32(1 / math.Sqrt(SumSquares(xi)/float64(c)+eps))
		ScaleMul(y[i*c:(i+1)*c], rstd[i], xi, w)
	}
}

// RMSNormAgain recomputes the y of RMSNorm from the rstd it kept.
func RMSNormAgain(y, rstd, x, w []float32, n, c int) {
	for i := range n {
		ScaleMul(y[i*c:(i+1)*c], rstd[i], x[i*c:(i+1)*c], w)
	}
}

// RMSNormBack writes the gradient of x into dx and adds that of w to dw, given
// dy, the gradient of RMSNorm's y. dx may be dy; dw may be nil. With x̂ = x·rstd
// and g = dy·w, dx = rstd·(g − x̂·mean(g·x̂)) and dw = Σ dy·x̂ over the rows in order.
func RMSNormBack(dx, dw, dy, x, w, rstd []float32, n, c int) {
	for i := range n {
		xi, r, d := x[i*c:(i+1)*c], rstd[i], dx[i*c:(i+1)*c]
		if dw != nil {
			AddScaleMul(dw, r, xi, dy[i*c:(i+1)*c])
		}
		copy(d, dy[i*c:(i+1)*c])
		Mul(d, w)
		Axpy(d, -Dot(d, xi)*r*r/float32(c), xi)
		Scale(d, r)
	}
}
