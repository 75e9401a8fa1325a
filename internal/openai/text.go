package openai

import (
	"strings"
	"unicode/utf8"
)

// characters joins the bytes of tokens to whole characters. Bytes that are not
// UTF-8 become U+FFFD, one for each maximal subpart, as the tokenizer decodes them.
type characters struct{ held []byte }

// add returns the text that is whole with b.
func (c *characters) add(b []byte) string {
	c.held = append(c.held, b...)
	return c.take(false)
}

// end returns what is left.
func (c *characters) end() string { return c.take(true) }

func (c *characters) take(end bool) string {
	var out strings.Builder
	rest := c.held
	for len(rest) > 0 {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			if !end && !utf8.FullRune(rest) {
				break
			}
			for n < len(rest) && n < utf8.UTFMax && !utf8.FullRune(rest[:n+1]) {
				n++
			}
		}
		out.WriteRune(r)
		rest = rest[n:]
	}
	c.held = append(c.held[:0], rest...)
	return out.String()
}

// stopper looks for the texts that end an answer, however they are cut. It holds
// back what one may begin with. Of several, the one that is whole first counts,
// and of those that end together the longest.
type stopper struct {
	stops []string
	held  string
	hit   bool
}

// add returns the text that can no more be part of a stop. Once one is hit,
// nothing follows.
func (s *stopper) add(text string) string {
	if s.hit || len(s.stops) == 0 || text == "" {
		if s.hit {
			return ""
		}
		return text
	}
	text = s.held + text
	from, end := len(text), len(text)+1
	for _, stop := range s.stops {
		if at := strings.Index(text, stop); at >= 0 && (at+len(stop) < end || at+len(stop) == end && at < from) {
			from, end = at, at+len(stop)
		}
	}
	if s.hit = end <= len(text); s.hit {
		s.held = ""
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
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// end returns what was held back.
func (s *stopper) end() string {
	held := s.held
	s.held = ""
	return held
}
