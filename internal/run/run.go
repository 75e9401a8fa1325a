// Package run keeps what one execution of a recipe leaves behind, in a folder a
// person can read:
//
//	config.json      the effective settings
//	state.json       how far the run has come
//	metrics.jsonl    one object a line: stage, step, time, numbers
//	episodes.jsonl   every episode whole
//	base/            the model it started from
//	checkpoints/     a folder each: a finished stage (sft, rl), or rl-15 on the way
//	report.json      what came of it
//	report.html      the same as a page, without any other file
//
// A run that was interrupted and resumed leaves the same files as one that was
// not, times apart: see [Dir.Truncate].
//
// The live line on a terminal is our own: a library would give the bar, but
// neither the plain lines of a pipe nor a line that gives way to the width.
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
	MetricsFile  = "metrics.jsonl"
	EpisodesFile = "episodes.jsonl"
	ReportFile   = "report.json"
	PageFile     = "report.html"
	Checkpoints  = "checkpoints"
)

// Errors of a run folder that a caller decides on.
var (
	ErrNotEmpty = errors.New("the run folder is not empty")
	ErrNoRun    = errors.New("not a run folder")
	ErrNoReport = errors.New("the run has no report yet")
	ErrReadOnly = errors.New("the run folder cannot be written")
	ErrSpace    = errors.New("too little disk is free")
	ErrBusy     = errors.New("another process is at work in the run folder")
)

// Dir is an open run folder. It is used by one goroutine at a time, and must be
// closed.
type Dir struct {
	Path string
	// Text decodes sampled tokens, for the episodes' sampled text; nil leaves the
	// text out.
	Text func(ids []int) string
	// Labels are those of the episodes that Episodes writes.
	Labels Labels

	metrics, episodes *os.File
	made              bool // by Create: it was not there before
}

// Create makes the folder dir of a new run. It is ErrNotEmpty if dir holds
// anything, ErrReadOnly if it cannot be written and ErrSpace if fewer than need
// bytes are free: better told now than after hours.
func Create(dir string, need int64) (*Dir, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("create run folder %s: %w", dir, ErrNotEmpty)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("create run folder: %w: %w", ErrReadOnly, err)
	}
	made := err != nil
	if err := os.MkdirAll(filepath.Join(dir, Checkpoints), 0o777); err != nil {
		return nil, fmt.Errorf("create run folder: %w: %w", ErrReadOnly, err)
	}
	d, err := open(dir, need)
	if err != nil {
		return nil, errors.Join(err, (&Dir{Path: dir, made: made}).empty())
	}
	d.made = made
	return d, nil
}

// Discard takes back a run that could not begin: it closes d and removes what
// lies in the folder, and the folder where Create made it.
func (d *Dir) Discard() error { return errors.Join(d.Close(), d.empty()) }

func (d *Dir) empty() error {
	if d.made {
		return os.RemoveAll(d.Path)
	}
	entries, err := os.ReadDir(d.Path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.Path, e.Name())))
	}
	return err
}

// OpenExisting opens the folder of a run to go on with it, with the checks of
// Create. It is ErrNoRun if dir holds no run, and ErrBusy while another process
// has it open. Truncate comes next.
func OpenExisting(dir string, need int64) (*Dir, error) {
	if !exists(filepath.Join(dir, ConfigFile)) {
		return nil, fmt.Errorf("open run folder %s: %w: it holds no %s", dir, ErrNoRun, ConfigFile)
	}
	return open(dir, need)
}

func open(dir string, need int64) (d *Dir, err error) {
	d = &Dir{Path: dir}
	if err := d.Room(need); err != nil {
		return nil, err
	}
	if d.metrics, err = openLines(filepath.Join(dir, MetricsFile)); err != nil {
		return nil, err
	}
	if err := lock(d.metrics); err != nil {
		return nil, errors.Join(fmt.Errorf("run folder %s: %w", dir, err), d.metrics.Close())
	}
	if d.episodes, err = openLines(filepath.Join(dir, EpisodesFile)); err != nil {
		return nil, errors.Join(err, d.metrics.Close())
	}
	return d, nil
}

func openLines(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return f, nil
}

// Room is ErrSpace if the disk has no room for a run that leaves need bytes in
// its folder, of which what lies there already is a part.
func (d *Dir) Room(need int64) error {
	need -= size(d.Path)
	if free, ok := freeBytes(d.Path); ok && free < need {
		return fmt.Errorf("run folder %s: %w: %s, and the run needs %s", d.Path, ErrSpace, Bytes(free), Bytes(need))
	}
	return nil
}

// Free is what an ordinary user may still write where path lies; ok is false where
// the system does not tell.
func Free(path string) (bytes int64, ok bool) { return freeBytes(path) }

// size adds up the files under dir, as far as they can be read.
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

// Sync waits until the disk has what was appended: a checkpoint must not outlive
// the lines that were written before it.
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

// WriteConfig writes the effective settings, any value that JSON can hold.
func (d *Dir) WriteConfig(settings any) error {
	return writeJSON(filepath.Join(d.Path, ConfigFile), settings)
}

// ReadConfig reads the settings of the run in dir into settings. It is ErrNoRun if
// dir holds no run.
func ReadConfig(dir string, settings any) error {
	err := readJSON(filepath.Join(dir, ConfigFile), settings)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read settings of %s: %w: it holds no %s", dir, ErrNoRun, ConfigFile)
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

// writeFile replaces path whole, so that a reader never sees half of it.
func writeFile(path string, data []byte) error {
	return weights.WriteAtomic(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Bytes writes a number of bytes for people: 1.5 GB.
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
