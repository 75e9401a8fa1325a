package kernel

// Attention works on blocks of query rows and spans of keys: a block is a few
// consecutive rows of a batch, a span is a run of consecutive positions, in the
// batch itself or in a cache, which some of the block's rows see. The spans of a
// row, in order, cover its positions from 0 to its own. So the scores of a block
// are the only matrix that is held, and rows with a common prefix share its keys.
//
// The bits of a row depend on its own query, keys and values alone: a score is
// one chain over the channels, the softmax runs over the row from position 0,
// and the output is one chain over the positions, however these lie in spans.

// Heads is the shape of attention: Heads queries and KV keys and values of Dim
// channels. Group = Heads/KV queries share a key.
type Heads struct{ Heads, KV, Dim int }

// Group is the number of query heads that share a key and a value.
func (h Heads) Group() int { return h.Heads / h.KV }

// Span is a run of positions that the rows Lo ≤ r < Hi of a block see, as far as
// their own positions allow. Key channel d of position t of head 0 lies at
// Data[K + d·KRow + t], value channel d at Data[V + t·VRow + d]; head h adds
// h·Dim·KRow and h·Dim, and layer l adds l times the stride of its Source.
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
	Pos    []int  // position of each row: it sees Pos+1 keys
	End    []int  // columns of each row that its spans fill, ≥ Pos+1
	Width  int    // the greatest End
	Spans  []Span // for each row in the order of positions
}

// Scores is the length of the scratch that a block needs for one of its two
// score matrices.
func (b *Block) Scores(h Heads) int { return h.Group() * b.N * b.Width }

// Rows is a (N, Row) matrix of heads: head j of row i begins at Data[i·Row + j·Dim].
type Rows struct {
	Data []float32
	Row  int
}

func (r Rows) at(i, off int) Mat { return Mat{r.Data[i*r.Row+off:], r.Row, 1} }

// scores writes q·k of every row and of the query heads of key head kv into s,
// which is (Group, N, Width). Queries are scaled beforehand.
func (b *Block) scores(s []float32, q Rows, h Heads, kv, layer int) {
	for i := range b.Spans {
		sp := &b.Spans[i]
		k := Mat{sp.Data[layer+sp.K+kv*h.Dim*sp.KRow:], sp.KRow, 1}
		b.products(sp, h, func(row, head, m, rowStep, headStep int) {
			a := Mat{q.Data[(b.Row+row)*q.Row+(kv*h.Group()+head)*h.Dim:], rowStep*q.Row + headStep*h.Dim, 1}
			at := (head*b.N+row)*b.Width + sp.Start
			(*Pool)(nil).Gemm(s[at:], rowStep*b.Width+headStep*b.N*b.Width, a, k, m, sp.N, h.Dim, false)
		})
	}
}

// products calls f for the products that a span needs: one a head over all its
// rows, or, where the rows are fewer than the heads of a group, one a row over
// all heads. m rows of the product are steps of one row, or of one head.
func (b *Block) products(sp *Span, h Heads, f func(row, head, m, rowStep, headStep int)) {
	if g := h.Group(); sp.Hi-sp.Lo < g {
		for r := sp.Lo; r < sp.Hi; r++ {
			f(r, 0, g, 0, 1)
		}
		return
	}
	for j := range h.Group() {
		f(sp.Lo, j, sp.Hi-sp.Lo, 1, 0)
	}
}

// Attend writes the attention of the block's rows, for the query heads of key
// head kv, into o, and where lse is not nil the log of their softmax sums into
// lse (rows of the batch, Heads). layer is the offset of the layer in the data
// of the spans; s is scratch of Scores numbers.
func (b *Block) Attend(o Rows, lse []float32, q Rows, h Heads, kv, layer int, s []float32) {
	b.scores(s, q, h, kv, layer)
	g := h.Group()
	for j := range g {
		for r := range b.N {
			row := s[(j*b.N+r)*b.Width:][:b.End[r]]
			sm := SoftmaxExp(row[:b.Pos[r]+1])
			Scale(row[:b.Pos[r]+1], 1/sm.Sum)
			clear(row[b.Pos[r]+1:])
			if lse != nil {
				lse[(b.Row+r)*h.Heads+kv*g+j] = sm.LogSumExp()
			}
		}
	}
	for i := range b.Spans {
		sp := &b.Spans[i]
		v := Mat{sp.Data[layer+sp.V+kv*h.Dim:], sp.VRow, 1}
		b.products(sp, h, func(row, head, m, rowStep, headStep int) {
			a := Mat{s[(head*b.N+row)*b.Width+sp.Start:], rowStep*b.Width + headStep*b.N*b.Width, 1}
			c := o.Data[(b.Row+row)*o.Row+(kv*g+head)*h.Dim:]
			(*Pool)(nil).Gemm(c, rowStep*o.Row+headStep*h.Dim, a, v, m, h.Dim, sp.N, sp.Start > 0)
		})
	}
}

// AttendBack is the backward pass of Attend: given do, the gradient of o, it
// adds those of the queries, keys and values to dq, dk and dv, which have the
// rows of the batch; the spans must lie in the batch. s and ds are scratch of
// Scores numbers each. Blocks that share spans must not run at once.
func (b *Block) AttendBack(dq, dk, dv, do Rows, o Rows, lse []float32, q Rows, h Heads, kv, layer int, s, ds []float32) {
	b.scores(s, q, h, kv, layer)
	g := h.Group()
	for j := range g {
		head := kv*g + j
		for r := range b.N {
			i := b.Row + r
			row := s[(j*b.N+r)*b.Width:][:b.End[r]]
			ExpSum(row[:b.Pos[r]+1], lse[i*h.Heads+head])
			clear(row[b.Pos[r]+1:])
			delta := Dot(do.at(i, head*h.Dim).Data[:h.Dim], o.at(i, head*h.Dim).Data[:h.Dim])
			fill(ds[(j*b.N+r)*b.Width:][:b.End[r]], -delta)
		}
	}
	for i := range b.Spans {
		b.spanBack(&b.Spans[i], dv, do, h, kv, layer, s, ds)
	}
	for j := range g {
		for r := range b.N {
			at := (j*b.N + r) * b.Width
			Mul(ds[at:at+b.End[r]], s[at:at+b.End[r]])
		}
	}
	for i := range b.Spans {
		b.scoresBack(&b.Spans[i], dq, dk, q, h, kv, layer, ds)
	}
}

// spanBack adds pᵀ·do to dv and do·vᵀ to ds.
func (b *Block) spanBack(sp *Span, dv, do Rows, h Heads, kv, layer int, s, ds []float32) {
	m := sp.Hi - sp.Lo
	vt := Mat{sp.Data[layer+sp.V+kv*h.Dim:], 1, sp.VRow}
	for j := range h.Group() {
		at := (j*b.N+sp.Lo)*b.Width + sp.Start
		g := do.at(b.Row+sp.Lo, (kv*h.Group()+j)*h.Dim)
		(*Pool)(nil).Gemm(dv.at(sp.Row, kv*h.Dim).Data, dv.Row, Mat{s[at:], 1, b.Width}, g, sp.N, h.Dim, m, true)
		(*Pool)(nil).Gemm(ds[at:], b.Width, g, vt, m, sp.N, h.Dim, true)
	}
}

// scoresBack adds ds·k to dq and dsᵀ·q to dk.
func (b *Block) scoresBack(sp *Span, dq, dk, q Rows, h Heads, kv, layer int, ds []float32) {
	m := sp.Hi - sp.Lo
	k := Mat{sp.Data[layer+sp.K+kv*h.Dim*sp.KRow:], 1, sp.KRow}
	for j := range h.Group() {
		at := (j*b.N+sp.Lo)*b.Width + sp.Start
		off := (kv*h.Group() + j) * h.Dim
		(*Pool)(nil).Gemm(dq.at(b.Row+sp.Lo, off).Data, dq.Row, Mat{ds[at:], b.Width, 1}, k, m, h.Dim, sp.N, true)
		(*Pool)(nil).Gemm(dk.at(sp.Row, kv*h.Dim).Data, dk.Row, Mat{ds[at:], 1, b.Width}, q.at(b.Row+sp.Lo, off), sp.N, h.Dim, m, true)
	}
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
