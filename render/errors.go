package render

import (
	"errors"

	"envace/chat"
)

// ErrSplit is Extend's answer where the template rewrites history and the
// renderer keeps to it: the dialogue has to be rendered anew, and the rows of the
// episode split there.
var ErrSplit = errors.New("template rewrites history: render the dialogue anew")

// ErrorText is the one shape in which a tool message reports an error, whoever
// found it: {"error":{"code":…,"message":…}}.
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

// Text is the tool message that reports e to the model: see [ErrorText].
func (e CallError) Text() string { return ErrorText(e.Code, e.Message) }

// Text is the tool message that reports e to the model: see [ErrorText].
func (e *ResultError) Text() string { return ErrorText(e.Code, e.Message) }
