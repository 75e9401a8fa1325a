// Package kernel holds the numeric kernels: plain Go versions that are reference
// and fallback, and fast twins for AVX2 and AVX-512. It knows numbers, not models.
// Wrong shapes panic.
package kernel

import (
	"sync"
	"sync/atomic"
)

// Pool runs the parts of a kernel on a fixed number of threads. The nil Pool
// runs them one after the other. Results never depend on the number of threads.
// A Pool may be used from many goroutines at once.
type Pool struct {
	threads int
	isa     ISA
}

// NewPool returns a pool of n threads, n ≥ 1, on the instruction set of Select.
func NewPool(n int) *Pool { return &Pool{threads: n} }

// Threads returns the number of threads, 1 for the nil Pool.
func (p *Pool) Threads() int {
	if p == nil {
		return 1
	}
	return max(p.threads, 1)
}

// set is the instruction set of the pool's matrix products.
func (p *Pool) set() ISA {
	if p == nil || p.isa == 0 {
		return selected()
	}
	return p.isa
}

// Run calls f(0) … f(n-1), each once, in any order and at once, and returns when
// all have ended. The caller's goroutine works too. When f panics, Run panics with
// the same value, after the other calls under way have ended.
func (p *Pool) Run(n int, f func(i int)) {
	if n <= 1 || p.Threads() == 1 {
		for i := range n {
			f(i)
		}
		return
	}
	r := runs.Get().(*run)
	r.f, r.n = f, int64(n)
	r.next.Store(0)
	helpers := min(p.threads, n) - 1
	r.helpers.Add(helpers)
	for range helpers {
		go r.help()
	}
	r.work()
	r.helpers.Wait()
	failed := r.failed.Swap(nil)
	r.f = nil
	runs.Put(r)
	if failed != nil {
		panic(*failed)
	}
}

// run is one call of Pool.Run under way; it is kept for the next one, so that
// running costs no memory.
type run struct {
	f       func(int)
	n       int64
	next    atomic.Int64
	failed  atomic.Pointer[any]
	helpers sync.WaitGroup
	help    func()
}

var runs = sync.Pool{New: func() any {
	r := new(run)
	r.help = func() {
		defer r.helpers.Done()
		r.work()
	}
	return r
}}

func (r *run) work() {
	defer func() {
		if x := recover(); x != nil {
			r.failed.CompareAndSwap(nil, &x)
			r.next.Store(r.n)
		}
	}()
	for {
		i := r.next.Add(1) - 1
		if i >= r.n {
			return
		}
		r.f(int(i))
	}
}
