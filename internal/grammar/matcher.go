// Package grammar constrains sampling to text that matches a grammar: JSON that conforms
// to a JSON Schema, or tool calls. A Grammar is over bytes; a Matcher computes, at each
// step, which tokens of a vocabulary may follow.
package grammar

import (
	"bytes"
	"slices"
)

// Vocabulary is the tokens of a model sorted by their bytes, so that tokens with a common
// prefix are matched together.
type Vocabulary struct {
	size   int
	stop   []int
	ids    []int
	text   [][]byte
	common []int // length of the common prefix with the token before
	bytes  map[int][]byte
}

// NewVocabulary returns the vocabulary of the IDs below size. bytesOf returns the bytes of
// a token, or nil if it is never allowed. stop has the tokens that end a text.
func NewVocabulary(size int, bytesOf func(id int) []byte, stop []int) *Vocabulary {
	v := &Vocabulary{size: size, stop: stop, bytes: map[int][]byte{}}
	for id := range size {
		if text := bytesOf(id); len(text) > 0 && !slices.Contains(stop, id) {
			v.bytes[id] = text
			v.ids = append(v.ids, id)
		}
	}
	slices.SortFunc(v.ids, func(a, b int) int { return bytes.Compare(v.bytes[a], v.bytes[b]) })
	var last []byte
	for _, id := range v.ids {
		text := v.bytes[id]
		n := 0
		for n < len(text) && n < len(last) && text[n] == last[n] {
			n++
		}
		v.text, v.common, last = append(v.text, text), append(v.common, n), text
	}
	return v
}

// Matcher matches one text. It is an engine.Constraint.
type Matcher struct {
	vocabulary *Vocabulary
	automaton  *automaton
	consumed   int   // tokens
	state      int32 // after them; dead after a mismatch
}

// Matcher returns a matcher of g.
func (v *Vocabulary) Matcher(g *Grammar) *Matcher {
	a := newAutomaton(g)
	return &Matcher{vocabulary: v, automaton: a, state: a.start}
}

// Allow returns the tokens that may follow: see engine.Constraint. sampled must extend
// that of the call before.
func (m *Matcher) Allow(sampled []int) []uint64 {
	for ; m.consumed < len(sampled); m.consumed++ {
		for _, b := range m.vocabulary.bytes[sampled[m.consumed]] {
			if m.state != dead {
				m.state = m.automaton.next(m.state, b)
			}
		}
	}
	if m.state == dead {
		return []uint64{0}
	}
	s := m.automaton.states[m.state]
	if s.mask == nil {
		s.mask = m.allowed()
	}
	return s.mask
}

// allowed computes the tokens that match from the current state. A prefix that fails is
// not tried again for the tokens that share it.
func (m *Matcher) allowed() []uint64 {
	mask := make([]uint64, (m.vocabulary.size+63)/64)
	set := func(id int) { mask[id/64] |= 1 << (id % 64) }
	if m.automaton.states[m.state].accepting {
		for _, id := range m.vocabulary.stop {
			set(id)
		}
	}
	path, valid := []int32{m.state}, 0 // path has the states along the last token
	for i, text := range m.vocabulary.text {
		n := m.vocabulary.common[i]
		if n > valid {
			continue
		}
		path = path[:n+1]
		for n < len(text) {
			to := m.automaton.next(path[n], text[n])
			if to == dead {
				break
			}
			path = append(path, to)
			n++
		}
		if valid = n; n == len(text) {
			set(m.vocabulary.ids[i])
		}
	}
	return mask
}
