// Command gemm writes the micro-kernels of the matrix product: gemm_amd64.s,
// declared in gemm_amd64.go. See the go:generate line of the kernel package.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of the kernel package's struct tile.
const (
	offC      = 0
	offLDC    = 24
	offA      = 32
	offARow   = 56
	offACol   = 64
	offB      = 72
	offBRow   = 96
	offBPanel = 104
	offK      = 112
	offAdd    = 120
	offMask   = 128
)

// shape is one micro-kernel: rows × vecs vectors of C, perPanel of them in each
// panel of b.
type shape struct {
	name                 string
	bytes                int // of a vector
	rows, vecs, perPanel int
	masked               bool // the last panel's columns are stored under a mask
}

func main() {
	ConstraintExpr("amd64")
	for m := 1; m <= 14; m++ {
		gemm(shape{fmt.Sprintf("gemm512x%d", m), 64, m, 2, 2, true})
	}
	gemm(shape{"gemm512x1wide", 64, 1, 8, 2, true})
	gemm(shape{"gemm512x2wide", 64, 2, 4, 2, true})
	gemm(shape{"gemm512x3wide", 64, 3, 4, 2, true})
	for m := 1; m <= 3; m++ {
		gemm(shape{fmt.Sprintf("gemm256x%d", m), 32, m, 4, 4, false})
	}
	for m := 4; m <= 6; m++ {
		gemm(shape{fmt.Sprintf("gemm256x%d", m), 32, m, 2, 4, false})
	}
	gemm(shape{"gemm256x1wide", 32, 1, 8, 4, false})
	transpose()
	Generate()
}

// kernel is the state while one micro-kernel is written.
type kernel struct {
	shape
	t, c, ldc        reg.GPVirtual
	a                []reg.GPVirtual // of rows 0, 7
	aRow             [6]reg.GPVirtual
	aCol, bRow       reg.GPVirtual
	b, panel, panel3 reg.GPVirtual
	acc              [][]reg.VecVirtual
	mask             [2]reg.OpmaskVirtual
}

func gemm(s shape) {
	TEXT(s.name, NOSPLIT, "func(t uintptr)")
	Doc(fmt.Sprintf("%s computes %d rows by %d columns of a tile.", s.name, s.rows, s.vecs*s.bytes/4))
	k := &kernel{shape: s, t: GP64()}
	Load(Param("t"), k.t)
	k.pointers()
	k.start()
	k.loop()
	k.store()
	VZEROUPPER()
	RET()
}

func (k *kernel) field(off int) reg.GPVirtual {
	r := GP64()
	MOVQ(Mem{Base: k.t, Disp: off}, r)
	return r
}

// stride is a field counted in numbers, made bytes.
func (k *kernel) stride(off int) reg.GPVirtual {
	r := k.field(off)
	SHLQ(Imm(2), r)
	return r
}

func (k *kernel) pointers() {
	k.c, k.ldc = k.field(offC), k.stride(offLDC)
	k.a = []reg.GPVirtual{k.field(offA)}
	k.aCol, k.bRow, k.b = k.stride(offACol), k.stride(offBRow), k.field(offB)
	if k.rows > 1 {
		k.aRow[1] = k.stride(offARow)
	}
	if k.rows > 3 {
		k.aRow[3] = sum(k.aRow[1], k.aRow[1], 2)
	}
	if k.rows > 5 {
		k.aRow[5] = sum(k.aRow[1], k.aRow[1], 4)
	}
	if k.rows > 7 {
		seven := sum(k.a[0], k.aRow[3], 2)
		ADDQ(k.aRow[1], seven)
		k.a = append(k.a, seven)
	}
	if k.vecs > k.perPanel {
		k.panel = k.stride(offBPanel)
		k.panel3 = sum(k.panel, k.panel, 2)
	}
	if k.masked {
		m := GP32()
		MOVL(Mem{Base: k.t, Disp: offMask}, m)
		k.mask[0], k.mask[1] = K(), K()
		KMOVW(m, k.mask[0])
		SHRL(Imm(16), m)
		KMOVW(m, k.mask[1])
	}
}

// sum returns x + y·scale.
func sum(x, y reg.GPVirtual, scale uint8) reg.GPVirtual {
	r := GP64()
	LEAQ(Mem{Base: x, Index: y, Scale: scale}, r)
	return r
}

func (k *kernel) vec() reg.VecVirtual {
	if k.bytes == 64 {
		return ZMM()
	}
	return YMM()
}

// start sets the sums to zero, or to C where the tile adds.
func (k *kernel) start() {
	for range k.rows {
		row := make([]reg.VecVirtual, k.vecs)
		for v := range row {
			row[v] = k.vec()
		}
		k.acc = append(k.acc, row)
	}
	n := k.field(offAdd)
	TESTQ(n, n)
	JZ(LabelRef("zero"))
	k.eachC(func(i, v int, m Mem) {
		if mask := k.maskOf(v); mask != nil {
			VMOVUPS_Z(m, mask, k.acc[i][v])
			return
		}
		VMOVUPS(m, k.acc[i][v])
	})
	JMP(LabelRef("begin"))
	Label("zero")
	for _, row := range k.acc {
		for _, r := range row {
			if k.bytes == 64 {
				VPXORD(r, r, r)
			} else {
				VXORPS(r, r, r)
			}
		}
	}
	Label("begin")
}

// maskOf returns the mask of vector v, nil where it is stored whole.
func (k *kernel) maskOf(v int) reg.Register {
	if !k.masked || v < k.vecs-k.perPanel {
		return nil
	}
	return k.mask[v%k.perPanel]
}

// eachC visits the vectors of C in memory.
func (k *kernel) eachC(f func(i, v int, m Mem)) {
	c := GP64()
	MOVQ(k.c, c)
	for i := range k.rows {
		for v := range k.vecs {
			f(i, v, Mem{Base: c, Disp: v * k.bytes})
		}
		if i+1 < k.rows {
			ADDQ(k.ldc, c)
		}
	}
}

func (k *kernel) loop() {
	n := k.field(offK)
	Label("loop")
	if k.rows <= 3 {
		k.stepByVector()
	} else {
		k.stepByRow()
	}
	for _, a := range k.a {
		ADDQ(k.aCol, a)
	}
	ADDQ(k.bRow, k.b)
	DECQ(n)
	JNZ(LabelRef("loop"))
}

// stepByVector keeps the few numbers of a in registers and streams b.
func (k *kernel) stepByVector() {
	var a []reg.VecVirtual
	for i := range k.rows {
		a = append(a, k.vec())
		VBROADCASTSS(k.memA(i), a[i])
	}
	for v := range k.vecs {
		if k.rows == 1 {
			VFMADD231PS(k.memB(v), a[0], k.acc[0][v])
			continue
		}
		b := k.vec()
		VMOVUPS(k.memB(v), b)
		for i := range k.rows {
			VFMADD231PS(b, a[i], k.acc[i][v])
		}
	}
}

// stepByRow keeps a row of b in registers and streams a.
func (k *kernel) stepByRow() {
	var b []reg.VecVirtual
	for v := range k.vecs {
		b = append(b, k.vec())
		VMOVUPS(k.memB(v), b[v])
	}
	for i := range k.rows {
		a := k.vec()
		VBROADCASTSS(k.memA(i), a)
		for v := range k.vecs {
			VFMADD231PS(b[v], a, k.acc[i][v])
		}
	}
}

func (k *kernel) memA(i int) Mem {
	base, i := k.a[i/7], i%7
	switch i {
	case 0:
		return Mem{Base: base}
	case 1, 2, 4:
		return Mem{Base: base, Index: k.aRow[1], Scale: uint8(i)}
	case 3, 6:
		return Mem{Base: base, Index: k.aRow[3], Scale: uint8(i / 3)}
	}
	return Mem{Base: base, Index: k.aRow[5], Scale: 1}
}

func (k *kernel) memB(v int) Mem {
	m := Mem{Base: k.b, Disp: v % k.perPanel * k.bytes}
	switch p := v / k.perPanel; p {
	case 1, 2:
		m.Index, m.Scale = k.panel, uint8(p)
	case 3:
		m.Index, m.Scale = k.panel3, 1
	}
	return m
}

func (k *kernel) store() {
	k.eachC(func(i, v int, m Mem) {
		if mask := k.maskOf(v); mask != nil {
			VMOVUPS(k.acc[i][v], mask, m)
			return
		}
		VMOVUPS(k.acc[i][v], m)
	})
}

// transpose writes 8 columns of a panel, k/8 times 8 rows of it.
func transpose() {
	TEXT("transpose256", NOSPLIT, "func(dst, src *float32, ld, blocks int)")
	Doc("transpose256 lays out 8 contiguous columns, ld numbers apart, as rows of a panel: 8·blocks of them.")
	dst, src, ld, n := GP64(), GP64(), GP64(), GP64()
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("ld"), ld)
	Load(Param("blocks"), n)
	SHLQ(Imm(2), ld)
	ld3 := sum(ld, ld, 2)
	high := sum(src, ld, 4)
	Label("loop")
	var r [8]reg.VecVirtual
	for i := range r {
		r[i] = YMM()
		m := Mem{Base: []reg.GPVirtual{src, high}[i/4]}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = ld, uint8(i%4)
		case 3:
			m.Index, m.Scale = ld3, 1
		}
		VMOVUPS(m, r[i])
	}
	for row, x := range transposed(r) {
		VMOVUPS(x, Mem{Base: dst, Disp: row * 128})
	}
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), high)
	ADDQ(U32(8*128), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// transposed transposes 8 × 8 numbers: pairs, then pairs of pairs, then halves.
func transposed(r [8]reg.VecVirtual) (t [8]reg.VecVirtual) {
	var p, q [8]reg.VecVirtual
	for i := range r {
		p[i], q[i], t[i] = YMM(), YMM(), YMM()
	}
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(r[i+1], r[i], p[i])
		VUNPCKHPS(r[i+1], r[i], p[i+1])
	}
	for i := 0; i < 8; i += 4 {
		VUNPCKLPD(p[i+2], p[i], q[i])
		VUNPCKHPD(p[i+2], p[i], q[i+1])
		VUNPCKLPD(p[i+3], p[i+1], q[i+2])
		VUNPCKHPD(p[i+3], p[i+1], q[i+3])
	}
	for i := range 4 {
		VPERM2F128(Imm(0x20), q[i+4], q[i], t[i])
		VPERM2F128(Imm(0x31), q[i+4], q[i], t[i+4])
	}
	return t
}
