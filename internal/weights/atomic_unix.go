//go:build unix

package weights

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncDir waits until the disk has the names in dir. A file system that cannot
// do so has no such promise to keep.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
