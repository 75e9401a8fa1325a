package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// plain returns a JSON value in its plain spelling: no white space, only the escapes that
// JSON requires, whole numbers as digits. Keys keep their order.
func plain(raw []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out strings.Builder
	if err := spell(&out, dec); err != nil {
		return "", err
	}
	return out.String(), nil
}

func spell(out *strings.Builder, dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Delim:
		return spellList(out, dec, v == '{')
	case string:
		out.WriteString(quote(v))
	case json.Number:
		out.WriteString(plainNumber(string(v)))
	case nil:
		out.WriteString("null")
	default:
		fmt.Fprint(out, v)
	}
	return nil
}

// spellList spells the rest of an object or array.
func spellList(out *strings.Builder, dec *json.Decoder, object bool) error {
	open, close := "[", "]"
	if object {
		open, close = "{", "}"
	}
	out.WriteString(open)
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if object {
			if err := spell(out, dec); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if err := spell(out, dec); err != nil {
			return err
		}
	}
	out.WriteString(close)
	_, err := dec.Token()
	return err
}

// maxPlain limits the exponent up to which a number is written without one.
const maxPlain = 40

func plainNumber(text string) string {
	x, ok := exact(text)
	if !ok {
		return text
	}
	if x.IsInt() {
		return x.Num().String()
	}
	digits, finite := x.FloatPrec()
	if !finite || digits > maxPlain {
		return text
	}
	return x.FloatString(digits)
}

// exact parses a JSON number, unless it has hundreds of digits.
func exact(text string) (*big.Rat, bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || max(e, -e) > 400) || len(text) > 400 {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// quote returns s as a JSON string.
func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		out.WriteString(quoteRune(r))
	}
	out.WriteByte('"')
	return out.String()
}

// quoteRune returns a character as it stands in a JSON string.
func quoteRune(r rune) string {
	switch r {
	case '"', '\\':
		return `\` + string(r)
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if r < ' ' {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}
