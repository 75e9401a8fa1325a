package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a format specification, of str.format or of the % operator.
type spec struct {
	fill  string
	align byte // '<', '>', '^', '=', or 0
	sign  byte // '+', ' ', or 0 for '-'
	alt   bool
	zero  bool // of the % operator: fill numbers with zeros
	width int
	group string // "", "," or "_"
	prec  int    // -1: none
	verb  byte   // 0: none
}

// parseSpec reads the specification of a replacement field, for a value of typ.
func (r *run) parseSpec(s, typ string) spec {
	sp := spec{fill: " ", prec: -1}
	filled := false
	if _, n := utf8.DecodeRuneInString(s); len(s) > n && strings.IndexByte("<>=^", s[n]) >= 0 {
		sp.fill, sp.align, s = s[:n], s[n], s[n+1:]
		filled = true
	} else if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		sp.sign, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, "#") {
		sp.alt, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") {
		s = s[1:]
		if !filled {
			sp.fill = "0"
		}
		if sp.align == 0 && typ != "str" {
			sp.align = '='
		}
	}
	sp.width, s = r.number(s)
	sp.width = max(sp.width, 0)
	if s != "" && (s[0] == ',' || s[0] == '_') {
		sp.group, s = s[:1], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		if sp.prec, s = r.number(s[1:]); sp.prec < 0 {
			fail("ValueError", "Format specifier missing precision")
		}
	}
	if len(s) > 1 {
		fail("ValueError", "Invalid format specifier")
	}
	if s != "" {
		sp.verb = s[0]
	}
	return sp
}

// number reads leading digits, -1 where there is none.
func (r *run) number(s string) (int, string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 {
		return -1, s
	}
	n, err := strconv.Atoi(s[:i])
	if err != nil {
		n = math.MaxInt32
	}
	r.claim(n)
	return n, s[i:]
}

// format is Python's format(v, spec).
func (r *run) format(v Value, s string) string {
	if s == "" {
		return r.str(v)
	}
	if t, ok := text(v); ok {
		return r.formatString(t, v.typeName(), r.parseSpec(s, "str"))
	}
	if !isNumber(v) {
		fail("TypeError", "unsupported format string passed to %s.__format__", v.typeName())
	}
	sp := r.parseSpec(s, v.typeName())
	n, isInt := integer(v)
	switch {
	case isInt && strings.IndexByte("\x00bcdoxXn", sp.verb) >= 0:
		return r.formatInt(n, sp)
	case strings.IndexByte("\x00eEfFgGn%", sp.verb) >= 0:
		f, _ := float(v)
		return r.formatFloat(f, sp)
	}
	fail("ValueError", "Unknown format code '%c' for object of type '%s'", sp.verb, v.typeName())
	return ""
}

func (r *run) formatString(t, typ string, sp spec) string {
	switch {
	case sp.verb != 0 && sp.verb != 's':
		fail("ValueError", "Unknown format code '%c' for object of type '%s'", sp.verb, typ)
	case sp.sign == ' ':
		fail("ValueError", "Space not allowed in string format specifier")
	case sp.sign != 0:
		fail("ValueError", "Sign not allowed in string format specifier")
	case sp.alt:
		fail("ValueError", "Alternate form (#) not allowed in string format specifier")
	case sp.align == '=':
		fail("ValueError", "'=' alignment not allowed in string format specifier")
	case sp.group != "":
		fail("ValueError", "Cannot specify '%s' with 's'.", sp.group)
	}
	if sp.prec >= 0 {
		if runes := r.runes(t); len(runes) > sp.prec {
			t = string(runes[:sp.prec])
		}
	}
	return r.pad("", t, sp, '<')
}

// pad brings sign and digits to the width.
func (r *run) pad(sign, t string, sp spec, align byte) string {
	if sp.align != 0 {
		align = sp.align
	}
	n := sp.width - r.runeCount(sign) - r.runeCount(t)
	if n <= 0 {
		return sign + t
	}
	r.claimTimes(n, len(sp.fill))
	left, right := n, 0
	switch align {
	case '<':
		left, right = 0, n
	case '^':
		left, right = n/2, n-n/2
	case '=':
		return sign + strings.Repeat(sp.fill, n) + t
	}
	return strings.Repeat(sp.fill, left) + sign + t + strings.Repeat(sp.fill, right)
}

func (sp spec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case sp.sign == '+' || sp.sign == ' ':
		return string(sp.sign)
	}
	return ""
}

var bases = map[byte]int{'b': 2, 'o': 8, 'x': 16, 'X': 16}

func (r *run) formatInt(n *big.Int, sp spec) string {
	if sp.prec >= 0 {
		fail("ValueError", "Precision not allowed in integer format specifier")
	}
	if sp.verb == 'c' {
		if !n.IsInt64() || n.Int64() < 0 || n.Int64() > utf8.MaxRune {
			fail("OverflowError", "%%c arg not in range(0x110000)")
		}
		return r.pad("", string(rune(n.Int64())), sp, '<')
	}
	base, ok := bases[sp.verb]
	if !ok {
		base = 10
		formatBig(bigInt{n})
	}
	digits := new(big.Int).Abs(n).Text(base)
	sign := sp.signOf(n.Sign() < 0)
	if sp.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if sp.group != "" {
		every := 3
		if base != 10 {
			every = 4
		}
		digits = grouped(digits, sp, len(sign), every)
	}
	if sp.alt && base != 10 {
		sign += "0" + string(sp.verb)
	}
	return r.pad(sign, digits, sp, '>')
}

// grouped puts the group sign between digits, and fills with zeros before them
// where the width asks for that.
func grouped(digits string, sp spec, taken, every int) string {
	var b []byte
	zeros := sp.fill == "0" && sp.align == '='
	for i := 0; i < len(digits) || zeros && len(b)+taken < sp.width; i++ {
		if i > 0 && i%every == 0 {
			b = append(b, sp.group[0])
		}
		c := byte('0')
		if i < len(digits) {
			c = digits[len(digits)-1-i]
		}
		b = append(b, c)
	}
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

func (r *run) formatFloat(f float64, sp spec) string {
	t := floatDigits(math.Abs(f), sp)
	sign := sp.signOf(math.Signbit(f) && !math.IsNaN(f))
	if sp.group != "" {
		whole, rest := t, ""
		if i := strings.IndexAny(t, ".e"); i >= 0 {
			whole, rest = t[:i], t[i:]
		}
		t = grouped(whole, sp, len(sign)+len(rest), 3) + rest
	}
	return r.pad(sign, t, sp, '>')
}

// floatDigits writes a float that is not negative.
func floatDigits(f float64, sp spec) string {
	prec, verb, end := sp.prec, sp.verb, ""
	if verb == '%' {
		f, verb, end = f*100, 'f', "%"
	}
	if verb == 'n' {
		verb = 'g'
	}
	lower := verb | 0x20
	var t string
	switch {
	case math.IsInf(f, 0):
		t = "inf"
	case math.IsNaN(f):
		t = "nan"
	case verb == 0 && prec < 0:
		t = formatFloat(f)
	case verb == 0 || lower == 'g':
		t = generalDigits(f, prec, sp)
	default:
		if prec < 0 {
			prec = 6
		}
		t = strconv.FormatFloat(f, lower, prec, 64)
		if sp.alt && prec == 0 {
			t += "."
		}
	}
	if verb == 'E' || verb == 'F' || verb == 'G' {
		t = strings.ToUpper(t)
	}
	return t + end
}

// generalDigits is the g format, or the one without a letter, which keeps one
// digit behind the point.
func generalDigits(f float64, prec int, sp spec) string {
	if prec < 0 {
		prec = 6
	}
	prec = max(prec, 1)
	exact := strconv.FormatFloat(f, 'e', prec-1, 64)
	exp, _ := strconv.Atoi(exact[strings.IndexByte(exact, 'e')+1:])
	limit := prec
	if sp.verb == 0 {
		limit = max(prec-1, 0)
	}
	if f == 0 {
		exp = 0
	}
	mantissa, tail := exact, ""
	if exp < -4 || exp >= limit {
		i := strings.IndexByte(exact, 'e')
		mantissa, tail = exact[:i], exact[i:]
	} else {
		mantissa = strconv.FormatFloat(f, 'f', prec-1-exp, 64)
	}
	if !sp.alt && strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if sp.verb == 0 && tail == "" && !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	return mantissa + tail
}
