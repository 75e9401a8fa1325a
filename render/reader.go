package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"envace/chat"
)

// Piece is what a Reader has found: more of the thinking, more of the content, or
// a call. One field is set.
type Piece struct {
	Thinking string
	Content  string
	Call     *chat.Call // whole, its arguments byte for byte as written; without ID
}

// ReadOptions say how a Reader takes a message.
type ReadOptions struct {
	Tools    []chat.Function // that may be called; with none, the markup of calls is text
	MaxCalls int             // what follows so many calls is no part of the message; 0 is no bound
}

// Reader reads one sampled message while it is written, in time linear to its
// length, however it is cut into pieces. What it gives out it never takes back: a
// call comes once it is whole, and text is held back as long as it may turn out to
// be markup, or white space beside a call.
//
// It reads what ParseAct reads, with these differences, without which nothing
// could be given out before the end. A </think> behind said text, which nothing
// opened, is text. A block that is no call is text, as it was written. White space
// beside a call is left out, but not before the first text. A message that ends
// behind a whole call is not refused for a missing </tool_call>. A tag within a
// string of bare JSON is text, and a bare call names one of the tools.
type Reader struct {
	shape shape
	o     ReadOptions
	give  func(Piece)

	buf   []byte // not decided yet
	state func(end bool) (more bool)
	done  bool
	cut   bool
	calls int
	json  jsonEnd // of the block under way
	bare  bool    // the message may be bare JSON

	space   []byte // white space held back outside thinking
	said    bool   // content has been given out
	parted  bool   // a call came since
	thought bool   // there was thinking, maybe empty

	pause  []byte // white space held back in thinking
	opened bool   // the prompt opened it, and nothing has come yet
	mused  bool   // thinking has been given out
	musing bool   // … of the block under way
}

// Reader returns a Reader of the message that answers prompt. It calls give, which
// must not be nil, with every piece.
func (c *Chat) Reader(prompt []int, o ReadOptions, give func(Piece)) *Reader {
	r := &Reader{shape: c.shape, o: o, give: give}
	r.bare = r.shape.bare && len(o.Tools) > 0
	r.state = r.prose
	if c.Opens(prompt) {
		r.state, r.opened, r.thought = r.think, true, true
	}
	return r
}

// Opens reports whether prompt ends with an opening <think>, so that what is sampled
// begins as thinking.
func (c *Chat) Opens(prompt []int) bool {
	const tail = 16 // tokens: more than a template writes behind the tag
	end := c.Text(prompt[max(0, len(prompt)-tail):])
	return strings.HasSuffix(strings.TrimSpace(end), thinkOpen)
}

// CallForm is how a Reader wants calls written: Open and Close stand around each, or
// around the JSON list of all where Listed. Arguments is the key beside "name".
type CallForm struct {
	Open, Close, Arguments string
	Listed                 bool
	Single                 bool // a message has one call at most
}

// CallForm returns how the template has calls written.
func (c *Chat) CallForm() CallForm {
	switch {
	case c.shape.bare && c.shape.lead == "":
		return CallForm{Arguments: "parameters", Single: true}
	case c.shape.bare:
		return CallForm{Open: c.shape.lead, Arguments: "arguments", Listed: true}
	}
	return CallForm{Open: callOpen, Close: callClose, Arguments: "arguments"}
}

// Write reads more of the message. No character may be cut.
func (r *Reader) Write(text string) {
	r.buf = append(r.buf, chat.Sanitize(text)...)
	r.run(false)
}

// Close reads the end of the message and gives out all that was held back. cut
// tells that a limit ended the message: a block that is open then is no call.
func (r *Reader) Close(cut bool) {
	r.cut = cut
	r.run(true)
	if r.done || r.calls > 0 {
		return
	}
	if r.thought && !r.said {
		r.space = bytes.TrimLeft(r.space, "\n")
	}
	r.content(string(r.space))
}

// Done reports whether nothing that follows is part of the message.
func (r *Reader) Done() bool { return r.done }

// Calls returns the number of calls given out.
func (r *Reader) Calls() int { return r.calls }

func (r *Reader) run(end bool) {
	for !r.done && r.state(end) {
	}
	if r.done {
		r.buf = nil
	}
}

// drop forgets the first n bytes of what is not decided.
func (r *Reader) drop(n int) { r.buf = r.buf[n:] }

const (
	callOpen  = "<" + callTag + ">"
	callClose = "</" + callTag + ">"
)

// tag gives text what precedes the first of tags, and returns that tag, which it
// drops. Where there is none yet, it keeps what one may begin with and returns "".
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
		r.state, r.thought = r.think, true
	case t == thinkClose && !r.said && r.calls == 0:
		r.space, r.thought = nil, true
	case t == callOpen && len(r.o.Tools) > 0:
		r.state, r.json = r.block, jsonEnd{}
	case t == responseOpen && r.calls > 0: // the model invents what the tool answers
		r.done = true
	default:
		r.say([]byte(t))
	}
	return true
}

// say takes text of the content, and holds back the white space at its end.
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

// muse takes text of the thinking, and holds back the white space at its end.
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

// wake ends a block of thinking, without the newlines at its end.
func (r *Reader) wake() {
	if rest := bytes.TrimRight(r.pause, "\n"); r.musing && len(rest) > 0 {
		r.give(Piece{Thinking: string(rest)})
	}
	r.pause, r.musing = nil, false
}

// block is the state behind <tool_call>.
func (r *Reader) block(end bool) bool {
	r.json.scan(r.buf)
	after := r.buf[r.json.at:]
	used := r.json.at
	switch {
	case r.json.whole && bytes.HasPrefix(after, []byte(callClose)):
		used += len(callClose)
	case r.json.whole && len(after) == 0 && end && !r.cut:
	case !r.json.bad && !end && (!r.json.whole || strings.HasPrefix(callClose, string(after))):
		return false
	case r.json.whole: // what follows does not close it
		r.unread(r.json.end)
		return true
	default:
		r.unread(0)
		return true
	}
	if r.take(r.buf[r.json.from:r.json.end]) {
		r.drop(used)
		r.state = r.prose
		return true
	}
	r.unread(used)
	return true
}

// unread makes text of an opening tag and of n bytes behind it.
func (r *Reader) unread(n int) {
	r.say(append([]byte(callOpen), r.buf[:n]...))
	r.drop(n)
	r.state = r.prose
}

// take gives out the calls of a JSON value, and reports whether there are any.
func (r *Reader) take(value []byte) bool {
	a := act{}
	if r.o.MaxCalls > 0 {
		a.max = r.o.MaxCalls - r.calls
	}
	if !a.block(span{block: true, raw: string(value), value: string(value)}) {
		return false
	}
	for _, call := range a.calls {
		r.give(Piece{Call: &call})
	}
	r.calls += len(a.calls)
	r.space, r.parted = nil, true
	r.done = r.calls == r.o.MaxCalls
	return true
}

// bareBegins tells whether the content begins as a bare call does, or that more of
// it must be read.
func (r *Reader) bareBegins(end bool) (begins, wait bool) {
	space := len(r.buf) - len(bytes.TrimLeftFunc(r.buf, unicode.IsSpace))
	r.space = append(r.space, r.buf[:space]...)
	r.drop(space)
	text := string(r.buf[:min(len(r.buf), len(r.shape.lead))])
	if strings.HasPrefix(r.shape.lead, text) && (text != r.shape.lead || len(r.buf) == len(text)) {
		return false, !end
	}
	if text == r.shape.lead {
		value := bytes.TrimLeft(r.buf[len(text):], " \t\r\n")
		if len(value) == 0 {
			return false, !end
		}
		r.json = jsonEnd{at: len(text)}
		if begins = value[0] == '{' || text != "" && value[0] == '['; begins {
			return true, false
		}
	}
	r.bare = r.buf[0] == '<' // thinking may come first
	return false, false
}

// bareJSON is the state in a message that may be a call without tags.
func (r *Reader) bareJSON(end bool) bool {
	r.json.scan(r.buf)
	more := r.json.bad || r.json.whole && r.json.at < len(r.buf)
	if !more && !end {
		return false
	}
	r.bare, r.state = false, r.prose
	if more || !r.json.whole || r.cut {
		return true
	}
	if value := r.buf[r.json.from:r.json.end]; r.declared(value) && r.take(value) {
		r.drop(len(r.buf))
	}
	return true
}

// declared reports whether a bare value may be a call: without a lead, an object
// that names a tool at hand and has parameters. An example in an answer is no call.
func (r *Reader) declared(value []byte) bool {
	if r.shape.lead != "" {
		return true
	}
	var call struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	return json.Unmarshal(value, &call) == nil && call.Parameters != nil &&
		slices.ContainsFunc(r.o.Tools, func(f chat.Function) bool { return f.Name == call.Name })
}

// jsonEnd looks for the end of a JSON object or list that is still being written.
// It sees brackets and strings only: a value that is whole may still be no JSON.
type jsonEnd struct {
	at        int // the next byte to look at; behind the white space that follows a whole value
	from, end int // of the value
	depth     int
	quoted    bool
	escaped   bool
	whole     bool
	bad       bool // cannot become JSON
}

// scan goes on to the end of buf, which has grown, or to that of the value.
func (j *jsonEnd) scan(buf []byte) {
	for ; j.at < len(buf) && !j.bad; j.at++ {
		b := buf[j.at]
		switch {
		case j.whole:
			if strings.IndexByte(" \t\r\n", b) < 0 {
				return
			}
		case j.quoted:
			j.string(b)
		case b == '{' || b == '[':
			if j.depth == 0 {
				j.from = j.at
			}
			j.depth++
		case j.depth == 0:
			j.bad = strings.IndexByte(" \t\r\n", b) < 0
		case b == '}' || b == ']':
			if j.depth--; j.depth == 0 {
				j.whole, j.end = true, j.at+1
			}
		case b == '"':
			j.quoted = true
		default:
			j.bad = strings.IndexByte(":,+-.0123456789Eaeflnrstu \t\r\n", b) < 0
		}
	}
}

func (j *jsonEnd) string(b byte) {
	switch {
	case b < ' ':
		j.bad = true
	case j.escaped:
		j.escaped = false
	case b == '\\':
		j.escaped = true
	case b == '"':
		j.quoted = false
	}
}
