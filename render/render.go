// Package render converts messages to tokens, with the model's own chat template
// and tokenizer, and tokens back to messages, with parsers for its output format.
package render

import (
	"envace/chat"
)

// Options of one rendering.
type Options struct {
	Thinking *bool // template variable enable_thinking; nil is the renderer's default
	Continue bool  // omit the generation prompt
}

// Renderer is a model's chat format.
type Renderer interface {
	// Prompt returns the tokens of a dialogue, with the generation prompt.
	Prompt(msgs []chat.Message, tools []chat.Function, o Options) ([]int, error)
	// Extend returns ids, which end with sampled tokens, followed by the tokens of
	// msgs and the next generation prompt. ids are kept unchanged; only the new part
	// is encoded. The result shares no memory with ids.
	Extend(ids []int, msgs []chat.Message) ([]int, error)
	// Parse parses one sampled message. Each malformed call gets a CallError; the
	// other calls are kept.
	Parse(ids []int) (chat.Message, []CallError)
	// Text decodes ids, including special tokens.
	Text(ids []int) string
	// Stop returns the tokens that end a sampled message.
	Stop() []int
}

// CallError is the reason why one block of a sampled message is not a valid call.
type CallError struct {
	Index   int    // index among all calls of the message, valid or not; each item of a list counts
	Code    string // one of the codes below
	Message string // what is wrong and what is expected, for the model
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
