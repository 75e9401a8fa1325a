package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCut(t *testing.T) {
	rows := [][]int{{1, 2, 3}, {9}, {1, 2, 4, 5}, {1, 2, 3}, {7, 7}}
	for _, tt := range []struct {
		name   string
		budget int
		want   [][]int
	}{
		{"all fits", 100, [][]int{{0, 3, 2, 4, 1}}},
		{"trees stay whole", 6, [][]int{{0, 3, 2}, {4, 1}}},
		{"the tree is cut", 4, [][]int{{0, 3}, {2}, {4, 1}}},
		{"the longest row is never cut", 1, [][]int{{0, 3}, {2}, {4}, {1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Cut(rows, tt.budget, tt.budget)
			if !slices.EqualFunc(got, tt.want, slices.Equal[[]int]) {
				t.Errorf("cuts %v, want %v", got, tt.want)
			}
		})
	}
	if got := Cut(nil, 5, 5); len(got) != 0 {
		t.Errorf("cuts of nothing: %v", got)
	}
}

// Every row is a path of its own tokens at positions 0, 1, …, each block's spans
// cover the positions of each of its rows, and in order.
func TestForestPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 2), 1, 200), 1, 12).Draw(t, "rows")
		budget := rapid.SampledFrom([]int{1, 50, 100000}).Draw(t, "budget")
		memory := make([]float32, 1)
		var f Forest
		seen := 0
		for _, cut := range Cut(rows, budget, budget) {
			f.fill(rows, cut, func(row int) run { return run{data: memory, k: row} })
			for i, row := range f.Rows {
				checkPath(t, &f, rows[row], f.Paths[i])
				seen++
			}
			checkBlocks(t, &f)
		}
		if seen != len(rows) {
			t.Errorf("%d rows of %d", seen, len(rows))
		}
	})
}

func checkPath(t *rapid.T, f *Forest, ids, path []int) {
	for pos, node := range path {
		if f.IDs[node] != ids[pos] || f.Pos[node] != pos {
			t.Fatalf("node %d is token %d at %d, want %d at %d", node, f.IDs[node], f.Pos[node], ids[pos], pos)
		}
	}
	node := path[len(path)-1]
	for i := range f.blocks {
		b := &f.blocks[i]
		if node < b.Row || node >= b.Row+b.N {
			continue
		}
		var seen []int
		for _, s := range b.Spans {
			for j := range s.N {
				if r := node - b.Row; r >= s.Lo && r < s.Hi && s.Start+j < len(path) {
					seen = append(seen, s.Row+j)
				}
			}
		}
		if !slices.Equal(seen, path) {
			t.Fatalf("the last token of path %v sees %v", path, seen)
		}
	}
}

func checkBlocks(t *rapid.T, f *Forest) {
	next := 0
	for i := range f.blocks {
		b := &f.blocks[i]
		if b.Row != next || b.N != len(b.Pos) || b.N != len(b.End) || b.N > blockRows {
			t.Fatalf("block %d: rows %d … %d, %d positions, %d ends", i, b.Row, b.Row+b.N, len(b.Pos), len(b.End))
		}
		next += b.N
		for r, end := range b.End {
			if end <= b.Pos[r] || end > b.Width {
				t.Fatalf("block %d: row %d at %d ends at %d of %d", i, r, b.Pos[r], end, b.Width)
			}
		}
	}
	if next != len(f.IDs) {
		t.Fatalf("blocks hold %d rows of %d", next, len(f.IDs))
	}
}
