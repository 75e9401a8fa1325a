package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkVec reports the time of a number, at a size that the first cache holds.
func BenchmarkVec(b *testing.B) {
	const n = 1024
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range vecCases {
		for _, s := range available() {
			var x [5][]float32
			for i := range x {
				x[i] = numbers(r, n)
				for j := range x[i] {
					x[i][j] *= 0.01
				}
			}
			b.Run(fmt.Sprintf("%s/%v", c.name, s), func(b *testing.B) {
				for b.Loop() {
					c.run(s, x)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/number")
			})
		}
	}
}
