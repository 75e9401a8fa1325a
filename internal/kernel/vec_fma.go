package kernel

import "math"

// fma32 returns a·b + c rounded once, as the processor's fused instruction does.
func fma32(a, b, c float32) float32 {
	s := float64(a)*float64(b) + float64(c)
	if twice(s) {
		return fma32Odd(a, b, c)
	}
	return float32(s)
}

// twice tells whether rounding s to float32 may differ from rounding the exact sum
// a·b + c that s stands for. The product of two float32 is exact in float64, so s
// is rounded twice; that goes wrong only where s lies on the middle between two
// float32. Middles of normal numbers end in 1 and 28 zeros; smaller numbers have
// them elsewhere.
func twice(s float64) bool {
	u := math.Float64bits(s)
	return u<<35 == 1<<63 || u<<1-1 < 0x381<<53-1
}

// fma32Odd rounds the sum to odd first, which makes the second rounding right.
func fma32Odd(a, b, c float32) float32 {
	x, y := float64(a)*float64(b), float64(c)
	s := x + y
	t := s - x
	rest := (x - (s - t)) + (y - t) // what the addition lost, exactly
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
