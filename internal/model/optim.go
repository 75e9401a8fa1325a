package model

import (
	"math"
	"slices"

	"envace/internal/kernel"
)

// Moments allocates AdamW's moments, as zeros, if there are none yet.
func (p *Param) Moments() {
	if p.M == nil {
		p.M, p.V = make([]float32, len(p.W)), make([]float32, len(p.W))
	}
}

// part is the number of elements per task of an optimiser stage. It is fixed, because
// the order of summation in the norm depends on it.
const part = 1 << 14

// parts runs f over the parts of the parameters; at is the index of the parameter.
func (m *Model) parts(params []*Param, f func(i int, p *Param, at, lo, hi int)) int {
	type piece struct {
		p      *Param
		at, lo int
	}
	var list []piece
	for at, p := range params {
		for lo := 0; lo < len(p.W); lo += part {
			list = append(list, piece{p, at, lo})
		}
	}
	m.pool.Run(len(list), func(i int) {
		p, lo := list[i].p, list[i].lo
		f(i, p, list[i].at, lo, min(lo+part, len(p.W)))
	})
	return len(list)
}

// GradNorm returns the global Euclidean norm of all gradients.
func (m *Model) GradNorm() float64 {
	params := m.Trained()
	total := 0
	for _, p := range params {
		total += (len(p.W) + part - 1) / part
	}
	sums := make([]float64, total)
	m.parts(params, func(i int, p *Param, _, lo, hi int) { sums[i] = kernel.SumSquares(p.G[lo:hi]) })
	var s float64
	for _, v := range sums {
		s += v
	}
	return math.Sqrt(s)
}

// NotFinite returns the name of the parameter closest to the output whose gradient
// contains a NaN or infinity, which is the first in backward order. It is "" if all
// gradients are finite.
func (m *Model) NotFinite() string {
	for _, p := range slices.Backward(m.Trained()) {
		if kernel.HasNaNOrInf(p.G) {
			return p.Name
		}
	}
	return ""
}

// ZeroGrad clears all gradients.
func (m *Model) ZeroGrad() {
	for _, p := range m.Trained() {
		clear(p.G)
	}
}

// AdamW updates all trained parameters by one step, clears the gradients and repacks
// the matrices. The moments are allocated at the first step.
func (m *Model) AdamW(a kernel.Adam) {
	params := m.Trained()
	base := false
	for _, p := range params {
		p.Moments()
	}
	for _, p := range m.params {
		base = base || p.G != nil
	}
	m.parts(params, func(_ int, p *Param, _, lo, hi int) {
		kernel.AdamW(p.W[lo:hi], p.G[lo:hi], p.M[lo:hi], p.V[lo:hi], a)
		clear(p.G[lo:hi])
	})
	if base {
		m.Repack()
	}
}
