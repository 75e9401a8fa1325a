package token

import (
	"fmt"
	"iter"
	"slices"
)

// Training configures the tokens that [Train] creates besides learnt ones.
type Training struct {
	// Special are special tokens such as <|im_end|>. They get the last ids, in this
	// order, and are removed from the corpus before training.
	Special []string
	// Words become single tokens whatever the corpus. Each must be one piece, for
	// example letters only.
	Words []string
}

// byteTokens is the number of tokens a byte-level vocabulary starts with.
const byteTokens = 256

// Train learns a byte-level BPE tokenizer of at most vocab tokens, all counted:
// the 256 bytes (the id of a byte is its value), the learnt merges, what the
// words take, and the special tokens. It is smaller if the corpus has no pair left
// that occurs twice. It is an error if vocab has no room for bytes, words and
// special tokens.
//
// Text is split into runs of letters and marks, one or two digits, and runs of
// everything else, and no token crosses these boundaries: a word is the same token
// after a space, a quote or an underscore. Of equally frequent pairs, the one with
// the lower ids is merged first, so the result does not depend on the order of the
// corpus.
func Train(corpus iter.Seq[string], vocab int, o Training) (*Tokenizer, error) {
	room := vocab - byteTokens - len(o.Special)
	if room < 0 {
		return nil, fmt.Errorf("train tokenizer: vocabulary of %d is too small for %d bytes and %d special tokens", vocab, byteTokens, len(o.Special))
	}
	for _, w := range o.Words {
		if w == "" || splitWords(w) != len(w) || slices.Contains(o.Special, w) {
			return nil, fmt.Errorf("train tokenizer: word %q is special or not one piece (letters, one or two digits, or neither)", w)
		}
	}
	learnt := learn(countPieces(corpus, o.Special), room, o.Special)
	v, err := withWords(learnt, room, o.Words)
	if err != nil {
		return nil, err
	}
	t, err := v.parts(o.Special).build()
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	return t, nil
}

// countPieces counts each piece in the corpus, outside special tokens.
func countPieces(corpus iter.Seq[string], special []string) map[string]int {
	var m matcher
	for i, s := range special {
		m.add(s, &addedToken{ID: i, Content: s})
	}
	counts := map[string]int{}
	for text := range corpus {
		m.each(repair(text), func(part string, id int) {
			for id == none && len(part) > 0 {
				n := splitWords(part)
				counts[part[:n]]++
				part = part[n:]
			}
		})
	}
	return counts
}

// vocab is a vocabulary under construction: bytes and merges.
type vocab struct {
	text   []string // id → bytes
	ids    map[string]int32
	merges []pairMerge
}

func newVocab() *vocab {
	v := &vocab{ids: map[string]int32{}}
	for b := range byteTokens {
		v.add(string([]byte{byte(b)}))
	}
	return v
}

// add returns the id of the token s, adding it if needed.
func (v *vocab) add(s string) int32 {
	id, ok := v.ids[s]
	if !ok {
		id = int32(len(v.text))
		v.text = append(v.text, s)
		v.ids[s] = id
	}
	return id
}

// join appends the merge of two tokens and returns the resulting token.
func (v *vocab) join(left, right int32) int32 {
	id := v.add(v.text[left] + v.text[right])
	v.merges = append(v.merges, pairMerge{left, right, id})
	return id
}

// withWords drops learnt merges, last first, until there is room for the merges that
// the words need.
func withWords(learnt []pairMerge, room int, words []string) (*vocab, error) {
	for keep := len(learnt); ; {
		v := newVocab()
		for _, m := range learnt[:keep] {
			v.join(m.left, m.right)
		}
		v.force(words)
		over := len(v.text) - byteTokens - room
		if over <= 0 {
			return v, nil
		}
		if keep == 0 {
			return nil, fmt.Errorf("train tokenizer: the vocabulary is %d tokens too small for the words", over)
		}
		keep = max(0, keep-over)
	}
}

// force appends merges until each word is one token. New merges rank after all
// others, so existing single tokens stay single; each one shortens its word by at
// least a token, so the loop terminates.
func (v *vocab) force(words []string) {
	most := len(v.merges)
	for _, w := range words {
		most += len(w)
	}
	b := bpe{unk: none, pairs: newPairs(most)}
	for c := range b.bytes {
		b.bytes[c] = int32(c)
	}
	for rank, m := range v.merges {
		b.pairs.put(m, rank)
	}
	var m merger
	for _, w := range words {
		for {
			m.merge(&b, w)
			if m.symbols[0].next == none {
				break
			}
			v.join(m.symbols[0].id, m.symbols[m.symbols[0].next].id)
			rank := len(v.merges) - 1
			b.pairs.put(v.merges[rank], rank)
		}
	}
}

// parts returns the vocabulary as parts, special tokens last.
func (v *vocab) parts(special []string) *parts {
	p := &parts{settings: byteLevelSettings(splitSetting(patternWord)), merges: [][2]string{}}
	for _, s := range v.text {
		p.tokens = append(p.tokens, toAlphabet(s))
	}
	for _, m := range v.merges {
		p.merges = append(p.merges, [2]string{p.tokens[m.left], p.tokens[m.right]})
	}
	for i, s := range special {
		p.added = append(p.added, addedToken{ID: len(v.text) + i, Content: s, Special: true})
	}
	return p
}
