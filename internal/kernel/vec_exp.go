package kernel

import "math"

// e^x = 2^n·e^r with n = x/ln 2 rounded and |r| ≤ ln 2/2; e^r is
// 1 + r + r²·q(r), q of degree 4 and minimax for the relative error (3e-9). The
// assembly has the same numbers.
const (
	expLow   = -104 // e^x rounds to 0 here and below
	expHigh  = 89   // and to +Inf here and above
	log2E    = 1.44269502
	ln2High  = 0.693359375 // few bits: n·ln2High is exact
	ln2Low   = -2.12194442e-4
	expRound = 3 << 22 // adding it rounds to an integer, kept in the low bits
	expQ0    = 0.49999994
	expQ1    = 0.16666521
	expQ2    = 0.041668389
	expQ3    = 0.0083687352
	expQ4    = 0.0013814559
)

// exp32 returns e^x, computed in the same steps as the vector versions.
func exp32(x float32) float32 {
	switch {
	case x < expLow:
		x = expLow
	case x > expHigh:
		x = expHigh
	case x != x:
		return x
	}
	t := fma32(x, log2E, expRound)
	n := int32(math.Float32bits(t)) - int32(math.Float32bits(expRound))
	f := t - expRound
	r := fma32(f, -ln2High, x)
	r = fma32(f, -ln2Low, r)
	q := fma32(expQ4, r, expQ3)
	q = fma32(q, r, expQ2)
	q = fma32(q, r, expQ1)
	q = fma32(q, r, expQ0)
	p := fma32(q, float32(r*r), r) + 1
	return p * pow2(n>>1) * pow2(n-n>>1)
}

// pow2 returns 2^n, −126 ≤ n ≤ 127. A product of two factors covers a wider range than
// one, and only the last multiplication rounds.
func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }
