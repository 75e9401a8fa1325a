//go:build linux || darwin || freebsd

package run

import "golang.org/x/sys/unix"

// freeBytes returns the disk space available to an ordinary user at path.
func freeBytes(path string) (n int64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
