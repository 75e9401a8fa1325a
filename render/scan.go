package render

import (
	"encoding/json"
	"strings"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// fault is the reason why a block cannot be read.
type fault int

const (
	sound     fault = iota
	mentioned       // the tag is only mentioned: no block follows
	unclosed        // the closing tag is missing
	notJSON         // what is between the tags is not one JSON value
)

// span is a part of the message outside thinking: text, or a block between tags.
type span struct {
	block bool
	raw   string // as written, with tags; for a mention, the tag alone
	value string // the JSON value of a valid block
	fault fault
	cause error // why the value was not read
}

// reading is a sampled text split into its parts.
type reading struct {
	thinking string
	thought  bool // there was thinking, possibly empty
	spans    []span
}

// scanner splits a text in one pass from left to right, because the meaning of a
// tag depends on its context: a closing tag inside a JSON string and a call inside
// thinking are ignored.
type scanner struct {
	text        string
	open, close string
	start       int // of the current text
	thoughts    []string
	reading
}

// scan finds the blocks between <tag> and </tag>. Unclosed thinking extends to the
// end. A </think> without <think> ends thinking opened by the prompt: everything
// before it is thinking.
func scan(text, tag string) reading {
	s := &scanner{text: text, open: "<" + tag + ">", close: "</" + tag + ">"}
	for pos := 0; pos < len(text); {
		i := strings.IndexByte(text[pos:], '<')
		if i < 0 {
			break
		}
		pos = s.tag(pos + i)
	}
	s.prose(len(text))
	s.thinking = strings.Join(s.thoughts, "\n")
	return s.reading
}

// tag reads what begins with the < at i and returns where to continue.
func (s *scanner) tag(i int) int {
	rest := s.text[i:]
	switch {
	case strings.HasPrefix(rest, thinkOpen):
		s.prose(i)
		inside, _, closed := strings.Cut(rest[len(thinkOpen):], thinkClose)
		s.think(inside)
		s.start = i + len(thinkOpen) + len(inside)
		if closed {
			s.start += len(thinkClose)
		}
		return s.start
	case strings.HasPrefix(rest, thinkClose):
		s.prose(i)
		var before strings.Builder
		for _, p := range s.spans {
			before.WriteString(p.raw)
		}
		s.spans = nil
		s.think(before.String())
		s.start = i + len(thinkClose)
		return s.start
	case strings.HasPrefix(rest, s.open):
		s.prose(i)
		b := s.readBlock(rest)
		s.spans = append(s.spans, b)
		s.start = i + len(b.raw)
		return s.start
	}
	return i + 1
}

// prose ends the current text before i.
func (s *scanner) prose(i int) {
	if i > s.start {
		s.spans = append(s.spans, span{raw: s.text[s.start:i]})
	}
	s.start = i
}

func (s *scanner) think(inside string) {
	s.thought = true
	if inside = strings.Trim(inside, "\n"); strings.TrimSpace(inside) != "" {
		s.thoughts = append(s.thoughts, inside)
	}
}

// readBlock reads the block at the start of rest. It decodes the JSON value and
// then expects the closing tag. If that fails, the block ends at the next tag.
func (s *scanner) readBlock(rest string) span {
	body := rest[len(s.open):]
	dec := json.NewDecoder(strings.NewReader(body))
	var value json.RawMessage
	err := dec.Decode(&value)
	end := 0
	if err == nil {
		end = int(dec.InputOffset())
		after := strings.TrimLeft(body[end:], " \t\r\n")
		if strings.HasPrefix(after, s.close) {
			n := len(rest) - len(after) + len(s.close)
			return span{block: true, raw: rest[:n], value: string(value)}
		}
	}
	stop, closed := s.nextTag(body[end:])
	stop += end
	switch {
	case closed:
		return span{block: true, raw: rest[:len(s.open)+stop+len(s.close)], fault: notJSON, cause: err}
	case err == nil:
		return span{block: true, raw: rest[:len(s.open)+end], fault: unclosed}
	case beginsBlock(body[:stop]):
		return span{block: true, raw: rest[:len(s.open)+stop], fault: unclosed, cause: err}
	}
	return span{block: true, raw: s.open, fault: mentioned}
}

// nextTag returns the offset of the next tag of any kind, or the end, and whether it
// is the block's closing tag.
func (s *scanner) nextTag(body string) (at int, closed bool) {
	for at < len(body) {
		i := strings.IndexByte(body[at:], '<')
		if i < 0 {
			break
		}
		at += i
		rest := body[at:]
		if strings.HasPrefix(rest, s.close) {
			return at, true
		}
		if strings.HasPrefix(rest, s.open) || strings.HasPrefix(rest, thinkOpen) || strings.HasPrefix(rest, thinkClose) {
			return at, false
		}
		at++
	}
	return len(body), false
}

// beginsBlock distinguishes a truncated block from text that mentions the tag.
func beginsBlock(body string) bool {
	body = strings.TrimSpace(body)
	return body == "" || body[0] == '{' || body[0] == '['
}

// clip returns the first n characters of s.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
