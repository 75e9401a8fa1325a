package jinja

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// percent is Python's format % arg; with safe the values are escaped.
func (r *run) percent(format string, arg Value, safe bool) string {
	p := &percentArgs{r: r, arg: arg, safe: safe, items: []Value{arg}}
	if t, ok := arg.(*tuple); ok {
		p.items = t.items
	}
	w := &writer{r: r}
	for at := 0; at < len(format); {
		i := strings.IndexByte(format[at:], '%')
		if i < 0 {
			w.write(format[at:])
			break
		}
		w.write(format[at : at+i])
		at += i + 1
		at += p.conversion(w, format, at)
	}
	switch arg.(type) {
	case *Dict, *List, *rangeValue, *undefined:
	default:
		if p.used < len(p.items) && !p.mapped {
			fail("TypeError", "not all arguments converted during string formatting")
		}
	}
	return w.String()
}

type percentArgs struct {
	r      *run
	arg    Value
	items  []Value
	used   int
	mapped bool
	safe   bool
}

func (p *percentArgs) next() Value {
	if p.used >= len(p.items) {
		fail("TypeError", "not enough arguments for format string")
	}
	p.used++
	return p.items[p.used-1]
}

// conversion writes one conversion, which begins behind the % at format[at:],
// and returns its length.
func (p *percentArgs) conversion(w *writer, format string, at int) int {
	s := format[at:]
	var v Value
	if strings.HasPrefix(s, "(") {
		v, s = p.mapping(s)
	}
	sp := spec{fill: " ", prec: -1}
	left := false
	for s != "" && strings.IndexByte("-+ #0", s[0]) >= 0 {
		switch s[0] {
		case '-':
			left = true
		case '0':
			sp.zero = true
		case '#':
			sp.alt = true
		case '+':
			sp.sign = '+'
		case ' ':
			if sp.sign == 0 {
				sp.sign = ' '
			}
		}
		s = s[1:]
	}
	sp.width, s = p.size(s)
	if sp.width < -1 {
		left, sp.width = true, -sp.width
		p.r.claim(sp.width)
	}
	if strings.HasPrefix(s, ".") {
		sp.prec, s = p.size(s[1:])
		sp.prec = max(sp.prec, 0)
	}
	s = strings.TrimLeft(s, "hlL")
	if s == "" {
		fail("ValueError", "incomplete format")
	}
	verb, n := utf8.DecodeRuneInString(s)
	if left {
		sp.align, sp.zero = '<', false
	}
	if verb == '%' {
		w.write("%")
	} else {
		if v == nil && strings.ContainsRune("diouxXeEfFgGcrsa", verb) {
			v = p.next()
		}
		w.write(p.convert(v, verb, sp, utf8.RuneCountInString(format[:len(format)-len(s)])))
	}
	return len(format) - at - len(s) + n
}

// mapping reads a key in parentheses, and returns its value.
func (p *percentArgs) mapping(s string) (Value, string) {
	raiseUndefined(p.arg)
	d, ok := p.arg.(*Dict)
	if !ok {
		fail("TypeError", "format requires a mapping")
	}
	depth, end := 0, -1
	for i := range len(s) {
		if s[i] == '(' {
			depth++
		}
		if s[i] == ')' {
			if depth--; depth == 0 {
				end = i
				break
			}
		}
	}
	if end < 0 {
		fail("ValueError", "incomplete format key")
	}
	p.mapped = true
	key := s[1:end]
	v, ok := d.Get(Str(key))
	if !ok {
		fail("KeyError", "%s", reprString(key))
	}
	return v, s[end+1:]
}

// size reads a width or precision: digits, or * for the next argument.
func (p *percentArgs) size(s string) (int, string) {
	if !strings.HasPrefix(s, "*") {
		return p.r.number(s)
	}
	n, ok := small(p.next())
	if !ok {
		fail("TypeError", "* wants int")
	}
	p.r.claim(max(n, 0))
	return max(n, -1<<31), s[1:]
}

func (p *percentArgs) convert(v Value, verb rune, sp spec, index int) string {
	number := func(t string) string {
		if sp.zero {
			sp.fill, sp.align = "0", '='
		}
		sign := ""
		if t != "" && strings.IndexByte("-+ ", t[0]) >= 0 {
			sign, t = t[:1], t[1:]
		}
		if sp.alt && (verb == 'x' || verb == 'X' || verb == 'o') {
			sign, t = sign+t[:2], t[2:]
		}
		return p.r.pad(sign, t, sp, '>')
	}
	plain := sp
	plain.width, plain.align = 0, 0
	switch verb {
	case 's', 'r', 'a':
		return p.r.pad("", p.cut(p.text(v, verb), sp.prec), sp, '>')
	case 'c':
		return p.r.pad("", p.char(v), sp, '>')
	case 'd', 'i', 'u', 'o', 'x', 'X':
		return number(p.integer(v, verb, plain))
	case 'e', 'E', 'f', 'F', 'g', 'G':
		raiseUndefined(v)
		f, ok := float(v)
		if !ok {
			fail("TypeError", "must be real number, not %s", v.typeName())
		}
		if plain.verb = byte(verb); plain.prec < 0 {
			plain.prec = 6
		}
		return number(p.r.formatFloat(f, plain))
	}
	fail("ValueError", "unsupported format character '%c' (0x%x) at index %d", verb, verb, index)
	return ""
}

func (p *percentArgs) text(v Value, verb rune) string {
	t := p.r.str(v)
	if verb != 's' {
		t = p.r.repr(v)
	}
	if !p.safe {
		return t
	}
	if m, ok := v.(markup); ok && verb == 's' {
		return string(m)
	}
	return string(p.r.escape(Str(t)))
}

func (p *percentArgs) cut(t string, prec int) string {
	if prec < 0 || prec >= len(t) {
		return t
	}
	runes := p.r.runes(t)
	return string(runes[:min(prec, len(runes))])
}

func (p *percentArgs) char(v Value) string {
	if t, ok := text(v); ok && utf8.RuneCountInString(t) == 1 {
		return t
	}
	n, ok := integer(v)
	if !ok {
		fail("TypeError", "%%c requires int or char")
	}
	return p.r.formatInt(n, spec{fill: " ", prec: -1, verb: 'c'})
}

// integer writes an int with as many digits as the precision asks for.
func (p *percentArgs) integer(v Value, verb rune, sp spec) string {
	n, ok := integer(v)
	need := "an integer is required"
	if strings.ContainsRune("diu", verb) {
		raiseUndefined(v)
		need = "a real number is required"
		if f, isFloat := v.(Float); isFloat {
			n, ok = integer(floatToInt(float64(f)))
		}
	}
	if !ok {
		fail("TypeError", "%%%c format: %s, not %s", verb, need, v.typeName())
	}
	digits := sp.prec
	sp.prec, sp.verb = -1, 'd'
	if _, ok := bases[byte(verb)]; ok {
		sp.verb = byte(verb)
	}
	t := p.r.formatInt(new(big.Int).Abs(n), spec{fill: " ", prec: -1, verb: sp.verb})
	if len(t) < digits {
		t = strings.Repeat("0", digits-len(t)) + t
	}
	sign := sp.signOf(n.Sign() < 0)
	if sp.alt && sp.verb != 'd' {
		sign += "0" + string(sp.verb)
	}
	return sign + t
}
