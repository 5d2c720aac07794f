//go:build !unix || aix || solaris

package file

import "os"

// unlock does nothing. The file stays locked until the process ends.
func unlock(*os.File) {}
