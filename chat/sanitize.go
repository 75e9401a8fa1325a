package chat

import "strings"

// Sanitize replaces code points that fast tokenizers reject by U+FFFD: NUL,
// U+FDD0–U+FDEF, the last two of every plane, and broken UTF-8. (Lone surrogates
// become U+FFFD when JSON is decoded.)
func Sanitize(s string) string {
	if !strings.ContainsFunc(s, rejected) && strings.ToValidUTF8(s, "") == s {
		return s
	}
	return strings.Map(func(r rune) rune {
		if rejected(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

func rejected(r rune) bool {
	return r == 0 || r >= 0xFDD0 && r <= 0xFDEF || r&0xFFFE == 0xFFFE
}
