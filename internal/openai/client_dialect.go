package openai

import (
	"slices"
	"strings"
)

// dialect is what a server wants otherwise than most do. Its refusals teach it.
type dialect struct {
	completionTokens bool // max_completion_tokens in the place of max_tokens
	bareSchema       bool // schemas beside the type json_object, without json_schema
	textBesideCalls  bool // "" in the place of null
}

// learn is d with what the refusal of a request in d asks for, whose body is text.
// It is d itself where that is nothing, or nothing new.
func (d dialect) learn(e *StatusError, text string) dialect {
	says := func(parts ...string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	}
	if e.Param == "max_tokens" && says("max_completion_tokens") {
		d.completionTokens = true
	}
	if says("response_format", "'json_object'") {
		d.bareSchema = true
	}
	if says("'content'", "valid string", "None") || says("concatenate str", "NoneType") {
		d.textBesideCalls = true
	}
	return d
}

// malformed reports a status that blames the server for what only another request
// can mend: FastAPI's complaints about a body, as some servers hand them on.
func isValidationError(e *StatusError) bool {
	return strings.Contains(e.Message, "validation error") && strings.Contains(e.Message, "body")
}

// body is a request in d.
func (d dialect) body(req ChatRequest) any {
	if d.completionTokens {
		req.MaxTokens, req.MaxCompletionTokens = nil, req.MaxTokens
	}
	if d.textBesideCalls {
		var none Content
		req.Messages = slices.Clone(req.Messages)
		for i := range req.Messages {
			if req.Messages[i].Content == nil {
				req.Messages[i].Content = &none
			}
		}
	}
	if d.bareSchema && req.ResponseFormat != nil {
		return bareRequest{req, bareFormat{"json_object", req.ResponseFormat.JSONSchema.Schema}}
	}
	return req
}

// bareRequest is a request whose schema has no name.
type bareRequest struct {
	ChatRequest
	ResponseFormat bareFormat `json:"response_format"` // hides the one of ChatRequest
}

type bareFormat struct {
	Type   string `json:"type"`
	Schema any    `json:"schema"`
}
