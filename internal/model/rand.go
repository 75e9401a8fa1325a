package model

import (
	"math"

	"envace/internal/seeds"
)

// Rand is a counter-based random number generator: its stream depends only on the
// numbers it was created from (SplitMix64, Steele et al. 2014).
type Rand struct{ state uint64 }

// NewRand returns the generator for a tuple of numbers.
func NewRand(parts ...uint64) Rand {
	state := uint64(len(parts))
	for _, p := range parts {
		state = seeds.Mix(state+seeds.Golden) ^ seeds.Mix(p*seeds.Golden+1)
	}
	return Rand{seeds.Mix(state)}
}

// Uint64 returns the next 64 bits.
func (r *Rand) Uint64() uint64 {
	r.state += seeds.Golden
	return seeds.Mix(r.state)
}

// Float64 returns a uniform number in [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Normal returns a standard normal number (Box and Muller 1958).
func (r *Rand) Normal() float64 {
	u := 1 - r.Float64()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*r.Float64())
}
