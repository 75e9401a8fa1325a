//go:build linux || darwin || freebsd

package run

import (
	"errors"
	"path/filepath"
	"testing"
)

// Two processes in one folder would spoil each other's files.
func TestOneAtATime(t *testing.T) {
	d := create(t)
	if err := d.WriteConfig(1); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenExisting(d.Path, 0); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want %v", err, ErrBusy)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenExisting(d.Path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// Who comes second to an empty folder goes without a trace of the first being lost.
func TestSecondInAnEmptyFolder(t *testing.T) {
	for _, made := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "out")
		first, err := Create(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		if err := first.WriteConfig(1); err != nil {
			t.Fatal(err)
		}
		if _, err := begin(dir, made, 0); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v, want %v", err, ErrBusy)
		}
		for _, name := range []string{ConfigFile, MetricsFile, EpisodesFile, Checkpoints} {
			if !exists(filepath.Join(dir, name)) {
				t.Errorf("%s is lost", name)
			}
		}
	}
}
