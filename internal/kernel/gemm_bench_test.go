package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkGemm reports GFLOP/s, two a multiply-add. A layout nn has a row-major
// right-hand side, nt its transpose, tn a transposed left-hand side; pk is packed.
func BenchmarkGemm(b *testing.B) {
	for _, s := range []struct {
		m, n, k int
		layout  string
	}{
		{512, 512, 512, "nn"}, {512, 512, 512, "pk"}, {1024, 1024, 1024, "nn"}, {2048, 2048, 2048, "nn"}, {2048, 2048, 2048, "pk"},
		{1024, 1024, 1024, "nt"}, {1024, 1024, 1024, "tn"},
		{3000, 128, 128, "pk"}, {3000, 352, 128, "pk"}, {3000, 128, 352, "pk"}, {3000, 1000, 128, "pk"}, {128, 352, 3000, "tn"},
		{64, 128, 128, "pk"}, {64, 64, 64, "nt"},
		{1, 352, 128, "pk"}, {1, 1000, 128, "pk"}, {1, 2048, 2048, "pk"}, {8, 352, 128, "pk"}, {8, 2048, 2048, "pk"}, {1, 64, 512, "nn"}, {1, 512, 64, "nt"},
	} {
		for _, isa := range available() {
			if isa == Generic && s.m*s.n*s.k > 1<<24 {
				continue
			}
			for threads := 1; threads <= 2; threads++ {
				b.Run(fmt.Sprintf("%dx%dx%d/%s/%v/t%d", s.m, s.n, s.k, s.layout, isa, threads), func(b *testing.B) {
					benchGemm(b, NewPool(threads).on(isa), s.m, s.n, s.k, s.layout)
				})
			}
		}
	}
}

func benchGemm(b *testing.B, p *Pool, m, n, k int, layout string) {
	r := rand.New(rand.NewPCG(1, 1))
	x, w := Mat{numbers(r, m*k), k, 1}, Mat{numbers(r, k*n), n, 1}
	switch layout {
	case "nt":
		w.Row, w.Col = 1, k
	case "tn":
		x.Row, x.Col = 1, m
	}
	c := make([]float32, m*n)
	packed := p.Pack(w, k, n)
	b.ReportAllocs()
	for b.Loop() {
		if layout == "pk" {
			p.GemmPacked(c, n, x, packed, m, false)
		} else {
			p.Gemm(c, n, x, w, m, n, k, false)
		}
	}
	b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
