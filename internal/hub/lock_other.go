//go:build !(linux || darwin || freebsd)

package hub

import "os"

// tryLock does nothing: locking is not implemented on this system.
func tryLock(*os.File) error { return nil }
