package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"envace/internal/run"
	"envace/internal/weights"
)

// LastWhole returns the last checkpoint of the run in dir whose files are what was
// written, and for each later one what is wrong with it. It is an error if none is
// whole; checkpoints without checksums only have to be there.
func LastWhole(dir string) (checkpoint string, damaged []error, err error) {
	var s state
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err == nil {
		if err = json.Unmarshal(data, &s); err != nil {
			err = fmt.Errorf("%s is damaged: %w", filepath.Join(dir, stateFile), err)
		}
	}
	if err == nil && s.Checkpoint == "" {
		err = errors.New("no checkpoint yet")
	}
	for err == nil {
		here := filepath.Join(dir, filepath.FromSlash(s.Checkpoint))
		fault := faultOf(here, filepath.ToSlash(s.Checkpoint))
		if fault == nil {
			return here, damaged, nil
		}
		if damaged = append(damaged, fault); len(s.Earlier) == 0 {
			return "", damaged, errors.Join(damaged...)
		}
		last := len(s.Earlier) - 1
		s.Checkpoint, s.Earlier = s.Earlier[last].Checkpoint, s.Earlier[:last]
	}
	return "", nil, err
}

// faultOf says what is wrong with the checkpoint of that name at here.
func faultOf(here, name string) error {
	if path.Dir(name) != run.Checkpoints {
		return fmt.Errorf("%s does not name a checkpoint, but %q", stateFile, name)
	}
	if st, err := os.Stat(here); err != nil || !st.IsDir() {
		return fmt.Errorf("%s is damaged: there is no such folder", here)
	}
	if err := weights.Verify(here); err != nil {
		return err
	}
	if entries, err := os.ReadDir(here); err != nil || len(entries) == 0 {
		return fmt.Errorf("%s is damaged: the folder is empty", here)
	}
	return nil
}
