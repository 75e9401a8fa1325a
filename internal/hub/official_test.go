package hub

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"envace/internal/hub/standin"
	"envace/internal/oracle"
)

// official runs a line of Python with Hugging Face's own client, and returns what
// it prints last.
func official(t *testing.T, s *standin.Hub, cache, code string) string {
	t.Helper()
	python := os.Getenv("ENVACE_HF_PYTHON")
	if python == "" {
		oracle.Missing(t, "a Python with huggingface_hub (ENVACE_HF_PYTHON)")
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", "from huggingface_hub import snapshot_download\n"+code)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+s.URL, "HF_HUB_CACHE="+cache, "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_XET=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Fields(string(out))
	return lines[len(lines)-1]
}

// Hugging Face's own client finds what we pulled.
func TestOfficialClientFindsOurs(t *testing.T) {
	s, h := start(t)
	got, err := h.Pull(t.Context(), name(t, "acme/tiny"))
	if err != nil {
		t.Fatal(err)
	}
	if path := official(t, s, h.Cache.Dir, `print(snapshot_download("acme/tiny", local_files_only=True))`); path != got.Path {
		t.Errorf("it finds %s, ours is %s", path, got.Path)
	}
}

// We find what Hugging Face's own client pulled; and so the stand-in speaks as
// the real hub does, as far as that client is concerned.
func TestWeFindTheOfficialClients(t *testing.T) {
	s, h := start(t)
	path := official(t, s, h.Cache.Dir, `print(snapshot_download("acme/tiny"))`)
	if found, err := h.Cache.Find(name(t, "acme/tiny")); err != nil || found != path {
		t.Errorf("found %s (%v), want %s", found, err, path)
	}
	if got, err := h.Pull(t.Context(), name(t, "acme/tiny")); err != nil || got.Got != 0 {
		t.Errorf("fetched anew: %+v %v", got, err)
	}
}
