package token

// bpe holds the merges of a byte-level model.
type bpe struct {
	bytes   [256]int32 // byte → id; none if it is not in the vocabulary
	unk     int32      // the token for such a byte; none to drop it
	fuseUnk bool       // one unknown token for a run of them
	pairs   pairs
	merges  []pairMerge // in order of rank, for Marshal
}

const none = -1

// pairMerge joins the tokens left and right into one.
type pairMerge struct{ left, right, id int32 }

// merge is the result of merging a pair; lower ranks merge first.
type merge struct{ rank, id int32 }

// pairs maps pairs of ids to merges: an open-addressing hash table, several times as
// fast as a map and faster to fill.
type pairs struct {
	keys  []uint64 // key+1; 0 is empty
	vals  []merge
	shift uint
}

// newPairs returns an empty table with room for n merges.
func newPairs(n int) pairs {
	shift := uint(61)
	for 1<<(64-shift) < 2*n {
		shift--
	}
	size := 1 << (64 - shift)
	return pairs{make([]uint64, size), make([]merge, size), shift}
}

// put adds a merge, replacing an earlier one of the same pair.
func (p *pairs) put(m pairMerge, rank int) {
	i := p.slot(m.left, m.right)
	p.keys[i] = pairKey(m.left, m.right)
	p.vals[i] = merge{int32(rank), m.id}
}

func pairKey(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) + 1 }

// slot returns the slot of the pair, or the free slot for it.
func (p *pairs) slot(left, right int32) uint64 {
	key := pairKey(left, right)
	mask := uint64(len(p.keys) - 1)
	i := key * 0x9E3779B97F4A7C15 >> p.shift
	for p.keys[i] != 0 && p.keys[i] != key {
		i = (i + 1) & mask
	}
	return i
}

func (p *pairs) get(left, right int32) (merge, bool) {
	i := p.slot(left, right)
	return p.vals[i], p.keys[i] != 0
}

// symbol is a token of a piece being merged: a doubly linked list in a slice.
type symbol struct {
	id         int32
	prev, next int32
	found      merge // of this symbol and the next; rank noRank for none
}

const noRank = 1<<31 - 1

// longPiece is the length from which a heap is faster than a linear scan.
const longPiece = 64

// merger merges pieces, reusing its memory.
type merger struct {
	bpe     *bpe
	symbols []symbol
	queue   queue
}

// merge applies all merges to piece; tokens yields the result.
func (m *merger) merge(b *bpe, piece string) {
	m.bpe = b
	m.start(piece)
	switch n := len(m.symbols); {
	case n == 0:
		return
	case n < longPiece:
		m.mergeShort()
	default:
		m.mergeLong()
	}
}

// tokens yields the ids of the last merged piece, in order.
func (m *merger) tokens(yield func(id int32) bool) {
	for i := int32(0); i < int32(len(m.symbols)) && i != none; i = m.symbols[i].next {
		if !yield(m.symbols[i].id) {
			return
		}
	}
}

// start creates a symbol for every byte that has a token.
func (m *merger) start(piece string) {
	m.symbols = m.symbols[:0]
	unknown := false // the last symbol is the unknown token
	for i := range len(piece) {
		id := m.bpe.bytes[piece[i]]
		if id == none {
			if m.bpe.unk == none || unknown && m.bpe.fuseUnk {
				continue
			}
			id, unknown = m.bpe.unk, true
		} else {
			unknown = false
		}
		k := int32(len(m.symbols))
		m.symbols = append(m.symbols, symbol{id: id, prev: k - 1, next: k + 1})
	}
	if k := len(m.symbols); k > 0 {
		m.symbols[k-1].next = none
	}
	for i := range m.symbols {
		m.look(int32(i))
	}
}

// look finds the merge of symbol i and the next one.
func (m *merger) look(i int32) {
	s := &m.symbols[i]
	s.found = merge{rank: noRank}
	if s.next == none {
		return
	}
	if found, ok := m.bpe.pairs.get(s.id, m.symbols[s.next].id); ok {
		s.found = found
	}
}

// join replaces symbol i and the next one by their merge.
func (m *merger) join(i int32) {
	s := &m.symbols[i]
	gone := &m.symbols[s.next]
	s.id, s.next = s.found.id, gone.next
	gone.id = none
	if s.next != none {
		m.symbols[s.next].prev = i
	}
	m.look(i)
	if s.prev != none {
		m.look(s.prev)
	}
}

// mergeShort joins the leftmost pair of lowest rank until none is left.
func (m *merger) mergeShort() {
	for {
		best, rank := int32(none), int32(noRank)
		for i := int32(0); i != none; i = m.symbols[i].next {
			if r := m.symbols[i].found.rank; r < rank {
				best, rank = i, r
			}
		}
		if best == none {
			return
		}
		m.join(best)
	}
}

// mergeLong gives the same result as mergeShort, using a queue. Entries whose symbol
// has changed since are skipped.
func (m *merger) mergeLong() {
	m.queue = m.queue[:0]
	for i := range m.symbols {
		m.enqueue(int32(i))
	}
	for len(m.queue) > 0 {
		rank, at := m.queue.pop()
		if s := &m.symbols[at]; s.id == none || s.found.rank != rank {
			continue
		}
		m.join(at)
		m.enqueue(at)
		if prev := m.symbols[at].prev; prev != none {
			m.enqueue(prev)
		}
	}
}

func (m *merger) enqueue(at int32) {
	if rank := m.symbols[at].found.rank; rank != noRank {
		m.queue.push(rank, at)
	}
}

// queue is a binary heap of rank<<32 | position, the smallest first.
type queue []uint64

func (q *queue) push(rank, at int32) {
	h := append(*q, uint64(rank)<<32|uint64(at))
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up] <= h[i] {
			break
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
	*q = h
}

func (q *queue) pop() (rank, at int32) {
	h := *q
	top, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		down := 2*i + 1
		if down+1 < n && h[down+1] < h[down] {
			down++
		}
		if down >= n || h[i] <= h[down] {
			break
		}
		h[down], h[i] = h[i], h[down]
		i = down
	}
	*q = h
	return int32(top >> 32), int32(uint32(top))
}
