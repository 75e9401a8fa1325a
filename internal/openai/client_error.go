package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"envace/engine"
)

// StatusError is a server's refusal.
type StatusError struct {
	Status              int // 0 where it came inside a stream
	Message, Type, Code string
	Param               string // the field at fault
}

// Error tells status and message.
func (e *StatusError) Error() string {
	text := "the server refuses"
	if e.Status != 0 {
		text = fmt.Sprintf("the server answers %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Is makes a dialogue that outgrew the model's window engine.ErrWindow.
func (e *StatusError) Is(target error) bool {
	return target == engine.ErrWindow && (e.Code == "context_length_exceeded" || e.Type == "exceed_context_size_error" ||
		e.Status == http.StatusBadRequest && (strings.Contains(e.Message, "maximum context length") || strings.Contains(e.Message, "exceed context window") || strings.Contains(e.Message, "longer than the model's context length")))
}

// wireError reads an error however the server puts it: OpenAI's object, the object
// without its wrapper, a text in its place, FastAPI's detail, or plain text.
func parseError(data []byte) Error {
	var w struct {
		Error, Detail json.RawMessage
		Message, Type string
		Code          json.RawMessage
	}
	if json.Unmarshal(data, &w) != nil {
		return Error{Message: oneLine(string(data))}
	}
	for _, inner := range []json.RawMessage{w.Error, w.Detail} {
		if len(inner) == 0 || string(inner) == "null" {
			continue
		}
		return parseErrorObject(inner)
	}
	e := Error{Message: oneLine(w.Message), Type: w.Type, Code: codeText(w.Code)}
	if e.Message == "" {
		e.Message = oneLine(string(data))
	}
	return e
}

func parseErrorObject(data json.RawMessage) Error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return Error{Message: oneLine(text)}
	}
	var e struct {
		Message, Type string
		Code          json.RawMessage // a text, or a number
		Param         *string
	}
	if json.Unmarshal(data, &e) != nil || e.Message == "" && e.Type == "" {
		return Error{Message: oneLine(string(data))}
	}
	return Error{Message: oneLine(e.Message), Type: e.Type, Code: codeText(e.Code), Param: e.Param}
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

// short is one line of at most 500 bytes, without characters that steer a terminal.
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
