package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
)

// maxJSONDepth bounds what FromJSON reads, below what repr and tojson refuse.
const maxJSONDepth = 500

// ErrRange is the error of JSON that is nested too deep or has too long an integer.
var ErrRange = errors.New("beyond Python's limits")

// FromJSON reads one JSON value as Python's json.loads does: objects keep their
// order, a later duplicate key wins, numbers without fraction and exponent are
// exact integers, 1e400 is infinite. Lone surrogates and invalid UTF-8 become U+FFFD.
// The error of JSON beyond Python's own limits is [ErrRange].
func FromJSON(data []byte) (v Value, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if v, err = readJSON(d, 0); err != nil {
		return nil, fmt.Errorf("json at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("json at byte %d: more than one value", d.InputOffset())
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return None{}, nil
	case bool:
		return Bool(t), nil
	case string:
		return Str(t), nil
	case json.Number:
		return jsonNumber(string(t))
	}
	if depth >= maxJSONDepth {
		return nil, fmt.Errorf("nested more than %d deep: %w", maxJSONDepth, ErrRange)
	}
	if t == json.Delim('[') {
		return readArray(d, depth)
	}
	return readObject(d, depth)
}

func readArray(d *json.Decoder, depth int) (Value, error) {
	list := NewList()
	for d.More() {
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		list.items = append(list.items, v)
	}
	_, err := d.Token()
	return list, err
}

func readObject(d *json.Decoder, depth int) (Value, error) {
	dict := NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		dict.Set(Str(key.(string)), v)
	}
	_, err := d.Token()
	return dict, err
}

func jsonNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // beyond the range it is infinite, as in Python
		return Float(f), nil
	}
	if len(strings.TrimPrefix(s, "-")) > maxDigits {
		return nil, fmt.Errorf("an integer has more than %d digits: %w", maxDigits, ErrRange)
	}
	n, _ := new(big.Int).SetString(s, 10)
	return newInt(n), nil
}

// jsonStyle is how tojson writes, by the arguments of json.dumps.
type jsonStyle struct {
	ascii           bool
	sort            bool
	pretty          bool
	indent          string
	comma, colon    string
	newline, closed string // of the current level
}

// dumps writes v as json.dumps does.
func (w *writer) dumps(v Value, s jsonStyle) {
	if t, ok := text(v); ok {
		w.write(jsonString(w.r, t, s.ascii))
		return
	}
	switch v := v.(type) {
	case None:
		w.write("null")
	case Bool:
		w.write(strconv.FormatBool(bool(v)))
	case Int, bigInt:
		w.repr(v)
	case Float:
		w.write(jsonFloat(float64(v)))
	case *List:
		w.dumpItems(v.items, s)
	case *tuple:
		w.dumpItems(v.items, s)
	case *Dict:
		w.dumpDict(v, s)
	default:
		fail("TypeError", "Object of type %s is not JSON serializable", v.typeName())
	}
}

// deeper is the style one level down.
func (s jsonStyle) deeper() jsonStyle {
	if s.pretty {
		if s.newline == "" {
			s.newline = "\n"
		}
		s.closed, s.newline = s.newline, s.newline+s.indent
	}
	return s
}

func (w *writer) dumpItems(items []Value, s jsonStyle) {
	if len(items) == 0 {
		w.write("[]")
		return
	}
	defer w.r.nest("while encoding a JSON object")()
	in := s.deeper()
	w.write("[")
	for i, item := range items {
		if i > 0 {
			w.write(s.comma)
		}
		w.write(in.newline)
		w.dumps(item, in)
	}
	w.write(in.closed + "]")
}

func (w *writer) dumpDict(d *Dict, s jsonStyle) {
	if d.Len() == 0 {
		w.write("{}")
		return
	}
	defer w.r.nest("while encoding a JSON object")()
	in := s.deeper()
	keys := d.keys
	if s.sort {
		keys = w.r.sortBy(keys, false, func(k Value) Value { return k })
	}
	w.write("{")
	for i, key := range keys {
		if i > 0 {
			w.write(s.comma)
		}
		w.write(in.newline)
		w.write(jsonString(w.r, w.r.jsonKey(key), s.ascii))
		w.write(s.colon)
		v, _ := d.Get(key)
		w.dumps(v, in)
	}
	w.write(in.closed + "}")
}

func (r *run) jsonKey(key Value) string {
	switch k := key.(type) {
	case Str:
		return string(k)
	case markup:
		return string(k)
	case None:
		return "null"
	case Bool:
		return strconv.FormatBool(bool(k))
	case Int, bigInt:
		return r.repr(k)
	case Float:
		return jsonFloat(float64(k))
	}
	fail("TypeError", "keys must be str, int, float, bool or None, not %s", key.typeName())
	return ""
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return formatFloat(f)
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

func jsonString(r *run, s string, ascii bool) string {
	r.claim(len(s))
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, c := range s {
		e, ok := jsonEscapes[c]
		switch {
		case ok:
			b.WriteString(e)
		case c < 0x20 || ascii && c >= 0x7f && c < 0x10000:
			writeUnit(&b, c)
		case ascii && c >= 0x10000:
			hi, lo := utf16.EncodeRune(c)
			writeUnit(&b, hi)
			writeUnit(&b, lo)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func writeUnit(b *strings.Builder, c rune) { fmt.Fprintf(b, `\u%04x`, c) }
