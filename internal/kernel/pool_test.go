package kernel

import (
	"sync/atomic"
	"testing"
)

func TestRunCallsEachOnce(t *testing.T) {
	for name, p := range map[string]*Pool{"nil": nil, "zero": {}, "one": NewPool(1), "two": NewPool(2), "nine": NewPool(9)} {
		t.Run(name, func(t *testing.T) {
			for n := range 40 {
				calls := make([]atomic.Int32, n)
				p.Run(n, func(i int) { calls[i].Add(1) })
				for i := range calls {
					if c := calls[i].Load(); c != 1 {
						t.Fatalf("part %d of %d called %d times", i, n, c)
					}
				}
			}
		})
	}
}

// A Pool is used by many goroutines at once, and a part may run parts of its own.
func TestRunNested(t *testing.T) {
	p := NewPool(3)
	var sum atomic.Int64
	p.Run(8, func(i int) {
		p.Run(8, func(j int) { sum.Add(int64(i * j)) })
	})
	if got := sum.Load(); got != 28*28 {
		t.Errorf("sum %d, want %d", got, 28*28)
	}
}

func TestRunPanics(t *testing.T) {
	for _, p := range []*Pool{nil, NewPool(1), NewPool(4)} {
		for bad := range 6 {
			func() {
				defer func() {
					if x := recover(); x != "bad part" {
						t.Errorf("panic with %v, want the part's", x)
					}
				}()
				p.Run(6, func(i int) {
					if i == bad {
						panic("bad part")
					}
				})
			}()
		}
		p.Run(3, func(int) {})
	}
}
