package grammar

import (
	"encoding/binary"
	"slices"
)

// Grammar is a context-free grammar over bytes. Nodes refer to each other by index.
type Grammar struct {
	nodes  []node
	start  int
	checks map[string]*check // what it does not enforce: see Check
}

type kind int

const (
	class       kind = iota // one byte of set
	literal                 // the bytes of literal
	sequence                // all children in order
	alternation             // one of the children
	repetition              // children[0], min to max times; max < 0 is unlimited
)

type node struct {
	kind     kind
	set      *[256]bool
	literal  string
	children []int
	min, max int
}

// automaton is a nondeterministic pushdown automaton for a grammar, determinised lazily: a
// state is a set of stacks of nodes still to be matched, and transitions are cached.
type automaton struct {
	nodes        []node
	frames       []frame
	byFrame      map[frame]int32
	byDerivative map[derivative]int
	states       []*state
	byKey        map[string]int32
	start        int32
}

// frame is a node to match and the stack below it; frame 0 is the empty stack.
type frame struct {
	node  int32
	below int32
}

// derivative identifies what remains of a node that was matched in part.
type derivative struct{ node, done int }

type state struct {
	stacks    []int32
	next      map[byte]int32
	accepting bool
	mask      []uint64
}

const dead = int32(-1)

func newAutomaton(f *Grammar) *automaton {
	m := &automaton{nodes: slices.Clone(f.nodes), frames: make([]frame, 1), byFrame: map[frame]int32{}, byDerivative: map[derivative]int{}, byKey: map[string]int32{}}
	m.start = m.state(m.expand(m.push(f.start, 0), nil))
	return m
}

func (m *automaton) push(node int, below int32) int32 {
	f := frame{int32(node), below}
	id, ok := m.byFrame[f]
	if !ok {
		id = int32(len(m.frames))
		m.frames = append(m.frames, f)
		m.byFrame[f] = id
	}
	return id
}

// expand appends to out the stacks equivalent to stack that are empty or have a class or
// literal on top.
func (m *automaton) expand(stack int32, out []int32) []int32 {
	if stack == 0 {
		return append(out, 0)
	}
	f := m.frames[stack]
	n := m.nodes[f.node]
	switch n.kind {
	case sequence:
		below := f.below
		for _, kid := range slices.Backward(n.children) {
			below = m.push(kid, below)
		}
		return m.expand(below, out)
	case alternation:
		for _, kid := range n.children {
			out = m.expand(m.push(kid, f.below), out)
		}
		return out
	case repetition:
		if n.min == 0 {
			out = m.expand(f.below, out)
		}
		if n.max != 0 {
			out = m.expand(m.push(n.children[0], m.push(m.derivative(int(f.node)), f.below)), out)
		}
		return out
	}
	return append(out, stack)
}

// derivative returns the node that remains of a literal after its first byte, or of a
// repetition after one iteration.
func (m *automaton) derivative(id int) int {
	key := derivative{id, 1}
	if next, ok := m.byDerivative[key]; ok {
		return next
	}
	n := m.nodes[id]
	switch {
	case n.kind == literal:
		n.literal = n.literal[1:]
	case n.min == 0 && n.max < 0:
		return id
	default:
		n.min, n.max = max(n.min-1, 0), max(n.max-1, min(n.max, -1))
	}
	m.nodes = append(m.nodes, n)
	m.byDerivative[key] = len(m.nodes) - 1
	return len(m.nodes) - 1
}

// state returns the index of the state with these stacks.
func (m *automaton) state(stacks []int32) int32 {
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
		m.states = append(m.states, &state{stacks: stacks, next: map[byte]int32{}, accepting: stacks[0] == 0})
		m.byKey[string(key)] = id
	}
	return id
}

// next returns the state after b.
func (m *automaton) next(from int32, b byte) int32 {
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
		case n.kind == class && n.set[b]:
			out = m.expand(f.below, out)
		case n.kind == literal && n.literal[0] == b && len(n.literal) == 1:
			out = m.expand(f.below, out)
		case n.kind == literal && n.literal[0] == b:
			out = append(out, m.push(m.derivative(int(f.node)), f.below))
		}
	}
	to := m.state(out)
	s.next[b] = to
	return to
}
