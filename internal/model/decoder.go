package model

import (
	"context"
	"errors"
	"slices"
)

// Decoder computes the next-token logits of many sequences at a time.
type Decoder struct {
	m     *Model
	alone *Model // m on one thread
	cache *Cache
	parts []*stepPart
	used  int // parts in this step

	order []*Seq
	chain []run
	ids   []int
	again map[*node]spot // rows of last tokens that are recomputed, see last

	computed int
}

// stepPart is a part of a step's rows. No other part attends to a key that it
// computes, so parts go through the layers concurrently.
type stepPart struct {
	batch Batch
	pass  *pass
	head  *head
	ready []int // rows whose logits are wanted
	seqs  []int // sequences that want them
}

// spot is a row of a part.
type spot struct{ part, row int }

// leastRows is the minimum number of rows of a part, if there are several.
const leastRows = 16

// NewDecoder returns a Decoder for m with a cache of about the given number of tokens.
func NewDecoder(m *Model, cacheTokens int) *Decoder {
	return &Decoder{m: m, alone: m.twin(false), cache: NewCache(m, cacheTokens), again: map[*node]spot{}}
}

// Cache returns the decoder's cache, in which its sequences are opened.
func (d *Decoder) Cache() *Cache { return d.cache }

// Computed returns the number of tokens computed so far.
func (d *Decoder) Computed() int { return d.computed }

// Step computes the last token of each sequence that lacks only that one, and up to
// budget tokens of the others, in order. For each sequence that is then fully
// computed, it calls next with its index and the logits of the next token. next must
// not modify them and may be called concurrently. Shared tokens are computed once.
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
	d.computed += d.rows()
	if d.used == 1 {
		return d.parts[0].step(d.m, seqs, d.cache.layer, next)
	}
	errs := make([]error, d.used)
	d.m.pool.Run(d.used, func(i int) { errs[i] = d.parts[i].step(d.alone, seqs, d.cache.layer, next) })
	return errors.Join(errs...)
}

// rows returns the number of rows in the step so far.
func (d *Decoder) rows() int {
	n := 0
	for _, p := range d.parts[:d.used] {
		n += len(p.batch.IDs)
	}
	return n
}

// step runs the part through m.
func (p *stepPart) step(m *Model, seqs []*Seq, layer int, next func(i int, logits []float32)) error {
	if n := len(p.batch.IDs); p.pass == nil || p.pass.cap < n {
		p.pass = newPass(m, max(64, n+n/2), false)
	}
	if p.head == nil {
		p.head = newHead(m)
	}
	p.pass.m, p.head.m = m, m
	if err := p.pass.forward(context.Background(), &p.batch, layer); err != nil {
		return err
	}
	p.logits(seqs, next)
	return nil
}

// Alone reports whether the last step computed just the last token of s.
func (s *Seq) Alone() bool { return s.last && len(s.work) > 0 }

// lacks reports whether at most n tokens of s are not yet computed.
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

// schedule marks the tokens of s to compute in this step and returns their number.
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

// build makes the batches, with sequences in the order of the cache's tree, so that
// those that share nodes are adjacent.
func (d *Decoder) build(seqs []*Seq) {
	d.order = append(d.order[:0], seqs...)
	slices.SortStableFunc(d.order, compareLinks)
	clear(d.again)
	d.used = 0
	d.open()
	total := 0
	for _, s := range d.order {
		for _, w := range s.work {
			total += w.n
		}
	}
	share := total
	if n := min(Lanes(d.m.Config.Params()), d.m.pool.Threads()); n > 1 {
		share = max(leastRows, (total+n-1)/n)
	}
	for _, s := range d.order {
		if len(s.work) == 0 {
			continue
		}
		if len(d.parts[d.used-1].batch.IDs) >= share && !d.sees(s) {
			d.open()
		}
		d.place(s)
	}
	// Even if other sequences have computed all its tokens, a sequence needs its last
	// row.
	for i, s := range seqs {
		if s.ready {
			at := d.last(s)
			s.row = at.row
			p := d.parts[at.part]
			p.ready, p.seqs = append(p.ready, at.row), append(p.seqs, i)
		}
	}
}

// open begins a part.
func (d *Decoder) open() {
	if d.used == len(d.parts) {
		d.parts = append(d.parts, new(stepPart))
	}
	p := d.parts[d.used]
	p.batch.reset()
	p.ready, p.seqs = p.ready[:0], p.seqs[:0]
	d.used++
}

// sees reports whether s attends to a key that this step computes for another
// sequence.
func (d *Decoder) sees(s *Seq) bool {
	return slices.ContainsFunc(s.links, func(l link) bool { return l.tick == d.cache.tick })
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

// place appends the rows for the tokens of s to compute.
func (d *Decoder) place(s *Seq) {
	part := d.used - 1
	b := &d.parts[part].batch
	first := s.work[0]
	d.ids = d.ids[:0]
	for _, w := range s.work {
		if w.tick != d.cache.tick {
			w.tick, w.node.place = d.cache.tick, w.node.place[:0]
		}
		w.node.place = append(w.node.place, place{w.from, w.n, spot{part, len(b.IDs) + len(d.ids)}})
		for i := range w.n {
			d.ids = append(d.ids, w.ids[w.from+i])
			b.Targets = append(b.Targets, slot{w.node, w.from + i})
		}
	}
	b.add(d.ids, first.start+first.from, d.runs(s))
}

// runs returns the chain of all nodes of s.
func (d *Decoder) runs(s *Seq) []run {
	d.chain = d.chain[:0]
	for _, l := range s.links {
		d.chain = append(d.chain, l.run(l.n))
	}
	return d.chain
}

// last returns the row of the last token of s. If the token was computed in an
// earlier step, it appends a row: key and value are cached, but logits are not.
func (d *Decoder) last(s *Seq) spot {
	l := s.links[len(s.links)-1]
	for _, p := range l.place {
		if at := l.n - 1 - p.from; l.tick == d.cache.tick && at >= 0 && at < p.n {
			return spot{p.part, p.row + at}
		}
	}
	if at, ok := d.again[l.node]; ok && d.parts[at.part].batch.Pos[at.row] == s.n-1 {
		return at
	}
	b := &d.parts[d.used-1].batch
	at := spot{d.used - 1, len(b.IDs)}
	d.again[l.node] = at
	b.Targets = append(b.Targets, slot{l.node, -1})
	d.ids = append(d.ids[:0], l.ids[l.n-1])
	b.add(d.ids, s.n-1, d.runs(s))
	return at
}

// logits computes the logits of the part's ready sequences.
func (p *stepPart) logits(seqs []*Seq, next func(i int, logits []float32)) {
	m := p.head.m
	x, c := p.pass.at(0).x, m.Config
	slices.Sort(p.ready)
	rows := slices.Compact(p.ready)
	for len(rows) > 0 {
		some := rows[:min(len(rows), headRows(c))]
		rows = rows[len(some):]
		p.head.rows(len(some), func(i int) []float32 { return x[some[i]*c.Width : (some[i]+1)*c.Width] })
		m.pool.Run(len(p.seqs), func(j int) {
			i := p.seqs[j]
			if at, ok := slices.BinarySearch(some, seqs[i].row); ok {
				next(i, p.head.logits[at*c.Vocab:(at+1)*c.Vocab])
			}
		})
	}
}
