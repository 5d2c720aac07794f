//go:build race

// Package racing tells tests that count allocations whether they are built with the race detector,
// which allocates as well.
package racing

// On reports whether the race detector is built in.
const On = true
