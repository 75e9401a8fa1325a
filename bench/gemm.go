//go:build ignore

// Command gemm multiplies matrices for gemm.py: for each line
// "m n k threads times" of its input it answers the seconds that the fastest of
// so many products (m, k)·(k, n) took. With m of at most 64 the right-hand side
// is packed beforehand, as the weights are when sampling.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"envace/internal/kernel"
)

// packedRows is the greatest m whose right-hand side is packed beforehand.
const packedRows = 64

func main() {
	if _, err := kernel.Select(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m, n, k, threads, times int
		if _, err := fmt.Sscan(in.Text(), &m, &n, &k, &threads, &times); err != nil {
			fmt.Fprintln(os.Stderr, "read a line \"m n k threads times\":", err)
			os.Exit(1)
		}
		fmt.Println(fastest(m, n, k, threads, times).Seconds())
	}
}

func fastest(m, n, k, threads, times int) time.Duration {
	a, b, c := numbers(0, m*k), numbers(1, k*n), room(2, m*n)
	pool, best := kernel.NewPool(threads), time.Hour
	am, bm := kernel.Mat{Data: a, Row: k, Col: 1}, kernel.Mat{Data: b, Row: n, Col: 1}
	product := func() { pool.Gemm(c, n, am, bm, m, n, k, false) }
	if m <= packedRows {
		w := pool.Pack(bm, k, n)
		product = func() { pool.GemmPacked(c, n, am, w, m, false) }
	}
	for range times {
		start := time.Now()
		product()
		best = min(best, time.Since(start))
	}
	return best
}

// memory keeps a, b and c between products: fresh pages would be timed with them.
var memory [3][]float32

func room(i, n int) []float32 {
	if cap(memory[i]) < n {
		memory[i] = make([]float32, n)
	}
	return memory[i][:n]
}

func numbers(i, n int) []float32 {
	x := room(i, n)
	for j := range x {
		x[j] = float32(j%31) - 15
	}
	return x
}
