package guide

import (
	"encoding/binary"
	"slices"
)

// Form is a grammar. Its nodes refer to each other by number.
type Form struct {
	nodes []node
	start int
}

type kind int

const (
	one    kind = iota // a byte of set
	text               // the bytes of lit
	seq                // all of kids, in order
	either             // one of kids
	repeat             // kids[0], min to max times; max below 0 is no bound
)

type node struct {
	kind     kind
	set      *[256]bool
	lit      string
	kids     []int
	min, max int
}

// machine reads bytes by a form. As a grammar may leave open what comes next, it
// keeps all stacks of nodes that are still to be read; each set of stacks that
// occurs is a state, and where a byte leads from it is computed once.
type machine struct {
	nodes   []node
	frames  []frame
	byFrame map[frame]int32
	byRest  map[rest]int
	states  []*state
	byKey   map[string]int32
	begin   int32
}

// frame is a node to be read and the stack below it; 0 is the empty stack.
type frame struct {
	node  int32
	below int32
}

// rest is what remains of a node that has been read in part.
type rest struct{ node, done int }

type state struct {
	stacks []int32
	next   map[byte]int32
	ends   bool
	mask   []uint64
}

const dead = int32(-1)

func newMachine(f *Form) *machine {
	m := &machine{nodes: slices.Clone(f.nodes), frames: make([]frame, 1), byFrame: map[frame]int32{}, byRest: map[rest]int{}, byKey: map[string]int32{}}
	m.begin = m.state(m.expand(m.push(f.start, 0), nil))
	return m
}

func (m *machine) push(node int, below int32) int32 {
	f := frame{int32(node), below}
	id, ok := m.byFrame[f]
	if !ok {
		id = int32(len(m.frames))
		m.frames = append(m.frames, f)
		m.byFrame[f] = id
	}
	return id
}

// expand adds to out the stacks with a byte or nothing on top that stack stands for.
func (m *machine) expand(stack int32, out []int32) []int32 {
	if stack == 0 {
		return append(out, 0)
	}
	f := m.frames[stack]
	n := m.nodes[f.node]
	switch n.kind {
	case seq:
		below := f.below
		for _, kid := range slices.Backward(n.kids) {
			below = m.push(kid, below)
		}
		return m.expand(below, out)
	case either:
		for _, kid := range n.kids {
			out = m.expand(m.push(kid, f.below), out)
		}
		return out
	case repeat:
		if n.min == 0 {
			out = m.expand(f.below, out)
		}
		if n.max != 0 {
			out = m.expand(m.push(n.kids[0], m.push(m.after(int(f.node)), f.below)), out)
		}
		return out
	}
	return append(out, stack)
}

// after returns the node that remains of a text after its first byte, or of a
// repetition after one turn.
func (m *machine) after(id int) int {
	key := rest{id, 1}
	if next, ok := m.byRest[key]; ok {
		return next
	}
	n := m.nodes[id]
	switch {
	case n.kind == text:
		n.lit = n.lit[1:]
	case n.min == 0 && n.max < 0:
		return id
	default:
		n.min, n.max = max(n.min-1, 0), max(n.max-1, min(n.max, -1))
	}
	m.nodes = append(m.nodes, n)
	m.byRest[key] = len(m.nodes) - 1
	return len(m.nodes) - 1
}

// state returns the number of the state with these stacks.
func (m *machine) state(stacks []int32) int32 {
	if len(stacks) == 0 {
		return dead
	}
	slices.Sort(stacks)
	stacks = slices.Compact(stacks)
	var key []byte
	for _, s := range stacks {
		key = binary.LittleEndian.AppendUint32(key, uint32(s))
	}
	id, ok := m.byKey[string(key)]
	if !ok {
		id = int32(len(m.states))
		m.states = append(m.states, &state{stacks: stacks, next: map[byte]int32{}, ends: stacks[0] == 0})
		m.byKey[string(key)] = id
	}
	return id
}

// next returns where b leads from a state.
func (m *machine) next(from int32, b byte) int32 {
	s := m.states[from]
	if to, ok := s.next[b]; ok {
		return to
	}
	var out []int32
	for _, stack := range s.stacks {
		if stack == 0 {
			continue
		}
		f := m.frames[stack]
		switch n := m.nodes[f.node]; {
		case n.kind == one && n.set[b]:
			out = m.expand(f.below, out)
		case n.kind == text && n.lit[0] == b && len(n.lit) == 1:
			out = m.expand(f.below, out)
		case n.kind == text && n.lit[0] == b:
			out = append(out, m.push(m.after(int(f.node)), f.below))
		}
	}
	to := m.state(out)
	s.next[b] = to
	return to
}
