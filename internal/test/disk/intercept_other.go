//go:build !linux

package disk

import "errors"

// Intercept returns an error, because only Linux can intercept system calls.
func Intercept() (*Disk, error) { return nil, errors.ErrUnsupported }
