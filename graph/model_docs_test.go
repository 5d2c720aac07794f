package graph

import (
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/internal/golden"
)

func TestGoldenModelDocs(t *testing.T) {
	const name = "../docs/data-model.md"
	golden.Section(t, name, "keys", model.KeysMarkdown())
	golden.Section(t, name, "attributes", model.AttributesMarkdown())
	golden.Section(t, name, "patterns", bound.PatternsMarkdown(Schema()))
}
