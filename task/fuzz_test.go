package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		good, good + "\n" + good, "\n\n", `{"uuid":`, "\x00", strings.Replace(good, "hi", `\ud800`, 1),
		`{"uuid":"a","tools":"[{\"name\":\"f\"}]","messages":[{"role":"system","content":"s"},{"role":"user","content":"x"},{"role":"user","content":"y"}]}`,
		`{"uuid":"a","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":{}}}]},{"role":"observation","content":"1"},{"role":"tool","content":"2"}]}`,
		dialogueOf(calling("1:f", "2:g"), result("2", "g", "G"), result("1", "f", "F")), dialogueOf(calling(":f", "c00010000:g"), result("", "", "F"), result("", "", "G")),
		`{"uuid":"a","messages":[{"role":"user","content":"x"}],"checklists":[[[{"id":"C0","weight":1,"check":{"type":"reply","reference":"x","when":[{"ref":{"item":"C0","path":"a.0"},"op":"eq"}]}}]]]}`,
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "tasks.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		strict, err := Load(path, false)
		if (strict == nil) != (err != nil) {
			t.Fatalf("%d tasks and %v", len(strict), err)
		}
		tasks, _ := Load(path, true)
		if err == nil && len(tasks) != len(strict) {
			t.Fatalf("%d tasks, %d where bad lines are skipped", len(strict), len(tasks))
		}
		for _, tk := range tasks {
			check(t, tk)
		}
	})
}

// check writes a task that was read, and reads it again.
func check(t *testing.T, tk Task) {
	t.Helper()
	if tk.ID == "" || len(tk.Turns) == 0 {
		t.Fatalf("task %+v", tk)
	}
	canonical(t, tk)
	tk.Relate()
	text, err := tk.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var back Task
	if err := back.UnmarshalJSON(text); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	n := len(tk.Turns)
	if len(back.Turns) != n || len(back.Records(n)) != len(tk.Records(n)) || len(back.Tools) != len(tk.Tools) {
		t.Fatalf("%+v became %+v", tk, back)
	}
	canonical(t, back)
}
