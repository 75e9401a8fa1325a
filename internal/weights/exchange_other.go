//go:build !linux

package weights

import "errors"

// exchange is not offered by this system.
func exchange(string, string) error { return errors.ErrUnsupported }
