package check_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/repair"
)

var update = flag.Bool("update", false, "write the docs' tables instead of comparing them")

// Every class is described, and is found in some damage of the table of damages.
func TestClassesOfDrift(t *testing.T) {
	found := map[string]bool{}
	for _, d := range damages() {
		for class := range strings.SplitSeq(d.found, ", ") {
			if name, _, ok := strings.Cut(class, " "); ok {
				found[name] = true
			}
		}
	}
	for _, class := range repair.DriftClasses() {
		if class.What == "" || class.Example == "" || class.Repair == "" {
			t.Errorf("%+v lacks a description, an example or a repair", class)
		}
		if !found[class.Name] {
			t.Errorf("%s stands in the list twice, or no damage shows it", class.Name)
		}
		delete(found, class.Name)
	}
	for name := range found {
		t.Errorf("%s is found, and is no class", name)
	}
}

func TestDocsShowTheClassesOfDrift(t *testing.T) {
	const name, begin, end = "../../docs/check.md", "<!-- drifts -->\n", "<!-- /drifts -->"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no %q and %q", name, begin, end)
	}
	table := repair.DriftsMarkdown()
	if *update {
		if err := os.WriteFile(name, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if strings.TrimSpace(shown) != strings.TrimSpace(table) {
		t.Errorf("%s does not show the classes of drift: run go test ./dynamo/check -run Docs -update", name)
	}
}
