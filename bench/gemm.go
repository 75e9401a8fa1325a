//go:build ignore

// Command gemm multiplies square matrices for gemm.py: for each line
// "n threads times" of its input it answers the seconds that the fastest of so
// many products took.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"envace/internal/kernel"
)

func main() {
	if _, err := kernel.Select(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	in := bufio.NewScanner(os.Stdin)
	var a, b, c []float32
	for in.Scan() {
		var n, threads, times int
		if _, err := fmt.Sscan(in.Text(), &n, &threads, &times); err != nil {
			fmt.Fprintln(os.Stderr, "read a line \"n threads times\":", err)
			os.Exit(1)
		}
		if len(a) != n*n {
			a, b, c = numbers(n*n), numbers(n*n), make([]float32, n*n)
		}
		pool, best := kernel.NewPool(threads), time.Hour
		for range times {
			start := time.Now()
			pool.Gemm(c, n, kernel.Mat{Data: a, Row: n, Col: 1}, kernel.Mat{Data: b, Row: n, Col: 1}, n, n, n, false)
			best = min(best, time.Since(start))
		}
		fmt.Println(best.Seconds())
	}
}

func numbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%31) - 15
	}
	return x
}
