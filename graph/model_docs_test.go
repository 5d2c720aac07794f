package graph

import (
	"os"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
)

func TestDocsShowTheModel(t *testing.T) {
	const name = "../docs/data-model.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for marker, table := range map[string]string{"keys": model.KeysMarkdown(), "attributes": model.AttributesMarkdown(), "patterns": bound.PatternsMarkdown(Schema())} {
		begin, end := "<!-- "+marker+" -->\n", "<!-- /"+marker+" -->"
		from := strings.Index(doc, begin)
		to := strings.Index(doc, end)
		if from < 0 || to < from {
			t.Fatalf("%s has no %q and %q", name, begin, end)
		}
		from += len(begin)
		if *update {
			doc = doc[:from] + table + doc[to:]
			continue
		}
		if strings.TrimSpace(doc[from:to]) != strings.TrimSpace(table) {
			t.Errorf("%s does not show the model's %s: run go test ./graph -run Docs -update", name, marker)
		}
	}
	if *update {
		if err := os.WriteFile(name, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
