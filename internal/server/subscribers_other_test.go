//go:build !unix

package server_test

// sockets is how many sockets this process can have both ends of, up to so many.
func sockets(most int) int { return min(most, 1000) }
