package weights

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SumsName is the file of a checkpoint that has size and SHA-256 of all others.
const SumsName = "envace-checksums.json"

const sumsFormat = 1

// sums is the content of that file.
type sums struct {
	Format int            `json:"format"`
	Files  map[string]sum `json:"files"` // by path in the folder, with slashes
}

type sum struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// DamageError tells of a folder whose files are not those that were written.
type DamageError struct {
	Path   string
	Faults []string // one a file
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: %s", e.Path, strings.Join(e.Faults, "; "))
}

// WriteSums adds to a folder the checksums of all files in it, for Verify.
func WriteSums(dir string) error {
	names, err := filesUnder(dir)
	if err != nil {
		return err
	}
	s := sums{Format: sumsFormat, Files: map[string]sum{}}
	for _, name := range names {
		if s.Files[name], err = sumOf(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, SumsName), func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

// Verify compares a folder with its checksums: the error is a [DamageError] if a file
// is missing or not as it was. A folder without checksums passes.
func Verify(dir string) error { return verify(dir, func(string) bool { return false }, true) }

// VerifyModel is Verify for those who only read a model from the folder: it passes
// over the files named in unread, and over missing ones, since what is needed of
// these is found out anyway.
func VerifyModel(dir string, unread ...string) error {
	return verify(dir, func(name string) bool { return slices.Contains(unread, name) }, false)
}

func verify(dir string, skip func(name string) bool, all bool) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil
	}
	s, err := readSums(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &DamageError{dir, []string{err.Error()}}
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if skip(name) {
			continue
		}
		fault := s.Files[name].fault(filepath.Join(dir, filepath.FromSlash(name)))
		if fault == missing && !all {
			continue
		}
		if fault != "" {
			faults = append(faults, name+" "+fault)
		}
	}
	if len(faults) > 0 {
		return &DamageError{dir, faults}
	}
	return nil
}

// Unlisted lists the files of a folder that its checksums do not name: none if it has
// no checksums that can be read.
func Unlisted(dir string) []string {
	s, err := readSums(dir)
	if err != nil {
		return nil
	}
	names, _ := filesUnder(dir)
	return slices.DeleteFunc(names, func(name string) bool { _, ok := s.Files[name]; return ok })
}

func readSums(dir string) (sums, error) {
	var s sums
	data, err := os.ReadFile(filepath.Join(dir, SumsName))
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err = dec.Decode(&s)
	if _, more := dec.Token(); err == nil && more != io.EOF {
		err = errors.New("something follows its end")
	}
	for name := range s.Files {
		if err == nil && !filepath.IsLocal(filepath.FromSlash(name)) {
			err = fmt.Errorf("%q is outside the folder", name)
		}
	}
	switch {
	case err != nil:
		return s, fmt.Errorf("%s cannot be read: %w", SumsName, err)
	case s.Format != sumsFormat:
		return s, fmt.Errorf("%s has format %d, and this version reads %d", SumsName, s.Format, sumsFormat)
	case len(s.Files) == 0:
		return s, fmt.Errorf("%s names no file", SumsName)
	}
	return s, nil
}

const missing = "is missing"

// fault says what is wrong with the file at path; "" is nothing.
func (s sum) fault(path string) string {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing
	case err != nil:
		return "cannot be read: " + err.Error()
	case !st.Mode().IsRegular():
		return "is not a file"
	case st.Size() < s.Bytes:
		return fmt.Sprintf("is cut short: %d of %d bytes are left", st.Size(), s.Bytes)
	case st.Size() > s.Bytes:
		return fmt.Sprintf("has %d bytes instead of %d", st.Size(), s.Bytes)
	}
	now, err := sumOf(path)
	switch {
	case err != nil:
		return "cannot be read: " + err.Error()
	case now != s:
		return "is not what was written: its SHA-256 is another"
	}
	return ""
}

func sumOf(path string) (sum, error) {
	f, err := os.Open(path)
	if err != nil {
		return sum{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.CopyBuffer(h, f, make([]byte, chunk))
	return sum{n, fmt.Sprintf("%x", h.Sum(nil))}, err
}

// filesUnder lists the files under dir but the checksums, as paths with slashes.
func filesUnder(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if name = filepath.ToSlash(name); name != SumsName {
			names = append(names, name)
		}
		return err
	})
	return names, err
}
