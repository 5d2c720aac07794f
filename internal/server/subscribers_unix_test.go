//go:build unix

package server_test

import "syscall"

// sockets is how many sockets this process can have both ends of, up to so many.
func sockets(most int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 100
	}
	return min(most, max(10, (int(files.Cur)-200)/2))
}
