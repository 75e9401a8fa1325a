package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A splitter returns the length of the first piece of s, which is not empty.
// Pieces never merge with their neighbours.
type splitter func(s string) int

// The patterns of the supported Split pre-tokenizers. A pattern is recognised by its
// exact spelling and implemented by the function next to it in splitterFor.
const (
	patternQwen  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternLlama = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternGPT2  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternWord  = `[\p{L}\p{M}]+|\p{N}{1,2}|[^\p{L}\p{M}\p{N}]+`
)

// splitterFor returns the splitter of a Split pre-tokenizer's pattern, nil if it is
// unknown.
func splitterFor(pattern string) splitter {
	switch pattern {
	case patternQwen:
		return func(s string) int { return splitTiktoken(s, 1) }
	case patternLlama:
		return func(s string) int { return splitTiktoken(s, 3) }
	case patternGPT2:
		return splitGPT2
	case patternWord:
		return splitWords
	}
	return nil
}

// splitTiktoken is the pattern of Qwen and Llama 3, which differ in the number of
// digits in a piece. Its branches, in order: a contraction; letters with an optional
// other character before them; digits; punctuation with an optional space before and
// line ends after; white space.
func splitTiktoken(s string, digits int) int {
	c, n := first(s)
	if c&letter != 0 {
		return n + run(s[n:], letter)
	}
	if s[0] == '\'' {
		if m := contraction(s, true); m > 0 {
			return m
		}
	}
	if c&number != 0 {
		for ; digits > 1 && n < len(s); digits-- {
			c, m := first(s[n:])
			if c&number == 0 {
				break
			}
			n += m
		}
		return n
	}
	if c&newline == 0 {
		if m := run(s[n:], letter); m > 0 {
			return n + m
		}
	}
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	if m := runOther(s[start:], space|letter|number); m > 0 {
		end := start + m
		return end + run(s[end:], newline)
	}
	white := run(s, space)
	if i := strings.LastIndexAny(s[:white], "\r\n"); i >= 0 {
		return i + 1
	}
	return leaveOne(s, white)
}

// splitGPT2 is the pattern of GPT-2: contractions, then letters, digits or
// punctuation, each with a space before, then white space.
func splitGPT2(s string) int {
	if s[0] == '\'' {
		if m := contraction(s, false); m > 0 {
			return m
		}
	}
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	if start < len(s) {
		switch c, _ := first(s[start:]); {
		case c&letter != 0:
			return start + run(s[start:], letter)
		case c&number != 0:
			return start + run(s[start:], number)
		case c&space == 0:
			return start + runOther(s[start:], space|letter|number)
		}
	}
	return leaveOne(s, run(s, space))
}

// splitWords is the pattern of our own trainer: words, one or two digits, and runs
// of everything else.
func splitWords(s string) int {
	c, n := first(s)
	switch {
	case c&(letter|mark) != 0:
		return n + run(s[n:], letter|mark)
	case c&number != 0:
		if s = s[n:]; s != "" {
			if c, m := first(s); c&number != 0 {
				return n + m
			}
		}
		return n
	}
	return n + runOther(s[n:], letter|mark|number)
}

// splitDigits isolates each number character.
func splitDigits(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if isDigit(r) {
		return n
	}
	return upTo(s, isDigit)
}

// splitDigitRuns isolates runs of number characters.
func splitDigitRuns(s string) int {
	r, _ := utf8.DecodeRuneInString(s)
	if isDigit(r) {
		return upTo(s, func(r rune) bool { return !isDigit(r) })
	}
	return upTo(s, isDigit)
}

func isDigit(r rune) bool {
	if r < 0x0870 {
		return unicode.IsNumber(r)
	}
	return unicode.IsNumber(r) || unicode.Is(newNumbers, r) || unicode.Is(newestNumbers, r)
}

// upTo returns the index of the first character of s for which stop is true, or the
// length of s.
func upTo(s string, stop func(rune) bool) int {
	if i := strings.IndexFunc(s, stop); i >= 0 {
		return i
	}
	return len(s)
}

// leaveOne is \s+(?!\S)|\s+ on white space of n bytes: all of it at the end of the
// text, else all but its last character, which belongs to the next piece.
func leaveOne(s string, n int) int {
	if n == len(s) {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(s[:n])
	if last == n {
		return n
	}
	return n - last
}

// contraction returns the length of the English ending ('s, 'll, …) that s
// starts with, 0 for none. Where case does not matter, ſ is an s too.
func contraction(s string, fold bool) int {
	if len(s) < 2 {
		return 0
	}
	a, b := s[1], byte(0)
	if len(s) > 2 {
		b = s[2]
	}
	if fold {
		if strings.HasPrefix(s[1:], "ſ") {
			return 1 + len("ſ")
		}
		a, b = lower(a), lower(b)
	}
	switch {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return 3
	}
	return 0
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
