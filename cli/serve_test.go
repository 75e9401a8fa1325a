package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// server is envace serve as a process.
type server struct {
	cmd   *exec.Cmd
	lines *bufio.Reader // what it says
	base  string        // its URL
}

// startServer starts envace serve with such arguments, in dir, and waits until it
// serves. It is killed at the end of the test, if it still runs.
func startServer(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no process can be asked to stop there")
	}
	cmd := exec.Command("envace", append([]string{"serve"}, args...)...)
	cmd.Stderr, cmd.Dir = os.Stderr, dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "XDG_CACHE_HOME="+dir)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it has ended
		cmd.Wait()         //nolint:errcheck // the same
	})
	s := &server{cmd: cmd, lines: bufio.NewReader(pipe)}
	line, err := s.lines.ReadString('\n')
	base, ok := strings.CutPrefix(strings.TrimSpace(line), "serving at ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	s.base = base
	return s
}

// baseCopy copies the small base model to a folder of its own.
func baseCopy(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(top, "recipes", "base"))); err != nil {
		t.Fatal(err)
	}
}

// longAnswer asks for an answer of some seconds: its form leaves the model no way out.
const longAnswer = `{"type":"array","items":{"type":"string","minLength":40,"maxLength":60},"minItems":10,"maxItems":12}`

// A run folder is served by its last checkpoint, and the server lets an answer under
// way finish when it is asked to stop, while it takes no other.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "first")
	baseCopy(t, filepath.Join(dir, "checkpoints", "rl"))
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"checkpoint":"checkpoints/rl"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, t.TempDir(), dir, "--listen", "127.0.0.1:0")
	body := `{"model":"first","messages":[{"role":"user","content":"hello"}],"stream":true,"temperature":0,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + longAnswer + `}}}`
	resp, err := http.Post(s.base+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	first, err := events.ReadString('\n')
	var chunk struct{ Model string }
	if err != nil || json.Unmarshal([]byte(strings.TrimPrefix(first, "data: ")), &chunk) != nil || chunk.Model != "first" {
		t.Fatalf("%s: %q, %v", resp.Status, first, err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		if _, err := http.Post(s.base+"/v1/chat/completions", "application/json", strings.NewReader(body)); err != nil {
			break // it listens no more
		}
	}
	rest, err := io.ReadAll(events)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || strings.Count(string(rest), "data: ") < 50 {
		t.Errorf("the response in progress ends with %q, %v", rest, err)
	}
	if said, _ := s.lines.ReadString('\n'); said != "stopped\n" {
		t.Errorf("it said %q", said)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// What is to be known of the template is told: envace serve and envace chat print the
// template's notes.
func TestNotesAreTold(t *testing.T) {
	const plain = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}" +
		"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
	const note = "note: the template does not write tool calls"
	dir := t.TempDir()
	baseCopy(t, filepath.Join(dir, "model"))
	if err := os.WriteFile(filepath.Join(dir, "model", "chat_template.jinja"), []byte(plain), 0o666); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "model", "--listen", "127.0.0.1:0")
	var said []string
	for range 2 {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, line)
	}
	if all := strings.Join(said, ""); !strings.Contains(all, note) {
		t.Errorf("envace serve says %q", all)
	}
	cmd := exec.Command("envace", "chat", "--model", "model")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader("\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), note) || strings.Index(string(out), note) > strings.Index(string(out), "\ntools: ") {
		t.Errorf("envace chat: %v, says %s", err, out)
	}
}

// Responses that take longer than --drain are cancelled, and the error says so.
func TestServeGivesUp(t *testing.T) {
	dir := t.TempDir()
	baseCopy(t, filepath.Join(dir, "base"))
	s := startServer(t, dir, "base", "--listen", "127.0.0.1:0", "--drain", "10ms")
	body := `{"model":"base","messages":[{"role":"user","content":"hello"}],"stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + longAnswer + `}}}`
	resp, err := http.Post(s.base+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(resp.Body); strings.Contains(string(got), "[DONE]") {
		t.Errorf("the answer that is given up ends as if it were whole: %q", got)
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != failed {
		t.Errorf("it ends with %v", err)
	}
}
