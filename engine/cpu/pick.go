package cpu

import (
	"errors"
	"math"
	"slices"
	"sync"

	"envace/engine"
	"envace/internal/kernel"
	"envace/internal/model"
)

// drawn is a token and its log-probabilities, as engine.Sequence has them.
type drawn struct {
	id              int
	logprob, sample float32
	err             error
}

// picker is scratch for one draw.
type picker struct {
	e     []float32 // exponentials
	order []int     // candidates
}

var pickers = sync.Pool{New: func() any { return new(picker) }}

var errLogits = errors.New("the logits are not finite (NaN or infinite): the weights have diverged")

// pick draws token pos of sequence i from the logits z, which it does not modify.
func pick(z []float32, p engine.Params, i, pos int) drawn {
	k := pickers.Get().(*picker)
	defer pickers.Put(k)
	k.e = append(k.e[:0], z...)
	plain := kernel.SoftmaxExp(k.e)
	if !plain.Finite() {
		return drawn{err: errLogits}
	}
	if p.Temperature == 0 {
		id := slices.Index(z, plain.Max)
		return drawn{id: id, logprob: plain.Logprob(z[id])}
	}
	rnd := model.NewRand(p.Seed, uint64(i), uint64(pos))
	if p.Temperature != 1 {
		copy(k.e, z)
		kernel.Scale(k.e, float32(1/p.Temperature))
		if !kernel.SoftmaxExp(k.e).Finite() {
			// The temperature is so low that the logits overflow: the limit is greedy.
			id := slices.Index(z, plain.Max)
			return drawn{id: id, logprob: plain.Logprob(z[id])}
		}
	}
	id, lp := k.draw(p, rnd.Float64())
	return drawn{id: id, logprob: plain.Logprob(z[id]), sample: lp}
}

// draw picks from the exponentials e after truncation, with u in [0, 1).
func (k *picker) draw(p engine.Params, u float64) (id int, logprob float32) {
	low := k.cut(p)
	var total float64
	last := 0
	for i, v := range k.e {
		if v >= low && v > 0 {
			total += float64(v)
			last = i
		}
	}
	at := u * total
	for i, v := range k.e[:last] {
		if v >= low && v > 0 {
			if at -= float64(v); at < 0 {
				last = i
				break
			}
		}
	}
	return last, float32(math.Log(float64(k.e[last]) / total))
}

// cut returns the smallest exponential that top-k, top-p and min-p keep. The
// largest is 1.
func (k *picker) cut(p engine.Params) float32 {
	var low float32
	if p.TopK > 0 && p.TopK < len(k.e) {
		low = k.kth(p.TopK)
	}
	if p.TopP > 0 && p.TopP < 1 {
		low = max(low, k.nucleus(p.TopP, low))
	}
	return max(low, float32(p.MinP))
}

// kth returns the n-th largest exponential.
func (k *picker) kth(n int) float32 {
	k.candidates(0)
	return k.e[k.order[n-1]]
}

// nucleus returns the smallest exponential in the top-p set, computed over the
// tokens whose exponential is at least low.
func (k *picker) nucleus(p float64, low float32) float32 {
	var total float64
	for _, v := range k.e {
		if v >= low {
			total += float64(v)
		}
	}
	// Tokens below this value hold less than 1−p in total, so they are cut anyway.
	k.candidates(max(low, float32((1-p)*total/float64(len(k.e))*0.999)))
	var sum float64
	for _, i := range k.order {
		if sum += float64(k.e[i]); sum >= p*total {
			return k.e[i]
		}
	}
	return low
}

// candidates sorts the tokens whose exponential is at least low, likeliest first.
func (k *picker) candidates(low float32) {
	k.order = k.order[:0]
	for i, v := range k.e {
		if v >= low {
			k.order = append(k.order, i)
		}
	}
	slices.SortFunc(k.order, func(a, b int) int {
		switch x, y := k.e[a], k.e[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return a - b
	})
}
