//go:build !linux

package embedded

import (
	"os"
	"runtime"
)

// memoryFile returns an empty temporary file. Where the system allows it, the file has no name, so
// that it vanishes with the process.
func memoryFile() (*os.File, error) {
	f, err := os.CreateTemp("", "embedded-store-*")
	if err == nil && runtime.GOOS != "windows" {
		err = os.Remove(f.Name())
	}
	return f, err
}
