// Package longtest controls how long tests run. By default, each test runs only a few rounds, and
// some tests are skipped. All tests together then take about two minutes. If ORDERGRAPH_TEST_LONG=1
// is set, as in CI, all tests run with all rounds. The package imports no other package of the
// module.
package longtest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Enabled reports whether ORDERGRAPH_TEST_LONG is set.
func Enabled() bool { return os.Getenv("ORDERGRAPH_TEST_LONG") != "" }

// Size returns full if ORDERGRAPH_TEST_LONG is set, and usual otherwise. Tests use it to choose
// their number of rounds.
func Size[T any](usual, full T) T {
	if Enabled() {
		return full
	}
	return usual
}

// Skip skips the test unless ORDERGRAPH_TEST_LONG is set. It is for tests that take long even with
// few rounds.
func Skip(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("the test takes long: set ORDERGRAPH_TEST_LONG=1 to run it")
	}
}

// SetRapidChecks sets the number of random inputs of each property test. Call it from TestMain
// before the command line is parsed, so that the flag -rapid.checks takes precedence.
func SetRapidChecks(usual, full int) {
	if err := flag.Set("rapid.checks", strconv.Itoa(Size(usual, full))); err != nil {
		panic(err) // the package has no property tests, so the flag does not exist
	}
}
