package openai

// ChoiceSeed derives the seed of choice i from the seed of a request; choice 0 keeps it.
func ChoiceSeed(seed uint64, i int) uint64 {
	if i == 0 {
		return seed
	}
	z := seed + uint64(i)*0x9E3779B97F4A7C15 // as splitmix64 derives seeds
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
