package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"envace/chat"
	"envace/internal/jinja"
)

// dialogue is the input of a template.
type dialogue struct {
	msgs     []chat.Message
	tools    []chat.Function
	tooled   bool // use the tool template even without tools
	thinking *bool
	generate bool // end with the generation prompt
	base     int  // messages before the caller's own
}

// paint is applied to every string that comes from messages rather than the template.
type paint func(string) string

func asIs(s string) string { return s }

// render runs the template like transformers' apply_chat_template. An error names
// the message at which the template fails, where there is one.
func (c *Chat) render(d dialogue, p paint) (string, error) {
	text, err := c.run(d, p)
	if err == nil || len(d.msgs) == 0 {
		return text, err
	}
	at := len(d.msgs) - 1
	for n := 1; n < len(d.msgs); n++ {
		short := d
		short.msgs, short.generate = d.msgs[:n], false
		if _, e := c.run(short, asIs); e != nil && e.Error() == err.Error() {
			at = n - 1
			break
		}
	}
	return "", fmt.Errorf("message %d (%s): %w", at-d.base, d.msgs[at].Role, err)
}

// run adapts d to the template and renders it.
func (c *Chat) run(d dialogue, p paint) (string, error) {
	template := c.plain
	if d.tooled || d.tools != nil {
		template = c.tooled
	}
	tools, err := toolValues(d.tools, p)
	if err != nil {
		return "", err
	}
	for _, m := range d.msgs {
		if err := checkArguments(m.Calls); err != nil {
			return "", err
		}
	}
	if d = c.arrange(d); d.tools == nil {
		tools = jinja.None{}
		if c.toolList {
			tools = jinja.NewList()
		}
	}
	msgs := make([]jinja.Value, len(d.msgs))
	for i, m := range d.msgs {
		msgs[i] = c.messageValue(m, p)
	}
	vars := jinja.NewDict()
	set(vars, "messages", jinja.NewList(msgs...))
	set(vars, "tools", tools)
	set(vars, "add_generation_prompt", jinja.Bool(d.generate))
	if d.thinking != nil {
		set(vars, "enable_thinking", jinja.Bool(*d.thinking))
	}
	return c.fill(template, vars)
}

// fill adds the variables common to all dialogues and runs the template.
func (c *Chat) fill(t *jinja.Template, vars *jinja.Dict) (string, error) {
	set(vars, "documents", jinja.None{})
	for _, s := range [...]struct{ name, text string }{
		{"bos_token", c.conf.Special.BOS}, {"eos_token", c.conf.Special.EOS},
		{"pad_token", c.conf.Special.PAD}, {"unk_token", c.conf.Special.UNK},
	} {
		if s.text != "" {
			set(vars, s.name, jinja.Str(s.text))
		}
	}
	return t.Render(context.Background(), vars, c.conf.Now)
}

// messageValue has the keys in OpenAI's order. Empty fields are omitted, because
// templates test for the presence of keys.
func (c *Chat) messageValue(m chat.Message, p paint) jinja.Value {
	v := jinja.NewDict()
	set(v, "role", jinja.Str(m.Role))
	content := m.Content
	if m.Thinking != "" && !c.reasoning {
		content = thinkOpen + "\n" + m.Thinking + "\n" + thinkClose + "\n\n" + content
	}
	set(v, "content", jinja.Str(p(content)))
	if c.shape.noContent && len(m.Calls) > 0 && (content == "" || c.shape.callsOnly) {
		set(v, "content", jinja.None{})
	}
	if m.Thinking != "" && c.reasoning {
		set(v, "reasoning_content", jinja.Str(p(m.Thinking)))
	}
	if len(m.Calls) > 0 {
		list := make([]jinja.Value, len(m.Calls))
		for i, call := range m.Calls {
			list[i] = c.callValue(call, p)
		}
		set(v, "tool_calls", jinja.NewList(list...))
	}
	if m.Name != "" {
		set(v, "name", jinja.Str(p(m.Name)))
	}
	if m.CallID != "" {
		set(v, "tool_call_id", jinja.Str(p(m.CallID)))
	}
	return v
}

// checkArguments refuses what would be shown as something else: a value that is too
// deep as text, 1e400 as Infinity.
func checkArguments(calls []chat.Call) error {
	for _, call := range calls {
		v, err := jinja.FromJSON(call.Arguments)
		if err == nil {
			err = finite(v)
		} else if !errors.Is(err, jinja.ErrRange) {
			err = nil // not JSON: a text
		}
		if err != nil {
			return fmt.Errorf("call to %s: %w: %w", call.Name, ErrArguments, err)
		}
	}
	return nil
}

// finite returns an error for a number beyond 64 bits, which became infinite.
func finite(v jinja.Value) error {
	switch v := v.(type) {
	case jinja.Float:
		if math.IsInf(float64(v), 0) {
			return errors.New("a number is out of the range of 64 bits")
		}
	case *jinja.List:
		for i := range v.Len() {
			if err := finite(v.At(i)); err != nil {
				return err
			}
		}
	case *jinja.Dict:
		for _, value := range v.All() {
			if err := finite(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// callValue passes arguments as the object that most templates expect, or as the text
// that the others print. Arguments that are not JSON are passed as text, so that every
// dialogue can be rendered.
func (c *Chat) callValue(call chat.Call, p paint) jinja.Value {
	text := call.Arguments
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	args, err := jinja.FromJSON(text)
	if err != nil || c.shape.textArgs {
		args = jinja.Str(text)
	}
	function := jinja.NewDict()
	set(function, "name", jinja.Str(p(call.Name)))
	set(function, "arguments", painted(args, p))
	v := jinja.NewDict()
	if call.ID != "" {
		set(v, "id", jinja.Str(p(call.ID)))
	}
	set(v, "type", jinja.Str("function"))
	set(v, "function", function)
	return v
}

// toolValues returns the tools in OpenAI's form, without envace's own fields.
func toolValues(tools []chat.Function, p paint) (jinja.Value, error) {
	if tools == nil {
		return jinja.None{}, nil
	}
	list := make([]jinja.Value, len(tools))
	for i, f := range tools {
		text, err := toolJSON(f)
		if err != nil {
			return nil, err
		}
		v, err := jinja.FromJSON(text)
		if err == nil {
			err = finite(v)
		}
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", f.Name, err)
		}
		list[i] = painted(v, p)
	}
	return jinja.NewList(list...), nil
}

func toolJSON(f chat.Function) ([]byte, error) {
	f.Write = false
	return chat.Marshal(f)
}

// painted applies p to every string in v.
func painted(v jinja.Value, p paint) jinja.Value {
	switch v := v.(type) {
	case jinja.Str:
		return jinja.Str(p(string(v)))
	case *jinja.List:
		items := make([]jinja.Value, v.Len())
		for i := range items {
			items[i] = painted(v.At(i), p)
		}
		return jinja.NewList(items...)
	case *jinja.Dict:
		d := jinja.NewDict()
		for key, value := range v.All() {
			d.Set(painted(key, p), painted(value, p))
		}
		return d
	}
	return v
}

func set(d *jinja.Dict, key string, v jinja.Value) { d.Set(jinja.Str(key), v) }
