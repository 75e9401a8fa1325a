package client

import (
	"encoding/json"
	"math"

	"envace/chat"
	"envace/internal/openai"
)

// request builds a request that strict servers accept.
func (c *Client) request(msgs []chat.Message, tools []chat.Function, o chat.Options) openai.ChatRequest {
	req := openai.ChatRequest{Model: c.Model, Temperature: o.Temperature, TopP: o.TopP, Stop: o.Stop}
	for _, m := range msgs {
		req.Messages = append(req.Messages, c.message(m))
	}
	for _, f := range tools {
		params := f.Parameters
		if len(params) == 0 {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		req.Tools = append(req.Tools, openai.Tool{Type: "function", Function: openai.Function{Name: f.Name, Description: f.Description, Parameters: params, Strict: f.Strict}})
	}
	if len(tools) > 0 {
		req.ToolChoice = &openai.ToolChoice{Mode: "auto"} // some servers treat absence as none
	}
	if o.MaxTokens > 0 {
		req.MaxTokens = &o.MaxTokens
	}
	if o.Seed != nil {
		seed := wireSeed(*o.Seed)
		req.Seed = &seed
	}
	if len(o.Schema) > 0 {
		strict := true
		req.ResponseFormat = &openai.Format{Type: "json_schema", JSONSchema: &openai.JSONSchema{Name: "answer", Schema: o.Schema, Strict: &strict}}
	}
	return req
}

// wireSeed clears the highest bit: servers read seeds as signed numbers.
func wireSeed(seed uint64) int64 { return int64(seed & math.MaxInt64) }

// message converts a message. Content is null only beside calls, and fields that the role
// does not have are omitted.
func (c *Client) message(m chat.Message) openai.Message {
	text := openai.Content(m.Content)
	out := openai.Message{Role: string(m.Role), Content: &text}
	switch m.Role {
	case chat.Tool:
		out.ToolCallID = m.CallID
	case chat.Assistant:
		if c.SendThinking {
			out.Reasoning = m.Thinking
		}
		for _, call := range m.Calls {
			out.ToolCalls = append(out.ToolCalls, openai.ToolCall{ID: call.ID, Type: "function", Function: openai.FunctionCall{Name: call.Name, Arguments: string(call.Arguments)}})
		}
		if len(m.Calls) > 0 && m.Content == "" {
			out.Content = nil
		}
	default:
		out.Name = m.Name
	}
	return out
}
