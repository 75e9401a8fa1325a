package run

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The expected intervals are the textbook formula, worked by hand.
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		k, n   int
		lo, hi float64
	}{
		{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {81, 263, 0.2553, 0.3662}, {1, 1, 0.2065, 1},
	} {
		lo, hi := Wilson(tt.k, tt.n)
		if math.Abs(lo-tt.lo) > 5e-5 || math.Abs(hi-tt.hi) > 5e-5 {
			t.Errorf("Wilson(%d, %d) = %.4f, %.4f; want %.4f, %.4f", tt.k, tt.n, lo, hi, tt.lo, tt.hi)
		}
	}
}

func TestWilsonHoldsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		lo, hi := Wilson(k, n)
		if p := float64(k) / float64(n); !(0 <= lo && lo <= p+1e-12 && p-1e-12 <= hi && hi <= 1) {
			t.Fatalf("Wilson(%d, %d) = %v, %v", k, n, lo, hi)
		}
		if mlo, mhi := Wilson(n-k, n); math.Abs(mlo-(1-hi)) > 1e-9 || math.Abs(mhi-(1-lo)) > 1e-9 {
			t.Fatalf("failures do not mirror successes: %v, %v against %v, %v", mlo, mhi, lo, hi)
		}
	})
}

func TestPairedBootstrap(t *testing.T) {
	a, b := outcomes(70, 100), outcomes(50, 100)
	diff, lo, hi := PairedBootstrap(a, b, 1, Resamples)
	// The difference has 20 ones and 80 zeros: a standard error of 0.04.
	if diff != 0.2 || math.Abs(lo-0.12) > 0.015 || math.Abs(hi-0.28) > 0.015 {
		t.Errorf("got %v [%v, %v], want 0.2 [0.12, 0.28]", diff, lo, hi)
	}
	if d, l, h := PairedBootstrap(a, b, 1, Resamples); d != diff || l != lo || h != hi {
		t.Error("the same seed gave another interval")
	}
	if d, l, h := PairedBootstrap(a, a, 1, 100); d != 0 || l != 0 || h != 0 {
		t.Errorf("a system against itself: %v [%v, %v]", d, l, h)
	}
	if d, l, h := PairedBootstrap(nil, nil, 1, 100); d != 0 || l != 0 || h != 0 {
		t.Errorf("without tasks: %v [%v, %v]", d, l, h)
	}
}

// Of 95 % intervals of two equal systems, about 95 % hold 0.
func TestPairedBootstrapCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const trials = 200
	held := 0
	for range trials {
		a, b := make([]bool, 60), make([]bool, 60)
		for i := range a {
			a[i], b[i] = rng.Float64() < 0.6, rng.Float64() < 0.6
		}
		if _, lo, hi := PairedBootstrap(a, b, 9, 400); lo <= 0 && 0 <= hi {
			held++
		}
	}
	if rate := float64(held) / trials; rate < 0.90 || rate > 0.99 {
		t.Errorf("%.0f %% of the intervals hold the truth, want about 95 %%", 100*rate)
	}
}
