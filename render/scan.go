package render

import (
	"encoding/json"
	"strings"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// fault is what keeps a block from being read.
type fault int

const (
	sound     fault = iota
	mentioned       // the tag stands in prose: no block follows
	unclosed        // the closing tag is missing
	notJSON         // what is between the tags is not one JSON value
)

// span is a part of what the model said outside its thinking: prose, or a block
// between tags.
type span struct {
	block bool
	raw   string // as written, tags included; of a mere mention the tag alone
	value string // the JSON value of a sound block
	fault fault
	cause error // why the value was not read
}

// reading is a sampled text taken apart.
type reading struct {
	thinking string
	thought  bool // there was thinking, maybe empty
	spans    []span
}

// scanner takes a text apart in one pass from left to right, because each tag
// means something only where the part before it has ended: a closing tag inside
// a JSON string ends nothing, nor does a call inside thinking call anything.
type scanner struct {
	text        string
	open, close string
	start       int // of the prose under way
	thoughts    []string
	reading
}

// scan reads text for blocks between <tag> and </tag>. Thinking that is opened
// and never closed reaches to the end. A closing tag alone ends thinking that
// the prompt opened: whatever stands before it is thinking.
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

// tag reads what begins with the < at i and returns where to go on.
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

// prose closes the prose that ends before i.
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

// readBlock reads the block that rest begins with. The JSON value is decoded
// first and the closing tag looked for behind it; only where that fails, a
// search for the next tag tells how far the broken block reaches.
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

// nextTag returns where the next tag of any kind begins, or the end, and whether
// it is the block's closing tag.
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

// beginsBlock tells a block that was cut off from prose that mentions the tag.
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
