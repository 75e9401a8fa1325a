package recipe

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"envace/suite"
)

// inputs returns the fingerprints, by path, of the files that a resumed run reads again.
func (pl *pipeline) inputs() (map[string]string, error) {
	out := map[string]string{}
	roots := append([]string{pl.Settings.Model.Path}, pl.policyFiles()...)
	if s, ok := pl.suite.(suite.Filed); ok {
		roots = append(roots, s.Files()...)
	}
	for _, root := range roots {
		if root == "" || root == newModel {
			continue
		}
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if path == root && errors.Is(err, fs.ErrNotExist) {
				return nil // opening it will fail with a better error
			}
			if err != nil || e.IsDir() {
				return err
			}
			out[path], err = fingerprint(path)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", root, err)
		}
	}
	return out, nil
}

// sampled is how many bytes at each end of a file its fingerprint covers: all of a data
// set, but only the tensor table and the size of large weights.
const sampled = 32 << 20

func fingerprint(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, sampled)); err != nil {
		return "", err
	}
	if rest := info.Size() - sampled; rest > 0 {
		if _, err := io.Copy(h, io.NewSectionReader(f, max(sampled, info.Size()-sampled), sampled)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d bytes, %x", info.Size(), h.Sum(nil)[:12]), nil
}

// unchanged returns an error if the input files have changed since the run began.
func (pl *pipeline) unchanged() error {
	now, err := pl.inputs()
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	var all []error
	for _, path := range slices.Sorted(maps.Keys(pl.state.Inputs)) {
		switch is, was := now[path], pl.state.Inputs[path]; is {
		case was:
		case "":
			all = append(all, fmt.Errorf("resume: input file %s is missing: restore it, or start a new run", path))
		default:
			all = append(all, fmt.Errorf("resume: input file %s has changed since the run began (then %s, now %s): restore the old file, or start a new run", path, was, is))
		}
	}
	return errors.Join(all...)
}
