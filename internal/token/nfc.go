package token

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc returns the canonical composition of s, which is valid UTF-8, by the older
// Unicode table of Hugging Face's library, in which the characters of [newerMarks]
// have no special properties. Unlike x/text, it inserts no grapheme joiner into long
// runs of marks.
func nfc(s string) string {
	// Text normalised by the newer table is normalised by the older one too, which
	// reorders fewer characters and composes no more of them.
	if norm.NFC.IsNormalString(s) {
		return s
	}
	chars := decompose(s)
	order(chars)
	return composed(chars)
}

// char is a character with its canonical combining class: 0 for a starter.
type char struct {
	r   rune
	ccc uint8
}

// decompose returns the characters of the canonical decomposition of s, marks
// in the order of the text.
func decompose(s string) []char {
	chars := make([]char, 0, len(s))
	var buf []byte
	for i, r := range s {
		if r < 0xC0 || unicode.Is(newerMarks, r) {
			chars = append(chars, char{r: r})
			continue
		}
		buf = norm.NFD.AppendString(buf[:0], s[i:i+utf8.RuneLen(r)])
		for b := buf; len(b) > 0; {
			r, n := utf8.DecodeRune(b)
			chars = append(chars, char{r, norm.NFD.Properties(b).CCC()})
			b = b[n:]
		}
	}
	return chars
}

// order sorts every run of marks by combining class.
func order(chars []char) {
	for i := 0; i < len(chars); i++ {
		start := i
		for i < len(chars) && chars[i].ccc > 0 {
			i++
		}
		slices.SortStableFunc(chars[start:i], func(a, b char) int { return cmp.Compare(a.ccc, b.ccc) })
	}
}

// composed combines each starter with the following characters where possible.
func composed(chars []char) string {
	out := make([]rune, 0, len(chars))
	var buf []byte
	starter, last := -1, uint8(0) // last: class of the last uncombined character after the starter
	for _, c := range chars {
		if starter >= 0 && (last == 0 || last < c.ccc) {
			if p, ok := compose(&buf, out[starter], c.r); ok {
				out[starter] = p
				continue
			}
		}
		if last = c.ccc; c.ccc == 0 {
			starter = len(out)
		}
		out = append(out, c.r)
	}
	return string(out)
}

// compose returns the composition of a and b; buf is scratch.
func compose(buf *[]byte, a, b rune) (rune, bool) {
	if b < 0x300 || unicode.Is(newerMarks, a) || unicode.Is(newerMarks, b) {
		return 0, false
	}
	var pair [2 * utf8.UTFMax]byte
	p := utf8.AppendRune(utf8.AppendRune(pair[:0], a), b)
	*buf = norm.NFC.Append((*buf)[:0], p...)
	r, n := utf8.DecodeRune(*buf)
	return r, n == len(*buf)
}
