package model

import "envace/internal/kernel"

// Batch holds rows of tokens that go through the layers together, and which keys each
// row attends to. Rows that share spans must be adjacent.
type Batch struct {
	IDs, Pos []int
	Targets  []slot // where each row's key and value are stored; nil: in the pass itself

	blocks []kernel.Block
	trees  []int // first block of each tree; trees share no keys
	maxPos int

	open []int // spans of the last block that following rows may extend
}

// slot is a position in a cache: index i of a node. A negative index means that key
// and value are already stored.
type slot struct {
	node  *node
	index int
}

// run is a run of consecutive positions: the first N in a piece of memory.
type run struct {
	data       []float32
	k, v       int
	kRow, vRow int
	start, n   int
	row        int // its first row in the batch, if it is there
}

func (r *run) same(s *kernel.Span) bool {
	return r.k == s.K && r.start == s.Start && r.n == s.N && &r.data[0] == &s.Data[0]
}

// blockFloats limits the number of scores of one block and query head.
const (
	blockFloats = 1 << 18
	blockRows   = 64
)

func (b *Batch) reset() {
	b.IDs, b.Pos, b.Targets = b.IDs[:0], b.Pos[:0], b.Targets[:0]
	b.blocks, b.trees, b.open, b.maxPos = b.blocks[:0], b.trees[:0], b.open[:0], 0
}

// newTree begins a tree: the next rows share no keys with earlier ones.
func (b *Batch) newTree() {
	b.trees = append(b.trees, len(b.blocks))
	b.open = b.open[:0]
}

// add appends one row per token at consecutive positions from start. The runs of
// chain cover the positions up to the last of these rows; each row attends to them up
// to its own position.
func (b *Batch) add(ids []int, start int, chain []run) {
	for len(ids) > 0 {
		blk := b.block(start)
		n := min(len(ids), max(1, min(blockRows, blockFloats/(start+1))-blk.N))
		b.see(blk, chain, n, start+n)
		for i := range n {
			b.IDs, b.Pos = append(b.IDs, ids[i]), append(b.Pos, start+i)
			blk.Pos = append(blk.Pos, start+i)
		}
		blk.N += n
		ids, start = ids[n:], start+n
	}
	b.maxPos = max(b.maxPos, start-1)
}

// block returns the block for the next rows: the last one of this tree, or a new one
// if that is full.
func (b *Batch) block(start int) *kernel.Block {
	last := len(b.blocks) - 1
	first := 0
	if len(b.trees) > 0 {
		first = b.trees[len(b.trees)-1]
	}
	if last >= first {
		if blk := &b.blocks[last]; blk.N < blockRows && (blk.N+1)*max(blk.Width, start+1) <= blockFloats {
			return blk
		}
	}
	if cap(b.blocks) > len(b.blocks) {
		b.blocks = b.blocks[:last+2]
	} else {
		b.blocks = append(b.blocks, kernel.Block{})
	}
	blk := &b.blocks[last+1]
	*blk = kernel.Block{Row: len(b.IDs), Pos: blk.Pos[:0], End: blk.End[:0], Spans: blk.Spans[:0]}
	b.open = b.open[:0]
	return blk
}

// see sets the spans of the next n rows of blk, which end before position end. Spans
// of the chain shared with the preceding rows are extended.
func (b *Batch) see(blk *kernel.Block, chain []run, n, end int) {
	shared := 0
	for shared < len(chain) && shared < len(b.open) && chain[shared].start+chain[shared].n <= end &&
		chain[shared].same(&blk.Spans[b.open[shared]]) {
		blk.Spans[b.open[shared]].Hi += n
		shared++
	}
	b.open = b.open[:shared]
	for _, r := range chain[shared:] {
		if r.start >= end {
			break
		}
		b.open = append(b.open, len(blk.Spans))
		blk.Spans = append(blk.Spans, kernel.Span{Data: r.data, K: r.k, V: r.v, KRow: r.kRow, VRow: r.vRow,
			Start: r.start, N: min(r.n, end-r.start), Lo: blk.N, Hi: blk.N + n, Row: r.row})
	}
	for range n {
		blk.End = append(blk.End, end)
	}
	blk.Width = max(blk.Width, end)
}
