package render

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"envace/chat"
	"envace/internal/jinja"
	"envace/internal/oracle"
	"envace/internal/token"
	"envace/internal/weights"
)

// row is a line of golden/chat.
type row struct {
	Name      string
	Template  string
	Tokenizer string
	Messages  json.RawMessage
	Tools     json.RawMessage
	Kwargs    struct {
		Generate bool  `json:"add_generation_prompt"`
		Thinking *bool `json:"enable_thinking"`
	}
	Now   string `json:"strftime_now"`
	Text  string
	IDs   []int
	Error string
}

// model is a tokenizer that golden files name, with its special tokens.
type model struct {
	name    string
	special weights.Special
}

var models = []model{
	{"qwen3", weights.Special{EOS: "<|im_end|>", PAD: "<|endoftext|>"}},
	{"smollm2", weights.Special{BOS: "<|im_start|>", EOS: "<|im_end|>", PAD: "<|im_end|>"}},
	{"llama3", weights.Special{BOS: "<|begin_of_text|>", EOS: "<|eot_id|>"}},
}

func (m model) path(t testing.TB) string {
	switch m.name {
	case "qwen3":
		return oracle.Need(t, filepath.Join(oracle.Shared(), "models", "qwen3", "tokenizer.json"))
	case "smollm2":
		return oracle.Need(t, filepath.Join(oracle.Shared(), "models", "smollm2-135m-instruct", "tokenizer.json"))
	}
	dir := os.Getenv("ENVACE_LLAMA3")
	for _, sub := range []string{"", "models", filepath.Join("package", "models")} {
		path := filepath.Join(dir, sub, "tokenizer.json")
		if _, err := os.Stat(path); dir != "" && err == nil {
			return path
		}
	}
	oracle.Missing(t, "Llama 3's tokenizer ($ENVACE_LLAMA3)")
	return ""
}

var loaded = map[string]*token.Tokenizer{}

// load returns a golden tokenizer, read once.
func load(t testing.TB, name string) (model, *token.Tokenizer) {
	t.Helper()
	i := slices.IndexFunc(models, func(m model) bool { return m.name == name })
	if i < 0 {
		t.Fatalf("no tokenizer is known for golden files of %q", name)
	}
	if loaded[name] == nil {
		tok, err := token.Load(models[i].path(t))
		if err != nil {
			t.Fatal(err)
		}
		loaded[name] = tok
	}
	return models[i], loaded[name]
}

// goldenRows returns the rows of a golden file.
func goldenRows(t testing.TB, path string) []row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		rows = append(rows, r)
	}
	if lines.Err() != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows, %v", path, len(rows), lines.Err())
	}
	return rows
}

// goldenChat returns the chat of a golden template with the tokenizer of its rows.
func goldenChat(t testing.TB, r row, conf Config) *Chat {
	t.Helper()
	return goldenChatWith(t, r, r.Tokenizer, conf)
}

func goldenChatWith(t testing.TB, r row, tokenizer string, conf Config) *Chat {
	t.Helper()
	m, tok := load(t, tokenizer)
	source, err := os.ReadFile(oracle.Golden(t, "chat/templates/"+r.Template))
	if err != nil {
		t.Fatal(err)
	}
	conf.Template, conf.Special = string(source), m.special
	if conf.Now, err = time.Parse("2006-01-02T15:04:05", r.Now); err != nil {
		t.Fatal(err)
	}
	c, err := New(tok, conf)
	if err != nil {
		t.Fatalf("%s: %v", r.Template, err)
	}
	return c
}

// Every row has the text and ids of transformers' apply_chat_template: as JSON
// straight into the template, and through chat.Message where that can hold it.
func TestGoldenChat(t *testing.T) {
	for _, path := range oracle.Glob(t, "chat/chat_*.jsonl") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".jsonl"), func(t *testing.T) {
			chats := map[string]*Chat{}
			through := 0
			for _, r := range goldenRows(t, path) {
				key := r.Template + r.Tokenizer + r.Now
				if chats[key] == nil {
					chats[key] = goldenChat(t, r, Config{})
				}
				checkRaw(t, chats[key], r)
				if checkPrompt(t, chats[key], r) {
					through++
				}
			}
			if through < 10 {
				t.Errorf("only %d rows went through Prompt", through)
			}
		})
	}
}

func checkRaw(t *testing.T, c *Chat, r row) {
	vars := jinja.NewDict()
	for name, raw := range map[string]json.RawMessage{"messages": r.Messages, "tools": r.Tools} {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		set(vars, name, v)
	}
	set(vars, "add_generation_prompt", jinja.Bool(r.Kwargs.Generate))
	if r.Kwargs.Thinking != nil {
		set(vars, "enable_thinking", jinja.Bool(*r.Kwargs.Thinking))
	}
	text, err := c.fill(c.plain, vars)
	if r.Error != "" {
		var e *jinja.Error
		if !errors.As(err, &e) || e.Exception() != r.Error {
			t.Errorf("%s: error %v, want %s", r.Name, err, r.Error)
		}
		return
	}
	if err != nil || text != r.Text {
		t.Errorf("%s: %v\n got %q\nwant %q", r.Name, err, text, r.Text)
		return
	}
	if got := c.tok.Encode(text); !slices.Equal(got, r.IDs) {
		t.Errorf("%s: ids\n got %d\nwant %d", r.Name, got, r.IDs)
	}
}

// checkPrompt reports whether the row could be checked: whether our messages and
// tools hold all that it says, and nothing is arranged beside the template.
func checkPrompt(t *testing.T, c *Chat, r row) bool {
	msgs, tools, ok := ours(r)
	thought := slices.ContainsFunc(msgs, func(m chat.Message) bool { return m.Thinking != "" })
	if !ok || thought && !c.reasoning || c.guard.count(string(r.Messages)+string(r.Tools)) > 0 {
		return false
	}
	if d := c.arrange(dialogue{msgs: msgs, tools: tools}); len(d.msgs) != len(msgs) || len(d.tools) != len(tools) || calling(d.msgs) != calling(msgs) {
		return false
	}
	got, err := c.Prompt(msgs, tools, Options{Thinking: r.Kwargs.Thinking, Continue: !r.Kwargs.Generate})
	if r.Error != "" {
		if !refused(err, r.Error, len(msgs)) {
			t.Errorf("%s: Prompt: error %v, want %s", r.Name, err, r.Error)
		}
		return true
	}
	if err != nil || !slices.Equal(got, r.IDs) {
		t.Errorf("%s: Prompt: %v\n got %d\nwant %d", r.Name, err, got, r.IDs)
	}
	return true
}

// refused reports whether err is the template's exception and names one of n messages,
// or none where there is none.
func refused(err error, exception string, n int) bool {
	var e *jinja.Error
	if !errors.As(err, &e) || e.Exception() != exception {
		return false
	}
	m := named.FindStringSubmatch(err.Error())
	if n == 0 || m == nil {
		return n == 0 && m == nil
	}
	at, err := strconv.Atoi(m[1])
	return err == nil && at < n
}

var named = regexp.MustCompile(`message (\d+) \(`)

func calling(msgs []chat.Message) bool {
	return slices.ContainsFunc(msgs, func(m chat.Message) bool { return len(m.Calls) > 0 })
}

// ours reads a row into our types; ok says that nothing was lost.
func ours(r row) (msgs []chat.Message, tools []chat.Function, ok bool) {
	type call struct {
		ID       string `json:"id,omitempty"`
		Type     string `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	type message struct {
		Role     chat.Role `json:"role"`
		Content  *string   `json:"content"`
		Thinking string    `json:"reasoning_content,omitempty"`
		Calls    []call    `json:"tool_calls,omitempty"`
		Name     string    `json:"name,omitempty"`
		CallID   string    `json:"tool_call_id,omitempty"`
	}
	var list []message
	if json.Unmarshal(r.Messages, &list) != nil || !sameJSON(list, r.Messages) {
		return nil, nil, false
	}
	if json.Unmarshal(r.Tools, &tools) != nil || !sameJSON(tools, r.Tools) {
		return nil, nil, false
	}
	for _, m := range list {
		if m.Content == nil || !slices.Contains([]chat.Role{chat.System, chat.User, chat.Assistant, chat.Tool}, m.Role) {
			return nil, nil, false
		}
		our := chat.Message{Role: m.Role, Content: *m.Content, Thinking: m.Thinking, Name: m.Name, CallID: m.CallID}
		for _, call := range m.Calls {
			if call.Function.Arguments[0] != '{' {
				return nil, nil, false
			}
			our.Calls = append(our.Calls, chat.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		msgs = append(msgs, our)
	}
	return msgs, tools, true
}

// sameJSON compares values with the order of their keys.
func sameJSON(v any, raw []byte) bool {
	text, err := chat.Marshal(v)
	if err != nil {
		return false
	}
	a, erra := jinja.FromJSON(text)
	b, errb := jinja.FromJSON(raw)
	return erra == nil && errb == nil && reflect.DeepEqual(a, b)
}
