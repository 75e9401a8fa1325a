package jinja

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"envace/internal/oracle"
)

// goldenRow is one line of golden/chat/*.jsonl.
type goldenRow struct {
	Name      string
	Template  string
	Tokenizer string
	Messages  json.RawMessage
	Tools     json.RawMessage
	Kwargs    json.RawMessage
	Now       string `json:"strftime_now"`
	Text      *string
	Error     string
}

// specialTokens are the variables that each tokenizer of the vectors gives its
// templates.
var specialTokens = map[string]map[string]string{
	"qwen3":   {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
	"llama3":  {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
	"smollm2": {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": "<|endoftext|>", "pad_token": "<|im_end|>"},
}

func mustJSON(t testing.TB, data []byte) Value {
	t.Helper()
	v, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outcome is what the reference records: the text, or the exception.
func outcome(out string, err error) (text, exception string) {
	var e *Error
	switch {
	case errors.As(err, &e):
		return "", e.Exception()
	case err != nil:
		return "", err.Error()
	}
	return out, ""
}

func (row goldenRow) vars(t *testing.T) *Dict {
	vars := NewDict()
	vars.Set(Str("messages"), mustJSON(t, row.Messages))
	vars.Set(Str("tools"), mustJSON(t, row.Tools))
	vars.Set(Str("documents"), None{})
	vars.Set(Str("add_generation_prompt"), Bool(false))
	for name, token := range specialTokens[row.Tokenizer] {
		vars.Set(Str(name), Str(token))
	}
	for name, v := range mustJSON(t, row.Kwargs).(*Dict).All() {
		vars.Set(name, v)
	}
	return vars
}

func TestGoldenChat(t *testing.T) {
	for _, path := range oracle.Glob(t, "chat/*.jsonl") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 64<<20)
			n := 0
			for ; lines.Scan(); n++ {
				var row goldenRow
				if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
					t.Fatalf("line %d: %v", n+1, err)
				}
				checkGolden(t, row, filepath.Join(filepath.Dir(path), "templates", row.Template))
			}
			if err := lines.Err(); err != nil || n == 0 {
				t.Fatalf("%d lines: %v", n, err)
			}
		})
	}
}

func checkGolden(t *testing.T, row goldenRow, path string) {
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Parse(row.Template, string(src))
	if err != nil {
		t.Fatal(err)
	}
	now, err := time.Parse("2006-01-02T15:04:05", row.Now)
	if err != nil {
		t.Fatal(err)
	}
	text, exception := outcome(tmpl.Render(context.Background(), row.vars(t), now))
	if exception != row.Error {
		t.Errorf("%s: got error %q\nwant %q", row.Name, exception, row.Error)
	}
	if row.Text != nil && text != *row.Text {
		t.Errorf("%s:\ngot  %q\nwant %q", row.Name, text, *row.Text)
	}
}

func TestGoldenTemplates(t *testing.T) {
	data, err := os.ReadFile(oracle.Golden(t, "chat/templates/hf_jinja_e2e_py.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name     string
		Template string `json:"chat_template"`
		Data     json.RawMessage
		Target   string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			tmpl, err := Parse(c.Name, c.Template)
			if err != nil {
				t.Fatal(err)
			}
			var out string
			for _, now := range days(c.Target) {
				out, err = tmpl.Render(context.Background(), mustJSON(t, c.Data).(*Dict), now)
				if err != nil {
					t.Fatal(err)
				}
				if out == c.Target {
					return
				}
			}
			t.Errorf("got  %q\nwant %q", out, c.Target)
		})
	}
}

// days are those that a text names, and one more: the file does not say on which
// day it was rendered.
func days(text string) []time.Time {
	list := []time.Time{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for layout, pattern := range map[string]string{
		"2 January 2006": `\b\d{1,2} [A-Z][a-z]+ \d{4}\b`, "2 Jan 2006": `\b\d{1,2} [A-Z][a-z]{2} \d{4}\b`, "2006-01-02": `\b\d{4}-\d\d-\d\d\b`,
	} {
		for _, found := range regexp.MustCompile(pattern).FindAllString(text, -1) {
			if day, err := time.Parse(layout, found); err == nil {
				list = append(list, day)
			}
		}
	}
	return list
}
