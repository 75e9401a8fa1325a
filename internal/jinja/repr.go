package jinja

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var noContext = context.Background()

// str is Python's str(v).
func (r *run) str(v Value) string {
	switch v := v.(type) {
	case Str:
		return string(v)
	case markup:
		return string(v)
	case *undefined:
		return ""
	}
	return r.repr(v)
}

// repr is Python's repr(v).
func (r *run) repr(v Value) string {
	w := &writer{r: r}
	w.repr(v)
	return w.String()
}

func (w *writer) repr(v Value) {
	switch v := v.(type) {
	case None:
		w.write("None")
	case Bool:
		w.write(map[Bool]string{true: "True", false: "False"}[v])
	case Int:
		w.write(strconv.FormatInt(int64(v), 10))
	case bigInt:
		w.write(formatBig(v))
	case Float:
		w.write(formatFloat(float64(v)))
	case Str:
		w.r.claim(len(v))
		w.write(reprString(string(v)))
	case markup:
		w.write("Markup(" + reprString(string(v)) + ")")
	case *List:
		w.items("[", v.items, "]")
	case *tuple:
		if len(v.items) == 1 {
			w.items("(", v.items, ",)")
			return
		}
		w.items("(", v.items, ")")
	case *Dict:
		w.dict(v)
	case *dictView:
		w.write(v.typeName() + "(")
		w.items("[", w.r.collect(v), "]")
		w.write(")")
	case *rangeValue:
		w.reprRange(v)
	case *undefined:
		w.write("Undefined")
	case *namespace:
		w.write("<Namespace ")
		w.dict(v.attrs)
		w.write(">")
	case *macro:
		if v.sig.name == "" {
			w.write("<Macro anonymous>")
			return
		}
		w.write("<Macro " + reprString(v.sig.name) + ">")
	case *loop:
		w.write(fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, v.length(w.r)))
	case *function:
		if v.typ == "type" {
			w.write("<class '" + v.name + "'>")
			return
		}
		w.write("<" + v.typeName() + " " + v.name + ">")
	default: // Python prints an address
		w.write("<" + v.typeName() + " object>")
	}
}

func (w *writer) items(open string, items []Value, end string) {
	defer w.r.nest("while getting the repr of an object")()
	w.write(open)
	for i, item := range items {
		if i > 0 {
			w.write(", ")
		}
		w.repr(item)
	}
	w.write(end)
}

func (w *writer) dict(d *Dict) {
	defer w.r.nest("while getting the repr of an object")()
	w.write("{")
	for i, key := range d.keys {
		if i > 0 {
			w.write(", ")
		}
		w.repr(key)
		w.write(": ")
		w.repr(d.values[i])
	}
	w.write("}")
}

func (w *writer) reprRange(v *rangeValue) {
	if v.step == 1 {
		w.write(fmt.Sprintf("range(%d, %d)", v.start, v.stop))
		return
	}
	w.write(fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step))
}

func formatBig(v bigInt) string {
	s := v.n.String()
	if len(strings.TrimPrefix(s, "-")) > maxDigits {
		fail("ValueError", "Exceeds the limit (%d digits) for integer string conversion; use sys.set_int_max_str_digits() to increase the limit", maxDigits)
	}
	return s
}

// formatFloat is Python's repr of a float: the shortest digits that read back,
// with an exponent from 1e16 and below 1e-4.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a >= 1e16 || a < 1e-4) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// reprString is Python's repr of a str.
func reprString(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte(quote)
	return b.String()
}

// isSpace is Python's str.isspace of one character.
func isSpace(c rune) bool {
	return c >= 0x1c && c <= 0x1f || unicode.IsSpace(c)
}

// runeCount counts code points.
func (r *run) runeCount(s string) int {
	r.spend(len(s) / 16)
	return utf8.RuneCountInString(s)
}

// runes returns the code points of s.
func (r *run) runes(s string) []rune {
	r.claimTimes(4, len(s))
	return []rune(s)
}
