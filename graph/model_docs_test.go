package graph

import (
	"testing"

	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/internal/golden"
)

func TestGoldenModelDocs(t *testing.T) {
	const name = "../docs/data-model.md"
	golden.Section(t, name, "keys", markdown.Keys())
	golden.Section(t, name, "attributes", markdown.Attributes())
	golden.Section(t, name, "patterns", bound.PatternsMarkdown(Schema()))
}
