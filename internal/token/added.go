package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is matched in the text before any merging, with the
// field names of tokenizer.json.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // matches only between non-word characters
	LStrip     bool   `json:"lstrip"`      // includes the white space before it
	RStrip     bool   `json:"rstrip"`      // includes the white space after it
	Normalized bool   `json:"normalized"`  // matched in the normalised text
	Special    bool   `json:"special"`

	// skipped: tokenizer.json has it as special and another file has not. The library
	// goes on to leave it out of decoded text.
	skipped bool
}

// matcher finds added tokens: leftmost, then longest. Its trie is a map from node and
// byte to node; node 0 is the root.
type matcher struct {
	next   map[uint64]int32
	tokens []*addedToken // node → the token ending there, or nil
	starts [256]bool
}

func (m *matcher) add(pattern string, tok *addedToken) {
	if pattern == "" {
		return
	}
	if m.next == nil {
		m.next, m.tokens = map[uint64]int32{}, make([]*addedToken, 1)
	}
	m.starts[pattern[0]] = true
	node := int32(0)
	for i := range len(pattern) {
		key := uint64(node)<<8 | uint64(pattern[i])
		to, ok := m.next[key]
		if !ok {
			to = int32(len(m.tokens))
			m.next[key] = to
			m.tokens = append(m.tokens, nil)
		}
		node = to
	}
	if m.tokens[node] == nil {
		m.tokens[node] = tok
	}
}

// each calls yield with the parts of s in order: the text between added tokens
// with the id none, and the ids of added tokens.
func (m *matcher) each(s string, yield func(part string, id int)) {
	done := 0 // end of what was yielded, including stripped white space
	for i := 0; m.next != nil && i < len(s); i++ {
		if !m.starts[s[i]] {
			continue
		}
		tok, end := m.longest(s, i)
		if tok == nil {
			continue
		}
		start, stop := i, end
		i = end - 1
		if tok.SingleWord && (wordBefore(s[:start]) || wordBehind(s[stop:])) {
			continue
		}
		if tok.LStrip {
			start = len(strings.TrimRightFunc(s[:start], unicode.IsSpace))
		}
		if tok.RStrip {
			stop = len(s) - len(strings.TrimLeftFunc(s[stop:], unicode.IsSpace))
		}
		if done < start {
			yield(s[done:start], none)
		}
		yield(s[start:stop], tok.ID)
		done = stop
	}
	if done < len(s) {
		yield(s[done:], none)
	}
}

// longest returns the longest token at s[i:] and where it ends.
func (m *matcher) longest(s string, i int) (tok *addedToken, end int) {
	node := int32(0)
	for ; i < len(s); i++ {
		to, ok := m.next[uint64(node)<<8|uint64(s[i])]
		if !ok {
			break
		}
		node = to
		if m.tokens[node] != nil {
			tok, end = m.tokens[node], i+1
		}
	}
	return tok, end
}

func wordBefore(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func wordBehind(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// isWord is \w: letters, marks, digits, connectors such as _, joiners.
func isWord(r rune) bool {
	return classify(r)&(letter|mark) != 0 ||
		unicode.In(r, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control, newNumbers)
}
