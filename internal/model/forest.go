package model

import "slices"

// Forest is a batch built from rows of token ids in which every common prefix occurs
// once: each row is a path from the root of a tree.
type Forest struct {
	Batch
	Rows  []int   // indices of its rows
	Paths [][]int // for each of Rows, the batch row of each of its tokens

	paths []int // memory of Paths
	segs  []run // chain of the last row
}

// Cut sorts rows, so that common prefixes are adjacent, and cuts them into lists of
// at most budget distinct tokens, or as many as the longest row has, which needs that
// room anyway. Trees are kept whole if possible; if a tree is cut, its prefix occurs
// in both pieces. A list with piece or more tokens gets no further tree.
func Cut(rows [][]int, piece, budget int) [][]int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
		budget = max(budget, len(rows[i]))
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(rows[a], rows[b]) })
	fresh, tree := freshTokens(rows, order)
	var cuts [][]int
	begin, used := 0, 0
	for i, row := range order {
		need, limit := fresh[i], budget
		if fresh[i] == len(rows[row]) { // a tree begins
			limit = min(piece, budget)
			if tree[i] <= budget {
				need = tree[i]
			}
		}
		if i > begin && used+need > limit {
			cuts = append(cuts, order[begin:i])
			begin, used = i, 0
			fresh[i] = len(rows[row])
		}
		used += fresh[i]
	}
	if begin < len(order) {
		cuts = append(cuts, order[begin:])
	}
	return cuts
}

// freshTokens counts, for the rows in order, the tokens not shared with an earlier
// row, and for each first row of a tree the tokens of the tree.
func freshTokens(rows [][]int, order []int) (fresh, tree []int) {
	fresh, tree = make([]int, len(order)), make([]int, len(order))
	root := 0
	for i, row := range order {
		shared := 0
		if i > 0 {
			shared = common(rows[order[i-1]], rows[row])
		}
		if shared == 0 {
			root = i
		}
		fresh[i] = len(rows[row]) - shared
		tree[root] += fresh[i]
	}
	return fresh, tree
}

// unique counts the distinct tokens of rows sorted by Cut.
func unique(rows [][]int, sorted []int) int {
	n := 0
	for i, row := range sorted {
		n += len(rows[row])
		if i > 0 {
			n -= common(rows[sorted[i-1]], rows[row])
		}
	}
	return n
}

// common returns the length of the common prefix.
func common(a, b []int) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// fill makes f the forest of the given rows, sorted by Cut. at returns the memory of
// the keys and values of batch rows from a given row on.
func (f *Forest) fill(rows [][]int, sorted []int, at func(row int) run) {
	f.reset()
	f.Rows, f.Paths, f.paths, f.segs = sorted, f.Paths[:0], f.paths[:0], f.segs[:0]
	total := 0
	for _, r := range sorted {
		total += len(rows[r])
	}
	f.paths = slices.Grow(f.paths, total)
	for i, r := range sorted {
		shared := 0
		if i > 0 {
			shared = common(rows[sorted[i-1]], rows[r])
		}
		f.addRow(rows[r], shared, at)
	}
}

// addRow appends a row that shares its first tokens with the row before it.
func (f *Forest) addRow(ids []int, shared int, at func(row int) run) {
	from := len(f.paths)
	if shared > 0 {
		f.paths = append(f.paths, f.Paths[len(f.Paths)-1][:shared]...)
	} else {
		f.newTree()
	}
	for len(f.segs) > 0 && f.segs[len(f.segs)-1].start >= shared {
		f.segs = f.segs[:len(f.segs)-1]
	}
	if n := len(f.segs); n > 0 {
		f.segs[n-1].n = min(f.segs[n-1].n, shared-f.segs[n-1].start)
	}
	first := len(f.IDs)
	for i := range ids[shared:] {
		f.paths = append(f.paths, first+i)
	}
	if len(ids) > shared {
		seg := at(first)
		seg.start, seg.n, seg.row = shared, len(ids)-shared, first
		f.segs = append(f.segs, seg)
		f.add(ids[shared:], shared, f.segs)
	}
	f.Paths = append(f.Paths, f.paths[from:len(f.paths):len(f.paths)])
}
