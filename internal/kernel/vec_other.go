//go:build !amd64

package kernel

func (ISA) dot(a, b []float32) float32       { return dotGo(a, b) }
func (ISA) sumSquares(x []float32) float64   { return sumSquaresGo(x) }
func (ISA) max(x []float32) float32          { return maxGo(x) }
func (ISA) sumZero(x []float32) float32      { return sumZeroGo(x) }
func (ISA) add(y, x []float32)               { addGo(y, x) }
func (ISA) mul(y, x []float32)               { mulGo(y, x) }
func (ISA) scale(x []float32, alpha float32) { scaleGo(x, alpha) }
func (ISA) exp(y, x []float32)               { expGo(y, x) }
func (ISA) siluMul(y, gate, up []float32)    { siluMulGo(y, gate, up) }

func (ISA) axpy(y []float32, alpha float32, x []float32) { axpyGo(y, alpha, x) }

func (ISA) scaleMul(y []float32, alpha float32, x, w []float32) { scaleMulGo(y, alpha, x, w) }

func (ISA) addScaleMul(y []float32, alpha float32, x, w []float32) { addScaleMulGo(y, alpha, x, w) }

func (ISA) expSum(x []float32, max float32) float64 { return expSumGo(x, max) }

func (ISA) siluMulBack(dgate, dup, dy, gate, up []float32) {
	siluMulBackGo(dgate, dup, dy, gate, up)
}

func (ISA) adamW(p, g, m, v []float32, f *factors) { adamWGo(p, g, m, v, f) }
