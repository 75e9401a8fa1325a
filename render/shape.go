package render

import (
	"strings"

	"envace/chat"
)

// shape describes how dialogues with tools are adapted to a template: what the
// template does not render is written into the messages in Hermes format.
type shape struct {
	listTools   bool // list the tools in the system message
	writeCalls  bool // write calls into the content
	userResults bool // write results as user messages

	textArgs  bool // the template prints arguments as text: hand it the JSON text
	noContent bool // it writes calls only where the content is none
	callsOnly bool // … and never next to text, which is then left out
	// bare: the template writes a call as JSON without tags, after lead.
	bare bool
	lead string
}

// arrange adapts d to the template.
func (c *Chat) arrange(d dialogue) dialogue {
	d.msgs = c.shape.messages(d.msgs)
	if c.shape.listTools && len(d.tools) > 0 {
		d.msgs = listTools(d.msgs, d.tools)
		d.tools = nil
	}
	return d
}

func (s shape) messages(msgs []chat.Message) []chat.Message {
	out := make([]chat.Message, 0, len(msgs))
	for i, m := range msgs {
		if s.writeCalls && len(m.Calls) > 0 {
			m.Content, m.Calls = writeCalls(m), nil
		}
		if s.userResults && m.Role == chat.Tool {
			text := "<tool_response>\n" + m.Content + "\n</tool_response>"
			if i > 0 && msgs[i-1].Role == chat.Tool {
				out[len(out)-1].Content += "\n" + text
				continue
			}
			m = chat.Message{Role: chat.User, Content: text}
		}
		out = append(out, m)
	}
	return out
}

// writeCalls returns the content of m followed by its calls, arguments as written.
func writeCalls(m chat.Message) string {
	var b strings.Builder
	b.WriteString(m.Content)
	for _, call := range m.Calls {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		name, err := chat.Marshal(call.Name)
		if err != nil {
			name = []byte(`""`)
		}
		args := string(call.Arguments)
		if args == "" {
			args = "{}"
		}
		b.WriteString("<tool_call>\n{\"name\": " + string(name) + ", \"arguments\": " + args + "}\n</tool_call>")
	}
	return b.String()
}

// listTools adds the tools to the system message, creating one if needed.
func listTools(msgs []chat.Message, tools []chat.Function) []chat.Message {
	var b strings.Builder
	b.WriteString("You can use tools. Each line between <tools> and </tools> describes one:\n<tools>\n")
	for _, f := range tools {
		if text, err := toolJSON(f); err == nil { // run has seen that all can be written
			b.Write(text)
		}
		b.WriteByte('\n')
	}
	b.WriteString("</tools>\nTo use one, write\n<tool_call>\n{\"name\": its name, \"arguments\": {…}}\n</tool_call>\n" +
		"and the next message gives you its result.")
	system := chat.Message{Role: chat.System, Content: b.String()}
	if len(msgs) > 0 && msgs[0].Role == chat.System {
		system.Content = msgs[0].Content + "\n\n" + system.Content
		msgs = msgs[1:]
	}
	return append([]chat.Message{system}, msgs...)
}
