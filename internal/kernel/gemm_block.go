package kernel

import "sync"

// A product is divided into tasks of rows × panels. A task processes k in blocks; c
// holds the partial sums between blocks, which preserves the order of summation. In a
// block, one panel of b stays in the L1 cache while the tiles of a stream from L2.
const (
	panelCols  = 32  // columns of b in one panel
	taskRows   = 168 // a multiple of the rows of every tile
	taskPanels = 16
	blockK     = 384
	// A product with fewer multiply-adds than this runs on the caller alone; products
	// of few rows count as larger, because they wait for b.
	aloneWork = 1 << 20
	fewRows   = 8
	// Minimum multiply-adds per task.
	taskWork = 1 << 17
	// Rows or columns of a with a larger stride are first copied together: such
	// strides, above all powers of two, cause cache conflicts.
	farApart = 512
	// A row-major b with at most this many rows is read in place.
	directK = 256
	// Elements of b that Gemm packs at a time.
	scratchNumbers = 1 << 22
)

// panels is a right-hand side in panels of panelCols columns: element (l, j) of
// panel q is data[q*panel+l*row+j].
type panels struct {
	data       []float32
	row, panel int
}

// tile is the input of a micro-kernel: c (rows ldc apart) becomes a·b or c + a·b. The
// assembly depends on the order and size of the fields.
type tile struct {
	c          []float32
	ldc        int
	a          []float32
	aRow, aCol int
	b          []float32
	bRow       int
	bPanel     int
	k          int
	add        int // 0 or 1
	mask       int // the columns of the last panel, one bit each
}

// scratch is the memory of one task.
type scratch struct {
	tile
	a    []float32              // a block of a
	edge [6 * panelCols]float32 // a tile of c that is narrower than the kernel
}

var scratches = sync.Pool{New: func() any {
	return &scratch{a: make([]float32, max((blockK+16)*taskRows, (taskRows+16)*blockK))}
}}

// product is one running matrix product; it is reused.
type product struct {
	isa                ISA
	c                  []float32
	ldc                int
	a                  Mat
	b                  panels
	m, n, k            int
	add                bool
	rows, panels, down int // of a task; number of tasks down the rows
	do                 func(i int)
}

var products = sync.Pool{New: func() any {
	g := new(product)
	g.do = g.task
	return g
}}

func (p *Pool) product(c []float32, ldc int, a Mat, b panels, m, n, k int, add bool) {
	g := products.Get().(*product)
	g.isa, g.c, g.ldc, g.a, g.b = p.set(), c, ldc, a, b
	g.m, g.n, g.k, g.add = m, n, k, add
	threads := p.Threads()
	if max(m, fewRows)*n*k < aloneWork {
		threads, p = 1, nil
	}
	p.Run(g.split(threads), g.do)
	g.c, g.a, g.b = nil, Mat{}, panels{}
	products.Put(g)
}

// split chooses the task size, small enough that the threads finish at about the same
// time, and returns the number of tasks.
func (g *product) split(threads int) int {
	all, wide := ceil(g.n, panelCols), g.isa.panels(g.m)
	g.rows, g.panels = even(g.m, taskRows, g.isa.rows()), even(all, taskPanels, wide)
	for threads > 1 && ceil(g.m, g.rows)*ceil(all, g.panels) < 3*threads &&
		g.rows*g.panels*panelCols*g.k > 2*taskWork {
		if g.panels*panelCols > g.rows || g.rows <= g.isa.rows() {
			if g.panels <= wide {
				break
			}
			g.panels = even(g.panels, ceil(g.panels, 2), wide)
			continue
		}
		g.rows = even(g.rows, ceil(g.rows, 2), g.isa.rows())
	}
	g.down = ceil(g.m, g.rows)
	return g.down * ceil(all, g.panels)
}

func ceil(n, d int) int { return (n + d - 1) / d }

// even returns the part size that divides n evenly into the fewest parts of at most
// limit, rounded up to a multiple of unit.
func even(n, limit, unit int) int {
	parts := ceil(n, limit)
	return ceil(ceil(n, parts), unit) * unit
}

// task computes the i-th part of the product.
func (g *product) task(i int) {
	i0, q0 := i%g.down*g.rows, i/g.down*g.panels
	rows := min(g.rows, g.m-i0)
	cols := min(g.panels*panelCols, g.n-q0*panelCols)
	s := scratches.Get().(*scratch)
	step := even(g.k, blockK, 1)
	for k0 := 0; k0 < g.k; k0 += step {
		s.k, s.add = min(step, g.k-k0), 1
		if k0 == 0 && !g.add {
			s.add = 0
		}
		a := g.a.from(i0, k0)
		if max(a.Row, a.Col) > farApart && cols >= 4*panelCols && rows > g.isa.rows() {
			a = s.block(a, rows)
		}
		g.tiles(s, a, i0, q0, k0, rows, cols)
	}
	s.tile = tile{}
	scratches.Put(s)
}

// tiles computes one block of k of a task.
func (g *product) tiles(s *scratch, a Mat, i0, q0, k0, rows, cols int) {
	s.ldc, s.aRow, s.aCol = g.ldc, a.Row, a.Col
	s.bRow, s.bPanel = g.b.row, g.b.panel
	step := even(rows, g.isa.rows(), 1)
	wide := g.isa.panels(step) * panelCols
	for j := 0; j < cols; {
		w := min(panelCols, cols-j)
		if cols-j >= wide {
			w = wide
		}
		b := g.b.data[(q0+j/panelCols)*g.b.panel+k0*g.b.row:]
		c := g.c[i0*g.ldc+q0*panelCols+j:]
		for i := 0; i < rows; i += step {
			s.c, s.tile.a, s.b = c[i*g.ldc:], a.Data[i*a.Row:], b
			g.isa.multiply(s, min(step, rows-i), w)
		}
		j += w
	}
}

// block copies rows of a, s.k numbers of each, into the scratch.
func (s *scratch) block(a Mat, rows int) Mat {
	if a.Row == 1 {
		b := Mat{s.a, 1, rows + 16}
		for l := range s.k {
			copy(s.a[l*b.Col:], a.Data[l*a.Col:][:rows])
		}
		return b
	}
	b := Mat{s.a, s.k + 16, 1}
	for i := range rows {
		row, from := s.a[i*b.Row:][:s.k], a.Data[i*a.Row:]
		if a.Col == 1 {
			copy(row, from)
			continue
		}
		for l := range row {
			row[l] = from[l*a.Col]
		}
	}
	return b
}
