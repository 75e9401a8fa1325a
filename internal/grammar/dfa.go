package grammar

import (
	"encoding/binary"
	"slices"
	"unicode"
)

// dfa is a deterministic automaton over characters, which accepts or rejects whole
// strings. State 0 is the start. It is total: each state has a successor for each class.
type dfa struct {
	starts []rune // class k has the characters from starts[k] to before starts[k+1]
	next   [][]int32
	accept []bool
}

// Limits of an automaton.
const (
	maxStates = 4000
	maxCells  = 1 << 20 // states times classes
)

func (d *dfa) class(r rune) int {
	i, found := slices.BinarySearch(d.starts, r)
	if !found {
		i--
	}
	return i
}

func (d *dfa) match(s string) bool {
	at := int32(0)
	for _, r := range s {
		at = d.next[at][d.class(r)]
	}
	return d.accept[at]
}

// not accepts what d rejects.
func (d *dfa) not() *dfa {
	out := &dfa{starts: d.starts, next: d.next, accept: slices.Clone(d.accept)}
	for i := range out.accept {
		out.accept[i] = !out.accept[i]
	}
	return out
}

// and accepts what both accept; nil if it would have too many states.
func (d *dfa) and(e *dfa) *dfa {
	out := &dfa{starts: slices.Concat(d.starts, e.starts)}
	slices.Sort(out.starts)
	out.starts = slices.Compact(out.starts)
	type pair struct{ d, e int32 }
	ids, list := map[pair]int32{{0, 0}: 0}, []pair{{0, 0}}
	for i := 0; i < len(list); i++ {
		p := list[i]
		row := make([]int32, len(out.starts))
		for k, r := range out.starts {
			q := pair{d.next[p.d][d.class(r)], e.next[p.e][e.class(r)]}
			id, ok := ids[q]
			if !ok {
				if len(list) == maxStates || len(list)*len(out.starts) > maxCells {
					return nil
				}
				id = int32(len(list))
				ids[q], list = id, append(list, q)
			}
			row[k] = id
		}
		out.next = append(out.next, row)
		out.accept = append(out.accept, d.accept[p.d] && e.accept[p.e])
	}
	return out
}

// lengths accepts strings of min to max characters; max < 0 is unlimited.
func lengths(min, max int) *dfa {
	most := max
	if max < 0 {
		most = min
	}
	d := &dfa{starts: []rune{0}}
	for i := range most + 1 {
		next := int32(i + 1)
		if max < 0 && i == most {
			next = int32(i)
		}
		d.next, d.accept = append(d.next, []int32{next}), append(d.accept, i >= min)
	}
	if max >= 0 {
		d.next, d.accept = append(d.next, []int32{int32(most + 1)}), append(d.accept, false)
	}
	return d
}

// words accepts exactly the given strings.
func words(list []string) *dfa {
	var starts []rune
	for _, w := range list {
		for _, r := range w {
			starts = append(starts, r, r+1)
		}
	}
	starts = append(starts, 0)
	slices.Sort(starts)
	d := &dfa{starts: slices.Compact(starts), accept: []bool{false, false}}
	d.next = [][]int32{make([]int32, len(d.starts)), make([]int32, len(d.starts))}
	for i := range d.starts {
		d.next[0][i], d.next[1][i] = 1, 1 // 1 is no word's beginning
	}
	for _, w := range list {
		at := int32(0)
		for _, r := range w {
			k := d.class(r)
			if d.next[at][k] == 1 {
				d.next = append(d.next, slices.Clone(d.next[1]))
				d.accept = append(d.accept, false)
				d.next[at][k] = int32(len(d.next) - 1)
			}
			at = d.next[at][k]
		}
		d.accept[at] = true
	}
	return d
}

// live returns for each state whether an accepting one can be reached.
func (d *dfa) live() []bool {
	live := slices.Clone(d.accept)
	back := make([][]int32, len(d.next))
	var work []int32
	for i, row := range d.next {
		for _, to := range row {
			back[to] = append(back[to], int32(i))
		}
		if live[i] {
			work = append(work, int32(i))
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, from := range back[i] {
			if !live[from] {
				live[from] = true
				work = append(work, from)
			}
		}
	}
	return live
}

// runes is a set of characters as ranges lo, hi, lo, hi, …
type runes []rune

// quoted returns a node that matches the accepted strings as JSON.
func (b *builder) quoted(d *dfa) int {
	live := d.live()
	nodes := make([]int, len(d.next))
	for i := range nodes {
		nodes[i] = b.add(node{kind: alternation})
	}
	for i, row := range d.next {
		if !live[i] {
			continue
		}
		sets := map[int32]runes{}
		var order []int32
		for k, to := range row {
			if !live[to] {
				continue
			}
			hi := rune(unicode.MaxRune)
			if k+1 < len(d.starts) {
				hi = d.starts[k+1] - 1
			}
			if sets[to] == nil {
				order = append(order, to)
			}
			sets[to] = append(sets[to], d.starts[k], hi)
		}
		var kids []int
		for _, to := range order {
			kids = append(kids, b.sequence(b.runes(sets[to]), nodes[to]))
		}
		if d.accept[i] {
			kids = append(kids, b.sequence())
		}
		b.nodes[nodes[i]].children = kids
	}
	return b.sequence(b.literal(`"`), nodes[0], b.literal(`"`))
}

// runes returns a node that matches one character of a set, as JSON spells it.
func (b *builder) runes(set runes) int {
	var key []byte
	for _, r := range set {
		key = binary.LittleEndian.AppendUint32(key, uint32(r))
	}
	if id, ok := b.sets[string(key)]; ok {
		return id
	}
	var kids []int
	for i := 0; i < len(set); i += 2 {
		kids = b.span(kids, set[i], set[i+1])
	}
	id := b.alternation(kids...)
	b.sets[string(key)] = id
	return id
}

// span appends the nodes for the characters from lo to hi.
func (b *builder) span(kids []int, lo, hi rune) []int {
	for ; lo <= hi && lo < ' '; lo++ {
		kids = append(kids, b.literal(quoteRune(lo)))
	}
	for _, r := range `"\` {
		if lo <= r && r <= hi {
			kids = append(b.span(kids, lo, r-1), b.literal(quoteRune(r)))
			lo = r + 1
		}
	}
	if lo <= 0xDFFF && hi >= 0xD800 {
		kids, lo = b.utf8(kids, lo, min(hi, 0xD7FF)), max(lo, 0xE000)
	}
	return b.utf8(kids, lo, hi)
}

// utf8 appends sequences of byte ranges that match the encodings of lo to hi.
func (b *builder) utf8(kids []int, lo, hi rune) []int {
	if lo > hi {
		return kids
	}
	for _, last := range []rune{0x7F, 0x7FF, 0xFFFF} {
		if lo <= last && last < hi {
			return b.utf8(b.utf8(kids, lo, last), last+1, hi)
		}
	}
	for bits := 6; hi > 0x7F && bits <= 18; bits += 6 {
		low := rune(1)<<bits - 1
		if lo&^low == hi&^low {
			break
		}
		if lo&low != 0 {
			return b.utf8(b.utf8(kids, lo, lo|low), lo|low+1, hi)
		}
		if hi&low != low {
			return b.utf8(b.utf8(kids, lo, hi&^low-1), hi&^low, hi)
		}
	}
	from, to := string(lo), string(hi)
	var parts []int
	for i := range len(from) {
		parts = append(parts, b.ranges(from[i], to[i]))
	}
	return append(kids, b.sequence(parts...))
}
