package render

import (
	"bytes"
	"strings"
	"unicode"

	"envace/chat"
)

// Piece is one item of a Reader's output: more thinking, more content, or a call.
// Exactly one field is set.
type Piece struct {
	Thinking string
	Content  string
	Call     *chat.Call // complete, its arguments byte for byte as written; without ID
}

// ReadOptions configure a Reader.
type ReadOptions struct {
	Tools    []chat.Function // the available tools; without any, call markup is text
	MaxCalls int             // the message ends after this many calls; 0 is no limit
}

// Reader parses one sampled message as a stream, in time linear in its length,
// whatever the chunks. It never retracts output: a call is emitted when it is
// complete, and text is held back while it may still turn out to be markup, or
// white space next to a call.
//
// A </think> without <think> ends thinking if no content came before it; otherwise
// it is text. A malformed block is text, as written, and so is a tag inside a JSON
// string. White space next to a call is dropped, except before the first text. A
// call at the end of the message counts even without </tool_call>. A bare call must
// name one of the tools.
type Reader struct {
	shape shape
	o     ReadOptions
	give  func(Piece)

	tools   bool // calls are allowed
	lenient bool // a call at the very end need not be closed
	parsed  *parsed

	buf   []byte // undecided input
	state func(end bool) (more bool)
	done  bool
	cut   bool
	act   act     // the calls so far
	json  jsonEnd // of the current block
	bare  bool    // the message may be bare JSON

	space   []byte // white space held back outside thinking
	said    bool   // content has been emitted
	parted  bool   // a call came since
	thought bool   // there was thinking, possibly empty

	pause  []byte // white space held back in thinking
	opened bool   // the prompt opened thinking, and nothing has come yet
	mused  bool   // thinking has been emitted
	musing bool   // … in the current block
}

// Reader returns a Reader for the message sampled after prompt. It calls give, which
// must not be nil, with every piece.
func (c *Chat) Reader(prompt []int, o ReadOptions, give func(Piece)) *Reader {
	r := newReader(c.shape, o, c.Opens(prompt), give)
	r.lenient = true
	return r
}

func newReader(s shape, o ReadOptions, opened bool, give func(Piece)) *Reader {
	r := &Reader{shape: s, o: o, give: give, tools: len(o.Tools) > 0, act: act{max: o.MaxCalls}}
	r.bare = s.bare && r.tools
	if r.state = r.prose; opened {
		r.state, r.opened, r.thought = r.think, true, true
	}
	return r
}

// Opens reports whether prompt ends with <think>, so that the sampled message begins
// with thinking.
func (c *Chat) Opens(prompt []int) bool {
	const tail = 16 // tokens: more than any template writes after the tag
	end := c.Text(prompt[max(0, len(prompt)-tail):])
	return strings.HasSuffix(strings.TrimSpace(end), thinkOpen)
}

// Write parses more of the message. The chunk must not end within a character.
func (r *Reader) Write(text string) {
	r.buf = append(r.buf, chat.Sanitize(text)...)
	r.run(false)
}

// Close ends the message and emits all text held back. cut means that a limit ended
// the message: an open block is then not a call.
func (r *Reader) Close(cut bool) {
	r.cut = cut
	r.run(true)
	if r.done || r.Calls() > 0 {
		return
	}
	if r.thought && !r.said {
		r.space = bytes.TrimLeft(r.space, "\n")
	}
	r.content(string(r.space))
}

// Done reports whether nothing that follows is part of the message.
func (r *Reader) Done() bool { return r.done }

// Calls returns the number of calls emitted.
func (r *Reader) Calls() int { return len(r.act.calls) }

func (r *Reader) run(end bool) {
	for !r.done && r.state(end) {
	}
	if r.done {
		r.buf = nil
	}
}

// drop removes the first n bytes of the undecided input.
func (r *Reader) drop(n int) { r.buf = r.buf[n:] }

// tag passes the input before the first of tags to text, and consumes and returns
// that tag. If there is none yet, it keeps a possible beginning of one and returns "".
func (r *Reader) tag(end bool, text func([]byte), tags ...string) string {
	for at := 0; at < len(r.buf); at++ {
		i := bytes.IndexByte(r.buf[at:], '<')
		if i < 0 {
			break
		}
		at += i
		for _, t := range tags {
			rest := r.buf[at:min(len(r.buf), at+len(t))]
			whole := string(rest) == t
			if whole || !end && strings.HasPrefix(t, string(rest)) {
				text(r.buf[:at])
				r.drop(at)
				if !whole {
					return ""
				}
				r.drop(len(t))
				return t
			}
		}
	}
	text(r.buf)
	r.drop(len(r.buf))
	return ""
}

// prose is the state outside thinking and calls.
func (r *Reader) prose(end bool) bool {
	if r.bare && !r.said {
		switch begins, wait := r.bareBegins(end); {
		case wait:
			return false
		case begins:
			r.state = r.bareJSON
			return true
		}
	}
	switch t := r.tag(end, r.say, thinkOpen, thinkClose, callOpen, responseOpen); {
	case t == "":
		return false
	case t == thinkOpen:
		r.seam()
		r.state, r.thought = r.think, true
	case t == thinkClose && !r.said && r.Calls() == 0:
		r.space, r.thought = nil, true
	case t == thinkClose && !r.thought && r.parsed != nil:
		r.parsed.unopened, r.done = true, true
	case t == callOpen && r.tools:
		r.state, r.json = r.block, jsonEnd{}
	case t == responseOpen && r.Calls() > 0: // the model invents what the tool answers
		r.done = true
	default:
		r.say([]byte(t))
	}
	return true
}

// say emits content, holding back white space at its end.
func (r *Reader) say(text []byte) {
	body := bytes.TrimRightFunc(text, unicode.IsSpace)
	if len(body) == 0 {
		r.space = append(r.space, text...)
		return
	}
	before, out := r.space, string(body)
	switch {
	case r.parted:
		before, out = nil, strings.TrimLeftFunc(out, unicode.IsSpace)
		if r.said {
			out = "\n" + out
		}
	case !r.said && r.thought:
		if before = bytes.TrimLeft(before, "\n"); len(before) == 0 {
			out = strings.TrimLeft(out, "\n")
		}
	}
	r.content(string(before) + out)
	r.space = append(r.space[:0], text[len(body):]...)
	r.said, r.parted = true, false
}

func (r *Reader) content(text string) {
	if text != "" {
		r.give(Piece{Content: text})
	}
}

// think is the state inside thinking.
func (r *Reader) think(end bool) bool {
	switch t := r.tag(end, r.muse, thinkClose, thinkOpen); {
	case t == "":
		if end {
			r.wake()
		}
		return false
	case t == thinkClose:
		r.wake()
		r.state = r.prose
	case !r.opened || r.musing: // else the model opens again what the prompt has opened
		r.muse([]byte(t))
	}
	r.opened = false
	return true
}

// muse emits thinking, holding back white space at its end.
func (r *Reader) muse(text []byte) {
	body := bytes.TrimRightFunc(text, unicode.IsSpace)
	if len(body) == 0 {
		r.pause = append(r.pause, text...)
		return
	}
	out := string(r.pause) + string(body)
	if !r.musing {
		if out = strings.TrimLeft(out, "\n"); r.mused {
			out = "\n" + out
		}
	}
	r.give(Piece{Thinking: out})
	r.pause = append(r.pause[:0], text[len(body):]...)
	r.musing, r.mused = true, true
}

// wake ends a block of thinking, dropping the newlines at its end.
func (r *Reader) wake() {
	if rest := bytes.TrimRight(r.pause, "\n"); r.musing && len(rest) > 0 {
		r.give(Piece{Thinking: string(rest)})
	}
	r.pause, r.musing = nil, false
}
