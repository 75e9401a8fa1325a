package model

import (
	"context"
	"slices"
	"sync"
)

// Ask requests the log-probability of Target after position At of row Row.
type Ask struct{ Row, At, Target int }

// Runner computes log-probabilities of rows of tokens, and the gradients of a loss on
// them. It reuses its memory, and is not safe for concurrent use.
type Runner struct {
	m      *Model
	budget int
	train  bool

	lanes []lane
	mu    sync.Mutex
	free  []*worker
}

// worker runs forests through a model, one after the other, reusing its memory.
type worker struct {
	m      *Model
	budget int
	train  bool
	pass   *pass
	head   *head
	forest Forest
	asks   []Entry
	order  []int // asks by batch row
	nodes  []int // batch row of each ask
}

// NewRunner returns a Runner for m that holds the activations of up to budget tokens
// at once, or of a single longer row. With train set it can compute gradients.
func NewRunner(m *Model, budget int, train bool) *Runner {
	return &Runner{m: m, budget: budget, train: train}
}

// Run computes the log-probability of each ask and passes it to slope, which returns
// the derivative of the loss with respect to it. asks are sorted by Row. A training
// Runner adds the gradients of the loss to the model's. Common prefixes of rows are
// computed once. Run returns the number of tokens computed. On an error, including
// ctx's, the gradients are incomplete.
func (r *Runner) Run(ctx context.Context, rows [][]int, asks []Ask, slope Slope) (computed int, err error) {
	if Lanes(r.m.Config.Params()) > 1 {
		return r.inLanes(ctx, rows, asks, slope)
	}
	w := r.borrow(r.m)
	defer r.giveBack(w)
	return w.run(ctx, rows, Cut(rows, w.budget, w.budget), asks, slope)
}

// run runs cuts through the model in order.
func (r *worker) run(ctx context.Context, rows, cuts [][]int, asks []Ask, slope Slope) (computed int, err error) {
	for _, sorted := range cuts {
		if err := ctx.Err(); err != nil {
			return computed, err
		}
		if err := r.some(ctx, rows, sorted, asks, slope); err != nil {
			return computed, err
		}
		computed += len(r.forest.IDs)
	}
	return computed, nil
}

// use sets the worker's model to m: its current model, or a twin of it.
func (r *worker) use(m *Model) {
	r.m = m
	if r.pass != nil {
		r.pass.m = m
	}
	if r.head != nil {
		r.head.m = m
	}
}

// some runs the rows of one cut.
func (r *worker) some(ctx context.Context, rows [][]int, sorted []int, asks []Ask, slope Slope) error {
	r.fit(unique(rows, sorted))
	r.forest.fill(rows, sorted, r.pass.keys)
	r.entries(asks)
	if err := r.pass.forward(ctx, &r.forest.Batch, r.pass.stride); err != nil {
		return err
	}
	var dx []float32
	if r.train {
		dx = r.pass.dx[:len(r.forest.IDs)*r.m.Config.Width]
		clear(dx)
	}
	last := r.pass.after(len(r.m.layers) - 1)
	if err := r.head.run(ctx, last, dx, r.asks, func(i int, lp float32) float32 { return slope(r.order[i], lp) }); err != nil {
		return err
	}
	if !r.train {
		return nil
	}
	return r.pass.backward(ctx, &r.forest.Batch, r.pass.stride)
}

// fit ensures that there is room for n tokens.
func (r *worker) fit(n int) {
	if r.head == nil {
		r.head = newHead(r.m)
	}
	if r.pass == nil || r.pass.cap < n {
		r.pass = nil
		r.pass = newPass(r.m, max(n, min(n+n/4, r.budget)), r.train)
	}
}

// entries lists the asks of the forest's rows by batch row.
func (r *worker) entries(asks []Ask) {
	r.order = r.order[:0]
	r.nodes = slices.Grow(r.nodes[:0], len(asks))[:len(asks)]
	for i, row := range r.forest.Rows {
		first, _ := slices.BinarySearchFunc(asks, row, func(a Ask, row int) int { return a.Row - row })
		for a := first; a < len(asks) && asks[a].Row == row; a++ {
			r.nodes[a] = r.forest.Paths[i][asks[a].At]
			r.order = append(r.order, a)
		}
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return r.nodes[a] - r.nodes[b] })
	r.asks = r.asks[:0]
	for _, a := range r.order {
		r.asks = append(r.asks, Entry{r.nodes[a], asks[a].Target})
	}
}
