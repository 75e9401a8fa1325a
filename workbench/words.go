package workbench

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The words that all domains share. The name of an entity is a first and a second word,
// such as amber-fox. Neither is used for anything else, and no two entities of a state
// have the same first word: a small model can learn to copy such names.
var (
	firstWords = strings.Fields(`amber azure brave bright bronze calm cedar clever cobalt copper coral
		cosmic crimson crystal dusty eager fancy fern gentle giant golden grand hazel hollow honey humble
		icy indigo ivory jade jolly keen lemon lilac lively lunar maple mellow misty mossy noble olive opal
		pearl plum polar proud quick quiet rapid rosy royal ruby rusty scarlet shiny silver sunny teal tidy
		velvet violet wild zesty`)
	secondWords = strings.Fields(`fox owl bear wolf hawk deer crane otter seal crow lynx moth toad hare
		swan mole pond hill leaf rock star moon lake oak pine reed bell drum lamp kite sail mask`)
	people = strings.Fields(`ana bruno carla diego elena felix greta hugo irene jonas karin leo maria nora
		oscar paula quentin rosa sofia tomas ursula victor wanda xavier yara zoe amir bella cyrus dora emil
		fiona`)
)

// Names returns the first and second words of entity names.
func Names() (first, second []string) { return slices.Clone(firstWords), slices.Clone(secondWords) }

// People returns the people whom [Rand.Person] draws.
func People() []string { return slices.Clone(people) }

// Words returns all words that can occur in tasks of the domains, sorted: words of texts,
// keys and values, and names split at underscores and hyphens. Digits are not words. It
// generates and plays many tasks, so callers should keep the result.
func Words(domains ...Domain) []string {
	set := map[string]bool{}
	note := func(text string) {
		for _, w := range letters(text) {
			set[w] = true
		}
	}
	for _, list := range [][]string{firstWords, secondWords, people} {
		note(strings.Join(list, " "))
	}
	for _, d := range domains {
		d.words(note)
	}
	return slices.Sorted(maps.Keys(set))
}

// words collects the words of d: all wordings of every kind, drawn or not, and the results
// of valid and invalid calls.
func (d Domain) words(note func(string)) {
	note(d.About)
	for _, f := range d.Functions() {
		note(string(mustJSON(f)))
	}
	for _, kind := range d.Kinds {
		for seed := range uint64(wordRuns) {
			r := newRand(d.Name, seed)
			r.note = func(wordings ...string) { note(slotName.ReplaceAllString(strings.Join(wordings, " "), " ")) }
			s := setting{state: d.New(r)}
			turn := kind.Make(r, s.state)
			note(turn.User)
			noteWordings(turn.Plan, note)
			if c, err := d.follow(turn.Plan, (&World{d, s.state}).Call, 0); err == nil {
				for _, m := range c.messages {
					note(string(mustJSON(m)))
				}
			}
		}
	}
	s := d.New(newRand(d.Name, 0))
	for _, bad := range []string{`[]`, `{}`, `{"with":1}`} {
		note(d.call(s, "tool", []byte(bad)))
		for _, t := range d.Tools {
			note(d.call(s, t.Name, []byte(bad)))
		}
	}
	note("thanks and one more thing good next now from a number to unknown argument takes must be text arguments turn")
}

// slotName matches a slot of a wording.
var slotName = regexp.MustCompile(`\{[a-z0-9]+\}`)

// wordRuns is how often each kind is drawn, so that all possible tool results occur.
const wordRuns = 40

func noteWordings(p *Plan, note func(string)) {
	switch {
	case p == nil:
	case p.text != "":
		note(p.wording() + " " + strings.Join(p.anyOf, " ") + " " + strings.Join(p.excludes, " "))
	default:
		noteWordings(p.next, note)
		noteWordings(p.yes, note)
		noteWordings(p.no, note)
	}
}

// letters returns the runs of letters in text.
func letters(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
}
