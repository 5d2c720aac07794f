//go:build race

package bench_test

// raced tells that the race detector is on, under which more is allocated.
const raced = true
