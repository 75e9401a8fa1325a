package cpu

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

// needed reads the size that an error of memory asks for.
func needed(t *testing.T, err error) int64 {
	t.Helper()
	if !errors.Is(err, engine.ErrMemory) {
		t.Fatalf("error %v, want ErrMemory", err)
	}
	m := regexp.MustCompile(`\((\d+) bytes\)$`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("error %q does not end with the size that is needed", err)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A budget that is too small says what would do, for a model as for a row or a
// sequence of it, and that does.
func TestMemoryTooSmall(t *testing.T) {
	ctx := context.Background()
	cfg := tiny(weights.Qwen3)
	cfg.Context = 2000
	open := func(bytes int64, o Options) (*Engine, error) {
		o.Memory = bytes
		return New(cfg, o)
	}
	for name, o := range map[string]Options{"all weights": {}, "lora": {LoRA: &LoRA{Rank: 2, Alpha: 4}}, "little cache": {CacheTokens: 300}} {
		t.Run(name, func(t *testing.T) {
			_, err := open(1000, o)
			least := needed(t, err)
			if _, err = open(least-1, o); needed(t, err) != least {
				t.Errorf("%d bytes are asked for, and then %d", least, needed(t, err))
			}
			row, refused := make([]int, 1500), 0
			data := []engine.Datum{{Input: row, Weight: make([]float32, len(row))}}
			for what, call := range map[string]func(e *Engine) error{
				"forward backward": func(e *Engine) error { return second(e.ForwardBackward(ctx, data, goldenPPO)) },
				"logprobs":         func(e *Engine) error { return second(sampler(t, e).Logprobs(ctx, [][]int{row})) },
				"sample": func(e *Engine) error {
					return second(sampler(t, e).Sample(ctx, row, 1, engine.Params{MaxTokens: 1}))
				},
			} {
				e, err := open(least, o)
				if err != nil {
					t.Fatal(err)
				}
				err = call(e)
				if err == nil {
					continue
				}
				refused++
				more := needed(t, err)
				if e, err = open(more, o); err != nil {
					t.Fatal(err)
				}
				if err := call(e); err != nil {
					t.Errorf("%s with the %d bytes that were asked for: %v", what, more, err)
				}
			}
			if refused == 0 {
				t.Error("the least budget has room for everything")
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// An engine keeps to its budget, and what it computes does not depend on it.
func TestMemoryIsKept(t *testing.T) {
	cfg := tiny(weights.Llama)
	cfg.Context, cfg.MLP = 2048, 96
	rnd := model.NewRand(6)
	data := forestData(&rnd, forestRows(&rnd, 40, 450, 3))
	var list []request
	for range 30 {
		list = append(list, request{randomIDs(&rnd, 400, 37), 2, engine.Params{MaxTokens: 3, Temperature: 1}})
	}
	run := func(memory int64) (res engine.Result, drawn [][]engine.Sequence, live int64) {
		before := heap()
		e, err := New(cfg, Options{Memory: memory, InitStd: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		drawn = sampleAll(t, sampler(t, e), list)
		res = forwardBackward(t, e, data, goldenPPO)
		logprobs(t, e, [][]int{list[0].prompt, list[1].prompt})
		optimStep(t, e)
		live = heap() - before
		runtime.KeepAlive(e)
		return res, drawn, live
	}
	const tight = 34 << 20
	res, drawn, live := run(tight)
	if live > tight {
		t.Errorf("%s are held, with a budget of %s", mib(live), mib(tight))
	}
	t.Logf("%s of %s, %d tokens computed", mib(live), mib(tight), res.TokensComputed)
	free, same, _ := run(0)
	for i := range drawn {
		if !sameSequences(drawn[i], same[i]) {
			t.Errorf("call %d draws other tokens within a budget", i)
		}
	}
	for i := range data {
		if !sameBits(res.Logprobs[i], free.Logprobs[i]) {
			t.Errorf("row %d has other log-probabilities within a budget", i)
		}
	}
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
