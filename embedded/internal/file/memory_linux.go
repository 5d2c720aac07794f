package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns an empty file that exists only in memory.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("embedded-store", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "memory"), nil
}
