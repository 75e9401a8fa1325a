package workbench

import (
	"fmt"
	"slices"
	"strings"

	"envace/task"
)

// The shares of a turn's weight. On every path through a plan, the weights of the items
// that apply sum to one.
const (
	onlyWrites = 0.1 // no unrequested writes

	// The units in which the rest is shared.
	readUnits   = 1.0 // a read call
	writeUnits  = 3.0 // a write call
	replyUnits  = 3.0 // the reply
	refuseUnits = 1.0 // an error for a call that the real world refuses
)

// checklist derives the items of a turn from its plan: one for each call and reply of
// every branch, under the conditions that lead there. course is the execution in the real
// world; it shows which calls must get an error.
type checklist struct {
	domain Domain
	course *course
	plan   *Plan
	items  []task.Item
	first  string // id of the first call's item
}

func (d Domain) checklist(p *Plan, c *course) []task.Item {
	l := &checklist{domain: d, course: c, plan: p}
	if !slices.ContainsFunc(d.Tools, func(t Tool) bool { return t.Write }) {
		l.walk(p, nil, nil, 1)
		return l.items
	}
	l.walk(p, nil, nil, 1-onlyWrites)
	return append(l.items, task.Item{
		ID: "writes", Focus: "assistant.tool_calls", Required: true, Weight: onlyWrites, DependsOn: []string{l.first},
		Question: "does the assistant change only what the user asked for?",
		Pass:     "each call of a tool that changes the world is one that another item wants",
		Check:    &task.Check{Type: task.OnlyWrites},
	})
}

// walk adds the items of p and everything that can follow. when are the conditions on the
// path to p, writes are the items of write calls on it, and budget is the weight to
// distribute.
func (l *checklist) walk(p *Plan, when []task.Cond, writes []string, budget float64) {
	switch {
	case p.text != "":
		l.reply(p, when, writes, budget)
	case p.tool == "":
		l.walk(p.yes, append(when[:len(when):len(when)], p.cond), writes, budget)
		l.walk(p.no, append(when[:len(when):len(when)], opposite(p.cond)), writes, budget)
	default:
		unit := budget / l.units(p)
		write := l.write(p)
		l.call(p, when, unit*l.callUnits(p))
		if l.refused(p) {
			l.result(p, when, unit*refuseUnits)
			budget -= unit * refuseUnits
		}
		if write {
			writes = append(writes[:len(writes):len(writes)], p.id)
		}
		l.walk(p.next, when, writes, budget-unit*l.callUnits(p))
	}
}

// units returns the units of the heaviest path from p on.
func (l *checklist) units(p *Plan) float64 {
	switch {
	case p.text != "":
		return replyUnits
	case p.tool == "":
		return max(l.units(p.yes), l.units(p.no))
	case l.refused(p):
		return l.callUnits(p) + refuseUnits + l.units(p.next)
	}
	return l.callUnits(p) + l.units(p.next)
}

func (l *checklist) callUnits(p *Plan) float64 {
	if l.write(p) {
		return writeUnits
	}
	return readUnits
}

func (l *checklist) write(p *Plan) bool {
	t, _ := l.domain.tool(p.tool)
	return t.Write
}

// refused reports whether the real world answers the planned call with an error.
func (l *checklist) refused(p *Plan) bool {
	result, ok := l.course.answer(p.id)
	return ok && task.IsError(result)
}

func (l *checklist) add(item task.Item) {
	if l.first == "" {
		l.first = item.ID
	}
	l.items = append(l.items, item)
}

func (l *checklist) call(p *Plan, when []task.Cond, weight float64) {
	l.add(task.Item{
		ID: p.id, Focus: "assistant.tool_calls", Required: l.write(p), Weight: weight, DependsOn: items(p.args.refs()),
		Question: fmt.Sprintf("does the assistant call %s with %s?", p.tool, p.args.describe()),
		Pass:     "one call has exactly these arguments" + describe(when),
		Failures: []string{"the call is missing, or an argument differs"},
		Check:    &task.Check{Type: task.ToolCall, When: when, Name: p.tool, Arguments: p.args.encode()},
	})
}

func (l *checklist) result(p *Plan, when []task.Cond, weight float64) {
	recorded, _ := l.course.answer(p.id)
	l.add(task.Item{
		ID: l.free(p.id + ".refused"), Focus: "tool.content", Weight: weight, DependsOn: []string{p.id},
		Question: fmt.Sprintf("does %s answer with an error?", p.tool),
		Pass:     "the call cannot be carried out, and the result says so",
		Check:    &task.Check{Type: task.ToolResult, When: when, Of: p.id, ExpectError: true, Recorded: recorded},
	})
}

func (l *checklist) reply(p *Plan, when []task.Cond, writes []string, weight float64) {
	check := p.check(l.plan)
	check.When = when
	if text, err := l.course.reply.say(l.course.answer); err == nil && p == l.course.reply {
		check.Expert = text
	}
	l.add(task.Item{
		ID: l.free("reply"), Focus: "assistant.content.user_visible_reply", Required: true, Weight: weight,
		DependsOn: union(writes, items(refs(p.values))),
		Question:  "does the reply tell the user what came of it?",
		Pass:      fmt.Sprintf("it says in effect: %q%s, in at most %d words", p.wording(), describe(when), check.MaxWords),
		Failures: []string{"a value is missing or was not what the tool answered", "what the value is of is missing",
			"another value is offered too", "it rambles or was cut off"},
		Check: check,
	})
}

// check is what a reply of the plan whole must hold: all values of the planned one,
// and the words that say what they are; and what it must not: any other value, and
// what the plan would have said on another way.
func (p *Plan) check(whole *Plan) *task.Check {
	c := &task.Check{
		Type: task.Reply, AnyOf: p.anyOf, Excludes: slices.Clone(p.excludes),
		MaxWords: 2*len(strings.Fields(p.text)) + 12, NoOtherNumber: true, NoOtherValue: true,
	}
	for _, v := range p.values {
		c.Contains = append(c.Contains, encode(v))
	}
	own := p.telling()
	for _, w := range own {
		c.Contains = append(c.Contains, encode(w))
	}
	for _, other := range whole.replies() {
		for _, w := range p.elsewhere(other) {
			if !slices.Contains(own, w) && !slices.Contains(c.Excludes, w) && !slices.Contains(p.values, any(w)) {
				c.Excludes = append(c.Excludes, w)
			}
		}
	}
	return c
}

// elsewhere are the words of another reply that this one must not hold: those that
// tell of other things, unless this one declines; and the literals that take the
// place of its own.
func (p *Plan) elsewhere(other *Plan) []string {
	var out []string
	if !p.refusal && !other.refusal {
		out = other.telling()
	}
	if p.text != other.text {
		return out
	}
	for _, v := range other.values {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// telling are the words of a reply but for values and small ones.
func (p *Plan) telling() []string {
	return slices.DeleteFunc(letters(strings.ReplaceAll(p.text, "%v", " ")), func(w string) bool { return slices.Contains(small, w) })
}

// replies are all that a plan can end with.
func (p *Plan) replies() []*Plan {
	switch {
	case p.text != "":
		return []*Plan{p}
	case p.tool == "":
		return append(p.yes.replies(), p.no.replies()...)
	}
	return p.next.replies()
}

// small are the words of replies that may be others, and those that [Plan.Any]
// asks for.
var small = strings.Fields("done sorry yes no it i the a of is was in to by for has goes cannot do that")

// free returns id or, if an item has it, id with a number.
func (l *checklist) free(id string) string {
	out := id
	for n := 2; l.has(out); n++ {
		out = fmt.Sprintf("%s.%d", id, n)
	}
	return out
}

func (l *checklist) has(id string) bool {
	for _, item := range l.items {
		if item.ID == id {
			return true
		}
	}
	return false
}

// items returns the items that the references refer to.
func items(list []Ref) []string {
	var ids []string
	for _, r := range list {
		ids = union(ids, []string{r.Item})
	}
	return ids
}

func union(a, b []string) []string {
	out := append([]string{}, a...)
next:
	for _, x := range b {
		for _, y := range out {
			if x == y {
				continue next
			}
		}
		out = append(out, x)
	}
	return out
}

// wording returns the reply with references instead of values.
func (p *Plan) wording() string {
	words := make([]any, len(p.values))
	for i, v := range p.values {
		words[i] = word(v)
	}
	return fmt.Sprintf(p.text, words...)
}

func word(v any) string {
	if r, ok := v.(Ref); ok {
		return "{" + where(r.Ref) + "}"
	}
	return fmt.Sprint(v)
}

func where(r task.Ref) string {
	path := r.Item
	if p := r.Pick; p != nil {
		path += "." + p.In + "[" + strings.TrimSpace(fmt.Sprint(pickWords(p))) + "]"
	}
	if r.Path != "" {
		path += "." + r.Path
	}
	return path
}

func pickWords(p *task.Pick) string {
	var out []string
	for _, k := range sortedKeys(p.Where) {
		out = append(out, k+" is "+task.Plain(p.Where[k]))
	}
	if p.Min != "" {
		out = append(out, "least "+p.Min)
	}
	if p.Max != "" {
		out = append(out, "most "+p.Max)
	}
	return strings.Join(out, ", ")
}

func (v Values) describe() string {
	var out []string
	for _, k := range sortedKeys(v) {
		out = append(out, k+" "+word(v[k]))
	}
	if out == nil {
		return "no arguments"
	}
	return strings.Join(out, ", ")
}

// describe puts conditions into words.
func describe(when []task.Cond) string {
	var out []string
	for _, c := range when {
		text := where(c.Ref) + " " + c.Op
		if r, ok := task.AsRef(c.Value); ok {
			text += " {" + where(r) + "}"
		} else if c.Value != nil {
			text += " " + task.Plain(c.Value)
		}
		out = append(out, text)
	}
	if out == nil {
		return ""
	}
	return "; asked only where " + strings.Join(out, " and ")
}
