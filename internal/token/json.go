package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// reader is a JSON parser: a tokenizer's vocabulary and merges are megabytes of short
// strings, for which encoding/json takes seconds. Small values are passed to
// encoding/json. The first error stops parsing.
type reader struct {
	s   string // valid UTF-8
	i   int
	err error
}

var errJSON = errors.New("not valid JSON")

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: want %s at byte %d", errJSON, what, r.i)
		r.i = len(r.s)
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (r *reader) peek() byte {
	for ; r.i < len(r.s); r.i++ {
		switch r.s[r.i] {
		case ' ', '\n', '\r', '\t':
		default:
			return r.s[r.i]
		}
	}
	return 0
}

// take skips c, which must come next.
func (r *reader) take(c byte) {
	if r.peek() != c {
		r.fail(strconv.QuoteRune(rune(c)))
		return
	}
	r.i++
}

// list calls item for each thing between two brackets; item reads it.
func (r *reader) list(open, end byte, item func()) {
	r.take(open)
	if r.peek() == end {
		r.i++
		return
	}
	for r.err == nil {
		item()
		if r.peek() != ',' {
			r.take(end)
			return
		}
		r.i++
	}
}

// object calls field with each key; field reads the value.
func (r *reader) object(field func(key string)) {
	r.list('{', '}', func() {
		key := r.str()
		r.take(':')
		if r.err == nil {
			field(key)
		}
	})
}

// str reads a string. Without escapes it shares memory with the input.
func (r *reader) str() string {
	r.take('"')
	start := r.i
	for ; r.i < len(r.s); r.i++ {
		switch c := r.s[r.i]; {
		case c == '"':
			r.i++
			return r.s[start : r.i-1]
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			r.fail("a string without control characters")
			return ""
		}
	}
	r.fail("the end of a string")
	return ""
}

// escaped reads the rest of a string that began at start and has an escape.
func (r *reader) escaped(start int) string {
	for ; r.i < len(r.s) && r.s[r.i] != '"'; r.i++ {
		if r.s[r.i] == '\\' {
			r.i++
		}
	}
	if r.i >= len(r.s) {
		r.fail("the end of a string")
		return ""
	}
	r.i++
	var s string
	if err := json.Unmarshal([]byte(r.s[start-1:r.i]), &s); err != nil {
		r.fail("a string")
	}
	return s
}

// integer reads a number from 0 to below limit.
func (r *reader) integer(limit int) int {
	r.peek()
	start := r.i
	for r.i < len(r.s) && r.s[r.i] >= '0' && r.s[r.i] <= '9' {
		r.i++
	}
	n, err := strconv.Atoi(r.s[start:r.i])
	if err != nil || n >= limit || r.i-start > 1 && r.s[start] == '0' {
		r.i = start
		r.fail("a whole number below " + strconv.Itoa(limit))
		return 0
	}
	return n
}

// raw returns the text of the next value.
func (r *reader) raw() json.RawMessage {
	if r.peek() == 0 {
		r.fail("a value")
		return nil
	}
	start := r.i
	if c := r.s[r.i]; c == '"' {
		r.str()
	} else if c == '{' || c == '[' {
		r.skipNested()
	} else {
		n := strings.IndexAny(r.s[r.i:], ",]} \n\r\t")
		if n < 0 {
			n = len(r.s) - r.i
		}
		r.i += n
	}
	value := json.RawMessage(r.s[start:r.i])
	if r.err == nil && !json.Valid(value) {
		r.i = start
		r.fail("a value")
	}
	return value
}

// skipNested skips past the bracket that closes the one here.
func (r *reader) skipNested() {
	for depth := 0; r.err == nil; {
		switch r.peek() {
		case '"':
			r.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case 0:
			r.fail("a closing bracket")
			return
		}
		r.i++
		if depth == 0 {
			return
		}
	}
}

// value decodes the next value into v, a pointer, with encoding/json.
func (r *reader) value(v any) {
	start := r.i
	data := r.raw()
	if r.err != nil {
		return
	}
	if err := json.Unmarshal(data, v); err != nil {
		r.err = fmt.Errorf("at byte %d: %w", start, err)
		r.i = len(r.s)
	}
}
