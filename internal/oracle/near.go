package oracle

import (
	"math"
	"testing"
)

// Near fails unless max|got−want| ≤ tol·max|want|.
func Near(t testing.TB, what string, got, want []float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	var diff, size float64
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		if d > diff || d != d {
			diff = d
		}
		size = max(size, math.Abs(float64(w)))
	}
	if !(diff <= tol*size) {
		t.Errorf("%s: off by %g of %g", what, diff, size)
	}
}
