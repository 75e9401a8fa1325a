package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxBits bounds integers: far more than any template counts, and the length at
// which Python itself refuses to print them is below.
const (
	maxBits   = 1 << 16
	maxDigits = 4300
)

var zero = new(big.Int)

// newInt returns n as Int, or as bigInt where 64 bits do not hold it.
func newInt(n *big.Int) Value {
	if n.IsInt64() {
		return Int(n.Int64())
	}
	if n.BitLen() > maxBits {
		fail("LimitError", "an integer has more than %d bits", maxBits)
	}
	return bigInt{n}
}

// integer returns the value of an int or bool.
func integer(v Value) (*big.Int, bool) {
	switch v := v.(type) {
	case Int:
		return big.NewInt(int64(v)), true
	case Bool:
		return big.NewInt(int64(boolInt(v))), true
	case bigInt:
		return v.n, true
	}
	return nil, false
}

// small returns the value of an int or bool, cut to what an int holds.
func small(v Value) (int, bool) {
	switch v := v.(type) {
	case Int:
		return int(v), true
	case Bool:
		return int(boolInt(v)), true
	case bigInt:
		if v.n.Sign() < 0 {
			return math.MinInt, true
		}
		return math.MaxInt, true
	}
	return 0, false
}

// float converts a number; ok is false for what is none.
func float(v Value) (f float64, ok bool) {
	switch v := v.(type) {
	case Float:
		return float64(v), true
	case Int:
		return float64(v), true
	case Bool:
		return float64(boolInt(v)), true
	case bigInt:
		f, _ := new(big.Float).SetInt(v.n).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError", "int too large to convert to float")
		}
		return f, true
	}
	return 0, false
}

// floatToInt truncates a finite float.
func floatToInt(f float64) Value {
	if math.IsNaN(f) {
		fail("ValueError", "cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		fail("OverflowError", "cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(f).Int(nil)
	return newInt(n)
}

func isNumber(v Value) bool {
	switch v.(type) {
	case Int, Bool, bigInt, Float:
		return true
	}
	return false
}

// parseIntLiteral reads an integer of the lexer's pattern.
func parseIntLiteral(s string) Value {
	if len(s) > maxDigits {
		fail("TemplateSyntaxError", "an integer has more than %d digits", maxDigits)
	}
	n, ok := new(big.Int).SetString(s, 0)
	if !ok {
		n, _ = new(big.Int).SetString(s, 10) // zeros
	}
	return newInt(n)
}

// parseInt is Python's int(s, base).
func parseInt(s string, base int) (Value, bool) {
	t := strings.TrimFunc(s, isSpace)
	digits := strings.TrimLeft(t, "+-")
	if len(t)-len(digits) > 1 || len(t) > maxDigits || base != 0 && (base < 2 || base > 36) {
		return nil, false
	}
	if len(digits) > 2 && digits[0] == '0' {
		prefix := map[byte]int{'b': 2, 'o': 8, 'x': 16}[digits[1]|0x20]
		if prefix != 0 && (base == prefix || base == 0) {
			digits, base = strings.TrimPrefix(digits[2:], "_"), prefix
		}
	}
	if digits == "" || digits[0] == '_' || digits[len(digits)-1] == '_' || strings.Contains(digits, "__") {
		return nil, false
	}
	if base == 0 {
		base = 10
	}
	digits = strings.ReplaceAll(digits, "_", "")
	if strings.ContainsAny(digits, "+-") {
		return nil, false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, false
	}
	if t[0] == '-' {
		n.Neg(n)
	}
	return newInt(n), true
}

// parseFloat is Python's float(s).
func parseFloat(s string) (float64, bool) {
	t := strings.ToLower(strings.TrimFunc(s, isSpace))
	if strings.HasPrefix(strings.TrimLeft(t, "+-"), "0x") || strings.Contains(t, "p") {
		return 0, false
	}
	if strings.Contains(t, "_") {
		for i := range t {
			if t[i] == '_' && (i == 0 || i == len(t)-1 || digit(t[i-1]) > 9 || digit(t[i+1]) > 9) {
				return 0, false
			}
		}
		t = strings.ReplaceAll(t, "_", "")
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// arith is a binary operation of two numbers.
func (r *run) arith(op string, a, b Value) Value {
	x, okX := a.(Int)
	y, okY := b.(Int)
	if okX && okY {
		if v, ok := smallArith(op, int64(x), int64(y)); ok {
			return v
		}
	}
	m, okM := integer(a)
	n, okN := integer(b)
	if okM && okN {
		return r.bigArith(op, m, n)
	}
	f, _ := float(a)
	g, _ := float(b)
	return floatArith(op, f, g)
}

// smallArith does what 64 bits hold.
func smallArith(op string, x, y int64) (Value, bool) {
	switch op {
	case "+":
		z := x + y
		return Int(z), (z > x) == (y > 0)
	case "-":
		z := x - y
		return Int(z), (z < x) == (y > 0)
	case "*":
		if x > math.MinInt32 && x < math.MaxInt32 && y > math.MinInt32 && y < math.MaxInt32 {
			return Int(x * y), true
		}
	}
	return nil, false
}

func (r *run) bigArith(op string, m, n *big.Int) Value {
	r.spend(1 + (m.BitLen()+n.BitLen())/64)
	z := new(big.Int)
	switch op {
	case "+":
		return newInt(z.Add(m, n))
	case "-":
		return newInt(z.Sub(m, n))
	case "*":
		return newInt(z.Mul(m, n))
	case "/":
		return quotient(m, n)
	case "**":
		return integerPower(m, n)
	}
	if n.Sign() == 0 {
		if op == "//" {
			fail("ZeroDivisionError", "integer division or modulo by zero")
		}
		fail("ZeroDivisionError", "integer modulo by zero")
	}
	q, mod := z.QuoRem(m, n, new(big.Int))
	if mod.Sign() != 0 && mod.Sign() != n.Sign() { // Python rounds down
		q.Sub(q, big.NewInt(1))
		mod.Add(mod, n)
	}
	if op == "//" {
		return newInt(q)
	}
	return newInt(mod)
}

func quotient(m, n *big.Int) Value {
	if n.Sign() == 0 {
		fail("ZeroDivisionError", "division by zero")
	}
	if m.Sign() == 0 {
		return Float(math.Copysign(0, float64(n.Sign())))
	}
	f, _ := new(big.Rat).SetFrac(m, n).Float64()
	if math.IsInf(f, 0) {
		fail("OverflowError", "integer division result too large for a float")
	}
	return Float(f)
}

func integerPower(m, n *big.Int) Value {
	if n.Sign() < 0 {
		f, _ := float(newInt(m))
		g, _ := float(newInt(n))
		return floatArith("**", f, g)
	}
	if m.BitLen() > 1 && (!n.IsInt64() || n.Int64() > int64(maxBits/(m.BitLen()-1))) {
		fail("LimitError", "an integer has more than %d bits", maxBits)
	}
	if m.BitLen() <= 1 && !n.IsInt64() { // 0, 1 or -1: only the parity counts
		n = new(big.Int).And(n, big.NewInt(1))
		n.Add(n, big.NewInt(2))
	}
	return newInt(new(big.Int).Exp(m, n, nil))
}

func floatArith(op string, f, g float64) Value {
	switch op {
	case "+":
		return Float(f + g)
	case "-":
		return Float(f - g)
	case "*":
		return Float(f * g)
	case "**":
		return floatPower(f, g)
	}
	if g == 0 {
		fail("ZeroDivisionError", "%s", map[string]string{"/": "float division by zero",
			"//": "float floor division by zero", "%": "float modulo"}[op])
	}
	if op == "/" {
		return Float(f / g)
	}
	mod := math.Mod(f, g)
	div := (f - mod) / g
	if mod != 0 {
		if (g < 0) != (mod < 0) {
			mod += g
			div--
		}
	} else {
		mod = math.Copysign(0, g)
	}
	if op == "%" {
		return Float(mod)
	}
	if div == 0 {
		return Float(math.Copysign(0, f/g))
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return Float(floor)
}

func floatPower(f, g float64) Value {
	if f == 0 && g < 0 {
		fail("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	if f < 0 && !math.IsInf(f, 0) && g != math.Trunc(g) {
		fail("LimitError", "a negative number to a fractional power: complex numbers are not supported")
	}
	z := math.Pow(f, g)
	if math.IsInf(z, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
		fail("OverflowError", "(34, 'Numerical result out of range')")
	}
	return Float(z)
}

// roundTo is Python's round(v, digits).
func roundTo(v Value, digits int) Value {
	if n, ok := integer(v); ok {
		return roundInt(n, digits)
	}
	f, ok := float(v)
	if !ok {
		fail("TypeError", "type %s doesn't define __round__ method", v.typeName())
	}
	if math.IsInf(f, 0) || math.IsNaN(f) || digits > 323 {
		return Float(f)
	}
	if digits >= 0 {
		z, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
		return Float(z)
	}
	whole, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
	z, _ := float(roundRat(whole, digits))
	return Float(math.Copysign(z, f))
}

func roundInt(n *big.Int, digits int) Value {
	if digits >= 0 {
		return newInt(n)
	}
	return roundRat(new(big.Rat).SetInt(n), digits)
}

// roundRat rounds x to a multiple of 10 to the -digits, digits < 0, ties to even.
func roundRat(x *big.Rat, digits int) Value {
	if digits < -maxDigits {
		return Int(0)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	q := new(big.Rat).Quo(x, new(big.Rat).SetInt(unit))
	floor := new(big.Int).Div(q.Num(), q.Denom())
	rest := q.Sub(q, new(big.Rat).SetInt(floor))
	half := rest.Cmp(big.NewRat(1, 2))
	if half > 0 || half == 0 && floor.Bit(0) == 1 {
		floor.Add(floor, big.NewInt(1))
	}
	return newInt(floor.Mul(floor, unit))
}
