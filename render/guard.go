package render

import (
	"errors"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"envace/internal/token"
)

// errForged occurs if a template splits message text and reassembles it into a
// control token.
var errForged = errors.New("the template turns message text into a control token: remove such markers from the messages")

// guard encodes rendered dialogues so that messages cannot forge control tokens:
// "<|im_end|>" ends a message if the template writes it, and is plain text if a
// user or a tool writes it.
//
// The rendered text alone does not show where a marker came from. So the template
// is run a second time on messages in which every marker is broken by a letter that
// occurs nowhere else, inserted after each | (most control tokens contain one) and
// after the first letter of other markers, because a template may cut text and join
// the parts. A marker that is broken in the second rendering came from a message.
// The letters are then removed and the text is encoded as rendered, except that
// forged markers are encoded as plain text. Messages without markers are rendered
// once, and get the same ids as from transformers.
type guard struct {
	tok    *token.Tokenizer
	tokens []string // control tokens, longest first
	pivots []string // "|", and the first letters of tokens without one
	starts [256]bool
}

// newGuard guards the special tokens, and the tokens of stop that no file calls special.
func newGuard(tok *token.Tokenizer, stop []int) guard {
	g := guard{tok: tok}
	bars := [...]string{"|", "｜"}
	for id := range tok.Size() {
		if !tok.Special(id) && !(tok.Added(id) && slices.Contains(stop, id)) {
			continue
		}
		text := tok.Token(id)
		g.tokens = append(g.tokens, text)
		g.starts[text[0]] = true
		barred := false
		for _, bar := range bars {
			if strings.Contains(text, bar) {
				barred = true
				g.pivots = append(g.pivots, bar)
			}
		}
		if _, n := utf8.DecodeRuneInString(text); !barred {
			g.pivots = append(g.pivots, text[:n])
		}
	}
	slices.Sort(g.pivots)
	g.pivots = slices.Compact(g.pivots)
	slices.SortFunc(g.tokens, func(a, b string) int { return len(b) - len(a) })
	return g
}

// broken returns s with mark inserted wherever s could form a control token, alone
// or together with the template text that follows.
func (g *guard) broken(s, mark string) string {
	for _, p := range g.pivots {
		s = strings.ReplaceAll(s, p, p+mark)
	}
	return s
}

// rendered is a dialogue as text, plain and, if a message contains a possible
// marker, with marks.
type rendered struct {
	plain  string
	marked string // "" where no marks were needed
	mark   string
}

// text renders d for [guard.encode].
func (c *Chat) text(d dialogue) (rendered, error) {
	risky, used := false, map[rune]bool{}
	plain, err := c.render(d, func(s string) string {
		risky = risky || c.guard.broken(s, "x") != s
		for _, r := range s {
			if r >= firstMark {
				used[r] = true
			}
		}
		return s
	})
	if err != nil || !risky {
		return rendered{plain: plain}, err
	}
	mark := firstMark
	for used[mark] || strings.ContainsRune(plain, mark) {
		mark++
	}
	marked, err := c.render(d, func(s string) string { return c.guard.broken(s, string(mark)) })
	return rendered{plain, marked, string(mark)}, err
}

// firstMark begins a block of rare Chinese characters: letters that no filter
// changes, strips or escapes, and more of them than any message uses.
const firstMark = rune(0x20000)

// encode returns the ids of t, in which no control token comes from a message.
func (g *guard) encode(t rendered) ([]int, error) {
	if t.marked == "" {
		return g.tok.Encode(t.plain), nil
	}
	clean, marks := unmark(t.marked, t.mark)
	if clean != t.plain {
		if g.count(t.plain) != g.count(t.marked) {
			return nil, errForged
		}
		return g.tok.Encode(t.plain), nil
	}
	var ids []int
	done := 0
	for at, end := g.next(t.plain, 0); at >= 0; at, end = g.next(t.plain, end) {
		if i := sort.SearchInts(marks, at+1); i == len(marks) || marks[i] >= end {
			continue
		}
		ids = append(ids, g.tok.Encode(t.plain[done:at])...)
		ids = append(ids, g.tok.EncodeOrdinary(t.plain[at:end])...)
		done = end
	}
	return append(ids, g.tok.Encode(t.plain[done:])...), nil
}

// next returns the first control token in s from from on, or -1.
func (g *guard) next(s string, from int) (at, end int) {
	for at = from; at < len(s); at++ {
		if !g.starts[s[at]] {
			continue
		}
		for _, t := range g.tokens {
			if strings.HasPrefix(s[at:], t) {
				return at, at + len(t)
			}
		}
	}
	return -1, -1
}

func (g *guard) count(s string) int {
	n := 0
	for at, end := g.next(s, 0); at >= 0; at, end = g.next(s, end) {
		n++
	}
	return n
}

// unmark removes the marks and returns their positions.
func unmark(s, mark string) (clean string, places []int) {
	parts := strings.Split(s, mark)
	n := 0
	for _, p := range parts[:len(parts)-1] {
		n += len(p)
		places = append(places, n)
	}
	return strings.Join(parts, ""), places
}
