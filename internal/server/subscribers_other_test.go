//go:build !unix

package server_test

// sockets returns the number of sockets, at most most, of which this process can hold both ends.
func sockets(most int) int { return min(most, 1000) }
