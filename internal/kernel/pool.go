// Package kernel holds the numeric kernels: plain Go versions that are reference
// and fallback, and fast twins for AVX2 and AVX-512. It knows numbers, not models.
// Wrong shapes panic.
package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pool runs the parts of a kernel on a fixed number of threads. The nil Pool
// runs them one after the other. Results never depend on the number of threads.
// A Pool may be used from many goroutines at once.
type Pool struct {
	threads int
	isa     ISA
	seats   []seat
}

// NewPool returns a pool of n threads, n ≥ 1, on the instruction set of Select.
func NewPool(n int) *Pool {
	p := &Pool{threads: n}
	if runtime.GOMAXPROCS(0) > 1 {
		p.seats = make([]seat, max(n-1, 0))
	}
	return p
}

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
	r.pool, r.f, r.n = p, f, int64(n)
	r.next.Store(0)
	helpers := min(p.threads, n) - 1
	r.state.Store(int64(helpers) * ticket)
	for range helpers {
		if !p.seated(r) {
			go r.help()
		}
	}
	r.work()
	r.await()
	failed := r.failed.Swap(nil)
	r.pool, r.f = nil, nil
	runs.Put(r)
	if failed != nil {
		panic(*failed)
	}
}

// Products follow each other within microseconds, and to wake a thread takes tens
// of them. So helpers, and callers whose helpers are at work, look out for a while
// before they sleep.
const lookout = 50 * time.Microsecond

// seat is where a helper looks out for the next run: nil where nobody sits.
type seat struct {
	run atomic.Pointer[run]
	_   [56]byte // a cache line each
}

// vacant is what a seat holds whose helper has no run yet.
var vacant = new(run)

// seated gives r to a helper that looks out, if there is one.
func (p *Pool) seated(r *run) bool {
	for i := range p.seats {
		if p.seats[i].run.CompareAndSwap(vacant, r) {
			return true
		}
	}
	return false
}

// next is the run that a helper is given while it looks out, or nil.
func (p *Pool) next() *run {
	for i := range p.seats {
		s := &p.seats[i].run
		if s.CompareAndSwap(nil, vacant) {
			if !p.lookOut(func() bool { return s.Load() != vacant }) && s.CompareAndSwap(vacant, nil) {
				return nil
			}
			return s.Swap(nil)
		}
	}
	return nil
}

// lookOut waits for ok, not for long, and returns whether it came.
func (p *Pool) lookOut(ok func() bool) bool {
	if len(p.seats) == 0 {
		return ok()
	}
	for start := time.Now(); time.Since(start) < lookout; {
		for range 64 {
			if ok() {
				return true
			}
		}
	}
	return ok()
}

// run is one call of Pool.Run under way; it is kept for the next one, so that
// running costs no memory.
type run struct {
	pool   *Pool
	f      func(int)
	n      int64
	next   atomic.Int64
	failed atomic.Pointer[any]
	state  atomic.Int64 // how many of each of the below
	woken  chan struct{}
	help   func()
}

// A helper joins a run with a ticket of it. One that comes late, when the caller has
// withdrawn the tickets, does nothing, or joins the call that has r by then.
const (
	ticket = 1
	atWork = 1 << 31 // helpers that have joined and not left
	asleep = 1 << 62 // the caller, who is to be woken
)

var runs = sync.Pool{New: func() any {
	r := &run{woken: make(chan struct{})}
	r.help = func() {
		for r := r; r != nil && r.join(); {
			p := r.pool
			r.work()
			r.leave()
			r = p.next()
		}
	}
	return r
}}

func (r *run) join() bool {
	for {
		s := r.state.Load()
		if s%atWork == 0 {
			return false
		}
		if r.state.CompareAndSwap(s, s-ticket+atWork) {
			return true
		}
	}
}

// leave is the last that a helper does with r: another call may have it from then on.
func (r *run) leave() {
	woken := r.woken
	if r.state.Add(-atWork) == asleep {
		woken <- struct{}{}
	}
}

// await withdraws the tickets and returns when the helpers have left.
func (r *run) await() {
	r.state.And(^int64(atWork - 1))
	if r.pool.lookOut(func() bool { return r.state.Load() == 0 }) {
		return
	}
	if r.state.Add(asleep) != asleep {
		<-r.woken
	}
	r.state.Store(0)
}

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
