package cpu

import (
	"context"
	"errors"
	"testing"
	"time"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
	"go.uber.org/goleak"
)

// Whenever a call is cancelled, it ends as cancelled, leaves no gradient, no
// sequence and no goroutine, and the next one finds what it would have found.
func TestCancelledAnywhere(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	e := lively(t, weights.Qwen3, Options{BatchTokens: 30, CacheTokens: 640})
	rnd := model.NewRand(21)
	rows := forestRows(&rnd, 8, 60, 4)
	data := forestData(&rnd, rows)
	s := sampler(t, e)
	p := engine.Params{MaxTokens: 10, Temperature: 1}
	want := sample(t, s, rows[0], 4, p)
	wantRows := logprobs(t, e, rows)
	wantData := forwardBackward(t, e, data, goldenPPO)
	wantG := gradients(e)
	idle := func() {
		for busy(s) {
			time.Sleep(time.Millisecond)
		}
		if n := len(s.batch.active) + len(s.batch.waiting) + len(s.incoming); n > 0 {
			t.Fatalf("%d sequences of a cancelled call are left", n)
		}
		if n := norm(gradients(e)); n > 0 {
			t.Fatalf("a cancelled call left a gradient of norm %g", n)
		}
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"sample": func(ctx context.Context) error {
			got, err := s.Sample(ctx, rows[0], 4, p)
			if err == nil && !sameSequences(got, want) {
				t.Error("sample: other sequences than before")
			}
			return err
		},
		"logprobs": func(ctx context.Context) error {
			got, err := s.Logprobs(ctx, rows)
			for i := range got {
				if err == nil && !sameBits(got[i], wantRows[i]) {
					t.Errorf("logprobs: row %d is not as before", i)
				}
			}
			return err
		},
		"forward backward": func(ctx context.Context) error {
			got, err := e.ForwardBackward(ctx, data, goldenPPO)
			if err == nil && (got.Loss != wantData.Loss || relative(gradients(e), wantG) != 0) {
				t.Error("forward backward: another loss or gradient than before")
			}
			return err
		},
	} {
		began := time.Now()
		if err := call(context.Background()); err != nil {
			t.Fatal(err)
		}
		whole := time.Since(began)
		cancelled := 0
		const moments = 25
		for i := range moments {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(whole*time.Duration(i)/moments, cancel)
			if i == 0 {
				cancel()
			}
			err := call(ctx)
			cancel()
			idle()
			if err != nil {
				cancelled++
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: error %v, want context.Canceled", name, err)
			}
		}
		if cancelled == 0 {
			t.Errorf("%s was never cancelled", name)
		}
	}
}

// What a cancelled call held is free for the next one, before it would have ended.
func TestCancellationFreesMemory(t *testing.T) {
	s := sampler(t, lively(t, weights.Qwen3, Options{CacheTokens: 1}))
	rnd := model.NewRand(4)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tokens := 0
	first := newCall(ctx, randomIDs(&rnd, 60, 37), 1, engine.Params{Temperature: 1})
	first.watch = &engine.Watch{Each: func(engine.Token) {
		if tokens++; tokens == 3 {
			cancel()
		}
	}}
	second := newCall(context.Background(), randomIDs(&rnd, 150, 37), 1, engine.Params{MaxTokens: 2})
	carryOut(s, first, second)
	if tokens > 3 || !errors.Is(first.err, context.Canceled) {
		t.Errorf("a cancelled call drew %d tokens and ended with %v", tokens, first.err)
	}
	if second.err != nil || len(second.out[0].Tokens) != 2 {
		t.Errorf("the call that waited: %+v, %v", second.out, second.err)
	}
	if got := s.decoder.Cache().Tokens(); got > 256 {
		t.Errorf("the cache has grown to %d tokens", got)
	}
}

// carryOut has a sampler of its own goroutine take calls in order, all at once.
func carryOut(s *Sampler, calls ...*call) {
	s.mu.Lock()
	s.incoming = append(s.incoming, calls...)
	s.running = true
	s.mu.Unlock()
	s.run()
}

// A call that is cancelled while it waits behind another ends at once.
func TestCancelledWhileItWaits(t *testing.T) {
	e := lively(t, weights.Qwen3, Options{})
	s := sampler(t, e)
	rnd := model.NewRand(2)
	rows := forestRows(&rnd, 4, 40, 8)
	data := forestData(&rnd, rows)
	want := forwardBackward(t, e, data, goldenPPO)
	gradients(e)
	for name, call := range map[string]func(ctx context.Context) error{
		"logprobs":         func(ctx context.Context) error { _, err := s.Logprobs(ctx, rows); return err },
		"forward backward": func(ctx context.Context) error { _, err := e.ForwardBackward(ctx, data, goldenPPO); return err },
		"optimiser step":   func(ctx context.Context) error { _, err := e.OptimStep(ctx, adam); return err },
		"save":             func(ctx context.Context) error { return e.Save(ctx, t.TempDir()+"/x") },
	} {
		e.state.eval <- struct{}{} // another is under way
		e.train <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		time.Sleep(5 * time.Millisecond)
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s waits on", name)
		}
		e.state.eval.leave()
		e.train.leave()
	}
	if got := forwardBackward(t, e, data, goldenPPO); got.Loss != want.Loss {
		t.Errorf("loss %g after cancelled calls, %g before", got.Loss, want.Loss)
	}
}
