package model

import (
	"context"
	"slices"
)

// Decoder computes the next-token logits of many sequences at a time.
type Decoder struct {
	m     *Model
	cache *Cache
	pass  *pass
	head  *head
	batch Batch

	order []*Seq
	chain []run
	ids   []int
	again map[*node]int // rows of last tokens that are computed again, see last

	computed int
}

// NewDecoder returns a Decoder of m with a cache of about the given number of tokens.
func NewDecoder(m *Model, cacheTokens int) *Decoder {
	return &Decoder{m: m, cache: NewCache(m, cacheTokens), again: map[*node]int{}}
}

// Cache is the decoder's cache, from which its sequences come.
func (d *Decoder) Cache() *Cache { return d.cache }

// Computed is the number of tokens that have gone through the layers so far.
func (d *Decoder) Computed() int { return d.computed }

// Step computes the last token of each sequence that lacks only this one, and up
// to budget tokens of the others, the first ones first. For each sequence whose tokens are then all computed, it calls next with
// its index and the logits of the token to follow; next must not write them, and
// may be called at once from several goroutines. Tokens that sequences share are
// computed once.
func (d *Decoder) Step(seqs []*Seq, budget int, next func(i int, logits []float32)) error {
	d.cache.tick++
	for _, s := range seqs {
		if s.last = s.lacks(1); s.last {
			d.schedule(s, 1)
		}
	}
	for _, s := range seqs {
		if !s.last {
			budget -= d.schedule(s, budget)
		}
	}
	d.build(seqs)
	if n := len(d.batch.IDs); d.pass == nil || d.pass.cap < n {
		d.pass = newPass(d.m, max(64, n+n/2), false)
	}
	if d.head == nil {
		d.head = newHead(d.m)
	}
	d.computed += len(d.batch.IDs)
	if err := d.pass.forward(context.Background(), &d.batch, d.cache.layer); err != nil {
		return err
	}
	return d.logits(seqs, next)
}

// Alone tells whether the last step computed just the last token of s.
func (s *Seq) Alone() bool { return s.last && len(s.work) > 0 }

// lacks tells whether no more than n tokens of s are not computed.
func (s *Seq) lacks(n int) bool {
	for i := len(s.links) - 1; i >= 0; i-- {
		l := s.links[i]
		if l.done >= l.n {
			return true
		}
		if n -= l.n - l.done; n < 0 {
			return false
		}
	}
	return true
}

// schedule marks the tokens of s that this step computes and returns their number.
func (d *Decoder) schedule(s *Seq, budget int) int {
	s.work, s.ready = s.work[:0], true
	used := 0
	for _, l := range s.links {
		if l.done >= l.n {
			continue
		}
		n := min(l.n-l.done, budget-used)
		if n <= 0 {
			s.ready = false
			break
		}
		s.work = append(s.work, work{l.node, l.done, n})
		l.done += n
		used += n
		if l.done < l.n {
			s.ready = false
			break
		}
	}
	return used
}

// build makes the batch: sequences in the order of the cache's tree, so that
// those which share nodes are neighbours.
func (d *Decoder) build(seqs []*Seq) {
	d.order = append(d.order[:0], seqs...)
	slices.SortStableFunc(d.order, compareLinks)
	b := &d.batch
	b.reset()
	clear(d.again)
	for _, s := range d.order {
		if len(s.work) > 0 {
			d.place(s)
		}
	}
	// A sequence whose tokens others have computed needs its last row all the same.
	for _, s := range d.order {
		if s.ready {
			s.row = d.last(s)
		}
	}
}

func compareLinks(a, b *Seq) int {
	for i := range min(len(a.links), len(b.links)) {
		if x, y := a.links[i], b.links[i]; x.node != y.node {
			return x.order - y.order
		} else if x.n != y.n {
			return y.n - x.n
		}
	}
	return len(a.links) - len(b.links)
}

// place appends the rows of the tokens of s that are to be computed.
func (d *Decoder) place(s *Seq) {
	b := &d.batch
	first := s.work[0]
	d.ids = d.ids[:0]
	for _, w := range s.work {
		if w.tick != d.cache.tick {
			w.tick, w.node.place = d.cache.tick, w.node.place[:0]
		}
		w.node.place = append(w.node.place, place{w.from, w.n, len(b.IDs) + len(d.ids)})
		for i := range w.n {
			d.ids = append(d.ids, w.ids[w.from+i])
			b.Targets = append(b.Targets, slot{w.node, w.from + i})
		}
	}
	b.add(d.ids, first.start+first.from, d.runs(s))
}

// runs is the chain of all nodes of s.
func (d *Decoder) runs(s *Seq) []run {
	d.chain = d.chain[:0]
	for _, l := range s.links {
		d.chain = append(d.chain, l.run(l.n))
	}
	return d.chain
}

// last returns the batch row of the last token of s, which it appends where the
// token was computed in an earlier step: its key and value are there, its logits
// are not.
func (d *Decoder) last(s *Seq) int {
	l := s.links[len(s.links)-1]
	for _, p := range l.place {
		if at := l.n - 1 - p.from; l.tick == d.cache.tick && at >= 0 && at < p.n {
			return p.row + at
		}
	}
	if row, ok := d.again[l.node]; ok && d.batch.Pos[row] == s.n-1 {
		return row
	}
	row := len(d.batch.IDs)
	d.again[l.node] = row
	d.batch.Targets = append(d.batch.Targets, slot{l.node, -1})
	d.ids = append(d.ids[:0], l.ids[l.n-1])
	d.batch.add(d.ids, s.n-1, d.runs(s))
	return row
}

// logits computes those of the ready sequences.
func (d *Decoder) logits(seqs []*Seq, next func(i int, logits []float32)) error {
	x, c := d.pass.at(0).x, d.m.Config
	var rows []int
	for _, s := range seqs {
		if s.ready {
			rows = append(rows, s.row)
		}
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	for len(rows) > 0 {
		some := rows[:min(len(rows), headRows(d.m.Config))]
		rows = rows[len(some):]
		d.head.rows(len(some), func(i int) []float32 { return x[some[i]*c.Width : (some[i]+1)*c.Width] })
		d.m.pool.Run(len(seqs), func(i int) {
			if !seqs[i].ready {
				return
			}
			if at, ok := slices.BinarySearch(some, seqs[i].row); ok {
				next(i, d.head.logits[at*c.Vocab:(at+1)*c.Vocab])
			}
		})
	}
	return nil
}
