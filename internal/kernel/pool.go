// Package kernel holds the numeric kernels: plain Go versions as reference and
// fallback, and fast versions for AVX2 and AVX-512. It deals with numbers, not
// models. Wrong shapes panic.
package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pool runs the parts of a kernel on a fixed number of threads. The nil Pool runs
// them sequentially. Results never depend on the number of threads. A Pool is safe
// for concurrent use.
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

// Run calls f(0) … f(n-1) once each, concurrently and in any order, and returns when
// all have finished. The caller's goroutine takes part. If f panics, Run panics with
// the same value after the other running calls have finished.
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

// Products follow each other within microseconds, but waking a thread takes tens of
// microseconds. So helpers that wait for work, and callers that wait for helpers,
// spin for this time before they sleep.
const lookout = 50 * time.Microsecond

// seat is a slot in which a spinning helper waits for the next run; nil if free.
type seat struct {
	run atomic.Pointer[run]
	_   [56]byte // one cache line per seat
}

// vacant marks a seat whose helper has no run yet.
var vacant = new(run)

// seated hands r to a spinning helper and reports whether there was one.
func (p *Pool) seated(r *run) bool {
	for i := range p.seats {
		if p.seats[i].run.CompareAndSwap(vacant, r) {
			return true
		}
	}
	return false
}

// next spins for the helper's next run and returns it, or nil after a timeout.
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

// lookOut spins until ok is true or a timeout, and returns the last value of ok.
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

// run is one running call of Pool.Run. It is reused, so that Run does not allocate.
type run struct {
	pool   *Pool
	f      func(int)
	n      int64
	next   atomic.Int64
	failed atomic.Pointer[any]
	state  atomic.Int64 // counts of tickets, atWork and asleep, packed
	woken  chan struct{}
	help   func()
}

// A helper takes a ticket to join a run. A late helper, which comes after the caller
// has withdrawn the tickets, does nothing, or joins the call that uses r by then.
const (
	ticket = 1
	atWork = 1 << 31 // helpers that have joined and not left
	asleep = 1 << 62 // set if the caller sleeps and must be woken
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

// leave ends the helper's use of r, which another call may use from then on.
func (r *run) leave() {
	woken := r.woken
	if r.state.Add(-atWork) == asleep {
		woken <- struct{}{}
	}
}

// await withdraws the remaining tickets and waits until the helpers have left.
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
