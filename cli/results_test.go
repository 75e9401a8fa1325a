package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envace/internal/run"
)

// The claim of the README, by the reports that are kept: with each seed, rehearsal
// RL beats SFT continued for equal compute on the same tasks, from an SFT that is
// neither weak nor saturated. The README's table says what they say.
func TestKeptResults(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(1); seed <= 3; seed++ {
		path := filepath.Join(top, "docs", "results", "quickstart", fmt.Sprintf("seed-%d.json", seed))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var r run.Report
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if r.Seed != seed || r.Recipe != "quickstart" {
			t.Errorf("%s: seed %d of recipe %s", path, r.Seed, r.Recipe)
		}
		row := fmt.Sprintf("| %d ", seed)
		for _, name := range []string{"base", "sft", "sft-more", "rehearsed", "rehearsed, N=2", "real"} {
			s := system(t, r, name)
			if s.N < 300 {
				t.Errorf("seed %d: %s was tested on %d tasks", seed, name, s.N)
			}
			if name == "sft" && (s.Success < 0.2 || s.Success > 0.7) {
				t.Errorf("seed %d: SFT reaches %.3f", seed, s.Success)
			}
			row += fmt.Sprintf("| %.1f ", 100*s.Success)
		}
		c := versusMore(t, r)
		if c.N < 300 || c.CI95[0] <= 0 {
			t.Errorf("seed %d: rehearsed less sft-more is %+v", seed, c)
		}
		row += fmt.Sprintf("| +%.1f [%.1f, %.1f] |", 100*c.Diff, 100*c.CI95[0], 100*c.CI95[1])
		if !strings.Contains(string(readme), row) {
			t.Errorf("README.md lacks the row %q", row)
		}
	}
}

func system(t *testing.T, r run.Report, name string) run.System {
	t.Helper()
	for _, s := range r.Systems {
		if s.Name == name && s.World == run.Real && s.Split == "in distribution" {
			return s
		}
	}
	t.Fatalf("seed %d: no system %s", r.Seed, name)
	return run.System{}
}

func versusMore(t *testing.T, r run.Report) run.Comparison {
	t.Helper()
	for _, c := range r.Comparisons {
		if c.A == "rehearsed" && c.B == "sft-more" && c.Split == "in distribution" {
			return c
		}
	}
	t.Fatalf("seed %d: rehearsed is not compared with sft-more", r.Seed)
	return run.Comparison{}
}
