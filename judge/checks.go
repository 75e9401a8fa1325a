// Package judge decides checklist items, which determine the reward of an episode.
package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"envace/chat"
	"envace/rollout"
	"envace/task"
)

// Checklist judges item by item: by the item's machine check if it has one, otherwise by
// the reader. Every item is judged once, on the finished user turn, after the items that
// it depends on.
type Checklist struct {
	Reader Reader // nil: items that need a reader are unknown, and dropped
}

// Reader decides items that have no machine check, such as an LLM judge.
type Reader interface {
	// Read answers the question of item about user turn ep.User of ep: Pass, Fail or
	// Unknown, and why. An error counts as Unknown: a failing reader neither ends the run
	// nor affects the reward.
	Read(ctx context.Context, ep *rollout.Episode, item task.Item) (outcome rollout.Outcome, why string, err error)
}

// Judge gives the verdict on user turn ep.User. Its only error is that of a
// cancelled context.
func (c Checklist) Judge(ctx context.Context, ep *rollout.Episode) (rollout.Verdict, error) {
	t := newTurn(ctx, c.Reader, ep)
	v := t.verdict()
	if faithful, differs := rollout.Faithful(ep); differs {
		truth := newTurn(ctx, c.Reader, faithful)
		truth.readings = t.readings
		v.Undue = max(0, v.Reward-truth.verdict().Reward)
	}
	return v, ctx.Err()
}

// turn is one user turn under judgement.
type turn struct {
	ctx      context.Context
	reader   Reader
	ep       *rollout.Episode
	items    []task.Item
	calls    []rollout.Exchange
	matched  map[string]int     // tool_call item → index of the call that satisfied it
	decided  map[int]reading    // by place in items
	readings map[string]reading // of the reader, by item
	open     map[int]bool       // places under decision
}

// reading is the outcome of an item, and why.
type reading struct {
	outcome rollout.Outcome
	why     string
}

func newTurn(ctx context.Context, reader Reader, ep *rollout.Episode) *turn {
	t := &turn{ctx: ctx, reader: reader, ep: ep, items: ep.Task.Checklist(ep.User),
		matched: map[string]int{}, decided: map[int]reading{}, readings: map[string]reading{}, open: map[int]bool{}}
	for _, x := range ep.Exchanges() {
		if x.User == ep.User {
			t.calls = append(t.calls, x)
		}
	}
	return t
}

// verdict decides every item. What the world's answers lack counts as not passed,
// so that no world gains by leaving out what is asked for.
func (t *turn) verdict() rollout.Verdict {
	var v rollout.Verdict
	passed, decided := 0.0, 0.0
	for i, item := range t.items {
		d := t.decide(i)
		v.Items = append(v.Items, rollout.ItemVerdict{ID: item.ID, Outcome: d.outcome, Why: d.why})
		switch d.outcome {
		case rollout.Pass:
			passed += item.Weight
			decided += item.Weight
		case rollout.Fail:
			decided += item.Weight
			v.Stop = v.Stop || item.Required
		case rollout.Lacking:
			decided += item.Weight
			v.Broken = v.Broken || item.Weight > 0
		}
	}
	if decided > 0 {
		v.Known, v.Reward = true, passed/decided
	}
	return v
}

// decide decides item i once, after those that it depends on or refers to, wherever
// these stand in the list.
func (t *turn) decide(i int) reading {
	if d, ok := t.decided[i]; ok {
		return d
	}
	if t.open[i] {
		return reading{rollout.Fail, "it depends on itself"}
	}
	t.open[i] = true
	for _, id := range needs(t.items[i]) {
		t.named(id)
	}
	if c := t.items[i].Check; c != nil && c.Type == task.OnlyWrites {
		t.calledFor()
	}
	var d reading
	d.outcome, d.why = t.item(t.items[i])
	t.open[i], t.decided[i] = false, d
	return d
}

// calledFor decides all items that ask for a call.
func (t *turn) calledFor() {
	for i, item := range t.items {
		if item.Check != nil && item.Check.Type == task.ToolCall {
			t.decide(i)
		}
	}
}

// named decides the items of an ID and returns what came of the one that applies:
// different branches may ask for the same call by the same ID.
func (t *turn) named(id string) reading {
	out := reading{rollout.Fail, "there is no item " + id}
	for i, item := range t.items {
		if item.ID != id {
			continue
		}
		if out = t.decide(i); out.outcome != rollout.NotApplicable {
			return out
		}
	}
	return out
}

// needs names the items that must be decided before item.
func needs(item task.Item) []string {
	ids := slices.Clone(item.DependsOn)
	c := item.Check
	if c == nil {
		return ids
	}
	for _, cond := range c.When {
		ids = append(ids, asks(cond)...)
	}
	for _, arg := range c.Arguments {
		if ref, ok := task.AsRef(arg); ok {
			ids = append(ids, ref.Item)
		}
	}
	slices.Sort(ids[len(item.DependsOn):]) // arguments come in the order of a Go map
	for _, v := range c.Contains {
		if ref, ok := task.AsRef(v); ok {
			ids = append(ids, ref.Item)
		}
	}
	if c.Of != "" {
		ids = append(ids, c.Of)
	}
	return ids
}

// item decides one item, after those that it needs.
func (t *turn) item(item task.Item) (rollout.Outcome, string) {
	if item.Check == nil && t.reader == nil {
		return rollout.Unknown, "needs a reader"
	}
	conds := conditions(item)
	for i, c := range conds {
		if id := t.missing(c); id != "" {
			return rollout.Fail, "the call of " + id + " was not made"
		}
		holds, known := task.HoldAll(conds[:i+1], t.results)
		switch {
		case !known:
			return rollout.Lacking, "a condition on " + c.Ref.Item + " cannot be decided"
		case !holds:
			return rollout.NotApplicable, "the answer to " + c.Ref.Item + " leads elsewhere"
		}
	}
	for _, id := range item.DependsOn { // what is dropped asks for nothing
		if out := t.named(id).outcome; out == rollout.Fail || out == rollout.Lacking {
			return out, "depends on " + id
		}
	}
	return t.check(item)
}

func conditions(item task.Item) []task.Cond {
	if item.Check == nil {
		return nil
	}
	return item.Check.When
}

func (t *turn) check(item task.Item) (rollout.Outcome, string) {
	c := item.Check
	if c == nil || c.Type == task.Reply && len(c.Contains)+len(c.AnyOf) == 0 {
		return t.read(item)
	}
	switch c.Type {
	case task.ToolCall:
		return t.toolCall(item)
	case task.ToolResult:
		return t.toolResult(c)
	case task.Reply:
		return t.reply(c)
	case task.OnlyWrites:
		return t.onlyWrites()
	default:
		return rollout.Unknown, fmt.Sprintf("unknown check %q", c.Type)
	}
}

// toolCall looks for a call with exactly these arguments, made after the results that the
// arguments refer to.
func (t *turn) toolCall(item task.Item) (rollout.Outcome, string) {
	c := item.Check
	want := map[string]json.RawMessage{}
	from := 0
	for _, cond := range c.When {
		for _, id := range asks(cond) {
			from = max(from, t.matched[id]+1)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Arguments)) {
		arg := c.Arguments[name]
		if ref, ok := task.AsRef(arg); ok {
			if !t.made(ref.Item) {
				return rollout.Fail, "the call of " + ref.Item + " was not made"
			}
			from = max(from, t.matched[ref.Item]+1)
		}
		v, ok := task.Value(arg, t.results)
		if !ok || task.Null(v) && isRef(arg) {
			return rollout.Lacking, "the answer holds no value for " + name
		}
		want[name] = v
	}
	args, err := chat.Marshal(want)
	if err != nil {
		return rollout.Unknown, err.Error()
	}
	if i := t.find(c.Name, args, from); i >= 0 {
		t.matched[item.ID] = i
		return rollout.Pass, ""
	}
	return rollout.Fail, fmt.Sprintf("no call %s %s", c.Name, args)
}

// find returns the first matching call at or after from, preferably one that does not
// satisfy another item yet; -1 if there is none.
func (t *turn) find(name string, args []byte, from int) int {
	found := -1
	for i := from; i < len(t.calls); i++ {
		x := t.calls[i]
		if x.Source == rollout.FromHarness || x.Call.Name != name || !chat.Equal(x.Call.Arguments, args) {
			continue
		}
		if !t.taken(i) {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

func (t *turn) taken(i int) bool {
	for _, j := range t.matched {
		if j == i {
			return true
		}
	}
	return false
}

// asks returns the items whose results c refers to.
func asks(c task.Cond) []string {
	if ref, ok := task.AsRef(c.Value); ok {
		return []string{c.Ref.Item, ref.Item}
	}
	return []string{c.Ref.Item}
}

// missing returns the first item that c refers to and whose call was not made.
func (t *turn) missing(c task.Cond) string {
	for _, id := range asks(c) {
		if !t.made(id) {
			return id
		}
	}
	return ""
}

func (t *turn) made(item string) bool {
	_, ok := t.matched[item]
	return ok
}

func (t *turn) results(item string) (string, bool) {
	i, ok := t.matched[item]
	if !ok {
		return "", false
	}
	return t.calls[i].Result, true
}

// toolResult decides only items that expect an error: rewarding a result for not being
// an error would teach REHEARSE never to return errors.
func (t *turn) toolResult(c *task.Check) (rollout.Outcome, string) {
	if !c.ExpectError {
		return rollout.Unknown, "a result is not paid for being no error"
	}
	result, ok := t.results(c.Of)
	if c.Of == "" {
		i := slices.IndexFunc(t.calls, func(x rollout.Exchange) bool {
			return x.Call.Name == c.Name && x.Source != rollout.FromHarness
		})
		if ok = i >= 0; ok {
			result = t.calls[i].Result
		}
	}
	switch {
	case !ok:
		return rollout.Fail, "the call was not made"
	case !task.IsError(result):
		return rollout.Fail, "the call deserves an error"
	}
	return rollout.Pass, ""
}

// read asks the reader. If the reader fails, the item is unknown.
func (t *turn) read(item task.Item) (outcome rollout.Outcome, why string) {
	if t.reader == nil {
		return rollout.Unknown, "needs a reader"
	}
	defer func() {
		if x := recover(); x != nil {
			outcome, why = rollout.Unknown, fmt.Sprintf("the reader failed: panic: %v", x)
		}
	}()
	if read, ok := t.readings[item.ID]; ok {
		return read.outcome, read.why
	}
	defer func() { t.readings[item.ID] = reading{outcome, why} }()
	outcome, why, err := t.reader.Read(t.ctx, t.ep, item)
	switch {
	case err != nil:
		return rollout.Unknown, "the reader failed: " + err.Error()
	case outcome != rollout.Pass && outcome != rollout.Fail && outcome != rollout.Unknown:
		return rollout.Unknown, fmt.Sprintf("the reader answered %q: want pass, fail or unknown", outcome)
	}
	return outcome, why
}

// onlyWrites passes unless a tool that changes the world was called without an
// item of the list asking for that call.
func (t *turn) onlyWrites() (rollout.Outcome, string) {
	if !slices.ContainsFunc(t.ep.Task.Tools, func(f chat.Function) bool { return f.Write }) {
		return rollout.Unknown, "no tool is marked as writing"
	}
	for i, x := range t.calls {
		f, _ := t.ep.Task.Tool(x.Call.Name)
		if f.Write && x.Source != rollout.FromHarness && !t.taken(i) {
			return rollout.Fail, fmt.Sprintf("nothing asks for %s %s", x.Call.Name, x.Call.Arguments)
		}
	}
	return rollout.Pass, ""
}
