package client

import (
	"slices"
	"strings"

	"envace/internal/openai"
)

// dialect is how a server deviates from the API, as learned from its errors.
type dialect struct {
	completionTokens bool // wants max_completion_tokens for max_tokens
	bareSchema       bool // wants schemas beside the type json_object
	textBesideCalls  bool // wants "" for null content beside calls
	reasoning        bool // names thinking reasoning, for reasoning_content
}

// learn returns d adapted to the error response, with the given body, to a request in d.
func (d dialect) learn(e *StatusError, text string) dialect {
	contains := func(parts ...string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	}
	if e.Param == "max_tokens" && contains("max_completion_tokens") {
		d.completionTokens = true
	}
	if contains("response_format", "'json_object'") {
		d.bareSchema = true
	}
	if contains("'content'", "valid string", "None") || contains("concatenate str", "NoneType") {
		d.textBesideCalls = true
	}
	return d
}

// isValidationError recognises FastAPI's validation errors, which some servers send with
// status 500. Retrying does not help.
func isValidationError(e *StatusError) bool {
	return strings.Contains(e.Message, "validation error") && strings.Contains(e.Message, "body")
}

// body returns the request in d.
func (d dialect) body(req openai.ChatRequest) any {
	if d.completionTokens {
		req.MaxTokens, req.MaxCompletionTokens = nil, req.MaxTokens
	}
	if d.textBesideCalls {
		var none openai.Content
		req.Messages = slices.Clone(req.Messages)
		for i := range req.Messages {
			if req.Messages[i].Content == nil {
				req.Messages[i].Content = &none
			}
		}
	}
	if d.reasoning {
		req.Messages = slices.Clone(req.Messages)
		for i, m := range req.Messages {
			req.Messages[i].Reasoning, req.Messages[i].Reasoning2 = "", m.Reasoning
		}
	}
	if d.bareSchema && req.ResponseFormat != nil {
		return bareRequest{req, bareFormat{"json_object", req.ResponseFormat.JSONSchema.Schema}}
	}
	return req
}

// bareRequest has the schema directly in response_format.
type bareRequest struct {
	openai.ChatRequest
	ResponseFormat bareFormat `json:"response_format"` // shadows the embedded field
}

type bareFormat struct {
	Type   string `json:"type"`
	Schema any    `json:"schema"`
}
