//go:build race

// Package raceenabled reports whether a test binary is built with the race detector. The race
// detector allocates additional memory, so tests do not check the number of allocations if On is
// true.
package raceenabled

// On reports whether the race detector is enabled.
const On = true
