// Package kernel holds the numeric kernels: plain Go versions that are reference
// and fallback, and fast twins for AVX2 and AVX-512. It knows numbers, not models.
// Wrong shapes panic.
package kernel

import "sync"

// Pool runs the parts of a kernel on a fixed number of threads. The nil Pool
// runs them one after the other. Results never depend on the number of threads.
type Pool struct{ threads int }

// NewPool returns a pool of n threads, n ≥ 1.
func NewPool(n int) *Pool { return &Pool{threads: n} }

// Run calls f(0) … f(n-1), each once, in any order and at once, and returns when
// all have ended.
func (p *Pool) Run(n int, f func(i int)) {
	if p == nil || p.threads <= 1 || n == 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	for range min(p.threads, n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				f(i)
			}
		})
	}
	wg.Wait()
}
