// Package synth generates synthetic training data: meaningless dialogues and copying rows
// to pretrain a new model, and examples for the critic.
package synth

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"envace/chat"
	"envace/task"
	"envace/workbench"
	"envace/workbench/domains"
)

// Dialogues draws dialogues without meaning, from which a new model learns the form:
// tools, keys and values are random words, so that there is nothing to know, only
// something to find: the tool that the user's words name, the entity, the value under
// a key, the lesser of two numbers. No world answers in them, and none of their tools
// is called like one of a domain.
type Dialogues struct {
	words         []string // of the workbench, names left out
	nouns         []string // those in which no tool of the workbench ends, nor their plurals
	first, second []string
}

// NewDialogues returns a generator that uses the words of the workbench.
func NewDialogues() Dialogues {
	var d Dialogues
	d.first, d.second = workbench.Names()
	ends := map[string]bool{}
	for _, domain := range domains.All() {
		for _, tool := range domain.Tools {
			ends[tool.Name[strings.LastIndex(tool.Name, "_")+1:]] = true
		}
	}
	for _, w := range domains.Words() {
		if slices.Contains(d.first, w) || slices.Contains(d.second, w) {
			continue
		}
		d.words = append(d.words, w)
		if !ends[w] && !ends[w+"s"] {
			d.nouns = append(d.nouns, w)
		}
	}
	return d
}

// Task generates the dialogue of a seed, deterministically.
func (d Dialogues) Task(seed uint64) task.Task {
	const stream = 0x62616262
	b := babbler{d, rand.New(rand.NewPCG(seed, stream))}
	noun := b.noun()
	t := task.Task{ID: fmt.Sprintf("babble-%d", seed), System: b.filler(3, 12)}
	kinds := []func(string) ([]chat.Function, task.Turn){
		b.read, b.read, b.act, b.act, b.pick, b.pick, b.less, b.branch, b.branch, b.mend, b.seek, b.compare, b.refused, b.beyond}
	tools, turn := kinds[b.IntN(len(kinds))](noun)
	for range 1 + b.IntN(4) {
		tools = append(tools, b.tool(b.word()+"_"+b.noun(), b.word()))
	}
	b.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	t.Tools, t.Turns = tools, []task.Turn{turn}
	return t
}

// babbler draws the parts of one dialogue.
type babbler struct {
	Dialogues
	*rand.Rand
}

func (b babbler) word() string { return b.words[b.IntN(len(b.words))] }

func (b babbler) noun() string { return b.nouns[b.IntN(len(b.nouns))] }

func (b babbler) name() string {
	return b.first[b.IntN(len(b.first))] + "-" + b.second[b.IntN(len(b.second))]
}

// value is a word, a name or a number as JSON.
func (b babbler) value() any {
	switch b.IntN(4) {
	case 0:
		return b.name()
	case 1:
		return b.number()
	}
	return b.word()
}

func (b babbler) number() int { return 2 + b.IntN(97) }

// common words stand between those that matter in most texts.
var common = strings.Fields("the of please tell me is it what find my say i and for a to then")

func (b babbler) filler(least, most int) string {
	words := make([]string, least+b.IntN(most-least+1))
	for i := range words {
		if words[i] = common[b.IntN(len(common))]; b.IntN(3) == 0 {
			words[i] = b.word()
		}
	}
	return strings.Join(words, " ")
}

// text joins pieces in random order, with filler words in between.
func (b babbler) text(pieces ...string) string {
	b.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	var parts []string
	for _, p := range pieces {
		if f := b.filler(0, 2); f != "" {
			parts = append(parts, f)
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, []string{" ", " ", ", "}[b.IntN(3)]) + []string{".", "?", ""}[b.IntN(3)]
}

// pair is a key with its value; objects keep the order of their pairs.
type pair struct {
	key   string
	value any
}

// object returns an object with n to n+2 random pairs and the given ones among them.
func (b babbler) object(n int, given ...pair) string {
	pairs := slices.Clone(given)
	for range n + b.IntN(3) {
		pairs = append(pairs, pair{b.word(), b.value()})
	}
	b.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	return object(pairs...)
}

func object(pairs ...pair) string {
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		parts[i] = fmt.Sprintf("%q:%s", p.key, literal(p.value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func literal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // words and numbers
	}
	return string(text)
}

func (b babbler) tool(name string, params ...string) chat.Function {
	properties := make([]pair, len(params))
	for i, p := range params {
		properties[i] = pair{p, json.RawMessage(`{"type":"string"}`)}
	}
	return chat.Function{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":` + object(properties...) + `}`)}
}

// script is the expert's part of a turn: calls with their results, then a reply.
type script []chat.Message

func (s script) call(name, result string, args ...pair) script {
	id := fmt.Sprintf("call_%d", len(s))
	arguments := strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(object(args...))
	return append(s,
		chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: id, Name: name, Arguments: json.RawMessage(arguments)}}},
		chat.Message{Role: chat.Tool, CallID: id, Name: name, Content: result})
}

func (s script) say(format string, args ...any) script {
	return append(s, chat.Message{Role: chat.Assistant, Content: fmt.Sprintf(format, args...)})
}

// read: the value under the key that the user names.
func (b babbler) read(noun string) ([]chat.Function, task.Turn) {
	name, key, value := b.name(), b.word(), b.value()
	s := script{}.call("get_"+noun, b.object(2, pair{key, value}), pair{noun, name}).say("the %v of %v is %v.", key, name, value)
	return []chat.Function{b.tool("get_"+noun, noun)}, task.Turn{User: b.text(key, noun+" "+name), Expert: s}
}

// act: a tool with two arguments that the user gives.
func (b babbler) act(noun string) ([]chat.Function, task.Turn) {
	verb, name, param, given := b.word(), b.name(), b.word(), b.value()
	key, value := b.word(), b.value()
	tool := verb + "_" + noun
	s := script{}.call(tool, b.object(0, pair{key, value}), pair{noun, name}, pair{param, given})
	return []chat.Function{b.tool(tool, noun, param)}, task.Turn{
		User: b.text(verb, name, fmt.Sprintf("%s %v", param, given), key), Expert: s.say("done, the %v is %v.", key, value)}
}

// pick: the lowest or highest of a list, and a second tool's result for it.
func (b babbler) pick(noun string) ([]chat.Function, task.Turn) {
	owner, person, number, key := b.word(), b.word(), b.word(), b.word()
	value := b.value()
	n := 1 + b.IntN(3)
	elems := make([]string, n)
	names, numbers := make([]string, n), b.Perm(97)[:n]
	for i := range elems {
		names[i] = b.name()
		numbers[i] += 2
		elems[i] = object(pair{noun, names[i]}, pair{number, numbers[i]})
	}
	word, best := "lowest", slices.Index(numbers, slices.Min(numbers))
	if b.IntN(2) == 0 {
		word, best = "highest", slices.Index(numbers, slices.Max(numbers))
	}
	list := `{"` + noun + `s":[` + strings.Join(elems, ",") + `]}`
	find, get := "find_"+noun+"s", "get_"+noun
	tools := []chat.Function{b.tool(find, owner), b.tool(get, noun)}
	s := script{}.call(find, list, pair{owner, person})
	if b.IntN(2) == 0 {
		return tools, task.Turn{User: b.text(word+" "+noun, owner+" "+person), Expert: s.say("it is %v.", names[best])}
	}
	s = s.call(get, b.object(2, pair{key, value}), pair{noun, names[best]}).say("the %v of %v is %v.", key, names[best], value)
	return tools, task.Turn{User: b.text(key, word+" "+noun, owner+" "+person), Expert: s}
}

// less: a yes-or-no question about a number.
func (b babbler) less(noun string) ([]chat.Function, task.Turn) {
	name, key, value, limit := b.name(), b.word(), b.number(), b.number()
	answer := "no"
	if value < limit {
		answer = "yes"
	}
	s := script{}.call("get_"+noun, b.object(1, pair{key, value}), pair{noun, name}).say("%s, the %v of %v is %v.", answer, key, name, value)
	return []chat.Function{b.tool("get_"+noun, noun)}, task.Turn{User: b.text(noun+" "+name, fmt.Sprintf("%s less than %d", key, limit)), Expert: s}
}

// branch: what to do depends on a value that is read first.
func (b babbler) branch(noun string) ([]chat.Function, task.Turn) {
	verb, name, key, want, other := b.word(), b.name(), b.word(), b.word(), b.word()
	got, value := want, b.value()
	if b.IntN(2) == 0 {
		got = b.word()
	}
	tools := []chat.Function{b.tool("get_"+noun, noun), b.tool(verb+"_"+noun, noun)}
	text := b.filler(0, 2) + fmt.Sprintf(" if %s %s is %s, %s it, otherwise the %s", noun, name, want, verb, other)
	s := script{}.call("get_"+noun, b.object(1, pair{key, got}, pair{other, value}), pair{noun, name})
	if got == want {
		result := b.word()
		s = s.call(verb+"_"+noun, object(pair{result, value}), pair{noun, name}).say("done, the %v is %v.", result, value)
	} else {
		s = s.say("the %v of %v is %v.", other, name, value)
	}
	return tools, task.Turn{User: strings.TrimSpace(text) + ".", Expert: s}
}

// mend: the name is wrong, and the error suggests a similar one.
func (b babbler) mend(noun string) ([]chat.Function, task.Turn) {
	name, key, value := b.name(), b.word(), b.value()
	first, _, _ := strings.Cut(name, "-")
	similar := first + "-" + b.second[b.IntN(len(b.second))]
	fault := object(pair{"error", "no " + noun + " " + name}, pair{"similar", similar})
	s := script{}.call("get_"+noun, fault, pair{noun, name}).
		call("get_"+noun, b.object(2, pair{key, value}), pair{noun, similar}).
		say("the %v of %v is %v.", key, similar, value)
	return []chat.Function{b.tool("get_"+noun, noun)}, task.Turn{User: b.text(key, noun+" "+name), Expert: s}
}

// seek: the name is wrong, and the error names the tool that helps.
func (b babbler) seek(noun string) ([]chat.Function, task.Turn) {
	wrong, name, owner, person, key := b.name(), b.name(), b.word(), b.word(), b.word()
	value := b.value()
	get, find := "get_"+noun, "find_"+noun+"s"
	fault := object(pair{"error", "no " + noun + " " + wrong + ", use " + find})
	s := script{}.call(get, fault, pair{noun, wrong}).
		call(find, `{"`+noun+`s":[`+object(pair{noun, name}, pair{b.word(), b.number()})+"]}", pair{owner, person}).
		call(get, b.object(2, pair{key, value}), pair{noun, name}).
		say("the %v of %v is %v.", key, name, value)
	tools := []chat.Function{b.tool(get, noun), b.tool(find, owner)}
	return tools, task.Turn{User: b.text(key, noun+" "+wrong, owner+" "+person), Expert: s}
}

// compare: two entities are read, and one is named.
func (b babbler) compare(noun string) ([]chat.Function, task.Turn) {
	names := [2]string{b.name(), b.name()}
	number, get := b.word(), "get_"+noun
	values := [2]int{b.number(), b.number()}
	word, best := "lower", 0
	if values[1] < values[0] {
		best = 1
	}
	if b.IntN(2) == 0 {
		word, best = "higher", 1-best
	}
	s := script{}
	for i, name := range names {
		s = s.call(get, b.object(1, pair{number, values[i]}), pair{noun, name})
	}
	user := fmt.Sprintf("%s %s %s %s and %s.", b.filler(0, 2), word, number, names[0], names[1])
	return []chat.Function{b.tool(get, noun)}, task.Turn{User: strings.TrimSpace(user), Expert: s.say("%s is %s.", names[best], word)}
}

// refused: the tool refuses and says why.
func (b babbler) refused(noun string) ([]chat.Function, task.Turn) {
	verb, name, key, fact := b.word(), b.name(), b.word(), b.word()
	tool := verb + "_" + noun
	s := script{}.call(tool, object(pair{"error", noun + " " + name + " is " + fact}, pair{key, fact}), pair{noun, name})
	return []chat.Function{b.tool(tool, noun)}, task.Turn{User: b.text(verb, noun+" "+name), Expert: s.say("sorry, %s is %s.", name, fact)}
}

// beyond: no tool can fulfil the request.
func (b babbler) beyond(noun string) ([]chat.Function, task.Turn) {
	tools := []chat.Function{b.tool(b.word()+"_"+noun, noun)}
	return tools, task.Turn{User: b.text(b.word(), b.word(), b.name()), Expert: script{}.say("sorry, i cannot do that.")}
}
