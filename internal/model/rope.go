package model

import (
	"math"
	"sync"

	"envace/internal/weights"
)

// rope caches the cosines and sines of positions.
type rope struct {
	freq []float32 // one per pair of channels
	mu   sync.Mutex
	tab  *ropeTable
}

// ropeTable has one row of half a head per position.
type ropeTable struct {
	n        int
	cos, sin []float32
}

func newRope(c weights.Config) *rope {
	r := &rope{freq: make([]float32, c.HeadDim/2), tab: &ropeTable{}}
	for i := range r.freq {
		f := 1 / math.Pow(c.RopeTheta, float64(2*i)/float64(c.HeadDim))
		r.freq[i] = float32(slowed(f, c.RopeScaling))
	}
	return r
}

// slowed is Llama 3's scaling: long wavelengths are stretched, short ones kept.
func slowed(f float64, s *weights.Llama3Rope) float64 {
	if s == nil {
		return f
	}
	wave := 2 * math.Pi / f
	switch old := float64(s.OriginalContext); {
	case wave < old/s.HighFreq:
		return f
	case wave > old/s.LowFreq:
		return f / s.Factor
	default:
		mix := (old/wave - s.LowFreq) / (s.HighFreq - s.LowFreq)
		return (1-mix)*f/s.Factor + mix*f
	}
}

// upTo returns a table of at least n positions. Angles are rounded to float32
// before the cosine, as the reference does.
func (r *rope) upTo(n int) *ropeTable {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tab.n >= n {
		return r.tab
	}
	n = max(n, 2*r.tab.n, 64)
	half := len(r.freq)
	t := &ropeTable{n: n, cos: make([]float32, n*half), sin: make([]float32, n*half)}
	for pos := range n {
		for i, f := range r.freq {
			s, c := math.Sincos(float64(float32(pos) * f))
			t.cos[pos*half+i], t.sin[pos*half+i] = float32(c), float32(s)
		}
	}
	r.tab = t
	return t
}

// at returns the row of a position.
func (t *ropeTable) at(pos, half int) (cos, sin []float32) {
	return t.cos[pos*half : (pos+1)*half], t.sin[pos*half : (pos+1)*half]
}
