package openai

import (
	"errors"
	"slices"

	"envace/engine"
	"envace/internal/guide"
)

const maxForcedCalls = 20 // in one message, where calls are forced

// vocabulary is the tokens that answers of a form are written with: not the special
// ones, which are no text.
func (h *Handler) newVocabulary() *guide.Vocabulary {
	tok := h.chat.Tokenizer()
	return guide.NewVocabulary(tok.Size(), func(id int) []byte {
		if tok.Special(id) {
			return nil
		}
		return tok.Bytes(id)
	}, h.chat.Stop())
}

// formOf returns the form that a request wants its answers to have; nil is any.
func (h *Handler) grammarFor(t *chatRequest) (*guide.Grammar, error) {
	wanted, err := t.responseGrammar()
	forced := t.ToolChoice != nil && (t.ToolChoice.Name != "" || t.ToolChoice.Mode == "required")
	switch {
	case err != nil:
		return nil, err
	case wanted != nil && len(t.tools) > 0:
		return nil, badRequest("response_format", "response_format of type %q is not supported beside tools that may be called", t.ResponseFormat.Type)
	case forced:
		return h.toolCallGrammar(t)
	}
	return wanted, nil
}

// format returns the form of response_format.
func (t *chatRequest) responseGrammar() (*guide.Grammar, error) {
	f := t.ResponseFormat
	switch {
	case f == nil || f.Type == "text":
		return nil, nil
	case f.Type == "json_object":
		return guide.JSONObject(), nil
	case f.Type != "json_schema":
		return nil, badRequest("response_format", "response_format of type %q is not supported: want text, json_object or json_schema", f.Type)
	case f.JSONSchema == nil || len(f.JSONSchema.Schema) == 0:
		return nil, badRequest("response_format", "response_format.json_schema.schema is missing")
	}
	form, err := guide.JSONSchema(f.JSONSchema.Schema)
	if err != nil {
		return nil, badRequest("response_format", "response_format.json_schema: %v", err)
	}
	return form, nil
}

// forced returns the form of calls that must be made.
func (h *Handler) toolCallGrammar(t *chatRequest) (*guide.Grammar, error) {
	most := maxForcedCalls
	if t.ToolChoice.Name != "" || t.ParallelToolCalls != nil && !*t.ParallelToolCalls {
		most = 1
	}
	var tools []guide.Tool
	for _, f := range t.tools {
		if t.ToolChoice.Name == "" || f.Name == t.ToolChoice.Name {
			tools = append(tools, guide.Tool{Name: f.Name, Parameters: f.Parameters})
		}
	}
	form, err := guide.ToolCalls(tools, guide.CallFormat(h.chat.CallForm()), most)
	if errors.Is(err, guide.ErrSchema) {
		return nil, badRequest("tools", "tool_choice forces a call, but %v", err)
	}
	return form, err
}

// constrain makes the answers obey the form that was asked for.
func (h *Handler) constrain(t *chatRequest, g *generation) error {
	if t.grammar == nil {
		return nil
	}
	if h.chat.Opens(g.prompt) {
		return badRequest("chat_template_kwargs", "the model begins with thinking, which no form bounds: turn it off by chat_template_kwargs {\"enable_thinking\":false}")
	}
	g.constraint = func() engine.Constraint { return h.vocabulary().Matcher(t.grammar) }
	g.params.Stop = slices.Clone(h.chat.Stop())
	g.raw = len(t.tools) == 0
	if t.ToolChoice != nil && t.ToolChoice.Name != "" {
		g.read.MaxCalls = 1
	}
	return nil
}
