package token

import (
	"strings"
	"unicode/utf8"
)

// repair replaces invalid UTF-8 with U+FFFD, one for each maximal subpart of a
// character, like Unicode (chapter 3.9), Rust and Python; Go's conversions replace
// each byte.
func repair(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			n = subpart(s)
		}
		b.WriteRune(r)
		s = s[n:]
	}
	return b.String()
}

// subpart returns the length of the longest prefix of s that is a prefix of a
// character, at least 1. s does not begin with a complete character.
func subpart(s string) int {
	low, high, need := byte(0x80), byte(0xBF), 0
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
	case c >= 0xF0 && c <= 0xF4:
		need = 3
	}
	switch s[0] { // overlong forms, surrogates, beyond U+10FFFF
	case 0xE0:
		low = 0xA0
	case 0xED:
		high = 0x9F
	case 0xF0:
		low = 0x90
	case 0xF4:
		high = 0x8F
	}
	n := 1
	for n <= need && n < len(s) && s[n] >= low && s[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}
