package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gen writes functions for vectors of 32 or 64 bytes.
type gen struct {
	bytes int
	ins   []string // slices that the function under way reads
	bases map[string]reg.GPVirtual
	at, n reg.GPVirtual  // index of the next number; how many are left
	kept  map[string]vec // constants in registers
}

func (g *gen) lanes() int { return g.bytes / 4 }

func (g *gen) vec() vec {
	if g.bytes == 64 {
		return ZMM()
	}
	return YMM()
}

// function begins a function that reads the slices ins, all as long as the first.
func (g *gen) function(name, signature string, ins ...string) {
	name = fmt.Sprintf("%s%d", name, g.bytes*8)
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	g.ins, g.bases, g.kept = ins, map[string]reg.GPVirtual{}, map[string]vec{}
	g.n = GP64()
	Load(Param(ins[0]).Len(), g.n)
}

func (g *gen) base(name string) reg.GPVirtual {
	if r, ok := g.bases[name]; ok {
		return r
	}
	r := GP64()
	Load(Param(name).Base(), r)
	g.bases[name] = r
	return r
}

// number is a parameter in every lane.
func (g *gen) number(name string) vec {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := g.vec()
	VBROADCASTSS(p.Addr, r)
	return r
}

func (g *gen) load(m Mem) vec {
	r := g.vec()
	VMOVUPS(m, r)
	return r
}

// keep holds constants in registers from here on, where there are enough of these.
func (g *gen) keep(names ...string) {
	if g.bytes < 64 {
		return
	}
	for _, c := range names {
		g.kept[c] = g.load(constant(c))
	}
}

// constant is an operand: the register that keeps the constant, or its memory.
func (g *gen) constant(name string) Op {
	if r, ok := g.kept[name]; ok {
		return r
	}
	return constant(name)
}

// register is a constant in a register that is not to be written.
func (g *gen) register(name string) vec {
	if r, ok := g.kept[name]; ok {
		return r
	}
	return g.load(constant(name))
}

// copied is a constant in a register of its own.
func (g *gen) copied(name string) vec {
	r := g.vec()
	VMOVUPS(g.constant(name), r)
	return r
}

func (g *gen) zeros(n int) []vec {
	acc := make([]vec, n)
	for i := range acc {
		acc[i] = g.vec()
		g.zero(acc[i])
	}
	return acc
}

func (g *gen) zero(r vec) { VXORPS(r, r, r) }

// each writes a function that computes the slice out from one vector of every
// slice read.
func (g *gen) each(out string, body func(in []vec) vec) {
	g.loop(1, []string{out}, func(_ int, in []vec, _ reg.Register) []vec { return []vec{body(in)} })
	g.end()
}

// body computes on vector v of a round: it gets one vector of every slice read
// and returns one for every slice written. Of the last vector, which is short, it
// gets zeros beyond the end, and a mask of the other lanes.
type body func(v int, in []vec, mask reg.Register) []vec

// loop runs do on rounds of unroll vectors, then on those that are left.
func (g *gen) loop(unroll int, outs []string, do body) {
	for _, s := range slices.Concat(g.ins, outs) {
		g.base(s)
	}
	g.at = GP64()
	XORQ(g.at, g.at)
	Label("loop")
	CMPQ(g.n, U32(uint32(unroll*g.lanes())))
	JL(LabelRef("tail"))
	for v := range unroll {
		g.whole(v, v*g.bytes, outs, do)
	}
	g.advance(unroll)
	JMP(LabelRef("loop"))
	Label("tail")
	for v := range unroll - 1 {
		CMPQ(g.n, U32(uint32(g.lanes())))
		JL(LabelRef(fmt.Sprintf("part%d", v)))
		g.whole(v, 0, outs, do)
		g.advance(1)
	}
	for v := unroll - 1; v >= 0; v-- {
		Label(fmt.Sprintf("part%d", v))
		TESTQ(g.n, g.n)
		JZ(LabelRef("done"))
		g.part(v, outs, do)
		if v > 0 {
			JMP(LabelRef("done"))
		}
	}
	Label("done")
}

func (g *gen) advance(vectors int) {
	ADDQ(U32(uint32(vectors*g.lanes())), g.at)
	SUBQ(U32(uint32(vectors*g.lanes())), g.n)
}

func (g *gen) mem(slice string, disp int) Mem {
	return Mem{Base: g.base(slice), Index: g.at, Scale: 4, Disp: disp}
}

func (g *gen) whole(v, disp int, outs []string, do body) {
	var in []vec
	for _, s := range g.ins {
		in = append(in, g.load(g.mem(s, disp)))
	}
	for i, r := range do(v, in, nil) {
		VMOVUPS(r, g.mem(outs[i], disp))
	}
}

func (g *gen) part(v int, outs []string, do body) {
	mask := g.mask()
	var in []vec
	for _, s := range g.ins {
		r := g.vec()
		if g.bytes == 64 {
			VMOVUPS_Z(g.mem(s, 0), mask, r)
		} else {
			VMASKMOVPS(g.mem(s, 0), mask, r)
		}
		in = append(in, r)
	}
	for i, r := range do(v, in, mask) {
		if g.bytes == 64 {
			VMOVUPS(r, mask, g.mem(outs[i], 0))
		} else {
			VMASKMOVPS(r, mask, g.mem(outs[i], 0))
		}
	}
}

// mask has the first g.n lanes.
func (g *gen) mask() reg.Register {
	at := GP64()
	if g.bytes == 64 {
		k := K()
		LEAQ(constant("masks512"), at)
		KMOVW(Mem{Base: at, Index: g.n, Scale: 2}, k)
		return k
	}
	m := YMM()
	LEAQ(constant("masks256"), at)
	left := GP64()
	MOVQ(g.n, left)
	NEGQ(left)
	VMOVUPS(Mem{Base: at, Index: left, Scale: 4, Disp: 32}, m)
	return m
}

// clear sets the lanes outside the mask to zero.
func (g *gen) clear(r vec, mask reg.Register) {
	if g.bytes == 64 {
		VMOVAPS_Z(r, mask, r)
		return
	}
	VANDPS(mask, r, r)
}

// fill sets the lanes outside the mask to a constant.
func (g *gen) fill(r vec, mask reg.Register, c Mem) {
	f := g.load(c)
	if g.bytes == 64 {
		VMOVAPS(r, mask, f)
		VMOVAPS(f, r)
		return
	}
	VBLENDVPS(mask, r, f, r)
}

// doubles widens a vector to float64, its lower half first.
func (g *gen) doubles(r vec) [2]vec {
	low, high := g.vec(), g.vec()
	if g.bytes == 64 {
		half := YMM()
		VEXTRACTF64X4(Imm(1), r, half)
		VCVTPS2PD(r.AsY(), low)
		VCVTPS2PD(half, high)
	} else {
		half := XMM()
		VEXTRACTF128(Imm(1), r, half)
		VCVTPS2PD(r.AsX(), low)
		VCVTPS2PD(half, high)
	}
	return [2]vec{low, high}
}

func add(low, high vec)   { VADDPS(high, low, low) }
func add64(low, high vec) { VADDPD(high, low, low) }

// fold combines the upper half of the lanes, of size bytes each, with the lower
// until one is left.
func (g *gen) fold(acc []vec, size int, combine func(low, high vec)) vec {
	for h := len(acc) / 2; h > 0; h /= 2 {
		for i := range h {
			combine(acc[i], acc[i+h])
		}
	}
	r := acc[0]
	if g.bytes == 64 {
		half := YMM()
		VEXTRACTF64X4(Imm(1), r, half)
		r = r.AsY().(vec)
		combine(r, half)
	}
	half := XMM()
	VEXTRACTF128(Imm(1), r, half)
	r = r.AsX().(vec)
	combine(r, half)
	half = XMM()
	VUNPCKHPD(r, r, half)
	combine(r, half)
	if size == 4 {
		half = XMM()
		VMOVSHDUP(r, half)
		combine(r, half)
	}
	return r
}

func (g *gen) end() {
	VZEROUPPER()
	RET()
}

// result returns the float32 lane that fold left.
func (g *gen) result(r vec) {
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}
