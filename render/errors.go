package render

import (
	"errors"

	"envace/chat"
)

// ErrSplit is returned by Extend if the template rewrites history and History is
// Split: the dialogue has to be rendered again, and the rows of the episode split
// there.
var ErrSplit = errors.New("the template rewrites history: render the dialogue again")

// ErrArguments is returned for a dialogue with a call whose arguments are beyond what
// transformers can read: nested too deep, an integer too long, a number out of range.
var ErrArguments = errors.New("arguments that templates cannot take")

// ErrorText is the content of every tool message that reports an error:
// {"error":{"code":…,"message":…}}.
func ErrorText(code, message string) string {
	type payload struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	text, err := chat.Marshal(map[string]payload{"error": {code, message}})
	if err != nil {
		return `{"error":{"code":"` + code + `"}}`
	}
	return string(text)
}

// Text returns the tool message that reports e to the model: see [ErrorText].
func (e CallError) Text() string { return ErrorText(e.Code, e.Message) }

// Text returns the tool message that reports e to the model: see [ErrorText].
func (e *ResultError) Text() string { return ErrorText(e.Code, e.Message) }
