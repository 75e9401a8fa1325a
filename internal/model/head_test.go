package model

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"envace/internal/weights"
)

// The output layer stops when its context ends, whatever is left to do.
func TestHeadIsCancelled(t *testing.T) {
	m := small(t, weights.Qwen3, false)
	h := newHead(m)
	rows := 3 * headRows(m.Config)
	x := make([]float32, rows*m.Config.Width)
	var entries []Entry
	for i := range rows {
		entries = append(entries, Entry{Row: i})
	}
	for _, cancelAt := range []int64{1, int64(headRows(m.Config)) + 1} {
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int64
		err := h.run(ctx, x, nil, entries, func(int, float32) float32 {
			if n.Add(1) == cancelAt {
				cancel()
			}
			return 0
		})
		if most := cancelAt - 1 + int64(headRows(m.Config)); !errors.Is(err, context.Canceled) || n.Load() > most {
			t.Errorf("cancelled at %d: %d of %d entries computed, %v", cancelAt, n.Load(), rows, err)
		}
		cancel()
	}
}
