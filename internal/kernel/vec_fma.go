package kernel

import "math"

// fma32 returns a·b + c rounded once, like the processor's fused instruction.
func fma32(a, b, c float32) float32 {
	s := float64(a)*float64(b) + float64(c)
	if twice(s) {
		return fma32Odd(a, b, c)
	}
	return float32(s)
}

// twice reports whether rounding s to float32 may differ from rounding the exact sum
// a·b + c. The product of two float32 is exact in float64, but s is then rounded
// twice. The result differs only if s is the midpoint between two float32. Midpoints
// of normal numbers end in a 1 and 28 zeros; those of subnormal numbers end differently.
func twice(s float64) bool {
	u := math.Float64bits(s)
	return u<<35 == 1<<63 || u<<1-1 < 0x381<<53-1
}

// fma32Odd rounds the sum to odd first, which makes the second rounding correct.
func fma32Odd(a, b, c float32) float32 {
	x, y := float64(a)*float64(b), float64(c)
	s := x + y
	t := s - x
	rest := (x - (s - t)) + (y - t) // the exact rounding error of the addition
	u := math.Float64bits(s)
	if rest != 0 && u&1 == 0 {
		if (rest > 0) == (s > 0) {
			u++
		} else {
			u--
		}
	}
	return float32(math.Float64frombits(u))
}
