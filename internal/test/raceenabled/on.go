//go:build race

// Package raceenabled reports whether a test binary is built with the race detector. If it is,
// tests do not check the number of allocations, because the race detector allocates additional
// memory.
package raceenabled

// On reports whether the race detector is enabled.
const On = true
