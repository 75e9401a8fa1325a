package task

import (
	"strconv"
	"strings"
	"unicode"
)

// Mentions reports whether text occurs in said as whole words, ignoring case.
func Mentions(said, text string) bool {
	said, text = strings.ToLower(said), strings.ToLower(strings.TrimSpace(text))
	for from := 0; text != ""; {
		i := strings.Index(said[from:], text)
		if i < 0 {
			return false
		}
		i += from
		if !joined(said[:i], text) && !joined(text, said[i+len(text):]) {
			return true
		}
		from = i + 1
	}
	return false
}

// Numbers returns the numbers that occur in said as whole words, without surrounding
// white space and punctuation.
func Numbers(said string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(said, func(r rune) bool { return !word(r) && !strings.ContainsRune("-_.:", r) }) {
		w = strings.TrimRight(strings.TrimLeft(w, "_.:"), "-_.:")
		if _, err := strconv.ParseFloat(w, 64); err == nil && strings.ContainsAny(w, "0123456789") {
			out = append(out, w)
		}
	}
	return out
}

// joined reports whether the boundary between a and b lies inside a word or a number:
// 14, 4.5, -4 and 4-b do not mention 4.
func joined(a, b string) bool {
	ra, rb := []rune(a), []rune(b)
	if len(ra) == 0 || len(rb) == 0 {
		return false
	}
	x, y := ra[len(ra)-1], rb[0]
	if word(x) && word(y) || x == '-' && unicode.IsDigit(y) {
		return true
	}
	glue := func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == ':' }
	return glue(x) && len(ra) > 1 && word(ra[len(ra)-2]) && word(y) || glue(y) && len(rb) > 1 && word(rb[1]) && word(x)
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
