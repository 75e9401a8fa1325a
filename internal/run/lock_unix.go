//go:build linux || darwin || freebsd

package run

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock makes f this process's own until it is closed, or the process ends. It is
// ErrBusy if another has it; a disk that knows no locks goes without.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return nil
}
