package kernel

import "sync"

// Packed is a (K, N) right-hand side packed once for the fast kernels, for weights
// shared by many products. Concurrent reads are safe.
type Packed struct {
	K, N int
	data []float32 // panel by panel, each (K, panelCols); the last is padded with zeros
}

// packs holds the memory for right-hand sides packed by Gemm.
var packs = sync.Pool{New: func() any { return new(Packed) }}

// Pack returns a packed copy of b, a (K, N) matrix. p.Repack writes new values into
// the same memory.
func (p *Pool) Pack(b Mat, k, n int) *Packed {
	w := new(Packed)
	w.resize(k, n)
	p.Repack(w, b)
	return w
}

// Repack copies b, which must have the shape of w, into w.
func (p *Pool) Repack(w *Packed, b Mat) {
	if w.K == 0 || w.N == 0 {
		return
	}
	b.check("b", w.K, w.N)
	isa, n := p.set(), ceil(w.N, panelCols)
	if p.Threads() == 1 || w.K*w.N < aloneWork/8 {
		for q := range n {
			w.pack(isa, b, q)
		}
		return
	}
	p.Run(n, func(q int) { w.pack(isa, b, q) })
}

func (w *Packed) resize(k, n int) {
	w.K, w.N = k, n
	size := ceil(n, panelCols) * panelCols * k
	if cap(w.data) < size {
		w.data = make([]float32, size)
	}
	w.data = w.data[:size]
}

func (w *Packed) panels() panels { return panels{w.data, panelCols, w.K * panelCols} }

// pack packs panel q.
func (w *Packed) pack(isa ISA, b Mat, q int) {
	dst := w.data[q*w.K*panelCols:][:w.K*panelCols]
	cols := min(panelCols, w.N-q*panelCols)
	b = b.from(0, q*panelCols)
	switch {
	case b.Col == 1 && cols == panelCols:
		for l := range w.K {
			*(*[panelCols]float32)(dst[l*panelCols:]) = [panelCols]float32(b.Data[l*b.Row:])
		}
	case b.Row == 1:
		transpose(isa, dst, b, w.K, cols)
	case b.Col == 1:
		for l := range w.K {
			row := dst[l*panelCols:][:panelCols]
			clear(row[copy(row, b.Data[l*b.Row:][:cols]):])
		}
	default:
		for l := range w.K {
			row := dst[l*panelCols:][:panelCols]
			for j := range cols {
				row[j] = b.Data[l*b.Row+j*b.Col]
			}
			clear(row[cols:])
		}
	}
}

// transpose packs a panel of a matrix whose columns are contiguous, eight columns at a
// time.
func transpose(isa ISA, dst []float32, b Mat, k, cols int) {
	for j0 := 0; j0 < panelCols; j0 += 8 {
		l0 := 0
		if j0+8 <= cols {
			l0 = isa.transpose(dst[j0:], b.Data[j0*b.Col:], b.Col, k)
		}
		for j := j0; j < j0+8; j++ {
			if j >= cols {
				for l := range k {
					dst[l*panelCols+j] = 0
				}
				continue
			}
			col := b.Data[j*b.Col:][:k]
			for l := l0; l < k; l++ {
				dst[l*panelCols+j] = col[l]
			}
		}
	}
}
