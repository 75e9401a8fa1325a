package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// constants are the numbers of vec_exp.go, and a few more.
var constants = []struct {
	name string
	bits uint32
}{
	{"minusInf", 0xff800000},
	{"minus", 0x80000000},
	{"one", math.Float32bits(1)},
	{"low", math.Float32bits(-104)},
	{"high", math.Float32bits(89)},
	{"log2e", math.Float32bits(1.44269502)},
	{"minusLn2High", math.Float32bits(-0.693359375)},
	{"minusLn2Low", math.Float32bits(2.12194442e-4)},
	{"round", math.Float32bits(3 << 22)},
	{"q0", math.Float32bits(0.49999994)},
	{"q1", math.Float32bits(0.16666521)},
	{"q2", math.Float32bits(0.041668389)},
	{"q3", math.Float32bits(0.0083687352)},
	{"q4", math.Float32bits(0.0013814559)},
	{"bias", 127},
}

// tables writes the constants, sixteen times each to be read as vectors, and the
// masks of short vectors.
func tables() {
	for _, c := range constants {
		GLOBL(c.name, attr.RODATA|attr.NOPTR)
		for i := range 16 {
			DATA(4*i, U32(c.bits))
		}
	}
	GLOBL("masks256", attr.RODATA|attr.NOPTR) // 8 lanes set, 8 clear: read n lanes before the middle
	for i := range 16 {
		if i < 8 {
			DATA(4*i, U32(0xffffffff))
		} else {
			DATA(4*i, U32(0))
		}
	}
	GLOBL("masks512", attr.RODATA|attr.NOPTR) // n bits at entry n
	for n := range 16 {
		DATA(2*n, U16(1<<n-1))
	}
}

func constant(name string) Mem { return NewDataAddr(Symbol{Name: name, Static: true}, 0) }

// keepExp keeps the constants of exp.
func (g *gen) keepExp() {
	g.keep("high", "low", "log2e", "round", "minusLn2High", "minusLn2Low", "q0", "q1", "q2", "q3", "q4", "one")
}

// exp replaces x by e^x, as exp32 of the kernel package does.
func (g *gen) exp(x vec) vec {
	VMINPS(x, g.register("high"), x) // of a NaN the second operand is kept, and it comes first here
	VMAXPS(x, g.register("low"), x)
	t, f := g.copied("log2e"), g.vec()
	VFMADD213PS(g.constant("round"), x, t)
	VSUBPS(g.constant("round"), t, f)
	VFMADD231PS(g.constant("minusLn2High"), f, x)
	VFMADD231PS(g.constant("minusLn2Low"), f, x)
	q, square := g.copied("q4"), g.vec()
	for i := 3; i >= 0; i-- {
		VFMADD213PS(g.constant(fmt.Sprintf("q%d", i)), x, q)
	}
	VMULPS(x, x, square)
	VFMADD213PS(x, square, q)
	VADDPS(g.constant("one"), q, q)
	if g.bytes == 64 {
		VSCALEFPS(f, q, q)
		return q
	}
	// 2^n in two factors, of which each is a normal number.
	n, half := g.vec(), g.vec()
	VPSUBD(constant("round"), t, n)
	VPSRAD(Imm(1), n, half)
	VPSUBD(half, n, n)
	for _, power := range []vec{half, n} {
		VPADDD(constant("bias"), power, power)
		VPSLLD(Imm(23), power, power)
		VMULPS(power, q, q)
	}
	return q
}

// onePlusExpMinus returns 1 + e^−x.
func (g *gen) onePlusExpMinus(x vec) vec {
	m := g.vec()
	VXORPS(g.constant("minus"), x, m)
	e := g.exp(m)
	VADDPS(g.constant("one"), e, e)
	return e
}
