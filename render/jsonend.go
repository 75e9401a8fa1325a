package render

import "strings"

// jsonEnd finds the end of a JSON object or list in a stream. It looks at brackets
// and strings only: a complete value may still be invalid JSON.
type jsonEnd struct {
	at        int // the next byte to read; after a complete value, past the white space that follows
	from, end int // of the value
	depth     int
	quoted    bool
	escaped   bool
	whole     bool
	bad       bool // cannot become JSON
}

// scan continues to the end of buf, which has grown, or of the value.
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
