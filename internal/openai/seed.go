package openai

import "envace/internal/seeds"

// ChoiceSeed derives the seed of choice i from the seed of a request; choice 0 keeps it.
func ChoiceSeed(seed uint64, i int) uint64 {
	if i == 0 {
		return seed
	}
	return seeds.At(seed, uint64(i))
}
