// Package run manages the run folder, which holds the output of one execution of a
// recipe in readable form:
//
//	config.json      the effective settings
//	state.json       progress of the run
//	metrics.jsonl    one object per line: stage, step, time, metrics
//	episodes.jsonl   every episode in full
//	base/            the model the run started from
//	checkpoints/     one folder per finished stage (sft, rl), or rl-15 in between
//	report.json      the results
//	report.html      the same as a self-contained page
//
// A run that was interrupted and resumed leaves the same files as an uninterrupted
// one, except for times: see [Dir.Truncate].
//
// The package has its own progress display: the libraries draw a bar, but do not
// write plain lines to a pipe or shorten a line to fit the terminal.
package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"envace/internal/weights"
)

// The files of a run folder.
const (
	ConfigFile   = "config.json"
	StateFile    = "state.json"
	MetricsFile  = "metrics.jsonl"
	EpisodesFile = "episodes.jsonl"
	ReportFile   = "report.json"
	PageFile     = "report.html"
	Checkpoints  = "checkpoints"
)

// Errors of a run folder that callers test for.
var (
	ErrNotEmpty = errors.New("the folder is not empty")
	ErrNoRun    = errors.New("not a run folder")
	ErrNoReport = errors.New("the run has no report yet")
	ErrReadOnly = errors.New("the folder is not writable")
	ErrSpace    = errors.New("not enough disk space")
	ErrBusy     = errors.New("the run folder is in use by another process")
)

// Dir is an open run folder. It is not safe for concurrent use, and must be closed.
type Dir struct {
	Path string
	// Text decodes sampled tokens for the text field of episodes; nil omits the text.
	Text func(ids []int) string
	// Labels are attached to the episodes that Episodes writes.
	Labels Labels

	metrics, episodes *os.File
	made              bool     // Create created the folder
	own               []string // folders in it that the run made
}

// Create creates the folder dir for a new run. The error is ErrNotEmpty if dir holds
// anything, ErrReadOnly if it is not writable and ErrSpace if fewer than need bytes
// are free, so that a run does not fail for these reasons after hours.
func Create(dir string, need int64) (*Dir, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("create run folder %s: %w", dir, ErrNotEmpty)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("create run folder: %w: %w", ErrReadOnly, err)
	}
	return begin(dir, err != nil, need)
}

// begin makes an empty folder that of a run.
func begin(dir string, made bool, need int64) (*Dir, error) {
	if err := os.MkdirAll(filepath.Join(dir, Checkpoints), 0o777); err != nil {
		return nil, fmt.Errorf("create run folder: %w: %w", ErrReadOnly, err)
	}
	d, err := open(dir, need, os.O_CREATE)
	switch {
	case errors.Is(err, ErrBusy): // everything there is another process's
		return nil, err
	case err != nil:
		(&Dir{Path: dir, made: made}).removeEmpty()
		return nil, err
	}
	d.made = made
	return d, nil
}

// Made notes that the run made the folder of that name in d, for Discard.
func (d *Dir) Made(name string) { d.own = append(d.own, name) }

// Discard undoes Create for a run that could not start: it closes d and removes what
// the run wrote, and the folder itself if Create created it and nothing else is in it.
func (d *Dir) Discard() error {
	errs := []error{d.Close()}
	for _, name := range []string{ConfigFile, StateFile, MetricsFile, EpisodesFile} {
		if err := os.Remove(filepath.Join(d.Path, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, name := range d.own {
		errs = append(errs, os.RemoveAll(filepath.Join(d.Path, name)))
	}
	d.removeEmpty()
	return errors.Join(errs...)
}

// removeEmpty removes the folders that Create made, if nothing is in them.
func (d *Dir) removeEmpty() {
	_ = os.Remove(filepath.Join(d.Path, Checkpoints)) // fails if anything is in it
	if d.made {
		_ = os.Remove(d.Path)
	}
}

// OpenExisting opens the folder of a run to resume it, with the same checks as
// Create. The error is ErrNoRun if dir holds no run, and ErrBusy if another process
// has it open. The caller calls Truncate next. A file that is missing is not made anew.
func OpenExisting(dir string, need int64) (*Dir, error) {
	if !exists(filepath.Join(dir, ConfigFile)) {
		return nil, fmt.Errorf("open run folder %s: %w: it has no %s", dir, ErrNoRun, ConfigFile)
	}
	return open(dir, need, 0)
}

// open opens the files of a run folder. create is os.O_CREATE, or 0 where they must be
// there.
func open(dir string, need int64, create int) (d *Dir, err error) {
	d = &Dir{Path: dir}
	if err := d.Room(need); err != nil {
		return nil, err
	}
	if d.metrics, err = openLines(filepath.Join(dir, MetricsFile), create); err != nil {
		return nil, err
	}
	if err := lock(d.metrics); err != nil {
		return nil, errors.Join(fmt.Errorf("run folder %s: %w", dir, err), d.metrics.Close())
	}
	if d.episodes, err = openLines(filepath.Join(dir, EpisodesFile), create); err != nil {
		return nil, errors.Join(err, d.metrics.Close())
	}
	return d, nil
}

func openLines(path string, create int) (*os.File, error) {
	f, err := os.OpenFile(path, create|os.O_RDWR|os.O_APPEND, 0o666)
	if errors.Is(err, fs.ErrNotExist) && create == 0 {
		return nil, fmt.Errorf("%s is gone, and the run needs it to go on: put the old file back, or start a new run", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return f, nil
}

// Room returns ErrSpace if the disk has no room for a run folder of need bytes in
// total, including what it already holds.
func (d *Dir) Room(need int64) error {
	need -= size(d.Path)
	if free, ok := freeBytes(d.Path); ok && free < need {
		return fmt.Errorf("run folder %s: %w: %s free, the run needs %s", d.Path, ErrSpace, Bytes(free), Bytes(need))
	}
	return nil
}

// Free returns the disk space available to an ordinary user at path; ok is false if
// the system does not report it.
func Free(path string) (bytes int64, ok bool) { return freeBytes(path) }

// size returns the total size of the files under dir, skipping unreadable ones.
func size(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// Sync flushes the appended lines to disk. A checkpoint must not be more durable
// than the lines written before it.
func (d *Dir) Sync() error {
	if err := errors.Join(d.metrics.Sync(), d.episodes.Sync()); err != nil {
		return fmt.Errorf("append to run folder: %w", err)
	}
	return nil
}

// Close closes the files of d.
func (d *Dir) Close() error {
	return errors.Join(d.metrics.Close(), d.episodes.Close())
}

// WriteConfig writes the effective settings, any value that can be encoded as JSON.
func (d *Dir) WriteConfig(settings any) error {
	return writeJSON(filepath.Join(d.Path, ConfigFile), settings)
}

// ReadConfig reads the settings of the run in dir into settings. The error is
// ErrNoRun if dir holds no run.
func ReadConfig(dir string, settings any) error {
	err := readJSON(filepath.Join(dir, ConfigFile), settings)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read settings of %s: %w: it has no %s", dir, ErrNoRun, ConfigFile)
	}
	return err
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces path atomically.
func writeFile(path string, data []byte) error {
	return weights.WriteAtomic(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Bytes formats a number of bytes for people: 1.5 GB.
func Bytes(n int64) string {
	units := []string{"kB", "MB", "GB", "TB"}
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, unit := float64(n)/1000, 0
	for v >= 999.5 && unit < len(units)-1 {
		v, unit = v/1000, unit+1
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %s", v, units[unit])
	}
	return fmt.Sprintf("%.0f %s", v, units[unit])
}
