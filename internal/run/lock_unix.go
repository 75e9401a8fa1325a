//go:build linux || darwin || freebsd

package run

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks f until it is closed or the process ends. It returns ErrBusy if another
// process holds the lock. On a file system without locks it does nothing.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return nil
}
