package run

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Resamples is the default number of resamples for PairedBootstrap.
const Resamples = 10_000

// Wilson returns the 95 % confidence interval of the rate k/n (Wilson 1927). It
// stays in [0, 1] and is meaningful at k = 0 and k = n. For n = 0 it is [0, 1].
func Wilson(k, n int) (lo, hi float64) {
	if n <= 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, mid-half), min(1, mid+half)
}

// PairedBootstrap returns mean(a) − mean(b) and its 95 % percentile interval over
// reps resamples of the tasks. a[i] and b[i] are the success of two systems on task
// i. The result is deterministic. It is 0 without tasks or resamples. PairedBootstrap
// panics if the lengths differ.
func PairedBootstrap(a, b []bool, seed uint64, reps int) (diff, lo, hi float64) {
	if len(a) != len(b) {
		panic("run: PairedBootstrap: slices of different lengths")
	}
	if len(a) == 0 || reps <= 0 {
		return 0, 0, 0
	}
	d := make([]int8, len(a))
	sum := 0
	for i := range a {
		d[i] = bit(a[i]) - bit(b[i])
		sum += int(d[i])
	}
	rng := rand.New(rand.NewPCG(seed, 0x70616972))
	sums := make([]int, reps)
	for r := range sums {
		for range d {
			sums[r] += int(d[rng.IntN(len(d))])
		}
	}
	slices.Sort(sums)
	n := float64(len(a))
	return float64(sum) / n, quantile(sums, 0.025) / n, quantile(sums, 0.975) / n
}

func bit(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// quantile interpolates between the two nearest of the sorted values.
func quantile(sorted []int, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return float64(sorted[len(sorted)-1])
	}
	return float64(sorted[i]) + (at-float64(i))*float64(sorted[i+1]-sorted[i])
}
