// Command vec writes the vector kernels: vec_amd64.s and the Go declarations
// beside it. See the go:generate line of the kernel package.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	tables()
	for _, bytes := range []int{32, 64} {
		g := &gen{bytes: bytes}
		g.sums()
		g.elementwise()
		g.exponentials()
		g.adamW()
	}
	Generate()
}

type vec = reg.VecVirtual

func (g *gen) sums() {
	g.function("dot", "func(a, b []float32) float32", "a", "b")
	acc := g.zeros(64 / g.lanes())
	g.loop(len(acc), nil, func(v int, in []vec, _ reg.Register) []vec {
		VFMADD231PS(in[1], in[0], acc[v])
		return nil
	})
	g.result(g.fold(acc, 4, add))

	g.function("sumSquares", "func(x []float32) float64", "x")
	acc = g.zeros(64 / g.lanes())
	g.loop(len(acc)/2, nil, func(v int, in []vec, _ reg.Register) []vec {
		for i, d := range g.doubles(in[0]) {
			VFMADD231PD(d, d, acc[2*v+i])
		}
		return nil
	})
	g.result(g.fold(acc, 8, add64))

	g.function("max", "func(x []float32) float32", "x")
	acc = nil
	for range 64 / g.lanes() {
		acc = append(acc, g.load(constant("minusInf")))
	}
	g.loop(len(acc), nil, func(v int, in []vec, mask reg.Register) []vec {
		if mask != nil {
			g.fill(in[0], mask, constant("minusInf"))
		}
		VMAXPS(acc[v], in[0], acc[v])
		return nil
	})
	g.result(g.fold(acc, 4, func(low, high vec) { VMAXPS(low, high, low) }))

	g.function("sumZero", "func(x []float32) float32", "x")
	acc = g.zeros(64 / g.lanes())
	zero := g.zeros(1)[0]
	g.loop(len(acc), nil, func(v int, in []vec, _ reg.Register) []vec {
		VFMADD231PS(zero, in[0], acc[v])
		return nil
	})
	g.result(g.fold(acc, 4, add))
}

func (g *gen) elementwise() {
	g.function("add", "func(y, x []float32)", "y", "x")
	g.each("y", func(in []vec) vec {
		VADDPS(in[1], in[0], in[0])
		return in[0]
	})
	g.function("mul", "func(y, x []float32)", "y", "x")
	g.each("y", func(in []vec) vec {
		VMULPS(in[1], in[0], in[0])
		return in[0]
	})
	g.function("scale", "func(x []float32, alpha float32)", "x")
	alpha := g.number("alpha")
	g.each("x", func(in []vec) vec {
		VMULPS(alpha, in[0], in[0])
		return in[0]
	})
	g.function("axpy", "func(y []float32, alpha float32, x []float32)", "y", "x")
	alpha = g.number("alpha")
	g.each("y", func(in []vec) vec {
		VFMADD231PS(alpha, in[1], in[0])
		return in[0]
	})
	g.function("scaleMul", "func(y []float32, alpha float32, x, w []float32)", "x", "w")
	alpha = g.number("alpha")
	g.each("y", func(in []vec) vec {
		VMULPS(alpha, in[0], in[0])
		VMULPS(in[1], in[0], in[0])
		return in[0]
	})
	g.function("addScaleMul", "func(y []float32, alpha float32, x, w []float32)", "y", "x", "w")
	alpha = g.number("alpha")
	g.each("y", func(in []vec) vec {
		VMULPS(alpha, in[1], in[1])
		VFMADD231PS(in[2], in[1], in[0])
		return in[0]
	})
}

func (g *gen) exponentials() {
	g.function("exp", "func(y, x []float32)", "x")
	g.keepExp()
	g.each("y", func(in []vec) vec { return g.exp(in[0]) })

	g.function("expSum", "func(x []float32, max float32) float64", "x")
	greatest := g.number("max")
	g.keepExp()
	acc := g.zeros(128 / g.bytes)
	g.loop(len(acc), []string{"x"}, func(v int, in []vec, mask reg.Register) []vec {
		at := 2 * v % len(acc) // of the two accumulators of these lanes
		VSUBPS(greatest, in[0], in[0])
		e := g.exp(in[0])
		if mask != nil {
			g.clear(e, mask)
		}
		for i, d := range g.doubles(e) {
			VADDPD(d, acc[at+i], acc[at+i])
		}
		return []vec{e}
	})
	g.result(g.fold(acc, 8, add64))

	g.function("siluMul", "func(y, gate, up []float32)", "gate", "up")
	g.keepExp()
	g.keep("minus")
	g.loop(2, []string{"y"}, func(_ int, in []vec, _ reg.Register) []vec {
		d := g.onePlusExpMinus(in[0])
		VDIVPS(d, in[0], d)
		VMULPS(in[1], d, d)
		return []vec{d}
	})
	g.end()

	g.function("siluMulBack", "func(dgate, dup, dy, gate, up []float32)", "dy", "gate", "up")
	g.keepExp()
	g.keep("minus")
	g.loop(2, []string{"dgate", "dup"}, func(_ int, in []vec, _ reg.Register) []vec {
		dy, gate, up := in[0], in[1], in[2]
		d := g.onePlusExpMinus(gate)
		one := g.register("one")
		sig, rest := g.vec(), g.vec()
		VDIVPS(d, one, sig)
		VMULPS(dy, up, up) // dgate = dy·up·σ·(1 + gate·(1−σ))
		VMULPS(sig, up, up)
		VSUBPS(sig, one, rest)
		VFMADD213PS(one, gate, rest)
		VMULPS(rest, up, up)
		VMULPS(gate, dy, dy) // dup = dy·gate·σ
		VMULPS(sig, dy, dy)
		return []vec{up, dy}
	})
	g.end()
}

func (g *gen) adamW() {
	g.function("adamW", "func(p, g, m, v []float32, grad, decay, take1, keep2, take2, root, eps, step float32)",
		"p", "g", "m", "v")
	grad, decay, take1 := g.number("grad"), g.number("decay"), g.number("take1")
	keep2, take2, root := g.number("keep2"), g.number("take2"), g.number("root")
	eps, step := g.number("eps"), g.number("step")
	g.loop(1, []string{"p", "m", "v"}, func(_ int, in []vec, _ reg.Register) []vec {
		p, gr, m, v := in[0], in[1], in[2], in[3]
		t := g.vec()
		VMULPS(grad, gr, gr)
		VSUBPS(m, gr, t)
		VFMADD231PS(t, take1, m) // m += (1−β₁)(g−m)
		VMULPS(take2, gr, t)
		VMULPS(keep2, v, v)
		VFMADD231PS(gr, t, v) // v = β₂v + (1−β₂)g²
		VSQRTPS(v, t)
		VDIVPS(root, t, t)
		VADDPS(eps, t, t)
		VMULPS(decay, p, p)
		VMULPS(step, m, gr)
		VDIVPS(t, gr, gr)
		VADDPS(gr, p, p)
		return []vec{p, m, v}
	})
	g.end()
}
