//go:build race

// Package raceenabled reports whether a test binary is built with the race detector. The race
// detector allocates memory, so tests that count allocations skip their checks.
package raceenabled

// On reports whether the race detector is enabled.
const On = true
