package kernel

import "math"

// fma32 returns a·b + c rounded once, as the processor's fused instruction does.
// The product of two float32 is exact in float64; the sum is rounded twice, which
// goes wrong only when the first rounding lands on the middle between two float32.
func fma32(a, b, c float32) float32 {
	s := float64(a)*float64(b) + float64(c)
	// Middles of normal numbers end in 1 and 28 zeros; smaller numbers have them
	// elsewhere.
	if u := math.Float64bits(s); u<<35 == 1<<63 || u<<1 < 0x381<<53 {
		return fma32Odd(a, b, c, s)
	}
	return float32(s)
}

// fma32Odd rounds the sum s of fma32 to odd first, which makes the second
// rounding right.
func fma32Odd(a, b, c float32, s float64) float32 {
	x, y := float64(a)*float64(b), float64(c)
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
