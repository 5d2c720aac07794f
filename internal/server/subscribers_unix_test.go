//go:build unix

package server_test

import "syscall"

// maxSockets returns the number of sockets, up to a maximum, that this process can open at both
// ends.
func maxSockets(maximum int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 100
	}
	return min(maximum, max(10, (int(files.Cur)-200)/2))
}
