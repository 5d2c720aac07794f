// Package golden compares generated text with files that are committed to the repository. Examples
// are tables of the docs, published schemas and recorded responses. If ORDERGRAPH_TEST_UPDATE=1 is
// set, the package writes the files instead. "go generate ./..." sets this variable. The package
// imports no other package of the module.
package golden

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// testPrefix is the prefix of the names of all tests that compare files. "go generate ./..." runs
// only the tests with this prefix.
const testPrefix = "TestGolden"

// Updating reports whether CheckFile and CheckSection write files instead of comparing them.
func Updating() bool { return os.Getenv("ORDERGRAPH_TEST_UPDATE") != "" }

// CheckFile fails t unless the file contains exactly text. If Updating returns true, CheckFile
// writes text to the file instead.
func CheckFile(t testing.TB, name, text string) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), testPrefix) {
		t.Fatalf("the name of a test that compares %s must begin with %s", name, testPrefix)
	}
	committed, err := os.ReadFile(name)
	switch {
	case err == nil && string(committed) == text:
	case Updating():
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Errorf("%v: run go generate ./...", err)
	default:
		t.Errorf("%s is out of date: run go generate ./...\n%s", name, diffLines(string(committed), text))
	}
}

// CheckSection fails t unless the section between <!-- marker --> and <!-- /marker --> equals text.
// If Updating returns true, CheckSection writes the text to the section instead.
func CheckSection(t testing.TB, name, marker, text string) {
	t.Helper()
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+marker+" -->\n", "<!-- /"+marker+" -->"
	before, rest, opened := strings.Cut(string(file), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s lacks %q followed by %q", name, begin, end)
	}
	CheckFile(t, name, before+begin+text+end+after)
}

// diffLines shows the difference between two texts. It omits the equal lines at the beginning and
// at the end of both texts.
func diffLines(committed, derived string) string {
	have, want := strings.Split(committed, "\n"), strings.Split(derived, "\n")
	for len(have) > 0 && len(want) > 0 && have[0] == want[0] {
		have, want = have[1:], want[1:]
	}
	for len(have) > 0 && len(want) > 0 && have[len(have)-1] == want[len(want)-1] {
		have, want = have[:len(have)-1], want[:len(want)-1]
	}
	return strings.Join(slices.Concat([]string{"committed:"}, have, []string{"derived:"}, want), "\n")
}
