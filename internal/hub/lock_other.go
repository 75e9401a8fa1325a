//go:build !(linux || darwin || freebsd)

package hub

import "os"

// tryLock succeeds: envace is made for Linux, macOS and FreeBSD. Elsewhere two
// pulls of one file at once are not kept apart.
func tryLock(*os.File) error { return nil }
