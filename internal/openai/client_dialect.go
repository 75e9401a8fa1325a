package openai

import (
	"net/http"
	"strings"
)

// dialect is what a server wants otherwise than most do. Its refusals teach it.
type dialect struct {
	completionTokens bool // max_completion_tokens in the place of max_tokens
	bareSchema       bool // schemas beside the type json_object, without json_schema
}

// learn is d with what the refusal of a request in d asks for. It is d itself
// where that is nothing, or nothing new.
func (d dialect) learn(e *StatusError) dialect {
	if e.Status == http.StatusBadRequest && e.Param == "max_tokens" && strings.Contains(e.Message, "max_completion_tokens") {
		d.completionTokens = true
	}
	if strings.Contains(e.Message, "response_format") && strings.Contains(e.Message, "'json_object'") {
		d.bareSchema = true
	}
	return d
}

// body is a request in d.
func (d dialect) body(req ChatRequest) any {
	if d.completionTokens {
		req.MaxTokens, req.MaxCompletionTokens = nil, req.MaxTokens
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
