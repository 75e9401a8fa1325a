package serve

import (
	"errors"
	"fmt"
	"slices"

	"envace/engine"
	"envace/internal/grammar"
	"envace/render"
)

const maxForcedCalls = 20 // in one message

// newVocabulary returns the tokens that constrained text can have: all but special ones.
func newVocabulary(c *render.Chat) *grammar.Vocabulary {
	tok := c.Tokenizer()
	return grammar.NewVocabulary(tok.Size(), func(id int) []byte {
		if tok.Special(id) {
			return nil
		}
		return tok.Bytes(id)
	}, c.Stop())
}

// grammarFor returns the grammar that response_format or tool_choice asks for, or nil.
func (h *Handler) grammarFor(req *chatRequest) (*grammar.Grammar, error) {
	g, err := req.responseGrammar()
	forced := req.ToolChoice != nil && (req.ToolChoice.Name != "" || req.ToolChoice.Mode == "required")
	switch {
	case err != nil:
		return nil, err
	case g != nil && len(req.tools) > 0:
		return nil, badRequest("response_format", "response_format of type %q is not supported together with tools", req.ResponseFormat.Type)
	case forced:
		return h.toolCallGrammar(req)
	}
	return g, nil
}

func (req *chatRequest) responseGrammar() (*grammar.Grammar, error) {
	f := req.ResponseFormat
	switch {
	case f == nil || f.Type == "text":
		return nil, nil
	case f.Type == "json_object":
		return grammar.JSONObject(), nil
	case f.Type != "json_schema":
		return nil, badRequest("response_format", "response_format of type %q is not supported: want text, json_object or json_schema", f.Type)
	case f.JSONSchema == nil || len(f.JSONSchema.Schema) == 0:
		return nil, badRequest("response_format", "response_format.json_schema.schema is missing")
	}
	g, err := grammar.JSONSchema(f.JSONSchema.Schema)
	if err != nil {
		return nil, badRequest("response_format", "response_format.json_schema: %v", err)
	}
	return g, nil
}

func (h *Handler) toolCallGrammar(req *chatRequest) (*grammar.Grammar, error) {
	limit := maxForcedCalls
	if req.ToolChoice.Name != "" || req.ParallelToolCalls != nil && !*req.ParallelToolCalls {
		limit = 1
	}
	var tools []grammar.Tool
	for _, f := range req.tools {
		if req.ToolChoice.Name == "" || f.Name == req.ToolChoice.Name {
			tools = append(tools, grammar.Tool{Name: f.Name, Parameters: f.Parameters})
		}
	}
	g, err := grammar.ToolCalls(tools, grammar.CallFormat(h.chat.CallForm()), limit)
	if errors.Is(err, grammar.ErrSchema) {
		return nil, badRequest("tools", "tool_choice requires a call, but %v", err)
	}
	return g, err
}

// constrain makes g obey the grammar of the request.
func (h *Handler) constrain(req *chatRequest, g *generation) error {
	if req.grammar == nil {
		return nil
	}
	if h.chat.Opens(g.prompt) {
		return badRequest("chat_template_kwargs", "constrained output is not supported while the model thinks: set chat_template_kwargs to {\"enable_thinking\":false}")
	}
	g.constraint = func() engine.Constraint { return h.vocabulary().Matcher(req.grammar) }
	if req.grammar.Checked() {
		g.check = func(d delta) error { return checkChoice(req.grammar, d) }
	}
	g.params.Stop = slices.Clone(h.chat.Stop())
	g.raw = len(req.tools) == 0
	if req.ToolChoice != nil && req.ToolChoice.Name != "" {
		g.read.MaxCalls = 1
	}
	return nil
}

// checkChoice validates what its grammar does not enforce. A text that was truncated has no
// form yet.
func checkChoice(g *grammar.Grammar, d delta) error {
	for _, call := range d.calls {
		if err := g.Check(call.Function.Name, []byte(call.Function.Arguments)); err != nil {
			return fmt.Errorf("call of %s: %w", call.Function.Name, err)
		}
	}
	if len(d.calls) > 0 || d.finish == finishLength {
		return nil
	}
	return g.Check("", []byte(d.content))
}
