package task

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"envace/chat"
)

// faults lists what makes a checklist impossible to judge, or to judge rightly: gold
// that cannot be right. Each fault says where it is and what to do.
func (t *Task) faults(turns [][]Item) []string {
	var found []string
	items := 0
	for u, list := range turns {
		r := review{task: t, items: list, turn: u}
		r.list()
		found = append(found, r.found...)
		items += len(list)
	}
	if items == 0 {
		found = append(found, "checklist is empty")
	}
	return found
}

// review looks for faults in the checklist of one user turn.
type review struct {
	task  *Task
	items []Item
	turn  int
	at    string // the item under review
	found []string
}

func (r *review) fault(format string, args ...any) {
	r.found = append(r.found, place(r.turn, r.at)+fmt.Sprintf(format, args...))
}

// place says where in a checklist an item is.
func place(turn int, item string) string {
	if item == "" {
		return fmt.Sprintf("user turn %d: ", turn)
	}
	return fmt.Sprintf("user turn %d, %s: ", turn, item)
}

// called names an item of a checklist.
func called(i int, id string) string {
	if id == "" {
		return fmt.Sprintf("item %d of the list", i)
	}
	return "item " + id
}

func (r *review) list() {
	total := 0.0
	for i, item := range r.items {
		r.at = called(i, item.ID)
		r.item(item)
		if j := slices.IndexFunc(r.items[:i], func(other Item) bool { return other.ID == item.ID }); item.ID != "" && j >= 0 && !apart(r.items[j], item) {
			r.fault("an item before it has the same id: give each its own")
		}
		total += item.Weight
	}
	r.at = ""
	if len(r.items) > 0 && total == 0 {
		r.fault("all weights are 0, so nothing is paid: give an item a weight above 0, or leave the list empty")
	}
	if circle := circle(r.items); len(circle) == 1 {
		r.fault("item %s depends on itself: take it out of its own dependence, $ref, when and of", circle[0])
	} else if circle != nil {
		r.fault("items %s depend on each other in a circle, so none can be decided: break it", strings.Join(circle, ", "))
	}
}

func (r *review) item(item Item) {
	if item.ID == "" {
		r.fault("it has no id: give it one")
	}
	if !(item.Weight >= 0) || math.IsInf(item.Weight, 1) {
		r.fault("its weight is %g: want a number of at least 0", item.Weight)
	}
	for _, id := range item.DependsOn {
		if !r.has(id) {
			r.fault("it depends on %q, which is no item of this user turn (%s)", id, r.ids())
		}
	}
	if item.Check != nil {
		r.check(item, item.Check)
	}
}

func (r *review) check(item Item, c *Check) {
	for _, cond := range c.When {
		r.cond(cond)
	}
	switch c.Type {
	case ToolCall:
		r.tool(c.Name)
		for _, name := range sorted(c.Arguments) {
			r.value("the argument "+name, c.Arguments[name])
		}
	case ToolResult:
		switch {
		case c.Of != "":
			r.call("of", c.Of)
		default:
			r.tool(c.Name)
		}
	case Reply:
		r.reply(item, c)
	case OnlyWrites:
		if !slices.ContainsFunc(r.task.Tools, func(f chat.Function) bool { return f.Write }) {
			r.fault(`only_writes, but no tool of the dialogue is marked as writing, so it would always pass: add "x-write": true to each tool that changes the world`)
		}
	case "":
		r.fault("its check has no type: want %s, or leave check out if the item needs a reader", types)
		return
	default:
		r.fault("its check is of the unknown type %q: want %s", c.Type, types)
		return
	}
	r.unread(c)
}

const types = "tool_call, tool_result, reply or only_writes"

// unread finds what a check of this type does not look at.
func (r *review) unread(c *Check) {
	call, result, reply := c.Type == ToolCall, c.Type == ToolResult, c.Type == Reply
	for _, f := range []struct {
		key       string
		set, read bool
	}{
		{"name", c.Name != "", call || result}, {"arguments", len(c.Arguments) > 0, call},
		{"of", c.Of != "", result}, {"expect_error", c.ExpectError, result},
		{"contains", len(c.Contains) > 0, reply}, {"any_of", len(c.AnyOf) > 0, reply}, {"excludes", len(c.Excludes) > 0, reply},
		{"max_words", c.MaxWords != 0, reply}, {"no_other_number", c.NoOtherNumber, reply},
	} {
		if f.set && !f.read {
			r.fault("a check of type %s does not look at %s: take it out, or put it into an item of its own", c.Type, f.key)
		}
	}
}

func (r *review) tool(name string) {
	if _, ok := r.task.Tool(name); ok {
		return
	}
	if name == "" {
		r.fault("its check names no tool: add its name")
		return
	}
	var names []string
	for _, f := range r.task.Tools {
		names = append(names, f.Name)
	}
	r.fault("its check names the tool %q, which the dialogue does not have (%s)", name, several("tools", names))
}

func (r *review) reply(item Item, c *Check) {
	for _, v := range c.Contains {
		switch _, ref := AsRef(v); {
		case ref || strings.HasPrefix(strings.TrimSpace(string(v)), "{"):
			r.value("contains", v)
			if !ref && !hasRef(v) {
				r.fault(`contains holds an object, which no reply can say: want a text, a number or {"$ref": …}`)
			}
		case Null(v), len(v) == 0:
			r.fault("contains holds null, which no reply can say: give the value, or take it out")
		case strings.HasPrefix(strings.TrimSpace(string(v)), "["):
			r.fault("contains holds a list, which no reply can say: give its elements one by one")
		case strings.TrimSpace(Plain(v)) == "":
			r.fault("contains holds a blank text: give the value, or take it out")
		default:
			r.excluded(c, Plain(v))
		}
	}
	r.blank("any_of", c.AnyOf)
	r.blank("excludes", c.Excludes)
	if c.MaxWords < 0 {
		r.fault("max_words is %d: want at least 1, or 0 for no limit", c.MaxWords)
	}
	if len(c.Contains)+len(c.AnyOf) == 0 && strings.TrimSpace(c.Expert+item.Question+item.Pass) == "" {
		r.fault("nothing says what the reply must be: add contains, any_of, or the expert's reply as reference")
	}
}

func (r *review) blank(key string, texts []string) {
	if slices.ContainsFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }) {
		r.fault("%s holds a blank text: take it out", key)
	}
}

// excluded finds a text that the reply must both say and not say.
func (r *review) excluded(c *Check, text string) {
	for _, not := range c.Excludes {
		if Mentions(text, not) {
			r.fault("the reply must say %q but not %q: take one of them out", text, not)
		}
	}
}

func (r *review) cond(c Cond) {
	r.ref("when", c.Ref)
	given := len(c.Value) > 0
	switch c.Op {
	case OpError, OpOK, OpEmpty, OpFilled:
		if given && !Null(c.Value) {
			r.fault("when: %s compares with nothing: take its value out", c.Op)
		}
		return
	case OpEqual, OpUnequal, OpLess, OpAtLeast:
	default:
		r.fault("when: unknown operator %q: want eq, ne, lt, ge, error, ok, empty or filled", c.Op)
		return
	}
	if !given || Null(c.Value) {
		r.fault("when: %s compares with a value: add one that is not null", c.Op)
		return
	}
	r.value("when", c.Value)
	_, ref := AsRef(c.Value)
	if _, ok := number(c.Value); !ok && !ref && (c.Op == OpLess || c.Op == OpAtLeast) {
		r.fault("when: %s compares numbers, but its value is %.40s: give a number", c.Op, c.Value)
	}
}

// value reviews a literal or a reference.
func (r *review) value(what string, v json.RawMessage) {
	if ref, ok := AsRef(v); ok {
		r.ref(what, ref)
		if object := fields(v); len(object) > 1 {
			r.fault(`%s: beside "$ref" there are other keys, which nobody would read: take them out`, what)
		}
		for _, why := range refKeys(fields(v)["$ref"]) {
			r.fault("%s: %s", what, why)
		}
		return
	}
	if hasRef(v) {
		r.fault(`%s: only {"$ref": {"item": ID, "path": PATH}} in the place of the whole value is a reference; within a list or an object it is not looked up`, what)
	}
}

// ref reviews a reference to the result of a call.
func (r *review) ref(what string, ref Ref) {
	r.call(what, ref.Item)
	if ref.Pick == nil {
		return
	}
	if ref.Pick.Min != "" && ref.Pick.Max != "" {
		r.fault("%s: pick has both min and max: leave one", what)
	}
	for _, key := range sorted(ref.Pick.Where) {
		if hasRef(ref.Pick.Where[key]) {
			r.fault("%s: pick compares %s with a $ref, which is not looked up there: give a literal", what, key)
		}
	}
}

// call reviews the name of an item whose call is meant.
func (r *review) call(what, id string) {
	switch {
	case id == "":
		r.fault("%s names no item: give the id of an item of this user turn that asks for a call", what)
	case !r.has(id):
		r.fault("%s names %q, which is no item of this user turn (%s)", what, id, r.ids())
	case !slices.ContainsFunc(r.items, func(i Item) bool { return i.ID == id && asksCall(i) }):
		r.fault("%s names %q, which asks for no call and so has no result: name a tool_call item", what, id)
	}
}

func (r *review) has(id string) bool {
	return slices.ContainsFunc(r.items, func(i Item) bool { return i.ID == id })
}

func (r *review) ids() string {
	var ids []string
	for _, item := range r.items {
		ids = append(ids, item.ID)
	}
	return several("its items", ids)
}

// several lists names for an error.
func several(what string, names []string) string {
	const shown = 8
	switch {
	case len(names) == 0:
		return what + ": none"
	case len(names) > shown:
		return fmt.Sprintf("%s: %s and %d more", what, strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return what + ": " + strings.Join(names, ", ")
}

func asksCall(i Item) bool { return i.Check != nil && i.Check.Type == ToolCall }

// apart reports whether two items of one id can never both apply: different branches
// may ask for the same call by the same id.
func apart(a, b Item) bool {
	if !asksCall(a) || !asksCall(b) {
		return false
	}
	for _, x := range a.Check.When {
		for _, y := range b.Check.When {
			if excludes(x, y) {
				return true
			}
		}
	}
	return false
}

// excludes reports whether two conditions can never both hold.
func excludes(x, y Cond) bool {
	a, erra := chat.Marshal(x.Ref)
	b, errb := chat.Marshal(y.Ref)
	if erra != nil || errb != nil || string(a) != string(b) {
		return false
	}
	same := len(x.Value) == len(y.Value) && len(x.Value) == 0 || chat.Equal(x.Value, y.Value)
	switch [2]string{x.Op, y.Op} {
	case [2]string{OpError, OpOK}, [2]string{OpOK, OpError}, [2]string{OpEmpty, OpFilled}, [2]string{OpFilled, OpEmpty}:
		return true
	case [2]string{OpEqual, OpUnequal}, [2]string{OpUnequal, OpEqual}, [2]string{OpLess, OpAtLeast}, [2]string{OpAtLeast, OpLess}:
		return same
	case [2]string{OpEqual, OpEqual}:
		return !same && !hasRef(x.Value) && !hasRef(y.Value)
	}
	return false
}

// circle returns the ids of items that depend on each other in a circle, nil if there
// are none. What an item refers to, it depends on.
func circle(items []Item) []string {
	edges := map[string][]string{}
	for _, item := range items {
		edges[item.ID] = append(edges[item.ID], needs(item, items)...)
	}
	done := map[string]bool{}
	var path []string
	var visit func(id string) []string
	visit = func(id string) []string {
		if i := slices.Index(path, id); i >= 0 {
			return slices.Clone(path[i:])
		}
		if done[id] {
			return nil
		}
		path = append(path, id)
		for _, next := range edges[id] {
			if found := visit(next); found != nil {
				return found
			}
		}
		path, done[id] = path[:len(path)-1], true
		return nil
	}
	for _, item := range items {
		if found := visit(item.ID); found != nil {
			return found
		}
	}
	return nil
}

// needs names the items that must be decided before item.
func needs(item Item, items []Item) []string {
	ids := slices.Clone(item.DependsOn)
	c := item.Check
	if c == nil {
		return ids
	}
	values := slices.Clone(c.Contains)
	for _, name := range sorted(c.Arguments) {
		values = append(values, c.Arguments[name])
	}
	for _, cond := range c.When {
		ids = append(ids, cond.Ref.Item)
		values = append(values, cond.Value)
	}
	for _, v := range values {
		if ref, ok := AsRef(v); ok {
			ids = append(ids, ref.Item)
		}
	}
	if c.Of != "" {
		ids = append(ids, c.Of)
	}
	for _, other := range items {
		if c.Type == OnlyWrites && asksCall(other) {
			ids = append(ids, other.ID)
		}
	}
	return ids
}
