// Package seeds derives the random seed of each draw from its purpose, so that no draw
// depends on what else runs concurrently.
package seeds

import "hash/fnv"

// Golden is 2⁶⁴ divided by the golden ratio, the increment of splitmix64.
const Golden = 0x9E3779B97F4A7C15

// Derive returns the seed derived from parts, such as (run, step, task, member, turn,
// role). Every part and its position matter.
func Derive(parts ...uint64) uint64 {
	h := uint64(Golden)
	for _, p := range parts {
		h = Mix(h ^ Mix(p+Golden))
	}
	return h
}

// Of hashes text, such as a task's ID, to a part for Derive (FNV-1a).
func Of(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// At returns element i of the splitmix64 sequence that starts at s (Steele, Lea & Flood
// 2014).
func At(s, i uint64) uint64 { return Mix(s + i*Golden) }

// Mix is the finaliser of splitmix64.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
