package chat

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Message and Function are encoded in OpenAI's JSON form: tool calls as
// {id, type, function{name, arguments}} with arguments as a JSON string, tools as
// {type, function{…}}. Thinking is encoded as a <think> block at the start of the
// content, as in published data sets.

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type wireMessage struct {
	Role      Role       `json:"role"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []wireCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
	Name      string     `json:"name,omitempty"`
}

// MarshalJSON writes OpenAI's form.
func (m Message) MarshalJSON() ([]byte, error) {
	content := m.Content
	if m.Thinking != "" || m.Role == Assistant && thinks(content) {
		content = "<think>\n" + m.Thinking + "\n</think>\n\n" + content
	}
	w := wireMessage{Role: m.Role, Content: &content, CallID: m.CallID, Name: m.Name}
	for _, c := range m.Calls {
		args, err := Marshal(string(c.Arguments))
		if err != nil {
			return nil, err
		}
		w.Calls = append(w.Calls, wireCall{c.ID, "function", wireFunction{c.Name, args}})
	}
	return Marshal(w)
}

// UnmarshalJSON reads OpenAI's form. Content may be null; arguments may be a
// JSON string or the object itself, and must hold an object. "observation" reads
// as the tool role.
func (m *Message) UnmarshalJSON(data []byte) error {
	var w wireMessage
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	*m = Message{Role: w.Role, CallID: w.CallID, Name: Sanitize(w.Name)}
	switch w.Role {
	case System, User, Assistant, Tool:
	case "observation":
		m.Role = Tool
	default:
		return fmt.Errorf("message: unknown role %q (want system, user, assistant or tool)", w.Role)
	}
	if w.Content != nil {
		m.Content = Sanitize(*w.Content)
	}
	if w.Role == Assistant {
		if m.Thinking = Sanitize(w.Reasoning); m.Thinking == "" {
			m.Thinking, m.Content = splitThinking(m.Content)
		}
	}
	for i, c := range w.Calls {
		args, err := arguments(c.Function.Arguments)
		if err != nil {
			return fmt.Errorf("message: tool call %d (%s): %w", i, c.Function.Name, err)
		}
		m.Calls = append(m.Calls, Call{c.ID, Sanitize(c.Function.Name), args})
	}
	return nil
}

func arguments(raw json.RawMessage) (json.RawMessage, error) {
	text := strings.TrimSpace(string(raw))
	if strings.HasPrefix(text, `"`) {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		text = strings.TrimSpace(s)
	}
	text = Sanitize(text)
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("arguments are not a JSON object: %.60q", text)
	}
	return json.RawMessage(text), nil
}

// thinks reports whether content begins with a thinking block.
func thinks(content string) bool {
	return strings.HasPrefix(strings.TrimLeft(content, " \n\t"), "<think>")
}

func splitThinking(content string) (thinking, rest string) {
	if !thinks(content) {
		return "", content
	}
	_, body, _ := strings.Cut(content, "<think>")
	thinking, rest, ok := strings.Cut(body, "</think>")
	if !ok {
		return "", content
	}
	return strings.Trim(thinking, "\n"), strings.TrimLeft(rest, "\n")
}

type wireTool struct {
	Type     string          `json:"type"`
	Function json.RawMessage `json:"function"`
}

type flatTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict,omitempty"`
	Write       bool            `json:"x-write,omitempty"`
}

// MarshalJSON writes {"type":"function","function":{…}}.
func (f Function) MarshalJSON() ([]byte, error) {
	params := f.Parameters
	if len(params) == 0 {
		params = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	body, err := Marshal(flatTool{f.Name, f.Description, params, f.Strict, f.Write})
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", f.Name, err)
	}
	return Marshal(wireTool{"function", body})
}

// UnmarshalJSON reads that form, or a flat {name, description, parameters}.
func (f *Function) UnmarshalJSON(data []byte) error {
	var w wireTool
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("tool: %w", err)
	}
	if w.Function == nil {
		w.Function = data
	}
	var t flatTool
	if err := json.Unmarshal(w.Function, &t); err != nil {
		return fmt.Errorf("tool: %w", err)
	}
	if strings.TrimSpace(t.Name) == "" {
		return fmt.Errorf("tool without a name: %.80s", w.Function)
	}
	if len(t.Parameters) > 0 {
		t.Parameters = json.RawMessage(Sanitize(string(t.Parameters)))
	}
	*f = Function{Sanitize(t.Name), Sanitize(t.Description), t.Parameters, t.Strict, t.Write}
	return nil
}
