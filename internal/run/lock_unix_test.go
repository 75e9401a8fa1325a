//go:build linux || darwin || freebsd

package run

import (
	"errors"
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
