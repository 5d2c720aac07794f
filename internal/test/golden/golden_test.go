package golden_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	name     string
	failures []string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return r.name }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// failure returns the failures of a comparison in a test with the given name.
func failure(name string, compare func(t testing.TB)) string {
	r := &recorder{name: name}
	func() {
		defer func() {
			if stopped := recover(); stopped != nil && stopped != any(r) {
				panic(stopped)
			}
		}()
		compare(r)
	}()
	return strings.Join(r.failures, "\n")
}

func TestSection(t *testing.T) {
	name := filepath.Join(t.TempDir(), "docs.md")
	const page = "# Docs\n<!-- table -->\na\nb\nc\n<!-- /table -->\nThe end.\n"
	if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	section := func(name, marker, text string) func(testing.TB) {
		return func(t testing.TB) { golden.CheckSection(t, name, marker, text) }
	}
	checkContent := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("the file contains %q, %v, want %q", got, err, want)
		}
	}

	t.Setenv("ORDERGRAPH_TEST_UPDATE", "")
	for _, c := range []struct {
		test, want string
		compare    func(testing.TB)
	}{
		{"TestGoldenDocs", "", section(name, "table", "a\nb\nc\n")},
		{"TestGoldenDocs", name + " is out of date: run go generate ./...\ncommitted:\nb\nderived:\nx\ny", section(name, "table", "a\nx\ny\nc\n")},
		{"TestGoldenDocs", name + ` lacks "<!-- list -->\n" followed by "<!-- /list -->"`, section(name, "list", "")},
		{"TestGoldenDocs", "open " + name + ".none: no such file or directory: run go generate ./...", func(t testing.TB) { golden.CheckFile(t, name+".none", "") }},
		{"TestDocs", "the name of a test that compares " + name + " must begin with TestGolden", section(name, "table", "a\nb\nc\n")},
	} {
		if got := failure(c.test, c.compare); got != c.want {
			t.Errorf("the failure is %q, want %q", got, c.want)
		}
	}
	checkContent(page)

	t.Setenv("ORDERGRAPH_TEST_UPDATE", "1")
	if got := failure("TestGoldenDocs", section(name, "table", "x\n")); got != "" {
		t.Error(got)
	}
	checkContent("# Docs\n<!-- table -->\nx\n<!-- /table -->\nThe end.\n")
}
