package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A run folder is served by its last checkpoint, and the server lets an answer under
// way finish when it is asked to stop.
func TestServe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can be asked to stop there")
	}
	dir := filepath.Join(t.TempDir(), "first")
	if err := os.CopyFS(filepath.Join(dir, "checkpoints", "rl"), os.DirFS(filepath.Join(top, "recipes", "base"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"checkpoint":"checkpoints/rl"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("envace", "serve", dir, "--listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() //nolint:errcheck // it has ended
	lines := bufio.NewReader(pipe)
	line, err := lines.ReadString('\n')
	base, ok := strings.CutPrefix(strings.TrimSpace(line), "serving at ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	body := `{"model":"first","messages":[{"role":"user","content":"hello"}],"stream":true,"temperature":0,"stop":["no such text"]}`
	resp, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(body))
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
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(events)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the answer under way ends with %q, %v", rest, err)
	}
	if said, _ := lines.ReadString('\n'); said != "stopped\n" {
		t.Errorf("it said %q", said)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
