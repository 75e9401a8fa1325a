//go:build !(linux || darwin || freebsd)

package run

import "os"

// lock does nothing: locking is not implemented on this system.
func lock(*os.File) error { return nil }
