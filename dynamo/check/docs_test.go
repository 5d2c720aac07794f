package check_test

import (
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/internal/golden"
)

// Every kind has a description, and some damage causes a drift of this kind.
func TestKindsOfDrift(t *testing.T) {
	found := map[string]bool{}
	for _, d := range damages() {
		for kind := range strings.SplitSeq(d.found, ", ") {
			if name, _, ok := strings.Cut(kind, " "); ok {
				found[name] = true
			}
		}
	}
	for _, class := range repair.DriftClasses() {
		if class.What == "" || class.Repair == "" {
			t.Errorf("%+v lacks a description or a repair", class)
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

func TestGoldenCheckDocs(t *testing.T) {
	golden.Section(t, "../../docs/check.md", "drifts", repair.DriftsMarkdown())
}
