package synth

import (
	"math/rand/v2"
	"strconv"

	"envace/engine"
	"envace/workbench/domains"
)

// copied is how many words a copying row repeats.
const copied = 24

// Copying draws n copying rows: words in random order, some other words, and the first
// words again. words are token ids, one per word. Only the repetition has a loss; the
// total weight of all rows is share.
func Copying(r *rand.Rand, words []int, n int, share float64) []engine.Datum {
	data := make([]engine.Datum, n)
	for i := range data {
		data[i] = copyRow(r, words, share/float64(n*(copied-1)))
	}
	return data
}

func copyRow(r *rand.Rand, words []int, w float64) engine.Datum {
	first := make([]int, copied)
	for i := range first {
		first[i] = words[r.IntN(len(words))]
	}
	tokens := append([]int{}, first...)
	for range r.IntN(9) {
		tokens = append(tokens, words[r.IntN(len(words))])
	}
	start := len(tokens)
	tokens = append(tokens, first...)
	n := len(tokens) - 1
	d := engine.Datum{Input: tokens[:n], Target: tokens[1:], Weight: make([]float32, n)}
	for i := start; i < n; i++ { // the first repeated word cannot be predicted
		d.Weight[i] = float32(w)
	}
	return d
}

// Words returns the words that must be single tokens of a new tokenizer: the words of the
// workbench and the numbers that occur in it. (Numbers of two tokens were copied wrongly
// more often than not.)
func Words() []string {
	words := domains.Words()
	for n := range 100 {
		words = append(words, strconv.Itoa(n))
	}
	return words
}
