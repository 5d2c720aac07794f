// Package golden compares generated text with committed files: tables of the docs, published
// schemas, and recorded responses. With ORDERGRAPH_TEST_UPDATE=1, which "go generate ./..." sets,
// it writes the files instead. The package imports no other package of the module.
package golden

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// testPrefix begins the names of all tests that compare files. go generate selects the tests by
// this prefix.
const testPrefix = "TestGolden"

// Updating reports whether files are written instead of compared.
func Updating() bool { return os.Getenv("ORDERGRAPH_TEST_UPDATE") != "" }

// CheckFile fails t unless the content of the file equals text.
func CheckFile(t testing.TB, name, text string) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), testPrefix) {
		t.Fatalf("the test compares %s, so the name of the test must begin with %s", name, testPrefix)
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

// CheckSection fails t unless the Markdown file contains exactly the text between the comments <!--
// marker --> and <!-- /marker -->.
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

// diffLines returns the lines from the first to the last difference.
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
