package cli

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// goBlocks are the Go code blocks of a document.
func goBlocks(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range strings.Split(string(text), "```go\n")[1:] {
		code, _, _ := strings.Cut(b, "```")
		out = append(out, code)
	}
	return out
}

// buildOutside builds a program of one file in a module of its own, which has this
// one by a replace line, and returns its path.
func buildOutside(t *testing.T, code string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/outside\n\ngo 1.26\n\nrequire envace v0.0.0\n\nreplace envace => " + root + "\n",
		"go.sum":  string(sums),
		"main.go": code,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "outside")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", program, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOPROXY=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestLibraryFromOutside builds the program of docs/library.md in another module: it
// loads a model, defines tools, trains, plays an episode, and serves.
func TestLibraryFromOutside(t *testing.T) {
	code := goBlocks(t, "docs/library.md")[0]
	if n := strings.Count(code, "\n"); n >= 80 {
		t.Errorf("the example has %d lines: want less than 80", n)
	}
	program := buildOutside(t, code)
	port := freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, filepath.Join(top, "recipes", "base"), port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "stop ") || !strings.Contains(line, ", reward ") {
		t.Errorf("printed %q, %v", line, err)
	}
	body := waitFor(t, "http://"+port+"/v1/models")
	if !strings.Contains(body, `"id":"smith"`) {
		t.Errorf("serves %s", body)
	}
	cancel()
	_ = cmd.Wait() // it was killed
}

// freePort returns an address that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// waitFor gets url as soon as a server answers there.
func waitFor(t *testing.T, url string) string {
	t.Helper()
	for range 200 {
		resp, err := http.Get(url)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	t.Fatalf("nothing answers at %s", url)
	return ""
}

// TestOwnSuiteFromOutside builds the program of docs/own-tools.md, a domain of one's
// own and a main function, and uses its commands.
func TestOwnSuiteFromOutside(t *testing.T) {
	var imports, code strings.Builder
	for _, b := range goBlocks(t, "docs/own-tools.md") {
		if strings.HasPrefix(b, "package main\n") {
			imports.WriteString(b)
			continue
		}
		code.WriteString(b + "\n")
	}
	if imports.Len() == 0 {
		t.Fatal("docs/own-tools.md shows no main package")
	}
	program := buildOutside(t, imports.String()+"\n"+code.String())
	dir := t.TempDir()
	house := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	small := []string{"sft.steps=2", "rl.steps=2", "eval.tasks=4", "eval.curve=2", "eval.every=1", "eval.held_out=0", "eval.rehearse=1"}
	args := []string{"train", "--suite", "house", "--recipe", "smoke", "--out", "run", "--with", "real"}
	for _, s := range small {
		args = append(args, "--set", s)
	}
	for _, tt := range []struct {
		name, stdin string
		args        []string
		want        []string
	}{
		{"help lists it", "", []string{"train", "--help"}, []string{"house[:DOMAIN,…]", "workbench[:DOMAIN,…]"}},
		{"train", "", args, []string{"rehearsed", "real ", "report: run/report.html"}},
		{"bench", "", []string{"bench", "house", "--model", "run/checkpoints/rl", "--n", "3"}, []string{"lights", " 3 "}},
		{"bench of one domain", "", []string{"bench", "house:lights", "--model", "run/checkpoints/rl", "--n", "2", "--json"}, []string{`"part":"lights"`, `"world":"real"`}},
		{"chat", "light the lamp\n", []string{"chat", "--suite", "house", "--model", "run/checkpoints/rl", "--max-tokens", "8"}, []string{"tools: get_lamp, light_lamp"}},
		{"the suites of this module", "", []string{"bench", "workbench:orders", "--model", "run/checkpoints/rl", "--n", "1"}, []string{"orders"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := house(tt.stdin, tt.args...)
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}
