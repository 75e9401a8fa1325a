package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"envace/chat"
)

const (
	callOpen  = "<" + callTag + ">"
	callClose = "</" + callTag + ">"
)

// CallForm is the format in which a Reader expects calls: Open and Close enclose
// each call or, if Listed, the JSON list of all calls. Arguments is the key used
// next to "name".
type CallForm struct {
	Open, Close, Arguments string
	Listed                 bool
	Single                 bool // at most one call per message
}

// CallForm returns the template's call format.
func (c *Chat) CallForm() CallForm {
	switch {
	case c.shape.bare && c.shape.lead == "":
		return CallForm{Arguments: "parameters", Single: true}
	case c.shape.bare:
		return CallForm{Open: c.shape.lead, Arguments: "arguments", Listed: true}
	}
	return CallForm{Open: callOpen, Close: callClose, Arguments: "arguments"}
}

// block is the state behind <tool_call>.
func (r *Reader) block(end bool) bool {
	r.json.scan(r.buf)
	after := r.buf[r.json.at:]
	used := r.json.at
	switch {
	case r.json.whole && bytes.HasPrefix(after, []byte(callClose)):
		used += len(callClose)
	case r.json.whole && len(after) == 0 && end && !r.cut && r.lenient:
	case !r.json.bad && !end && (!r.json.whole || strings.HasPrefix(callClose, string(after))):
		return false
	default:
		used = 0 // it is not closed
	}
	switch n := r.reach(); {
	case used == 0 || n == 0:
		r.unread(r.fault(n))
	case r.take(r.buf[r.json.from:n], callOpen+string(r.buf[:used])):
		r.drop(used)
		r.state = r.prose
	default:
		r.unread(used)
	}
	return true
}

// reach is the end of the part of the block in which tags are ignored: the end of
// its JSON, if it has any.
func (r *Reader) reach() int {
	if r.json.whole && json.Valid(r.buf[r.json.from:r.json.end]) {
		return r.json.end
	}
	return 0
}

// unread turns an opening tag and the n bytes after it into text.
func (r *Reader) unread(n int) {
	r.seam()
	r.say(append([]byte(callOpen), r.buf[:n]...))
	r.seam()
	r.drop(n)
	r.state = r.prose
}

// take emits the calls of a JSON value, and reports whether there are any. raw is
// the block around it.
func (r *Reader) take(value []byte, raw string) bool {
	before := len(r.act.calls)
	if !r.act.block(span{block: true, raw: raw, value: string(value)}) {
		return false
	}
	for _, call := range r.act.calls[before:] {
		r.give(Piece{Call: &call})
	}
	r.space, r.parted = nil, true
	r.done = r.o.MaxCalls > 0 && r.Calls() >= r.o.MaxCalls
	return true
}

// bareBegins reports whether the content begins like a bare call, or that more of
// it must be read to decide.
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

// bareJSON is the state for a message that may be a call without tags.
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
	if value := r.buf[r.json.from:r.json.end]; json.Valid(value) && r.declared(value) && r.take(value, string(value)) {
		r.drop(len(r.buf))
	}
	return true
}

// declared reports whether a bare value is a call: without a lead it must be an
// object that names one of the tools and has parameters. An example quoted in an
// answer is not a call.
func (r *Reader) declared(value []byte) bool {
	if r.shape.lead != "" {
		return true
	}
	var call struct{ Name, Parameters json.RawMessage }
	if json.Unmarshal(value, &call) != nil || call.Name == nil || call.Parameters == nil {
		return false
	}
	var name string
	return r.parsed != nil || json.Unmarshal(call.Name, &name) == nil && slices.ContainsFunc(r.o.Tools, func(f chat.Function) bool { return f.Name == name })
}
