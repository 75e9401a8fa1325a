package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"envace/chat"
	"envace/internal/openai"
)

// parseMessages decodes the messages of a request and checks that every tool call is
// followed by its result, and every result answers a call.
func parseMessages(list []json.RawMessage) ([]chat.Message, error) {
	if len(list) == 0 {
		return nil, badRequest("messages", "messages is empty")
	}
	var msgs []chat.Message
	var open []chat.Call // calls without a result
	for i, raw := range list {
		var w openai.Message
		path := fmt.Sprintf("messages[%d].", i)
		if err := decodeStrict(raw, &w, ignoredMessageFields, path); err != nil {
			return nil, err
		}
		if err := checkParts(raw, path); err != nil {
			return nil, err
		}
		m, err := parseMessage(w, path)
		if err != nil {
			return nil, err
		}
		if m.Role != chat.Tool && len(open) > 0 {
			return nil, badRequest("messages", "messages[%d]: the tool call %q before it has no tool message", i, open[0].ID)
		}
		if m.Role == chat.Tool {
			at := slices.IndexFunc(open, func(c chat.Call) bool { return c.ID == m.CallID })
			if at < 0 {
				return nil, badRequest(path+"tool_call_id", "messages[%d] has tool_call_id %q, which is not an open call of the preceding assistant message", i, m.CallID)
			}
			if m.Name != "" && m.Name != open[at].Name {
				return nil, badRequest(path+"name", "messages[%d] has name %q, but answers a call to %q", i, m.Name, open[at].Name)
			}
			m.Name = open[at].Name
			open = slices.Delete(open, at, at+1)
		}
		if len(m.Calls) > 0 {
			open = slices.Clone(m.Calls)
		}
		msgs = append(msgs, m)
	}
	if len(open) > 0 {
		return nil, badRequest("messages", "the tool call %q at the end has no tool message", open[0].ID)
	}
	return msgs, nil
}

// checkParts rejects unknown fields of content parts, which [openai.Content] ignores
// for the sake of clients.
func checkParts(message json.RawMessage, path string) error {
	var m struct{ Content json.RawMessage }
	var parts []json.RawMessage
	if json.Unmarshal(message, &m) != nil || json.Unmarshal(m.Content, &parts) != nil {
		return nil // a string
	}
	for i, part := range parts {
		var text struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := decodeStrict(part, &text, nil, fmt.Sprintf("%scontent[%d].", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// parseMessage checks one message and converts it.
func parseMessage(w openai.Message, path string) (chat.Message, error) {
	m := chat.Message{Role: chat.Role(w.Role), Content: chat.Sanitize(w.Text()), Name: chat.Sanitize(w.Name)}
	switch w.Role {
	case "developer":
		m.Role = chat.System
	case "system", "user", "assistant", "tool":
	default:
		return m, badRequest(path+"role", "%srole is %q: want system, developer, user, assistant or tool", path, w.Role)
	}
	w.Reasoning = cmp.Or(w.Reasoning, w.Reasoning2)
	switch {
	case w.Role != "assistant" && (len(w.ToolCalls) > 0 || w.Reasoning != "" || w.Refusal != nil):
		return m, badRequest(path+"role", "%srole is %s: only assistant messages have tool_calls, reasoning_content or refusal", path, w.Role)
	case w.Role == "tool" && w.ToolCallID == "":
		return m, badRequest(path+"tool_call_id", "%stool_call_id is missing: tool messages must have it", path)
	case w.Role != "tool" && w.ToolCallID != "":
		return m, badRequest(path+"tool_call_id", "%stool_call_id is only allowed in tool messages", path)
	case w.Role != "tool" && w.Role != "assistant" && w.Content == nil:
		return m, badRequest(path+"content", "%scontent is missing", path)
	}
	if w.Refusal != nil && m.Content == "" {
		m.Content = chat.Sanitize(*w.Refusal)
	}
	m.CallID, m.Thinking = w.ToolCallID, chat.Sanitize(w.Reasoning)
	for i, c := range w.ToolCalls {
		call, err := parseToolCall(c, fmt.Sprintf("%stool_calls[%d].", path, i))
		if err != nil {
			return m, err
		}
		if slices.ContainsFunc(m.Calls, func(other chat.Call) bool { return other.ID == call.ID }) {
			return m, badRequest(path+"tool_calls", "%stool_calls[%d].id %q is a duplicate", path, i, call.ID)
		}
		m.Calls = append(m.Calls, call)
	}
	return m, nil
}

func parseToolCall(c openai.ToolCall, path string) (chat.Call, error) {
	args := strings.TrimSpace(chat.Sanitize(c.Function.Arguments))
	switch {
	case c.Type != "function" && c.Type != "":
		return chat.Call{}, badRequest(path+"type", "%stype is %q: only function is supported", path, c.Type)
	case c.ID == "":
		return chat.Call{}, badRequest(path+"id", "%sid is missing", path)
	case c.Function.Name == "":
		return chat.Call{}, badRequest(path+"function.name", "%sfunction.name is missing", path)
	case args == "":
		args = "{}"
	case args[0] != '{' || !json.Valid([]byte(args)):
		return chat.Call{}, badRequest(path+"function.arguments", "%sfunction.arguments is not a JSON object: %.60q", path, args)
	}
	return chat.Call{ID: c.ID, Name: chat.Sanitize(c.Function.Name), Arguments: json.RawMessage(args)}, nil
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// parseTools checks and converts the tools of a request.
func parseTools(tools []openai.Tool) ([]chat.Function, error) {
	var out []chat.Function
	for i, t := range tools {
		path := fmt.Sprintf("tools[%d].", i)
		f := t.Function
		params := strings.TrimSpace(chat.Sanitize(string(f.Parameters)))
		switch {
		case t.Type != "function":
			return nil, badRequest(path+"type", "%stype is %q: only function is supported", path, t.Type)
		case !toolName.MatchString(f.Name):
			return nil, badRequest(path+"function.name", "%sfunction.name is %q: want 1 to 64 of the characters A-Z a-z 0-9 _ . -", path, f.Name)
		case slices.ContainsFunc(out, func(g chat.Function) bool { return g.Name == f.Name }):
			return nil, badRequest(path+"function.name", "%sfunction.name %q is a duplicate", path, f.Name)
		case params == "" || params == "null":
			params = `{"type":"object","properties":{}}`
		case params[0] != '{':
			return nil, badRequest(path+"function.parameters", "%sfunction.parameters is not a JSON Schema: want an object", path)
		}
		out = append(out, chat.Function{Name: f.Name, Description: chat.Sanitize(f.Description), Parameters: json.RawMessage(params), Strict: f.Strict})
	}
	return out, nil
}
