package token

import (
	"strings"
)

// The byte alphabet represents every byte by a visible character, so that tokens can
// be stored in JSON: printable ASCII and Latin-1 represent themselves, the other
// bytes are mapped, in order, to U+0100 and up. A space is Ġ, a newline Ċ.

// alphabetEnd is the character after the alphabet's last.
const alphabetEnd = 0x144

var byteRune, runeByte = alphabet()

// alphabet returns byte → character and character → byte, -1 for none.
func alphabet() (to [256]rune, from [alphabetEnd]int16) {
	for r := range from {
		from[r] = -1
	}
	next := rune(0x100)
	for b := range to {
		to[b] = rune(b)
		if b <= ' ' || b >= 0x7F && b <= 0xA0 || b == 0xAD {
			to[b] = next
			next++
		}
		from[to[b]] = int16(b)
	}
	return to, from
}

// toAlphabet writes the bytes of s in the byte alphabet.
func toAlphabet(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := range len(s) {
		b.WriteRune(byteRune[s[i]])
	}
	return b.String()
}

// fromAlphabet returns the bytes that s represents. If s has a character outside the
// alphabet, it returns s unchanged and false.
func fromAlphabet(s string) (bytes string, ok bool) {
	if graphicASCII(s) {
		return s, true
	}
	buf := make([]byte, 0, len(s))
	for _, r := range s {
		if r >= alphabetEnd || runeByte[r] < 0 {
			return s, false
		}
		buf = append(buf, byte(runeByte[r]))
	}
	return string(buf), true
}

func graphicASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7F {
			return false
		}
	}
	return true
}
