// Package oracle finds what the tests compare with: golden vectors and real
// models that lie outside the repository. A test whose oracle is absent skips,
// or fails where ENVACE_REQUIRE_ORACLES=1 (as in CI), so that a green run there
// has compared everything.
package oracle

import (
	"os"
	"path/filepath"
	"testing"
)

// Shared returns the folder of shared reference data: $ENVACE_SHARED, else the
// folder "shared" beside the project's root.
func Shared() string {
	if dir := os.Getenv("ENVACE_SHARED"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		return "shared"
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(filepath.Dir(dir), "shared")
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "shared"
		}
		dir = up
	}
}

// Golden returns the path of a file or folder under the golden vectors, such as
// "chat/chat_qwen3.jsonl". It ends the test if it is absent: see [Need].
func Golden(t testing.TB, name string) string {
	t.Helper()
	return Need(t, filepath.Join(Shared(), "golden", filepath.FromSlash(name)))
}

// Glob returns every golden file that matches pattern, at least one.
// It ends the test if there is none: see [Need].
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(Shared(), "golden", filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		Missing(t, "golden "+pattern)
	}
	return paths
}

// Need returns path if it exists, and otherwise skips the test, or fails it
// where ENVACE_REQUIRE_ORACLES=1.
func Need(t testing.TB, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		Missing(t, path)
	}
	return path
}

// Thorough reports whether tests shall try all they can, as in CI
// (ENVACE_REQUIRE_ORACLES=1), and not only what takes seconds.
func Thorough() bool { return os.Getenv("ENVACE_REQUIRE_ORACLES") == "1" }

// Missing skips the test because what is absent, or fails it where
// ENVACE_REQUIRE_ORACLES=1.
func Missing(t testing.TB, what string) {
	t.Helper()
	if Thorough() {
		t.Fatalf("oracle %s is absent and ENVACE_REQUIRE_ORACLES=1", what)
	}
	t.Skipf("oracle %s is absent", what)
}
