//go:build !linux

package file

import (
	"os"
	"runtime"
)

// memoryFile returns an empty temporary file. Except on Windows, it immediately removes the file's
// name from the directory. The operating system then deletes the file when the process ends.
func memoryFile() (*os.File, error) {
	f, err := os.CreateTemp("", "embedded-store-*")
	if err == nil && runtime.GOOS != "windows" {
		err = os.Remove(f.Name())
	}
	return f, err
}
