//go:build unix && !aix && !solaris

package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// unlock releases the lock that bbolt has taken. Closing the file would not suffice while it is
// mapped into memory.
func unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
