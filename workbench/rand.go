package workbench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"envace/internal/seeds"
)

// Rand draws the random parts of a task. Equal seeds give equal draws.
type Rand struct {
	rng    *rand.Rand
	firsts []string // words that no entity begins with yet
	people []string // not drawn yet
	note   func(words ...string)
	test   bool // wordings are those for tests
}

func newRand(domain string, seed uint64) *Rand {
	r := &Rand{rng: rand.New(rand.NewPCG(seeds.Of(domain), seed)), test: forTest(seed)}
	r.firsts = r.shuffled(firstWords)
	r.people = r.shuffled(people)
	return r
}

func (r *Rand) shuffled(words []string) []string {
	out := slices.Clone(words)
	r.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// Name draws a new entity, such as amber-fox. No other begins with its first word.
func (r *Rand) Name() string {
	return draw(&r.firsts, "entities") + "-" + secondWords[r.rng.IntN(len(secondWords))]
}

// Slip returns name with another second word, like a user who remembers only half of it.
func (r *Rand) Slip(name string) string {
	first, second, _ := strings.Cut(name, "-")
	other := slices.DeleteFunc(slices.Clone(secondWords), func(w string) bool { return w == second })
	return first + "-" + other[r.rng.IntN(len(other))]
}

// Person draws a person who has not been drawn yet.
func (r *Rand) Person() string { return draw(&r.people, "people") }

func draw(from *[]string, what string) string {
	if len(*from) == 0 {
		panic(fmt.Sprintf("workbench: a state uses more %s than there are", what))
	}
	word := (*from)[0]
	*from = (*from)[1:]
	return word
}

// One draws one of words.
func (r *Rand) One(words ...string) string {
	if r.note != nil {
		r.note(words...)
	}
	return words[r.rng.IntN(len(words))]
}

// Other draws one of words other than word.
func (r *Rand) Other(word string, words []string) string {
	for {
		if w := r.One(words...); w != word {
			return w
		}
	}
}

// Int draws a whole number from lo to hi, both included.
func (r *Rand) Int(lo, hi int) int { return lo + r.rng.IntN(hi-lo+1) }

// Ints draws n different whole numbers from lo to hi.
func (r *Rand) Ints(n, lo, hi int) []int {
	var out []int
	for len(out) < n {
		if k := r.Int(lo, hi); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// Side draws a number from 3 to 97 that is less than limit with probability p.
func (r *Rand) Side(limit int, p float64) int {
	if r.Chance(p) {
		return r.Int(3, limit-1)
	}
	return r.Int(limit, 97)
}

// Limit draws a number that number is less than with probability p.
func (r *Rand) Limit(number int, p float64) int {
	if r.Chance(p) {
		return min(number+r.Int(1, 20), 98)
	}
	return max(number-r.Int(0, 20), 2)
}

// Chance is true with probability p.
func (r *Rand) Chance(p float64) bool { return r.rng.Float64() < p }

// Phrase draws one of several wordings and fills its {slots}. The last third of them
// is for the split "test" alone, the rest for the other splits; fewer than three
// serve all.
func (r *Rand) Phrase(slots Values, wordings ...string) string {
	if r.note != nil {
		r.note(wordings...)
	}
	dealt, known := wordings, len(wordings)-len(wordings)/3
	switch {
	case !r.test:
		dealt = wordings[:known]
	case known < len(wordings):
		dealt = wordings[known:]
	}
	text := dealt[r.rng.IntN(len(dealt))]
	for _, k := range sortedKeys(slots) {
		text = strings.ReplaceAll(text, "{"+k+"}", fmt.Sprint(slots[k]))
	}
	return text
}

// kind draws one of kinds by weight.
func (r *Rand) kind(kinds []Kind) Kind {
	total := 0
	for _, k := range kinds {
		total += k.Weight
	}
	n := r.rng.IntN(total)
	for _, k := range kinds {
		if n -= k.Weight; n < 0 {
			return k
		}
	}
	panic("workbench: unreachable")
}
