package model

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"envace/internal/kernel"
)

// The matrix products of a small model are too short to divide among threads. Its
// rows are divided instead: each lane runs some trees of a call through all layers,
// forward and backward, on one thread. The number of lanes is the same on every
// machine, and each has its own gradients, which are summed in order, so that results
// do not depend on the number of threads.
const (
	lanes = 4
	// Models with fewer weights are computed in lanes.
	laneParams = 4 << 20
	// Trees smaller than this are computed together.
	laneTokens = 512
)

// Lanes returns the number of lanes for a model with the given number of weights.
func Lanes(params int) int {
	if params < laneParams {
		return lanes
	}
	return 1
}

// lane is the work of one lane in one call.
type lane struct {
	m    *Model // has the lane's gradients and shared weights
	cuts [][]int
	load int // tokens
}

// deal assigns each cut to the lane with the least work so far.
func (r *Runner) deal(rows [][]int, cuts [][]int) []*lane {
	for i := range r.lanes {
		r.lanes[i].cuts, r.lanes[i].load = r.lanes[i].cuts[:0], 0
	}
	for _, cut := range cuts {
		least := &r.lanes[0]
		for i := range r.lanes {
			if r.lanes[i].load < least.load {
				least = &r.lanes[i]
			}
		}
		least.load += unique(rows, cut)
		least.cuts = append(least.cuts, cut)
	}
	var busy []*lane
	for i := range r.lanes {
		if len(r.lanes[i].cuts) > 0 {
			busy = append(busy, &r.lanes[i])
		}
	}
	slices.SortStableFunc(busy, func(a, b *lane) int { return cmp.Compare(b.load, a.load) })
	return busy
}

// inLanes is Run, on lanes.
func (r *Runner) inLanes(ctx context.Context, rows [][]int, asks []Ask, slope Slope) (int, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.ready()
	busy := r.deal(rows, Cut(rows, laneTokens, r.budget/lanes))
	var computed atomic.Int64
	if len(busy) == 1 {
		whole := *busy[0].m
		whole.pool = r.m.pool
		busy[0] = &lane{m: &whole, cuts: busy[0].cuts}
	}
	r.m.pool.Run(len(busy), func(i int) {
		w := r.borrow(busy[i].m)
		defer r.giveBack(w)
		n, err := w.run(ctx, rows, busy[i].cuts, asks, slope)
		computed.Add(int64(n))
		if err != nil {
			stop(err) // the others need not go on
		}
	})
	err := context.Cause(ctx)
	if r.train {
		r.gather(err == nil)
	}
	return int(computed.Load()), err
}

// ready prepares what the lanes share before they run concurrently.
func (r *Runner) ready() {
	if r.lanes != nil {
		return
	}
	if r.train {
		r.m.packBackward()
	}
	r.lanes = make([]lane, lanes)
	for i := range r.lanes {
		r.lanes[i].m = r.m.twin(i > 0 && r.train)
	}
}

// gather adds the lanes' gradients to the model's, or drops them, and clears them.
func (r *Runner) gather(keep bool) {
	sum := r.m.Trained()
	var parts [][]*Param
	for i := range r.lanes[1:] {
		parts = append(parts, r.lanes[i+1].m.Trained())
	}
	r.m.parts(sum, func(_ int, p *Param, at, lo, hi int) {
		for _, lane := range parts {
			g := lane[at].G[lo:hi]
			if keep {
				kernel.Add(p.G[lo:hi], g)
			}
			clear(g)
		}
	})
}

// borrow returns a worker for the weights and gradients of m.
func (r *Runner) borrow(m *Model) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	var w *worker
	if last := len(r.free) - 1; last >= 0 {
		w, r.free = r.free[last], r.free[:last]
	} else {
		w = &worker{budget: r.budget / Lanes(m.Config.Params()), train: r.train}
	}
	w.use(m)
	return w
}

func (r *Runner) giveBack(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, w)
}

// twin returns a model with the weights of m that computes on the caller's thread. It
// has its own gradients if fresh is set, else those of m.
func (m *Model) twin(fresh bool) *Model {
	t := *m
	t.pool = nil
	t.layers = slices.Clone(m.layers)
	if fresh {
		t.freshGradients(m)
	}
	return &t
}

// freshGradients gives t, a copy of m, gradients of its own.
func (t *Model) freshGradients(m *Model) {
	own := map[*Param]*Param{nil: nil}
	if m.grads != nil {
		t.grads = make([]float32, len(m.grads))
	}
	at := 0
	t.params = make([]*Param, len(m.params))
	for i, p := range m.params {
		c := *p
		if p.G != nil {
			c.G = t.grads[at : at+len(p.W) : at+len(p.W)]
		}
		at += len(p.W)
		t.params[i], own[p] = &c, &c
	}
	shift := func(l *linear) {
		if l.g != nil {
			l.g = t.grads[l.at : l.at+len(l.g)]
		}
		l.adapters = slices.Clone(l.adapters)
		for i := range l.adapters {
			ad := &l.adapters[i]
			ad.a, ad.b = ad.a.twin(), ad.b.twin()
		}
	}
	t.embed, t.norm = own[m.embed], own[m.norm]
	for i := range t.layers {
		l := &t.layers[i]
		l.norm1, l.norm2, l.qNorm, l.kNorm = own[l.norm1], own[l.norm2], own[l.qNorm], own[l.kNorm]
		for _, x := range l.linears() {
			shift(x)
		}
	}
	shift(&t.head)
}

// twin has the weights of p and gradients of its own.
func (p *Param) twin() *Param {
	c := *p
	if p.G != nil {
		c.G = make([]float32, len(p.G))
	}
	return &c
}

// packBackward packs the matrices that the backward pass reads, for lanes to share.
func (m *Model) packBackward() {
	for i := range m.layers {
		for _, l := range m.layers[i].linears() {
			l.packBackward(m.pool)
		}
	}
	m.head.packBackward(m.pool)
}
