package token

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
)

// pair is two adjacent tokens.
type pair struct{ left, right int32 }

// pairStat is the count of a pair, and the pieces it has occurred in.
type pairStat struct {
	count  int
	pieces []int32
}

// learner is the state of BPE training: the pieces of the corpus, as the tokens so far.
type learner struct {
	v      *vocab
	pieces [][]int32
	counts []int
	stats  map[pair]*pairStat
	queue  pairQueue
}

// learn returns the merges for up to room new tokens from counted pieces. It merges
// the most frequent pair repeatedly, until no pair occurs twice. It never creates a
// taboo token.
func learn(counts map[string]int, room int, taboo []string) []pairMerge {
	l := newLearner(counts)
	done := map[pair]bool{}
	for len(l.queue) > 0 && len(l.v.text) < byteTokens+room {
		top := heap.Pop(&l.queue).(candidate)
		stat := l.stats[top.pair]
		if stat.count != top.count { // out of date
			if stat.count < top.count {
				l.enqueue(top.pair)
			}
			continue
		}
		whole := l.v.text[top.left] + l.v.text[top.right]
		if slices.Contains(taboo, toAlphabet(whole)) {
			continue
		}
		id := l.v.add(whole)
		if !done[top.pair] { // a pair can recur if its left or right token was created again
			l.v.merges = append(l.v.merges, pairMerge{top.left, top.right, id})
			done[top.pair] = true
		}
		l.merge(top.pair, id)
	}
	return l.v.merges
}

func newLearner(counts map[string]int) *learner {
	l := &learner{v: newVocab(), stats: map[pair]*pairStat{}}
	for i, s := range slices.Sorted(maps.Keys(counts)) {
		piece := make([]int32, len(s))
		for j := range piece {
			piece[j] = int32(s[j])
		}
		l.pieces = append(l.pieces, piece)
		l.counts = append(l.counts, counts[s])
		l.count(int32(i), 1)
		l.locate(int32(i), none, func(pair) {})
	}
	for p := range l.stats {
		l.enqueue(p)
	}
	return l
}

// count adds the pairs of a piece to the statistics, or subtracts them if sign is −1.
func (l *learner) count(piece int32, sign int) {
	tokens := l.pieces[piece]
	for i := 1; i < len(tokens); i++ {
		p := pair{tokens[i-1], tokens[i]}
		stat := l.stats[p]
		if stat == nil {
			stat = &pairStat{}
			l.stats[p] = stat
		}
		stat.count += sign * l.counts[piece]
	}
}

// locate records that the piece has its pairs with the token id, or all its pairs if
// id is none, and calls each with them.
func (l *learner) locate(piece, id int32, each func(pair)) {
	tokens := l.pieces[piece]
	for i := 1; i < len(tokens); i++ {
		p := pair{tokens[i-1], tokens[i]}
		if id != none && p.left != id && p.right != id {
			continue
		}
		stat := l.stats[p]
		if n := len(stat.pieces); n == 0 || stat.pieces[n-1] != piece {
			stat.pieces = append(stat.pieces, piece)
		}
		each(p)
	}
}

// merge replaces p by the token id in every piece. Only pairs with id become more
// frequent.
func (l *learner) merge(p pair, id int32) {
	stat := l.stats[p]
	pieces := stat.pieces
	stat.pieces = nil
	slices.Sort(pieces)
	fresh := map[pair]bool{}
	for _, i := range slices.Compact(pieces) {
		l.count(i, -1)
		l.pieces[i] = replacePair(l.pieces[i], p, id)
		l.count(i, 1)
		l.locate(i, id, func(q pair) { fresh[q] = true })
	}
	for q := range fresh {
		l.enqueue(q)
	}
}

// replacePair replaces p in tokens, from the left, in place.
func replacePair(tokens []int32, p pair, id int32) []int32 {
	out := tokens[:0]
	for i := 0; i < len(tokens); i++ {
		if i+1 < len(tokens) && tokens[i] == p.left && tokens[i+1] == p.right {
			out = append(out, id)
			i++
			continue
		}
		out = append(out, tokens[i])
	}
	return out
}

// enqueue adds p to the queue, unless it occurs only once.
func (l *learner) enqueue(p pair) {
	if n := l.stats[p].count; n >= 2 {
		heap.Push(&l.queue, candidate{p, n})
	}
}

type candidate struct {
	pair
	count int
}

// pairQueue is a heap of candidates, most frequent first, then lowest ids.
type pairQueue []candidate

func (q pairQueue) Len() int { return len(q) }

func (q pairQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[j].count, q[i].count), cmp.Compare(q[i].left, q[j].left), cmp.Compare(q[i].right, q[j].right)) < 0
}

func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *pairQueue) Push(x any) { *q = append(*q, x.(candidate)) }

func (q *pairQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
