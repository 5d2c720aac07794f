package check_test

import (
	"github.com/ordergraph/ordergraph/dynamo/check"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// Every kind has a description, and some damage causes an inconsistency of this kind.
func TestKindsOfInconsistency(t *testing.T) {
	found := map[string]bool{}
	for _, d := range damages() {
		for kind := range strings.SplitSeq(d.found, ", ") {
			if name, _, ok := strings.Cut(kind, " "); ok {
				found[name] = true
			}
		}
	}
	for _, kind := range check.Kinds() {
		if kind.Problem == "" || kind.Repair == "" {
			t.Errorf("%+v lacks a description or a repair", kind)
		}
		if !found[kind.Name] {
			t.Errorf("the kind %s is listed twice, or no test damages a table in this way", kind.Name)
		}
		delete(found, kind.Name)
	}
	for name := range found {
		t.Errorf("%s is found, but is not a kind of inconsistency", name)
	}
}

func TestGoldenCheckDocs(t *testing.T) {
	golden.CheckSection(t, "../../docs/check.md", "inconsistencies", check.KindsMarkdown())
}
