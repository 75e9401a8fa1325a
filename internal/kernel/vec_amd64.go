package kernel

func (s ISA) dot(a, b []float32) float32 {
	switch s {
	case AVX512:
		return dot512(a, b)
	case AVX2:
		return dot256(a, b)
	}
	return dotGo(a, b)
}

func (s ISA) sumSquares(x []float32) float64 {
	switch s {
	case AVX512:
		return sumSquares512(x)
	case AVX2:
		return sumSquares256(x)
	}
	return sumSquaresGo(x)
}

func (s ISA) max(x []float32) float32 {
	switch s {
	case AVX512:
		return max512(x)
	case AVX2:
		return max256(x)
	}
	return maxGo(x)
}

func (s ISA) sumZero(x []float32) float32 {
	switch s {
	case AVX512:
		return sumZero512(x)
	case AVX2:
		return sumZero256(x)
	}
	return sumZeroGo(x)
}

func (s ISA) add(y, x []float32) {
	switch s {
	case AVX512:
		add512(y, x)
	case AVX2:
		add256(y, x)
	default:
		addGo(y, x)
	}
}

func (s ISA) mul(y, x []float32) {
	switch s {
	case AVX512:
		mul512(y, x)
	case AVX2:
		mul256(y, x)
	default:
		mulGo(y, x)
	}
}

func (s ISA) scale(x []float32, alpha float32) {
	switch s {
	case AVX512:
		scale512(x, alpha)
	case AVX2:
		scale256(x, alpha)
	default:
		scaleGo(x, alpha)
	}
}

func (s ISA) axpy(y []float32, alpha float32, x []float32) {
	switch s {
	case AVX512:
		axpy512(y, alpha, x)
	case AVX2:
		axpy256(y, alpha, x)
	default:
		axpyGo(y, alpha, x)
	}
}

func (s ISA) scaleMul(y []float32, alpha float32, x, w []float32) {
	switch s {
	case AVX512:
		scaleMul512(y, alpha, x, w)
	case AVX2:
		scaleMul256(y, alpha, x, w)
	default:
		scaleMulGo(y, alpha, x, w)
	}
}

func (s ISA) addScaleMul(y []float32, alpha float32, x, w []float32) {
	switch s {
	case AVX512:
		addScaleMul512(y, alpha, x, w)
	case AVX2:
		addScaleMul256(y, alpha, x, w)
	default:
		addScaleMulGo(y, alpha, x, w)
	}
}

func (s ISA) exp(y, x []float32) {
	switch s {
	case AVX512:
		exp512(y, x)
	case AVX2:
		exp256(y, x)
	default:
		expGo(y, x)
	}
}

func (s ISA) expSum(x []float32, max float32) float64 {
	switch s {
	case AVX512:
		return expSum512(x, max)
	case AVX2:
		return expSum256(x, max)
	}
	return expSumGo(x, max)
}

func (s ISA) siluMul(y, gate, up []float32) {
	switch s {
	case AVX512:
		siluMul512(y, gate, up)
	case AVX2:
		siluMul256(y, gate, up)
	default:
		siluMulGo(y, gate, up)
	}
}

func (s ISA) siluMulBack(dgate, dup, dy, gate, up []float32) {
	switch s {
	case AVX512:
		siluMulBack512(dgate, dup, dy, gate, up)
	case AVX2:
		siluMulBack256(dgate, dup, dy, gate, up)
	default:
		siluMulBackGo(dgate, dup, dy, gate, up)
	}
}

func (s ISA) adamW(p, g, m, v []float32, f *factors) {
	switch s {
	case AVX512:
		adamW512(p, g, m, v, f.grad, f.decay, f.take1, f.keep2, f.take2, f.root, f.eps, f.step)
	case AVX2:
		adamW256(p, g, m, v, f.grad, f.decay, f.take1, f.keep2, f.take2, f.root, f.eps, f.step)
	default:
		adamWGo(p, g, m, v, f)
	}
}
