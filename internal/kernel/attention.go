package kernel

// Attention works on blocks of query rows and spans of keys. A block is a few
// consecutive rows of a batch. A span is a run of consecutive positions, in the batch
// itself or in a cache, that some of the block's rows attend to. The spans of a row,
// in order, cover the positions from 0 to its own. The only matrix held in memory is
// the scores of one block (in the backward pass, for a few of its keys), and rows with
// a common prefix share its keys.
//
// The result of a row depends, to the bit, only on its own query, keys and values: a
// score is one chain over the channels, the softmax runs over the row from position
// 0, and the output is one chain over the positions, however they are split into
// spans.

// Heads is the shape of attention: Heads query heads and KV key and value heads of
// Dim channels. Group = Heads/KV query heads share a key head.
type Heads struct{ Heads, KV, Dim int }

// Group returns the number of query heads that share a key and value head.
func (h Heads) Group() int { return h.Heads / h.KV }

// Span is a run of positions that the rows Lo ≤ r < Hi of a block attend to, up to
// their own positions. Key channel d of position t of head 0 is
// Data[K + d·KRow + t], value channel d is Data[V + t·VRow + d]; head h adds
// h·Dim·KRow and h·Dim, and layer l adds l times the layer stride.
type Span struct {
	Data       []float32
	K, V       int
	KRow, VRow int
	Start, N   int // positions Start … Start+N−1
	Lo, Hi     int // rows of the block
	Row        int // training: row of the batch that holds position Start
}

// Block is a run of N query rows of a batch, the first of which is Row.
type Block struct {
	Row, N int
	Pos    []int  // position of each row, which attends to Pos+1 keys
	End    []int  // columns of each row filled by its spans, ≥ Pos+1
	Width  int    // the greatest End
	Spans  []Span // for each row in the order of positions
}

// Scratch returns the number of floats of scratch that Attend needs.
func (b *Block) Scratch(h Heads) int { return h.Group() * b.N * (b.Width + 2*h.Dim) }

// ScratchBack returns the number of floats of scratch that AttendBack needs.
func (b *Block) ScratchBack(h Heads) int {
	return h.Group() * b.N * (2*min(b.Width, backKeys) + 4*h.Dim + 1)
}

// backKeys is the number of keys that AttendBack processes at a time, so that the
// intermediate results stay in the L2 cache.
const backKeys = 512

// Rows is a matrix of heads: head j of row i begins at Data[i·Row + j·Dim].
type Rows struct {
	Data []float32
	Row  int
}

// group gathers the heads that share key head kv: head j of the block's row r becomes
// row r·Group + j of a dense matrix, so that each span takes a single matrix product.
type group struct {
	Heads
	b  *Block
	kv int
}

func (g group) each(m Rows, dense []float32, f func(dense, m []float32)) {
	n, d := g.Group(), g.Dim
	for r := range g.b.N {
		f(dense[r*n*d:(r+1)*n*d], m.Data[(g.b.Row+r)*m.Row+g.kv*n*d:][:n*d])
	}
}

func (g group) gather(dense []float32, m Rows) { g.each(m, dense, func(x, y []float32) { copy(x, y) }) }
func (g group) scatter(m Rows, dense []float32) {
	g.each(m, dense, func(x, y []float32) { copy(y, x) })
}

// rows are the dense rows of a span: the first one and their number.
func (g group) rows(sp *Span) (first, m int) { return sp.Lo * g.Group(), (sp.Hi - sp.Lo) * g.Group() }

// key and value are the views of a span's memory at the group's head.
func (g group) key(sp *Span, layer int) []float32   { return sp.Data[layer+sp.K+g.kv*g.Dim*sp.KRow:] }
func (g group) value(sp *Span, layer int) []float32 { return sp.Data[layer+sp.V+g.kv*g.Dim:] }

// scores writes q·k of the block into s, one row of Width a dense row.
func (g group) scores(s, q []float32, layer int) {
	w, d := g.b.Width, g.Dim
	for i := range g.b.Spans {
		sp := &g.b.Spans[i]
		r, m := g.rows(sp)
		(*Pool)(nil).Gemm(s[r*w+sp.Start:], w, Mat{q[r*d:], d, 1}, Mat{g.key(sp, layer), sp.KRow, 1}, m, sp.N, d, false)
	}
}

// Attend writes the attention output of the block's rows, for the query heads of key
// head kv, into o. Queries must already be scaled. If lse is not nil, it receives the
// log of the softmax sums, in rows of Heads numbers for the batch. layer is the offset
// of the layer in the data of the spans.
func (b *Block) Attend(o Rows, lse []float32, q Rows, h Heads, kv, layer int, scratch []float32) {
	g, n, d, w := group{h, b, kv}, b.N*h.Group(), h.Dim, b.Width
	s, qd, od := scratch[:n*w], scratch[n*w:n*(w+d)], scratch[n*(w+d):n*(w+2*d)]
	g.gather(qd, q)
	g.scores(s, qd, layer)
	sums := qd // the queries are no longer needed
	for i := range n {
		r := i / h.Group()
		row := s[i*w : i*w+b.End[r]]
		sm := SoftmaxExp(row[:b.Pos[r]+1])
		clear(row[b.Pos[r]+1:])
		sums[i] = 1 / sm.Sum
		if lse != nil {
			lse[(b.Row+r)*h.Heads+kv*h.Group()+i%h.Group()] = sm.LogSumExp()
		}
	}
	for i := range b.Spans {
		sp := &b.Spans[i]
		r, m := g.rows(sp)
		(*Pool)(nil).Gemm(od[r*d:], d, Mat{s[r*w+sp.Start:], w, 1}, Mat{g.value(sp, layer), sp.VRow, 1}, m, d, sp.N, sp.Start > 0)
	}
	for i := range n {
		Scale(od[i*d:(i+1)*d], sums[i])
	}
	g.scatter(o, od)
}

// AttendBack is the backward pass of Attend: given do, the gradient of o, it writes
// the gradient of the queries into dq and adds those of keys and values to dk and dv,
// which have the rows of the batch. The spans must be in the batch. Blocks that share
// spans must not run concurrently. Products are divided among the threads of p.
func (b *Block) AttendBack(p *Pool, dq, dk, dv, do, o Rows, lse []float32, q Rows, h Heads, kv, layer int, scratch []float32) {
	g, n, d := group{h, b, kv}, b.N*h.Group(), h.Dim
	var dense [4][]float32
	for i := range dense {
		dense[i], scratch = scratch[:n*d], scratch[n*d:]
	}
	qd, god, dqd, dots := dense[0], dense[1], dense[2], scratch[:n]
	g.gather(qd, q)
	g.gather(god, do)
	g.gather(dense[3], o)
	for i := range dots {
		dots[i] = Dot(god[i*d:(i+1)*d], dense[3][i*d:(i+1)*d])
	}
	s := back{group: g, pool: p, q: qd, do: god, dq: dqd, dots: dots, lse: lse[b.Row*h.Heads+kv*h.Group():], layer: layer}
	s.p = scratch[n:][:n*min(b.Width, backKeys)]
	s.ds = scratch[n+len(s.p):][:len(s.p)]
	for i := range b.Spans {
		sp := &b.Spans[i]
		for at := 0; at < sp.N; at += backKeys {
			s.keys(sp, at, min(backKeys, sp.N-at), dk, dv)
		}
	}
	g.scatter(dq, dqd)
}

// back is the state of a block in the backward pass. The matrices have its dense rows.
type back struct {
	group
	pool      *Pool
	q, do, dq []float32 // (rows, Dim)
	dots, lse []float32 // Σ do·o of each; log of the softmax sums, Group of Heads to a row
	p, ds     []float32 // (rows, current keys): probabilities, gradients of scores
	layer     int
}

// keys processes n keys of a span, starting at the at-th.
func (s *back) keys(sp *Span, at, n int, dk, dv Rows) {
	r, m := s.rows(sp)
	d, start := s.Dim, sp.Start+at
	q, do := Mat{s.q[r*d:], d, 1}, Mat{s.do[r*d:], d, 1}
	key, value := s.key(sp, s.layer)[at:], s.value(sp, s.layer)[at*sp.VRow:]
	s.pool.Gemm(s.p, n, q, Mat{key, sp.KRow, 1}, m, n, d, false)
	for i := range m {
		r := (r + i) / s.Group()
		row := s.p[i*n : (i+1)*n]
		sees := max(0, min(n, s.b.Pos[r]+1-start))
		ExpSum(row[:sees], s.lse[r*s.Heads.Heads+(i%s.Group())])
		clear(row[sees:])
	}
	for i := range m {
		fill(s.ds[i*n:(i+1)*n], -s.dots[r+i])
	}
	s.pool.Gemm(dv.Data[(sp.Row+at)*dv.Row+s.kv*d:], dv.Row, Mat{s.p, 1, n}, do, n, d, m, true)
	s.pool.Gemm(s.ds, n, do, Mat{value, 1, sp.VRow}, m, n, d, true)
	Mul(s.ds[:m*n], s.p[:m*n])
	s.pool.Gemm(s.dq[r*d:], d, Mat{s.ds, n, 1}, Mat{key, 1, sp.KRow}, m, d, n, start > 0)
	s.pool.Gemm(dk.Data[(sp.Row+at)*dk.Row+s.kv*d:], dk.Row, Mat{s.ds, 1, n}, q, n, d, m, true)
}

func fill(x []float32, v float32) {
	var many [16]float32
	for i := range many {
		many[i] = v
	}
	for ; len(x) >= len(many); x = x[len(many):] {
		*(*[16]float32)(x) = many
	}
	for i := range x {
		x[i] = v
	}
}
