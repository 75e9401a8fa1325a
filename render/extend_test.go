package render

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/internal/oracle"

	"pgregory.net/rapid"
)

// tester is a test or a rapid check.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// answer returns the tokens a model would sample to say m after msgs, if it kept
// to the template and the encoder: to the end of the message.
func answer(t tester, c *Chat, msgs []chat.Message, m chat.Message, tools []chat.Function) ([]int, bool) {
	t.Helper()
	before := prompt(t, c, msgs, tools)
	whole, err := c.Prompt(append(slices.Clone(msgs), m), tools, Options{Continue: true})
	if err != nil || len(whole) <= len(before) || !slices.Equal(whole[:len(before)], before) {
		return nil, false
	}
	said := whole[len(before):]
	end := slices.IndexFunc(said, func(id int) bool { return slices.Contains(c.Stop(), id) })
	return said[:end+1], end >= 0
}

// step checks that Extend after the answer m equals Prompt of the whole.
func step(t tester, c *Chat, msgs []chat.Message, m chat.Message, more []chat.Message, tools []chat.Function) {
	t.Helper()
	said, ok := answer(t, c, msgs, m, tools)
	if !ok {
		t.Errorf("the answer %q does not follow its prompt", m.Content)
		return
	}
	seen := append(prompt(t, c, msgs, tools), said...)
	whole := append(append(slices.Clone(msgs), m), more...)
	want := prompt(t, c, whole, tools)
	for _, ids := range [][]int{seen, seen[:len(seen)-1]} { // ended by itself, stopped early
		got, err := c.Extend(ids, more)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n got %q\nwant %q", err, c.Text(got), c.Text(want))
		}
	}
}

func TestExtend(t *testing.T) {
	for name, template := range map[string]string{"full": fullTemplate, "plain": plainTemplate} {
		t.Run(name, func(t *testing.T) {
			c := newChat(t, template, Config{})
			tools := []chat.Function{probeTool}
			msgs := []chat.Message{{Role: chat.System, Content: "s"}, user("one")}
			first, second := acting("", "hm", `{"a": 1}`, `{}`), acting("so", "")
			results := []chat.Message{result("x<|im_end|>"), result("y | z")}
			step(t, c, msgs, first, results, tools)
			msgs = append(append(msgs, first), results...)
			step(t, c, msgs, second, []chat.Message{user("two <|im_start|>")}, tools)
			step(t, c, msgs, second, nil, tools)
			step(t, c, msgs, second, []chat.Message{result("late"), user("both")}, tools)
		})
	}
}

// Sampled tokens are never encoded again: a spelling that the encoder would not
// choose stays, and the new tokens are the same behind it.
func TestExtendKeepsSampledTokens(t *testing.T) {
	c := newChat(t, fullTemplate, Config{})
	start := prompt(t, c, []chat.Message{user("hello")}, nil)
	rapid.Check(t, func(t *rapid.T) {
		ids := slices.Clone(start)
		for range 3 {
			before := slices.Clone(ids)
			sampled := rapid.SliceOfN(rapid.IntRange(0, c.tok.Size()-1), 0, 20).Draw(t, "sampled")
			ids = append(ids, sampled...)
			next, err := c.Extend(ids, []chat.Message{result("r"), result("s")})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(next[:len(ids)], ids) || !slices.Equal(next[:len(before)], before) {
				t.Fatalf("sampled tokens changed: %d", next)
			}
			tail, err := c.after([]chat.Message{result("r"), result("s")})
			if err != nil {
				t.Fatal(err)
			}
			if got := next[len(ids):]; !slices.Equal(got, tail) && (ids[len(ids)-1] != tail[0] || !slices.Equal(got, tail[1:])) {
				t.Fatalf("new tokens %q, want %q", c.Text(got), c.Text(tail))
			}
			ids[0]++ // the result is a copy
			if next[0] == ids[0] {
				t.Fatal("the result shares memory with ids")
			}
			ids = next
		}
	})
}

func TestExtendNonCanonicalSplit(t *testing.T) {
	c := newChat(t, fullTemplate, Config{})
	start := prompt(t, c, []chat.Message{user("hello")}, nil)
	word := c.tok.Encode("hello")
	var letters []int
	for _, b := range []byte("hello") {
		letters = append(letters, c.tok.EncodeOrdinary(string(b))...)
	}
	if len(word) >= len(letters) {
		t.Fatalf("the tokenizer has no token within hello: %d", word)
	}
	a, err := c.Extend(append(slices.Clone(start), letters...), []chat.Message{user("on")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Extend(append(slices.Clone(start), word...), []chat.Message{user("on")})
	if err != nil {
		t.Fatal(err)
	}
	if c.Text(a) != c.Text(b) || slices.Equal(a, b) || !slices.Equal(a[len(start):len(start)+len(letters)], letters) {
		t.Errorf("%d and %d", a, b)
	}
}

// Where the template rewrites history, the policy decides.
func TestHistory(t *testing.T) {
	keep, split := newChat(t, forgetfulTemplate, Config{}), newChat(t, forgetfulTemplate, Config{History: Split})
	if keep.AppendOnly() || split.AppendOnly() {
		t.Fatal("a template that forgets thinking is said to be append-only")
	}
	ids := prompt(t, keep, []chat.Message{user("one")}, nil)
	if _, err := keep.Extend(ids, []chat.Message{user("two")}); err != nil {
		t.Error(err)
	}
	if _, err := split.Extend(ids, []chat.Message{user("two")}); !errors.Is(err, ErrSplit) {
		t.Errorf("error %v, want ErrSplit", err)
	}
	whole := newChat(t, fullTemplate, Config{History: Split})
	if _, err := whole.Extend(ids, []chat.Message{user("two")}); err != nil {
		t.Errorf("append-only template: %v", err)
	}
}

// The golden templates, as far as they permit: Extend after the template's own
// rendering of an answer equals the prompt of the whole dialogue.
func TestGoldenExtend(t *testing.T) {
	on, off := true, false
	for _, path := range oracle.Glob(t, "chat/chat_*.jsonl") {
		r := goldenRows(t, path)[0]
		for _, thinking := range []*bool{nil, &on, &off} {
			name := fmt.Sprintf("%s/%s", strings.TrimSuffix(filepath.Base(path), ".jsonl"), map[*bool]string{nil: "unset", &on: "on", &off: "off"}[thinking])
			t.Run(name, func(t *testing.T) {
				c := goldenChatWith(t, r, ending(r), Config{Thinking: thinking})
				t.Log(c.toolAppend, c.userAppend, c.shape, c.Stop(), c.Notes())
				goldenSteps(t, c, thinking == nil || *thinking)
			})
		}
	}
}

// ending names a tokenizer that has the token which ends r's messages.
func ending(r row) string {
	if r.Tokenizer == "llama3" && strings.Contains(r.Text, "<|im_end|>") {
		return "qwen3"
	}
	return r.Tokenizer
}

func goldenSteps(t *testing.T, c *Chat, thinks bool) {
	tools := []chat.Function{probeTool}
	thought := ""
	if thinks {
		thought = "hm | so"
	}
	if c.conf.Thinking == nil {
		rapid.Check(t, func(t *rapid.T) { goldenDialogue(t, c, tools, thought) })
	}
	msgs := []chat.Message{{Role: chat.System, Content: "Be kind."}, user("one")}
	for _, args := range [][]string{{`{"a": [1, "é"]}`}, {`{"a": 9007199254740993}`, `{}`}} {
		act := acting("", thought, args...)
		if _, err := c.Prompt(append(slices.Clone(msgs), act), tools, Options{}); err != nil {
			t.Log(err) // Llama 3.1: one call in a message
			continue
		}
		var results []chat.Message
		for i := range args {
			results = append(results, result(fmt.Sprintf(`{"ok": %d} <|im_end|>`, i)))
		}
		if c.toolAppend {
			step(t, c, msgs, act, results, tools)
		}
		if c.userAppend {
			done := append(append(slices.Clone(msgs), act), results...)
			step(t, c, done, acting("All done.", thought), []chat.Message{user("two")}, tools)
		}
	}
}

// goldenDialogue plays a dialogue of random texts and checks every step of it.
func goldenDialogue(t *rapid.T, c *Chat, tools []chat.Function, thought string) {
	text := rapid.StringMatching(`[a-zé{"][a-z "}<|>é\n\\]{0,8}[a-z}]`)
	msgs := []chat.Message{user(text.Draw(t, "user"))}
	for range rapid.IntRange(1, 3).Draw(t, "steps") {
		m, more := acting(text.Draw(t, "answer"), thought), []chat.Message{user(text.Draw(t, "user"))}
		appends := c.userAppend
		if rapid.Bool().Draw(t, "call") {
			m, more = acting("", thought, `{"a": 1}`), []chat.Message{result(text.Draw(t, "result"))}
			appends = c.toolAppend
		}
		if appends {
			step(t, c, msgs, m, more, tools)
		}
		msgs = append(append(msgs, m), more...)
	}
}

// What each golden template does, so that a change is seen.
func TestGoldenTemplates(t *testing.T) {
	want := map[string]struct {
		tools, users bool
		shape        shape
	}{
		"hermes-2-pro.jinja": {true, true, shape{}},
		"llama3.1-8b.jinja":  {true, true, shape{bare: true}},
		"mistral-nemo.jinja": {false, false, shape{bare: true, lead: "[TOOL_CALLS]"}},
		"qwen2.5-7b.jinja":   {true, true, shape{}},
		"qwen3-npm.jinja":    {true, false, shape{}},
		"qwen3.5-4b.jinja":   {true, false, shape{}},
		"smollm2.jinja":      {true, true, shape{listTools: true, writeCalls: true}},
		"smollm3-3b.jinja":   {true, true, shape{writeCalls: true}},
	}
	for _, path := range oracle.Glob(t, "chat/chat_*.jsonl") {
		r := goldenRows(t, path)[0]
		w, ok := want[r.Template]
		if !ok {
			continue
		}
		t.Run(r.Template, func(t *testing.T) {
			c := goldenChat(t, r, Config{})
			if c.toolAppend != w.tools || c.userAppend != w.users || c.shape != w.shape {
				t.Errorf("tools %v, users %v, %+v; want %+v", c.toolAppend, c.userAppend, c.shape, w)
			}
		})
	}
}
