package serve

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// utf8Decoder reassembles characters that are split between tokens. Invalid bytes become
// U+FFFD, one per maximal subpart, as the tokenizer decodes them.
type utf8Decoder struct{ pending []byte }

// add returns the characters that b completes.
func (c *utf8Decoder) add(b []byte) string {
	c.pending = append(c.pending, b...)
	return c.take(false)
}

// end returns the rest.
func (c *utf8Decoder) end() string { return c.take(true) }

func (c *utf8Decoder) take(end bool) string {
	var out strings.Builder
	rest := c.pending
	for len(rest) > 0 {
		if !end && !utf8.FullRune(rest) {
			break
		}
		r, n := decodeRune(rest)
		out.WriteRune(r)
		rest = rest[n:]
	}
	c.pending = append(c.pending[:0], rest...)
	return out.String()
}

// offset counts the characters of a text that comes in tokens.
type offset struct {
	count int         // complete characters
	text  utf8Decoder // has the beginning of the next
}

// next returns the place of the character in which a token with these bytes begins, and
// goes on to its end.
func (o *offset) next(token []byte) int {
	split := len(o.text.pending)
	all := append(slices.Clone(o.text.pending), token...)
	before, at := o.count, 0
	for at < split && utf8.FullRune(all[at:]) {
		_, n := decodeRune(all[at:])
		if at+n > split {
			break // the token goes on with a character
		}
		before, at = before+1, at+n
	}
	o.count += utf8.RuneCountInString(o.text.add(token))
	return before
}

// decodeRune returns the first character of text and its length. Invalid bytes are one
// U+FFFD for each maximal subpart.
func decodeRune(text []byte) (r rune, n int) {
	if r, n = utf8.DecodeRune(text); r == utf8.RuneError && n == 1 {
		for n < len(text) && n < utf8.UTFMax && !utf8.FullRune(text[:n+1]) {
			n++
		}
	}
	return r, n
}

// stopMatcher finds stop sequences in streamed text. It holds back a suffix that may be
// the start of one. The sequence that is complete first wins; of those that end at the
// same place, the longest.
type stopMatcher struct {
	stops   []string
	pending string
	matched bool
}

// add returns the text that cannot be part of a stop sequence, up to the first match.
func (s *stopMatcher) add(text string) string {
	if s.matched || len(s.stops) == 0 || text == "" {
		if s.matched {
			return ""
		}
		return text
	}
	text = s.pending + text
	from, end := len(text), len(text)+1
	for _, stop := range s.stops {
		if at := strings.Index(text, stop); at >= 0 && (at+len(stop) < end || at+len(stop) == end && at < from) {
			from, end = at, at+len(stop)
		}
	}
	if s.matched = end <= len(text); s.matched {
		s.pending = ""
		return text[:from]
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				keep = n
			}
		}
	}
	s.pending = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// end returns the text held back.
func (s *stopMatcher) end() string {
	rest := s.pending
	s.pending = ""
	return rest
}
