package kernel

// Mat is a strided view of float32 numbers: element (i, j) is
// Data[i*Row+j*Col]. A row-major (R, C) matrix is {data, C, 1}; its transpose
// is {data, 1, C}.
type Mat struct {
	Data     []float32
	Row, Col int
}

// Gemm writes a·b into c, or adds it where add is true. a is (M, K), b is
// (K, N), c is (M, N) row-major with rows ldc apart. Every element of c is one
// fused chain over k = 0…K-1 in that order, so its bits depend neither on M and
// N nor on the number of threads: a token computed alone equals the same token
// computed in a batch.
func (p *Pool) Gemm(c []float32, ldc int, a, b Mat, m, n, k int, add bool) {
	for i := range m {
		for j := range n {
			var s float32
			if add {
				s = c[i*ldc+j]
			}
			for l := range k {
				s += a.Data[i*a.Row+l*a.Col] * b.Data[l*b.Row+j*b.Col]
			}
			c[i*ldc+j] = s
		}
	}
}

// Packed is a (K, N) right-hand side laid out once for the fast kernels, for
// weights that many products share.
type Packed struct {
	K, N int
	mat  Mat
}

// Pack lays out b, a (K, N) matrix; it reads b now and never again. p.Repack
// writes new values into the same memory.
func (p *Pool) Pack(b Mat, k, n int) *Packed {
	w := &Packed{K: k, N: n}
	p.Repack(w, b)
	return w
}

// Repack reads b, of the shape that w was made with, into w.
func (p *Pool) Repack(w *Packed, b Mat) {
	data := make([]float32, w.K*w.N)
	for l := range w.K {
		for j := range w.N {
			data[l*w.N+j] = b.Data[l*b.Row+j*b.Col]
		}
	}
	w.mat = Mat{data, w.N, 1}
}

// GemmPacked is Gemm with a packed right-hand side; it gives the same bits.
func (p *Pool) GemmPacked(c []float32, ldc int, a Mat, b *Packed, m int, add bool) {
	p.Gemm(c, ldc, a, b.mat, m, b.N, b.K, add)
}
