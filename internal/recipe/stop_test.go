package recipe

import (
	"context"
	"strings"
	"testing"
	"time"

	"envace/internal/run"
)

// slow takes its time to write, as a busy machine may.
type slow struct{ strings.Builder }

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Builder.Write(p)
}

func TestNothingIsPrintedAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out slow
	pl := &pipeline{progress: run.NewProgress(&out)}
	end := pl.announceStop(ctx)
	cancel()
	end()
	pl.progress.Close()
	if got := out.String(); !strings.Contains(got, "stopping after the current step") {
		t.Errorf("when the run ended it had printed %q", got)
	}
}

func TestARunThatIsNotStoppedSaysNothing(t *testing.T) {
	var out slow
	pl := &pipeline{progress: run.NewProgress(&out)}
	pl.announceStop(t.Context())()
	pl.progress.Close()
	if got := out.String(); got != "" {
		t.Errorf("printed %q", got)
	}
}
