//go:build !amd64

package kernel

func (ISA) rows() int { return 8 }

func (ISA) panels(int) int { return 1 }

func (ISA) multiply(x *scratch, m, cols int) { multiplyGo(&x.tile, m, cols) }

func (ISA) transpose(dst, src []float32, ld, k int) int { return 0 }
