package render

import (
	"strings"

	"envace/chat"
)

// ParseAct reads one message of the ACT role in Hermes form: blocks
// <tool_call>{"name": …, "arguments": {…}}</tool_call> amid prose, after
// optional thinking. "parameters" may stand for "arguments", and a list of such
// objects for one. Calls that are only thought of are no calls.
//
// Well-formed calls are kept in order, their arguments byte for byte as written;
// more than max of them are refused (0 is no cap). Every other block gives an
// error in its place and stays in the content as it was written. A tool response
// after a call is the model's invention: the message ends before it.
func ParseAct(text string, max int) (chat.Message, []CallError) {
	return shape{}.parse(text, max, false)
}

// parsed is what a Reader of a whole text keeps of it for parse.
type parsed struct {
	text     string
	content  strings.Builder
	seams    []int // where something stood in the content that is no prose
	unopened bool  // a </think> was met that must belong to thinking that the prompt opened
}

// parse reads a whole message in the form that the template writes. It is what a
// [Reader] reads that gets the text at once, with these differences: any tool may be
// called, every block has to be closed, those that are no calls are told, and beside
// calls the content loses the white space around its parts. A </think> that follows
// text and that nothing opened tells that the prompt did, as opened says it has.
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

// trimmed is the content without the white space around its parts.
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

// seam notes for parse that no prose stands here.
func (r *Reader) seam() {
	if r.parsed != nil {
		r.parsed.seams = append(r.parsed.seams, r.parsed.content.Len())
	}
}

// fault tells parse what is wrong with the block that the Reader is in, and returns
// how far behind its opening tag it reaches: for a stream, which does not look ahead,
// n.
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
