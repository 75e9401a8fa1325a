package task

import "encoding/json"

// Item is one line of a checklist: a yes/no question about one user turn with a weight
// and, if it can be decided automatically, a Check.
type Item struct {
	ID        string   `json:"id"`
	Focus     string   `json:"focus_on,omitempty"` // assistant.tool_calls, tool.content, assistant.content.user_visible_reply, …
	Question  string   `json:"question,omitempty"`
	Pass      string   `json:"pass_condition,omitempty"`
	Failures  []string `json:"failure_examples,omitempty"`
	Required  bool     `json:"required_for_next_turn"` // if it fails, the episode ends after this turn
	DependsOn []string `json:"dependence,omitempty"`   // items of this turn that must pass for this one to pass
	Weight    float64  `json:"weight"`
	Check     *Check   `json:"check,omitempty"`
}

// The types of a Check.
const (
	ToolCall   = "tool_call"   // the turn holds a call with this name and these arguments
	ToolResult = "tool_result" // the call of item Of, or of this name, was answered with the outcome that is expected
	Reply      = "reply"       // the turn's reply is as Contains, AnyOf, Excludes, MaxWords, NoOtherNumber and NoOtherValue say
	OnlyWrites = "only_writes" // every call of a write tool in this turn is one that a tool_call item of the list wants
)

// Check is a check that can be decided automatically from the episode alone. It is
// relational: literals come from the user's words; a Ref, and every condition, is
// evaluated on the tool results of this episode.
type Check struct {
	Type string `json:"type"`
	When []Cond `json:"when,omitempty"` // all must hold, otherwise the item does not apply and is dropped

	// tool_call: each argument is a literal, or {"$ref": Ref}; the set must be exact.
	Name      string                     `json:"name,omitempty"`
	Arguments map[string]json.RawMessage `json:"arguments,omitempty"`

	// tool_result
	Of          string `json:"of,omitempty"` // id of the tool_call item whose result is checked
	ExpectError bool   `json:"expect_error,omitempty"`
	Recorded    string `json:"recorded,omitempty"` // the recorded real result, if any

	// reply: values are literals (strings, numbers) or {"$ref": Ref}, compared as
	// whole words without regard to case.
	Contains []json.RawMessage `json:"contains,omitempty"`
	AnyOf    []string          `json:"any_of,omitempty"`
	Excludes []string          `json:"excludes,omitempty"`  // unless Contains demands it
	MaxWords int               `json:"max_words,omitempty"` // 0: no bound
	// NoOtherNumber forbids every number that is neither in Contains nor in what
	// the user said: a reply that tries several is no answer.
	NoOtherNumber bool `json:"no_other_number,omitempty"`
	// NoOtherValue does so with every text that a tool answered in this turn, an
	// error's reason apart, and with every name of two words, such as amber-fox.
	NoOtherValue bool   `json:"no_other_value,omitempty"`
	Expert       string `json:"reference,omitempty"` // the expert's reply, for a judge that reads
}

// Ref points into the result of the call that satisfied a tool_call item.
type Ref struct {
	Item string `json:"item"`
	Path string `json:"path"` // keys and indices joined by "."; "" is the whole result
	// Pick chooses one element where Path up to Pick.In is a list; see [Pick].
	Pick *Pick `json:"pick,omitempty"`
}

// Pick chooses an element of a list of objects: the first that matches Where or, among
// those that do, the one with the least (Min) or greatest (Max) number under that key.
// Path continues from the element.
type Pick struct {
	In    string                     `json:"in"` // path of the list in the result
	Where map[string]json.RawMessage `json:"where,omitempty"`
	Min   string                     `json:"min,omitempty"`
	Max   string                     `json:"max,omitempty"`
}

// The operators of a Cond.
const (
	OpEqual   = "eq"
	OpUnequal = "ne"
	OpLess    = "lt"
	OpAtLeast = "ge"
	OpError   = "error"  // the result is an error
	OpOK      = "ok"     // it is not
	OpEmpty   = "empty"  // an empty list, object or string, or false; of an error, nothing there
	OpFilled  = "filled" // the opposite
)

// Cond is a condition on a tool result of this episode.
type Cond struct {
	Ref   Ref             `json:"ref"`
	Op    string          `json:"op"`
	Value json.RawMessage `json:"value,omitempty"` // literal, or {"$ref": Ref}
}
