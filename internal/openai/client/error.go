package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"envace/engine"
	"envace/internal/openai"
)

// StatusError is an error response.
type StatusError struct {
	Status              int // 0 for an error within a 200 response
	Message, Type, Code string
	Param               string // the field that caused it
}

// Error returns status and message.
func (e *StatusError) Error() string {
	text := "the server reports an error"
	if e.Status != 0 {
		text = fmt.Sprintf("the server returned %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Is reports whether the request exceeded the context window, for engine.ErrWindow.
func (e *StatusError) Is(target error) bool {
	return target == engine.ErrWindow && (e.Code == "context_length_exceeded" || e.Type == "exceed_context_size_error" ||
		e.Status == http.StatusBadRequest && (strings.Contains(e.Message, "maximum context length") || strings.Contains(e.Message, "exceed context window") || strings.Contains(e.Message, "longer than the model's context length")))
}

// parseError parses the error formats in use: OpenAI's object, the object without its
// wrapper, a string in its place, FastAPI's detail, and plain text.
func parseError(data []byte) openai.Error {
	var w struct {
		Error, Detail json.RawMessage
		Message, Type string
		Code          json.RawMessage
	}
	if json.Unmarshal(data, &w) != nil {
		return openai.Error{Message: oneLine(string(data))}
	}
	for _, nested := range []json.RawMessage{w.Error, w.Detail} {
		if len(nested) == 0 || string(nested) == "null" {
			continue
		}
		return parseErrorObject(nested)
	}
	e := openai.Error{Message: oneLine(w.Message), Type: w.Type, Code: codeText(w.Code)}
	if e.Message == "" {
		e.Message = oneLine(string(data))
	}
	return e
}

func parseErrorObject(data json.RawMessage) openai.Error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return openai.Error{Message: oneLine(text)}
	}
	var e struct {
		Message, Type string
		Code          json.RawMessage // string or number
		Param         *string
	}
	if json.Unmarshal(data, &e) != nil || e.Message == "" && e.Type == "" {
		return openai.Error{Message: oneLine(string(data))}
	}
	return openai.Error{Message: oneLine(e.Message), Type: e.Type, Code: codeText(e.Code), Param: e.Param}
}

func codeText(raw json.RawMessage) *string {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return &text
}

// oneLine returns at most 500 bytes of text in one line, without control characters.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}
