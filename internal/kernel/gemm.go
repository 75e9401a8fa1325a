package kernel

import "fmt"

// Mat is a strided view of float32 numbers: element (i, j) is
// Data[i*Row+j*Col]. A row-major (R, C) matrix is {data, C, 1}; its transpose
// is {data, 1, C}.
type Mat struct {
	Data     []float32
	Row, Col int
}

// from is the view that begins at element (i, j).
func (a Mat) from(i, j int) Mat { return Mat{a.Data[i*a.Row+j*a.Col:], a.Row, a.Col} }

// check panics unless the view holds r rows and c columns.
func (a Mat) check(name string, r, c int) {
	if a.Row < 0 || a.Col < 0 || (r-1)*a.Row+(c-1)*a.Col >= len(a.Data) {
		panic(fmt.Sprintf("kernel: matrix %s of %d elements with strides %d and %d is smaller than %d × %d",
			name, len(a.Data), a.Row, a.Col, r, c))
	}
}

// Gemm writes a·b into c, or adds it if add is true. a is (M, K), b is
// (K, N), c is (M, N) row-major with rows ldc apart. Every element of c is one
// fused chain over k = 0…K-1 in that order, so its bits depend neither on M and
// N nor on the number of threads: a token computed alone equals the same token
// computed in a batch. c must not overlap a or b.
//
// Each call packs b, unless it is row-major and M or K is small. If several products
// share b, pack it once instead.
func (p *Pool) Gemm(c []float32, ldc int, a, b Mat, m, n, k int, add bool) {
	if !begin(c, ldc, a, m, n, k, add) {
		return
	}
	b.check("b", k, n)
	if b.Col == 1 && (m <= p.set().rows() || k <= directK) {
		p.gemmDirect(c, ldc, a, b, m, n, k, add)
		return
	}
	w := packs.Get().(*Packed)
	cols := max(scratchNumbers/k/panelCols, 1) * panelCols
	for j := 0; j < n; j += cols {
		w.resize(k, min(cols, n-j))
		p.Repack(w, b.from(0, j))
		p.GemmPacked(c[j:], ldc, a, w, m, add)
	}
	packs.Put(w)
}

// GemmPacked is Gemm with a packed right-hand side; results are bit-identical.
func (p *Pool) GemmPacked(c []float32, ldc int, a Mat, b *Packed, m int, add bool) {
	if begin(c, ldc, a, m, b.N, b.K, add) {
		p.product(c, ldc, a, b.panels(), m, b.N, b.K, add)
	}
}

// gemmDirect reads b in place. Kernels read whole panels, so a narrower last one is
// packed if reading past its end would leave b's memory.
func (p *Pool) gemmDirect(c []float32, ldc int, a, b Mat, m, n, k int, add bool) {
	whole := n - n%panelCols
	if (k-1)*b.Row+ceil(n, panelCols)*panelCols <= len(b.Data) {
		whole = n
	}
	if whole > 0 {
		p.product(c, ldc, a, panels{b.Data, b.Row, panelCols}, m, whole, k, add)
	}
	if whole < n {
		w := packs.Get().(*Packed)
		w.resize(k, n-whole)
		w.pack(p.set(), b.from(0, whole), 0)
		p.product(c[whole:], ldc, a, w.panels(), m, n-whole, k, add)
		packs.Put(w)
	}
}

// begin checks the shapes of a product and handles empty ones; it reports whether
// there is anything left to compute.
func begin(c []float32, ldc int, a Mat, m, n, k int, add bool) bool {
	if m <= 0 || n <= 0 {
		return false
	}
	if ldc < n && m > 1 {
		panic(fmt.Sprintf("kernel: row stride %d of c is less than its row length %d", ldc, n))
	}
	Mat{c, ldc, 1}.check("c", m, n)
	if k > 0 {
		a.check("a", m, k)
		return true
	}
	for i := 0; i < m && !add; i++ {
		clear(c[i*ldc : i*ldc+n])
	}
	return false
}
