// Package longtest controls how long tests run. By default, each test runs only a few rounds, and
// some tests are skipped, so that all tests together take about two minutes. With
// ORDERGRAPH_TEST_LONG=1, which CI sets, all tests run with all rounds. The package imports no other
// package of the module.
package longtest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Enabled reports whether ORDERGRAPH_TEST_LONG is set.
func Enabled() bool { return os.Getenv("ORDERGRAPH_TEST_LONG") != "" }

// Size returns full if Enabled returns true, and usual otherwise.
func Size[T any](usual, full T) T {
	if Enabled() {
		return full
	}
	return usual
}

// Skip skips the test unless Enabled. It is for tests that take long even in a small size.
func Skip(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("takes long: set ORDERGRAPH_TEST_LONG=1 to run it")
	}
}

// SetRapidChecks sets the number of random values per property test. Call it from TestMain before
// the flags are parsed, so that -rapid.checks on the command line takes precedence.
func SetRapidChecks(usual, full int) {
	if err := flag.Set("rapid.checks", strconv.Itoa(Size(usual, full))); err != nil {
		panic(err) // the package has no property tests
	}
}
