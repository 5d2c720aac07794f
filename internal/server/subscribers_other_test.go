//go:build !unix

package server_test

// sockets returns the number of sockets, up to a maximum, that this process can open at both ends.
func sockets(most int) int { return min(most, 1000) }
