package cli

import (
	"errors"

	"envace/internal/hub"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/task"
)

// hints returns advice about an error. Packages say what is wrong; only the command
// line knows which flags can help.
func hints(err error) []string {
	var own hinted
	var lines *task.LinesError
	var damage *weights.DamageError
	switch {
	case errors.As(err, &own):
		return []string{own.hint}
	case errors.As(err, &lines):
		return []string{"correct these lines, or skip them with --skip-bad"}
	case errors.As(err, &damage):
		return []string{"put back a copy of it; if it was changed on purpose, remove " + weights.SumsName + " from the folder"}
	case errors.Is(err, run.ErrNotEmpty):
		return []string{"choose another folder with --out, or continue the run in it with --resume"}
	case errors.Is(err, run.ErrNoRun):
		return []string{"give the run folder: the --out of an earlier envace train"}
	case errors.Is(err, run.ErrNoReport):
		return []string{"the report is written at the end of a run: continue it with envace train --resume"}
	case errors.Is(err, run.ErrBusy):
		return []string{"wait for it to finish, or choose another folder with --out"}
	case errors.Is(err, run.ErrReadOnly):
		return []string{"choose a writable folder with --out"}
	case errors.Is(err, hub.ErrGated):
		return []string{"accept the terms on that page, and set HF_TOKEN to your access token"}
	case errors.Is(err, hub.ErrDenied):
		return []string{"check the name; for a private model, set HF_TOKEN to a token with read access"}
	case errors.Is(err, hub.ErrMissing):
		return []string{"check the name, --revision and --file"}
	case errors.Is(err, hub.ErrReadOnly), errors.Is(err, hub.ErrSpace):
		return []string{"free some space, or set HF_HOME to a writable folder on a larger disk"}
	case errors.Is(err, run.ErrSpace):
		return []string{"free some space, or choose a folder on another disk with --out"}
	}
	return nil
}

// hinted is an error with a hint attached.
type hinted struct {
	error
	hint string
}

// Unwrap returns the error without the hint.
func (h hinted) Unwrap() error { return h.error }
