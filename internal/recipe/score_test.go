package recipe

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"envace/internal/run"
	"envace/rollout"
	"envace/suite"
	"envace/workbench/domains"
)

// odd is a suite that scores some tasks by itself.
type odd struct {
	suite.Suite
	score func(ep *rollout.Episode) (suite.Score, error)
}

func (o odd) Score(_ context.Context, ep *rollout.Episode) (suite.Score, error) { return o.score(ep) }

// playOdd trains and tests a tiny model on the workbench with another score.
func playOdd(t *testing.T, score func(ep *rollout.Episode) (suite.Score, error), set ...string) (out string, err error) {
	t.Helper()
	family := suite.Family{Name: "odd", Open: func(_ string, o suite.Options) (suite.Suite, error) {
		s, err := domains.Family().Open("", o)
		return odd{s, score}, err
	}}
	out = filepath.Join(t.TempDir(), "run")
	s := tiny(t, append([]string{"data.suite=odd", "base.steps=0", "sft.steps=0", "rl.kl=0", "with=[]", "rl.steps=1", "eval.rehearse=0"}, set...)...)
	return out, Run(t.Context(), s, Options{Out: out, Progress: io.Discard, Suites: []suite.Family{domains.Family(), family}})
}

// A task that cannot be scored is no failure of the policy: the test ends by its name.
func TestAnErrorWhileScoringIsNoFailure(t *testing.T) {
	out, err := playOdd(t, func(ep *rollout.Episode) (suite.Score, error) { return suite.Score{}, errors.New("no truth") })
	if err == nil || !strings.HasPrefix(err.Error(), "test base: score task ") || !strings.HasSuffix(err.Error(), ": no truth") {
		t.Errorf("ends with %v", err)
	}
	if _, err := run.ReadReport(out); !errors.Is(err, run.ErrNoReport) {
		t.Errorf("a report was written: %v", err)
	}
}

// Why an episode stopped is kept beside what its score found.
func TestWhyAnEpisodeStoppedIsKept(t *testing.T) {
	out, err := playOdd(t, func(ep *rollout.Episode) (suite.Score, error) {
		return suite.Score{Success: ep.Task.Source == "orders", Why: "scored"}, nil
	}, "data.tokens=40") // no prompt fits, and the stop says so
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	err = run.ReadEpisodes(out, func(ep run.Episode) bool {
		if strings.HasPrefix(ep.Stage, "test ") {
			tested++
			if ep.Stop != rollout.StopWindow || !strings.Contains(ep.Detail, "rows of at most 40") || ep.Why != "scored" || ep.Success != (ep.Domain == "orders") {
				t.Errorf("%s: stopped by %s (%s), scored %q, %v", ep.Task, ep.Stop, ep.Detail, ep.Why, ep.Success)
			}
		}
		return true
	})
	if err != nil || tested == 0 {
		t.Errorf("%d episodes were tested: %v", tested, err)
	}
}
