package jinja

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"
)

// TestSnippets compares small templates with what Jinja2 made of them; see
// testdata/snippets.py.
func TestSnippets(t *testing.T) {
	f, err := os.Open("testdata/snippets.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	now := time.Date(2024, 2, 9, 7, 5, 3, 0, time.UTC)
	lines := bufio.NewScanner(f)
	var vars *Dict
	for lines.Scan() {
		var row struct {
			Vars             json.RawMessage
			Src, Text, Error string
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.Vars != nil {
			vars = mustJSON(t, row.Vars).(*Dict)
			continue
		}
		text, exception := render(row.Src, vars, now)
		if text != row.Text || exception != row.Error {
			t.Errorf("%s\n got %q %s\nwant %q %s", row.Src, text, exception, row.Text, row.Error)
		}
	}
}

func render(src string, vars *Dict, now time.Time) (text, exception string) {
	tmpl, err := Parse("snippet", src)
	if err != nil {
		return outcome("", err)
	}
	return outcome(tmpl.Render(context.Background(), vars, now))
}
