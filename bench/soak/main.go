// Command soak drives envace serve for as long as one likes with a crowd of clients,
// well-behaved and not, and checks that it stays whole: no answer is malformed or of
// status 5xx, the same seed gets the same answer whatever runs beside it, nothing is
// refused without cause, and memory, open files and goroutines do not grow. It ends
// at the first thing that breaks, with status 1. It reads /proc, so it needs Linux.
//
//	go run ./bench/soak -for 1h
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"time"

	"envace/internal/run"
)

func main() {
	var o options
	flag.DurationVar(&o.length, "for", time.Minute, "`time` to go on for")
	flag.StringVar(&o.model, "model", "recipes/base", "`model` to serve")
	flag.StringVar(&o.envace, "envace", "", "`program` to run (default: built from the source)")
	flag.IntVar(&o.clients, "clients", 24, "`number` of clients")
	flag.Uint64Var(&o.seed, "seed", 1, "`number` that the clients' behaviour is drawn from")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := soak(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "soak: error: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	length  time.Duration
	model   string
	envace  string
	clients int
	seed    uint64
}

// crowd is all clients together.
type crowd struct {
	o     options
	base  string
	model string

	mu     sync.Mutex
	known  map[string]string // answers by question
	counts map[string]int    // of what has come of requests
}

func soak(ctx context.Context, o options) error {
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer s.kill()
	c := &crowd{o: o, base: s.base, model: served, known: map[string]string{}, counts: map[string]int{}}
	progress := run.NewProgress(os.Stderr)
	progress.Stage("soak", 0, int(o.length.Seconds()))
	err = c.rounds(ctx, s, progress)
	if err == nil {
		progress.Done(int(o.length.Seconds()), s.last.String())
	}
	progress.Close()
	if err != nil {
		return fmt.Errorf("%w\nwhat the server said and was at: %s", err, s.confess())
	}
	if err := c.drain(s); err != nil {
		return fmt.Errorf("the end: %w\nwhat the server said and was at: %s", err, s.confess())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[repeated] == 0 || c.counts[refused] == 0 || c.counts[gone] == 0 {
		return fmt.Errorf("too little happened to tell anything: %v", c.counts)
	}
	fmt.Printf("soak: %v, all is well: %d answers, %d of them seen before and equal, %d refused, %d busy, %d left by their clients; %s\n",
		o.length, c.counts[answered], c.counts[repeated], c.counts[refused], c.counts[busy], c.counts[gone], s.last)
	return nil
}

// rounds lets the crowd loose again and again. After each round it is still for a
// moment, and the server is weighed.
func (c *crowd) rounds(ctx context.Context, s *server, p *run.Progress) error {
	const warm = 2 // rounds in which caches fill
	round := min(max(c.o.length/10, 5*time.Second), time.Minute)
	began := time.Now()
	var before figures
	n := 1
	for ; time.Since(began) < c.o.length; n++ {
		until := min(round, c.o.length-time.Since(began))
		if err := c.round(ctx, until, n, func() error { return c.tell(p, s, time.Since(began)) }); err != nil {
			return fmt.Errorf("after %v: %w", time.Since(began).Round(time.Second), err)
		}
		now, err := s.atRest(ctx)
		if err != nil {
			return fmt.Errorf("at rest after %v: %w", time.Since(began).Round(time.Second), err)
		}
		if n == warm {
			before = now
		}
		if n > warm {
			if err := now.grown(before); err != nil {
				return fmt.Errorf("at rest after %v: %w", time.Since(began).Round(time.Second), err)
			}
		}
	}
	if n-1 <= warm {
		return fmt.Errorf("%v was too short to see whether the server grows: it was at rest %d times", c.o.length, n-1)
	}
	return nil
}

// tell shows how it goes, as far as the server answers in time.
func (c *crowd) tell(p *run.Progress, s *server, gone time.Duration) error {
	f, err := s.weigh()
	if err != nil {
		return err
	}
	if seconds := int(gone.Seconds()); seconds == 1 || seconds%10 == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		p.Done(seconds, f.String(), fmt.Sprintf("%d answers", c.counts[answered]), fmt.Sprintf("%d refused", c.counts[refused]), fmt.Sprintf("%d busy", c.counts[busy]))
	}
	return nil
}

// round lets all clients go about their business for a while, and then cuts them all
// off in the midst of it.
func (c *crowd) round(ctx context.Context, length time.Duration, n int, tell func() error) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	ctx, broke := context.WithCancelCause(ctx)
	defer broke(nil)
	var clients sync.WaitGroup
	for i := range c.o.clients {
		clients.Go(func() {
			one := c.client(ctx, rand.New(rand.NewPCG(c.o.seed, uint64(n)<<32|uint64(i))))
			defer one.http.CloseIdleConnections()
			if err := one.live(); err != nil {
				broke(err)
			}
		})
	}
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
		select {
		case <-tick.C:
			if err := tell(); err != nil {
				broke(err)
			}
		case <-ctx.Done():
			tick.Stop()
		}
	}
	clients.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
