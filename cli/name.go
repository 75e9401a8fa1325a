package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"envace/internal/hub"
	"envace/internal/weights"
)

// modelPath resolves the value of --model: an existing path, or else the name of a pulled
// model. Anything else is returned unchanged, to fail when it is opened.
func modelPath(given string) (string, error) {
	path, err := pulledPath(given)
	if err != nil {
		return "", err
	}
	if base, ok := weights.AdapterBase(path); ok {
		of := "its base model"
		if base != "" {
			of = fmt.Sprintf("%s (%s)", of, base)
		}
		return "", hinted{fmt.Errorf("open model: %s is a LoRA adapter, not a model", given), fmt.Sprintf("pass %s as --model and the adapter as --adapter", of)}
	}
	return path, nil
}

// pulledPath resolves the name of a model or an adapter.
func pulledPath(given string) (string, error) {
	if _, err := os.Stat(given); err == nil || given == "" {
		return given, nil
	}
	n, err := hub.ParseName(given)
	if err != nil || strings.HasSuffix(n.Repo, ".gguf") { // not a model name: a path
		return given, nil
	}
	cache, err := hub.CacheFromEnv(os.Getenv)
	if err != nil {
		return given, nil
	}
	path, err := cache.Find(n)
	if errors.Is(err, hub.ErrNotPulled) && n.File != "" && n.Revision == "" && !strings.HasSuffix(n.File, ".gguf") {
		return given, nil
	}
	if errors.Is(err, hub.ErrNotPulled) {
		return "", hinted{fmt.Errorf("%q is neither a file or folder nor a pulled model: %w", given, err), "download it with: envace model pull " + shellQuoted(given)}
	}
	return path, err
}
