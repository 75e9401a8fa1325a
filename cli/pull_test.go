package cli

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"envace/internal/hub/standin"
	"envace/recipes"
)

// startHub runs a hub for the rest of the script: hub. It holds the quickstart's
// base model as acme/tiny, for all, and as acme/private.
func startHub(ts *testscript.TestScript, _ bool, _ []string) {
	tiny := map[string][]byte{"README.md": []byte("not fetched"), "pytorch_model.bin": []byte("not fetched")}
	base := recipes.Base()
	ts.Check(fs.WalkDir(base, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		tiny[path], err = fs.ReadFile(base, path)
		return err
	}))
	oddGGUF(ts, false, []string{"hub.gguf"})
	gguf, err := os.ReadFile(filepath.Clean(ts.MkAbs("hub.gguf")))
	ts.Check(err)
	h := &standin.Hub{Private: map[string]string{"acme/private": "hf_right"}, Models: map[string]map[string][]byte{
		"acme/tiny": tiny, "acme/private": tiny, "acme/gguf": {"q4.gguf": gguf, "q8.gguf": gguf},
		"acme/adapter": {"adapter_config.json": []byte(`{"base_model_name_or_path": "acme/tiny"}`), "adapter_model.safetensors": []byte("x")},
	}}
	h.Start()
	ts.Defer(h.Close)
	ts.Setenv("HF_ENDPOINT", h.URL)
}
