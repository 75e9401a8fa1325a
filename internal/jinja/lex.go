package jinja

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	tokEOF kind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

type token struct {
	kind kind
	text string // data, name, decoded string, digits, operator
	line int
}

// lexer cuts a template into tokens, with Jinja's rules for the white space
// around tags (trim_blocks and lstrip_blocks are on).
type lexer struct {
	src  string
	pos  int
	line *int
	toks []token
}

var (
	reRawBegin = regexp.MustCompile(`^\{%([-+]?)` + space + `raw` + space + `(-%\}` + space + `|%\})`)
	reRawEnd   = regexp.MustCompile(`\{%([-+]?)` + space + `endraw` + space + `(\+%\}|-%\}` + space + `|%\}\n?)`)
	reComment  = regexp.MustCompile(`\+#\}|-#\}` + space + `|#\}\n?`)
	reBlockEnd = regexp.MustCompile(`^(?:\+%\}|-%\}` + space + `|%\}\n?)`)
	reVarEnd   = regexp.MustCompile(`^(?:-\}\}` + space + `|\}\})`)
	reFloat    = regexp.MustCompile(`^(?:[0-9]+_)*[0-9]+(?:(?:\.(?:[0-9]+_)*[0-9]+)?[eE][+-]?(?:[0-9]+_)*[0-9]+|\.(?:[0-9]+_)*[0-9]+)`)
	reInt      = regexp.MustCompile(`^(?:0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?[0-9])*|0(?:_?0)*)`)
	reName     = regexp.MustCompile(`^[\p{L}\p{M}\p{N}_]+`)
	reString   = regexp.MustCompile(`^(?s:'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")`)
)

// space is Python's \s* in a regular expression.
const space = `[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*`

// operators, the longer before their prefixes.
var operators = []string{"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// lex returns the tokens of src, ended by tokEOF. It keeps *line up to date.
func lex(src string, line *int) []token {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	src = strings.TrimSuffix(src, "\n")
	*line = 1
	l := &lexer{src: src, line: line}
	for l.pos < len(src) {
		l.root()
	}
	l.emit(tokEOF, "")
	*line = 1
	return l.toks
}

func (l *lexer) emit(k kind, text string) { l.toks = append(l.toks, token{k, text, *l.line}) }

// skip moves over n bytes and counts their lines.
func (l *lexer) skip(n int) {
	*l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

// root reads text up to the next tag, and the tag.
func (l *lexer) root() {
	at, rest := l.pos, l.src[l.pos:]
	for {
		i := strings.IndexByte(l.src[at:], '{')
		if i < 0 || at+i+1 >= len(l.src) {
			l.emit(tokData, rest)
			l.pos = len(l.src)
			return
		}
		if at += i; strings.IndexByte("{%#", l.src[at+1]) >= 0 {
			break
		}
		at++
	}
	tag := l.src[at:]
	if m := reRawBegin.FindStringSubmatch(tag); m != nil {
		l.text(at, m[1], true)
		l.skip(len(m[0]))
		l.raw()
		return
	}
	sign := ""
	if len(tag) > 2 && (tag[2] == '-' || tag[2] == '+') {
		sign = tag[2:3]
	}
	l.text(at, sign, tag[1] != '{')
	l.skip(2 + len(sign))
	switch tag[1] {
	case '#':
		l.comment()
	case '%':
		l.emit(tokBlockBegin, "")
		l.tag(reBlockEnd, tokBlockEnd)
	default:
		l.emit(tokVarBegin, "")
		l.tag(reVarEnd, tokVarEnd)
	}
}

// text emits the data before the tag at position at, stripped as the tag's sign
// and lstrip_blocks want.
func (l *lexer) text(at int, sign string, lstrip bool) {
	text := l.src[l.pos:at]
	kept := text
	switch {
	case sign == "-":
		kept = strings.TrimRightFunc(text, isSpace)
	case sign == "" && lstrip:
		start := strings.LastIndexByte(text, '\n') + 1
		lineStart := start > 0 || l.pos == 0 || l.src[l.pos-1] == '\n'
		if lineStart && strings.TrimLeftFunc(text[start:], isSpace) == "" {
			kept = text[:start]
		}
	}
	if kept != "" {
		l.emit(tokData, kept)
	}
	l.skip(len(text))
}

func (l *lexer) raw() {
	m := reRawEnd.FindStringSubmatchIndex(l.src[l.pos:])
	if m == nil {
		l.unclosed("raw directive")
		return
	}
	end := m[1] - m[0]
	l.text(l.pos+m[0], l.src[l.pos+m[2]:l.pos+m[3]], true)
	l.skip(end)
}

func (l *lexer) comment() {
	m := reComment.FindStringIndex(l.src[l.pos:])
	if m == nil {
		l.unclosed("comment tag")
		return
	}
	l.skip(m[1])
}

// unclosed fails, but where nothing at all follows: Jinja lets that pass.
func (l *lexer) unclosed(what string) {
	if l.pos < len(l.src) {
		fail("TemplateSyntaxError", "Missing end of %s", what)
	}
}

// tag reads the tokens of a tag up to its end.
func (l *lexer) tag(end *regexp.Regexp, endKind kind) {
	var open []string // the closing brackets that are due
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if len(open) == 0 && strings.IndexByte("+-%}", rest[0]) >= 0 {
			if m := end.FindString(rest); m != "" {
				l.emit(endKind, "")
				l.skip(len(m))
				return
			}
		}
		if c, n := utf8.DecodeRuneInString(rest); isSpace(c) {
			l.skip(n)
			continue
		}
		if l.literal(rest) {
			continue
		}
		open = l.operator(rest, open)
	}
}

// literal reads a number, name or string, if one is next.
func (l *lexer) literal(rest string) bool {
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c >= '0' && c <= '9':
		l.number(rest)
	case c == '_' || unicode.IsLetter(c):
		l.token(tokName, reName.FindString(rest))
	case unicode.IsNumber(c) || unicode.IsMark(c):
		fail("TemplateSyntaxError", "Invalid character in identifier")
	case c == '"' || c == '\'':
		m := reString.FindString(rest)
		if m == "" {
			return false
		}
		l.emit(tokString, unescape(m[1:len(m)-1]))
		l.skip(len(m))
	default:
		return false
	}
	return true
}

// number reads a float, or an integer; none is a float behind a point, where
// digits are an index.
func (l *lexer) number(rest string) {
	if m := reFloat.FindString(rest); m != "" && l.src[l.pos-1] != '.' {
		l.token(tokFloat, m)
		return
	}
	l.token(tokInt, reInt.FindString(rest))
}

// token emits a name or number as it stands at the position.
func (l *lexer) token(k kind, text string) {
	if k == tokName {
		l.emit(k, text)
	} else {
		l.emit(k, strings.ReplaceAll(text, "_", ""))
	}
	l.skip(len(text))
}

// operator reads an operator and returns the brackets then due.
func (l *lexer) operator(rest string, open []string) []string {
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(rest, op) })
	if i < 0 {
		c, _ := utf8.DecodeRuneInString(rest)
		fail("TemplateSyntaxError", "unexpected char %s at %d", reprString(string(c)), utf8.RuneCountInString(l.src[:l.pos]))
	}
	op := operators[i]
	switch op {
	case "(":
		open = append(open, ")")
	case "[":
		open = append(open, "]")
	case "{":
		open = append(open, "}")
	case ")", "]", "}":
		if len(open) == 0 {
			fail("TemplateSyntaxError", "unexpected '%s'", op)
		}
		due := open[len(open)-1]
		if open = open[:len(open)-1]; due != op {
			fail("TemplateSyntaxError", "unexpected '%s', expected '%s'", op, due)
		}
	}
	l.emit(tokOp, op)
	l.skip(len(op))
	return open
}

var simpleEscapes = map[byte]string{'\n': "", '\\': `\`, '\'': "'", '"': `"`,
	'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

// unescape decodes the escapes of a Python string literal.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		i++ // the pattern of strings leaves no lone backslash at the end
		if e, ok := simpleEscapes[s[i]]; ok {
			b.WriteString(e)
			i++
			continue
		}
		i = numericEscape(&b, s, i)
	}
	return b.String()
}

// numericEscape decodes what follows a backslash at s[i:], an octal or
// hexadecimal code point, and returns where it ends. An unknown escape stays.
func numericEscape(b *strings.Builder, s string, i int) int {
	digits, base, start := 3, 8, i
	switch s[i] {
	case 'x':
		digits, base, start = 2, 16, i+1
	case 'u':
		digits, base, start = 4, 16, i+1
	case 'U':
		digits, base, start = 8, 16, i+1
	case 'N':
		fail("TemplateSyntaxError", `escapes by name (\N{…}) are not supported`)
	}
	end, code := start, 0
	for end < len(s) && end < start+digits && digit(s[end]) < base {
		code = code*base + digit(s[end])
		end++
	}
	switch {
	case base == 16 && end < start+digits:
		fail("TemplateSyntaxError", `truncated \%c escape in a string`, s[i])
	case code > unicode.MaxRune:
		fail("TemplateSyntaxError", "illegal Unicode character in a string")
	case end == i:
		b.WriteByte('\\')
	default:
		b.WriteRune(rune(code)) // a lone surrogate becomes U+FFFD
	}
	return end
}

// digit returns the value of a digit of base 36, or 36.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'Z':
		return int(c-'A') + 10
	}
	return 36
}
