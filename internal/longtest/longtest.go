// Package longtest sizes tests. By default each test makes few rounds, so that all tests together
// take less than two minutes. With ORDERGRAPH_TEST_LONG=1, which CI sets, each makes all its
// rounds. The package imports nothing of the module.
package longtest

import (
	"flag"
	"os"
	"strconv"
)

// Enabled reports whether ORDERGRAPH_TEST_LONG asks for all rounds.
func Enabled() bool { return os.Getenv("ORDERGRAPH_TEST_LONG") != "" }

// Size returns a test's default size, or its full size if all rounds are requested.
func Size[T any](usual, full T) T {
	if Enabled() {
		return full
	}
	return usual
}

// Checks sets how many random values the package's property tests try. TestMain calls it before the
// flags are parsed, so -rapid.checks on the command line prevails.
func Checks(usual, full int) {
	if err := flag.Set("rapid.checks", strconv.Itoa(Size(usual, full))); err != nil {
		panic(err) // the package has no property tests
	}
}
