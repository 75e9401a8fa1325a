package render

import (
	"strings"

	"envace/chat"
)

// ParseAct parses one message of the ACT role in Hermes format: optional thinking,
// then text with blocks <tool_call>{"name": …, "arguments": {…}}</tool_call>.
// "parameters" is accepted for "arguments", and a block may hold a list of calls.
// Blocks inside thinking are not calls.
//
// Well-formed calls are kept in order, their arguments byte for byte as written.
// More than max of them are an error (0 is no limit). Each malformed block gets an
// error of its own and stays in the content as written. A tool response after a
// call is invented by the model: the message ends before it.
func ParseAct(text string, max int) (chat.Message, []CallError) {
	return shape{}.parse(text, max, false)
}

// parsed is the extra state of a Reader used by parse.
type parsed struct {
	text     string
	content  strings.Builder
	seams    []int // offsets in the content where something other than text was removed
	unopened bool  // there was a </think> without <think>, so the prompt opened thinking
}

// parse parses a whole message in the template's format. It differs from a [Reader]
// that gets the whole text at once in these points: any tool may be called, every
// block must be closed, malformed blocks are reported, and white space around calls
// is removed. A </think> after text, without <think>, means that the prompt opened
// thinking, as if opened were set.
func (s shape) parse(text string, max int, opened bool) (chat.Message, []CallError) {
	p := &parsed{text: chat.Sanitize(text)}
	var thinking strings.Builder
	r := newReader(s, ReadOptions{}, opened, func(piece Piece) {
		p.content.WriteString(piece.Content)
		thinking.WriteString(piece.Thinking)
	})
	r.tools, r.bare, r.act.max, r.parsed = true, s.bare, max, p
	r.Write(p.text)
	r.Close(false)
	if p.unopened {
		return s.parse(text, max, true)
	}
	m := chat.Message{Role: chat.Assistant, Thinking: thinking.String(), Content: p.content.String(), Calls: r.act.calls}
	if len(m.Calls) > 0 {
		m.Content = p.trimmed()
	}
	return m, r.act.errs
}

// trimmed returns the content without white space around its parts.
func (p *parsed) trimmed() string {
	var parts []string
	content, from := p.content.String(), 0
	for _, seam := range append(p.seams, len(content)) {
		if part := strings.TrimSpace(content[from:seam]); part != "" {
			parts = append(parts, part)
		}
		from = seam
	}
	return strings.Join(parts, "\n")
}

// seam records for parse that something was removed here.
func (r *Reader) seam() {
	if r.parsed != nil {
		r.parsed.seams = append(r.parsed.seams, r.parsed.content.Len())
	}
}

// fault reports to parse what is wrong with the current block, and returns its
// length after the opening tag; n in a stream, which does not look ahead.
func (r *Reader) fault(n int) int {
	if r.parsed == nil {
		return n
	}
	s := scanner{open: callOpen, close: callClose}
	b := s.readBlock(r.parsed.text[len(r.parsed.text)-len(r.buf)-len(callOpen):])
	r.act.block(b)
	inside := string(r.buf[n:max(n, len(b.raw)-len(callOpen))])
	end, closed := s.nextTag(inside) // a JSON string may have tags, but is no call
	if closed {
		end += len(callClose)
	}
	if invented := strings.Index(inside[:end], responseOpen); invented >= 0 && r.Calls() > 0 {
		end = invented
	}
	return n + end
}
