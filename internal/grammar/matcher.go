// Package guide bounds what a model may write to a form: text that obeys a JSON
// Schema, or calls of tools. A form is a grammar of bytes; a Guide tells, at each
// step, which tokens of a vocabulary go on with it.
package grammar

import (
	"bytes"
	"slices"
)

// Vocabulary is the tokens of a model, in the order of their bytes, so that those
// that begin alike are looked at together.
type Vocabulary struct {
	size   int
	stop   []int
	ids    []int
	text   [][]byte
	common []int // bytes that a token has in common with the one before it
	bytes  map[int][]byte
}

// NewVocabulary returns the vocabulary of size ids, of which bytes tells what they
// stand for: nil for those that no text may have. Where a form may end, the tokens
// of stop are allowed.
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

// Guide follows one text. It is an engine.Guide.
type Matcher struct {
	vocabulary *Vocabulary
	automaton  *automaton
	consumed   int   // tokens of the text
	state      int32 // after them; dead once the text has left the form
}

// Guide returns a guide through f.
func (v *Vocabulary) Matcher(f *Grammar) *Matcher {
	m := newAutomaton(f)
	return &Matcher{vocabulary: v, automaton: m, state: m.start}
}

// Allow returns the tokens that may follow those drawn: see engine.Guide. drawn
// grows from call to call.
func (g *Matcher) Allow(drawn []int) []uint64 {
	for ; g.consumed < len(drawn); g.consumed++ {
		for _, b := range g.vocabulary.bytes[drawn[g.consumed]] {
			if g.state != dead {
				g.state = g.automaton.next(g.state, b)
			}
		}
	}
	if g.state == dead {
		return []uint64{0}
	}
	s := g.automaton.states[g.state]
	if s.mask == nil {
		s.mask = g.allowed()
	}
	return s.mask
}

// mask tries every token from the state on. What of a token fails need not be tried
// again for those that begin in the same way.
func (g *Matcher) allowed() []uint64 {
	mask := make([]uint64, (g.vocabulary.size+63)/64)
	set := func(id int) { mask[id/64] |= 1 << (id % 64) }
	if g.automaton.states[g.state].accepting {
		for _, id := range g.vocabulary.stop {
			set(id)
		}
	}
	path, valid := []int32{g.state}, 0 // the states after the bytes that were tried last
	for i, text := range g.vocabulary.text {
		n := g.vocabulary.common[i]
		if n > valid {
			continue
		}
		path = path[:n+1]
		for n < len(text) {
			to := g.automaton.next(path[n], text[n])
			if to == dead {
				break
			}
			path = append(path, to)
			n++
		}
		if valid = n; n == len(text) {
			set(g.vocabulary.ids[i])
		}
	}
	return mask
}
