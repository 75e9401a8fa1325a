package cli

import (
	"errors"

	"envace/internal/hub"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/task"
)

// hints says what can be done about an error. Packages say what is wrong; only
// here is it known which flags there are.
func hints(err error) []string {
	var own hinted
	var lines *task.LinesError
	var damage *weights.DamageError
	switch {
	case errors.As(err, &own):
		return []string{own.hint}
	case errors.As(err, &lines):
		return []string{"correct these lines, or go on without them by --skip-bad"}
	case errors.As(err, &damage):
		return []string{"put back a copy of it; if it was changed on purpose, remove " + weights.SumsName + " from the folder"}
	case errors.Is(err, run.ErrNotEmpty):
		return []string{"give another folder as --out, or go on with the run in it with --resume"}
	case errors.Is(err, run.ErrNoRun):
		return []string{"give the folder that an earlier envace train had as --out"}
	case errors.Is(err, run.ErrNoReport):
		return []string{"the report is written when the run ends: go on with envace train --resume"}
	case errors.Is(err, run.ErrBusy):
		return []string{"let it end, or give another folder as --out"}
	case errors.Is(err, run.ErrReadOnly):
		return []string{"give a folder as --out that you may write"}
	case errors.Is(err, hub.ErrGated):
		return []string{"accept the conditions on that page, and give your token as HF_TOKEN"}
	case errors.Is(err, hub.ErrDenied):
		return []string{"look at the name; for a private model give a token that may read it as HF_TOKEN"}
	case errors.Is(err, hub.ErrMissing):
		return []string{"look at the name, --revision and --file"}
	case errors.Is(err, hub.ErrReadOnly), errors.Is(err, hub.ErrSpace):
		return []string{"free some space, or name a folder that you may write, on a larger disk, as HF_HOME"}
	case errors.Is(err, run.ErrSpace):
		return []string{"free some space, or give a folder on another disk as --out"}
	}
	return nil
}

// hinted is an error with advice of its own.
type hinted struct {
	error
	hint string
}

// Unwrap returns the error without the advice.
func (h hinted) Unwrap() error { return h.error }
