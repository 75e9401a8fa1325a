package train

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/internal/oracle"
	"envace/internal/token"
	"envace/render"
	"envace/task"
)

const chatML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// Wherever white space puts the border of prompt and answer, what is trained on are the
// tokens of the whole rendering, and the answer is all in the target.
func TestBorderWithinToken(t *testing.T) {
	models := oracle.Need(t, filepath.Join(oracle.Shared(), "models"))
	for _, tt := range []struct{ name, tokenizer string }{
		{"qwen3", filepath.Join(models, "qwen3")},
		{"smollm2", filepath.Join(models, "smollm2-135m-instruct")},
		{"base", filepath.Join("..", "recipes", "base")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tok, err := token.Load(filepath.Join(tt.tokenizer, "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			end := tok.Encode("<|im_end|>")
			if len(end) != 1 {
				t.Fatalf("the end of a message is %d tokens", len(end))
			}
			c, err := render.New(tok, render.Config{Template: chatML, EOS: end})
			if err != nil {
				t.Fatal(err)
			}
			for _, said := range []string{"hello", "\nhello", "\n\nhello", " hello", "  hello", "   hello", "\thello", "\r\nhello", " \n hello", "\n", "  ", "é", "\u00a0hello", "\u3000你好", "{\"a\":1}", ""} {
				msgs := []chat.Message{{Role: chat.User, Content: "hi"}}
				want := chat.Message{Role: chat.Assistant, Content: said}
				e, err := Teacher{Renderer: c}.Example(task.Task{ID: "t"}, act, msgs, nil, want)
				if err != nil {
					t.Errorf("%q: %v", said, err)
					continue
				}
				whole, err := c.Prompt(append(msgs, want), nil, render.Options{Continue: true})
				if err != nil {
					t.Fatal(err)
				}
				if got := slices.Concat(e.Prompt, e.Target); !slices.Equal(got, whole[:len(got)]) {
					t.Errorf("%q: trained on %d, want %d", said, got, whole)
				}
				if text := c.Text(e.Target); !strings.HasSuffix(text, said+"<|im_end|>") {
					t.Errorf("%q: the target is %q", said, text)
				}
				if text := c.Text(e.Prompt); !strings.HasPrefix(text+"\n", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant") {
					t.Errorf("%q: the prompt is %q", said, text)
				}
				if d := e.Datum(1); d.Weight[len(e.Prompt)-1] != 1 || len(d.Input) != len(e.Prompt)+len(e.Target)-1 {
					t.Errorf("%q: datum of %d tokens", said, len(d.Input))
				}
			}
		})
	}
}

// A template that renders its prompt otherwise once there is an answer cannot be learnt.
func TestRewrittenPrompt(t *testing.T) {
	tok, err := token.Load(filepath.Join("..", "recipes", "base", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, template := range map[string]string{
		"drops the first message": strings.Replace(chatML, "in messages %}", "in (messages if add_generation_prompt else messages[1:]) %}", 1),
		"another opening":         strings.Replace(chatML, "{{ m.role }}\n", "{{ m.role }}:{{ 'x' if not add_generation_prompt else '' }}\n", 1),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := render.New(tok, render.Config{Template: template, EOS: tok.Encode("<|im_end|>")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Teacher{Renderer: c}.Example(task.Task{ID: "t"}, act, []chat.Message{{Role: chat.User, Content: "hi"}}, nil, chat.Message{Role: chat.Assistant, Content: "yo"})
			if err == nil || !strings.Contains(err.Error(), "does not continue its own prompt") {
				t.Errorf("got %v", err)
			}
		})
	}
}
