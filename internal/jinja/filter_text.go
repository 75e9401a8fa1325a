package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// mapText makes a filter that maps a text; what is none becomes one first.
func mapText(f func(string) string) func(r *run, a []Value) Value {
	return func(r *run, a []Value) Value {
		s := r.str(a[0])
		r.claimTimes(3, len(s))
		return like(a[0], f(s))
	}
}

// titleWords is Jinja's own title: words begin behind spaces, dashes and opening
// brackets.
func titleWords(s string) string {
	var b strings.Builder
	var word []rune
	flush := func() {
		if len(word) > 0 {
			b.WriteString(upper(string(word[0])) + lower(string(word[1:])))
		}
		word = word[:0]
	}
	for _, c := range s {
		if isSpace(c) || strings.ContainsRune("-({[<", c) {
			flush()
			b.WriteRune(c)
			continue
		}
		word = append(word, c)
	}
	flush()
	return b.String()
}

func filterEscape(r *run, a []Value) Value { return r.escape(a[0]) }

func filterForceEscape(r *run, a []Value) Value { return r.escape(Str(r.str(a[0]))) }

func filterTrim(r *run, a []Value) Value {
	return like(a[0], r.strip(r.str(a[0]), a[1], true, true, "strip"))
}

func filterReplace(r *run, a []Value) Value {
	limit := -1
	if a[3] != nil && a[3] != (None{}) {
		limit = asIndex(a[3])
	}
	return Str(r.replace(r.str(a[0]), r.str(a[1]), r.str(a[2]), limit))
}

func filterCenter(r *run, a []Value) Value {
	width := 80
	if a[1] != nil {
		width = asIndex(a[1])
	}
	return like(a[0], r.justify(r.str(a[0]), " ", width, '^'))
}

func filterFormat(r *run, v Value, a args) Value {
	if len(a.pos) > 0 && len(a.kw) > 0 {
		fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	arg := Value(newTuple(a.pos...))
	if len(a.kw) > 0 {
		arg = a.keywords().dict()
	}
	if _, ok := text(v); !ok {
		v = Str(r.str(v))
	}
	return r.binary("%", v, arg)
}

func filterIndent(r *run, a []Value) Value {
	s, ok := text(a[0])
	if !ok {
		raiseUndefined(a[0])
		switch a[0].(type) {
		case *List:
			fail("AttributeError", "'list' object has no attribute 'splitlines'")
		case *tuple:
			fail("TypeError", "can only concatenate tuple (not \"str\") to tuple")
		}
		fail("TypeError", "unsupported operand type(s) for +=: '%s' and 'str'", a[0].typeName())
	}
	by := "    "
	if a[1] != nil {
		if by, ok = text(a[1]); !ok {
			width := max(asIndex(a[1]), 0)
			r.claim(width)
			by = strings.Repeat(" ", width)
		}
	}
	first, blank := a[2] != nil && truth(a[2]), a[3] != nil && truth(a[3])
	r.claim(len(s))
	w := &writer{r: r}
	for i, line := range splitLines(s+"\n", false) {
		if i > 0 {
			w.write("\n")
		}
		if i == 0 && first || i > 0 && (blank || line != "") {
			w.write(by)
		}
		w.write(line)
	}
	return like(a[0], w.String())
}

func filterTruncate(r *run, a []Value) Value {
	raiseUndefined(a[1], a[4])
	end, length, leeway := "...", 255, 5
	if a[1] != nil {
		length = asIndex(a[1])
	}
	if a[3] != nil {
		end = mustText(a[3])
	}
	if a[4] != nil && a[4] != (None{}) {
		leeway = asIndex(a[4])
	}
	cut := length - utf8.RuneCountInString(end)
	if cut < 0 {
		fail("AssertionError", "expected length >= %d, got %d", utf8.RuneCountInString(end), length)
	}
	if leeway < 0 {
		fail("AssertionError", "expected leeway >= 0, got %d", leeway)
	}
	if r.length(a[0])-leeway <= length {
		return a[0]
	}
	runes := r.runes(mustText(a[0]))
	short := string(runes[:cut])
	if a[2] == nil || !truth(a[2]) {
		if i := strings.LastIndexByte(short, ' '); i >= 0 {
			short = short[:i]
		}
	}
	return like(a[0], short+end)
}

func filterWordCount(r *run, a []Value) Value {
	s := r.str(a[0])
	r.claim(len(s))
	return Int(len(strings.FieldsFunc(s, func(c rune) bool { return c != '_' && !isAlnum(c) })))
}

func filterURLEncode(r *run, a []Value) Value {
	v := a[0]
	if _, ok := text(v); ok || !isIterable(v) {
		return Str(r.urlQuote(v, false))
	}
	if d, ok := v.(*Dict); ok {
		v = &dictView{d, "items"}
	}
	w := &writer{r: r}
	for i, pair := range r.collect(v) {
		if i > 0 {
			w.write("&")
		}
		kv := r.unpack(pair, 2)
		w.write(r.urlQuote(kv[0], true) + "=" + r.urlQuote(kv[1], true))
	}
	return Str(w.String())
}

// urlQuote escapes v for a URL; in a query, spaces become + and slashes too are
// escaped.
func (r *run) urlQuote(v Value, query bool) string {
	s := r.str(v)
	r.claimTimes(3, len(s))
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case digit(c) < 36 || strings.IndexByte("_.-~", c) >= 0 || c == '/' && !query:
			b.WriteByte(c)
		case c == ' ' && query:
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func filterToJSON(r *run, a []Value) Value {
	is := func(i int) bool { return a[i] != nil && truth(a[i]) }
	style := jsonStyle{ascii: is(1), sort: is(4), comma: ", ", colon: ": "}
	switch indent := orNone(a[2]).(type) {
	case None:
	case Str, markup:
		style.indent, style.pretty = mustText(indent), true
	default:
		raiseUndefined(indent)
		style.indent, style.pretty = mustText(r.repeat(Str(" "), indent)), true
	}
	if style.pretty {
		style.comma = ","
	}
	if a[3] != nil && a[3] != (None{}) {
		pair := r.unpack(a[3], 2)
		style.comma, style.colon = mustText(pair[0]), mustText(pair[1])
	}
	w := &writer{r: r}
	w.dumps(a[0], style)
	return Str(w.String())
}

func filterInt(r *run, a []Value) Value {
	base := 10
	if a[2] != nil {
		base = asIndex(a[2])
	}
	otherwise := a[1]
	if otherwise == nil {
		otherwise = Int(0)
	}
	f := 0.0
	switch v := a[0].(type) {
	case Str, markup:
		s, _ := text(v)
		r.claim(len(s))
		if n, ok := parseInt(s, base); ok {
			return n
		}
		var ok bool
		if f, ok = parseFloat(s); !ok {
			return otherwise
		}
	case *undefined:
		v.raise()
	case Float:
		if f = float64(v); math.IsInf(f, 0) {
			floatToInt(f) // raises: Jinja catches this error only for strings
		}
	default:
		n, ok := integer(v)
		if !ok {
			return otherwise
		}
		return newInt(n)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return otherwise
	}
	return floatToInt(f)
}

func filterFloat(r *run, a []Value) Value {
	otherwise := a[1]
	if otherwise == nil {
		otherwise = Float(0)
	}
	raiseUndefined(a[0])
	if s, ok := text(a[0]); ok {
		r.claim(len(s))
		if f, ok := parseFloat(s); ok {
			return Float(f)
		}
		return otherwise
	}
	if f, ok := float(a[0]); ok {
		return Float(f)
	}
	return otherwise
}

func filterAbs(r *run, a []Value) Value {
	switch v := a[0].(type) {
	case Float:
		return Float(math.Abs(float64(v)))
	case Int, Bool, bigInt:
		n, _ := integer(v)
		return newInt(new(big.Int).Abs(n))
	}
	fail("TypeError", "bad operand type for abs(): '%s'", a[0].typeName())
	return nil
}

func filterRound(r *run, a []Value) Value {
	digits, method := 0, "common"
	if a[1] != nil {
		digits = asIndex(a[1])
	}
	if a[2] != nil {
		method, _ = text(a[2])
	}
	switch method {
	case "common":
		return roundTo(a[0], digits)
	case "ceil", "floor":
	default:
		fail("FilterArgumentError", "method must be common, ceil or floor")
	}
	scale := r.binary("**", Int(10), Int(digits))
	scaled := r.binary("*", a[0], scale)
	if !isNumber(scaled) {
		fail("TypeError", "must be real number, not %s", scaled.typeName())
	}
	if f, ok := scaled.(Float); ok {
		if method == "ceil" {
			f = -f
		}
		scaled = floatToInt(math.Floor(float64(f)))
		if method == "ceil" {
			scaled = r.unary("-", scaled)
		}
	}
	return r.binary("/", scaled, scale)
}
