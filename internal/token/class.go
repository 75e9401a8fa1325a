package token

import (
	"unicode"
	"unicode/utf8"
)

// Character classes of the pre-tokenizers' patterns.
const (
	letter  = 1 << iota // \p{L}
	number              // \p{N}
	space               // \s
	mark                // \p{M}
	newline             // [\r\n], a space too
)

var asciiClass = func() (c [utf8.RuneSelf]uint8) {
	for r := range c {
		c[r] = classify(rune(r))
	}
	return c
}()

// first returns the class and the length of the first character of s, which is
// not empty.
func first(s string) (class uint8, n int) {
	if s[0] < utf8.RuneSelf {
		return asciiClass[s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return classify(r), n
}

func classify(r rune) uint8 {
	switch {
	case r == '\r' || r == '\n':
		return space | newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	case unicode.IsMark(r):
		return mark
	case r < 0x0870: // below here Unicode 15 and 16 agree
		return 0
	case unicode.Is(newLetters, r):
		return letter
	case unicode.Is(newNumbers, r):
		return number
	case unicode.Is(newMarks, r):
		return mark
	}
	return 0
}

// run returns the length of the longest prefix of s whose characters all have a
// class in want.
func run(s string, want uint8) int {
	i := 0
	for i < len(s) {
		c, n := first(s[i:])
		if c&want == 0 {
			break
		}
		i += n
	}
	return i
}

// runOther returns the length of the longest prefix of s without a character of a
// class in not.
func runOther(s string, not uint8) int {
	i := 0
	for i < len(s) {
		c, n := first(s[i:])
		if c&not != 0 {
			break
		}
		i += n
	}
	return i
}
