package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"envace/internal/hub"
	"envace/internal/weights"
)

// modelPath is where a model that was given as --model lies: a path that is there,
// or else a model pulled by that name. Anything else is returned as it is, for
// whoever opens it to complain of.
func modelPath(given string) (string, error) {
	path, err := pulledPath(given)
	if err != nil {
		return "", err
	}
	if base, ok := weights.AdapterBase(path); ok {
		of := "the model it was trained on"
		if base != "" {
			of = fmt.Sprintf("%s (%s)", of, base)
		}
		return "", hinted{fmt.Errorf("open model: %s is a LoRA adapter, not a model", given), fmt.Sprintf("give %s as --model, and this as --adapter", of)}
	}
	return path, nil
}

// pulledPath resolves the name of a model or an adapter.
func pulledPath(given string) (string, error) {
	if _, err := os.Stat(given); err == nil || given == "" {
		return given, nil
	}
	n, err := hub.ParseName(given)
	if err != nil || strings.HasSuffix(n.Repo, ".gguf") { // no name of a model, but a path
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
		return "", hinted{fmt.Errorf("no file or folder %q, and as a name: %w", given, err), "fetch it with: envace model pull " + shellQuoted(given)}
	}
	return path, err
}
