// Package render turns messages into tokens and tokens back into messages: the
// model's own chat template and tokenizer one way, the parsers of its output
// format the other way.
package render

import (
	"envace/chat"
)

// Options of one rendering.
type Options struct {
	Thinking *bool // template variable enable_thinking; nil leaves it as the renderer was made
	Continue bool  // leave out the generation prompt
}

// Renderer is a model's format.
type Renderer interface {
	// Prompt returns the tokens of a dialogue, ready for the model to speak.
	Prompt(msgs []chat.Message, tools []chat.Function, o Options) ([]int, error)
	// Extend returns ids, which end with what the model sampled, followed by the
	// tokens of msgs and the next generation prompt. ids are kept as they are;
	// only what is new is encoded. The result shares no memory with ids.
	Extend(ids []int, msgs []chat.Message) ([]int, error)
	// Parse reads one sampled message. Each block that is not a well-formed call
	// gives a CallError in its place; the others are kept.
	Parse(ids []int) (chat.Message, []CallError)
	// Text decodes ids as the model wrote them, special tokens included.
	Text(ids []int) string
	// Stop returns the tokens that end a sampled message.
	Stop() []int
}

// CallError says why one block of a sampled message is not a call.
type CallError struct {
	Index   int    // place among all calls of the message, good and bad, from 0; a block with a list counts as many
	Code    string // one of the codes below
	Message string // what is wrong and what is expected, for the model to read
	Raw     string // the block as written, at most 200 characters
}

// Codes of CallError.
const (
	NoToolCallFound  = "NO_TOOL_CALL_FOUND" // an opening tag without a block
	JSONDecodeError  = "JSON_DECODE_ERROR"  // the block is not JSON
	NoArguments      = "NO_ARGUMENTS"       // no arguments or parameters
	InvalidArguments = "INVALID_ARGUMENTS"  // arguments are not an object
	InvalidToolName  = "INVALID_TOOL_NAME"  // the name is missing, blank or not a string
	TooManyCalls     = "TOO_MANY_CALLS"     // beyond the cap on calls in one message
)
