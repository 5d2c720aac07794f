//go:build !linux

package embedded

import (
	"os"
	"runtime"
)

// memoryFile returns an empty temporary file. Except on Windows, it removes the file from its
// directory immediately, so that the file disappears when the process ends.
func memoryFile() (*os.File, error) {
	f, err := os.CreateTemp("", "embedded-store-*")
	if err == nil && runtime.GOOS != "windows" {
		err = os.Remove(f.Name())
	}
	return f, err
}
