package chat

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
)

func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	}
	return a == b
}

// sameNumber compares by value. Exponents that would make an exact fraction
// huge are compared as text.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if len(a) > 40 || len(b) > 40 || huge(a) || huge(b) {
		return false
	}
	x, okx := new(big.Rat).SetString(string(a))
	y, oky := new(big.Rat).SetString(string(b))
	return okx && oky && x.Cmp(y) == 0
}

func huge(n json.Number) bool {
	f, err := n.Float64()
	size := math.Abs(f)
	return err != nil || size > 1e60 || size < 1e-60 && !zero(n)
}

// zero reports whether n is 0 in any notation; a number too small for a float64 is
// not.
func zero(n json.Number) bool {
	digits, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
	return !strings.ContainsAny(digits, "123456789")
}
