package graph

import (
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/ordergraph/ordergraph/commerce"
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

func TestGoldenLimitsOfValues(t *testing.T) {
	p := message.NewPrinter(language.English) // 1,000,000
	golden.Section(t, "../docs/operations.md", "values", markdown.Table([][]string{
		{"value", "maximum"},
		{"line items of an order", p.Sprintf("%d", commerce.MaxLines)}, {"quantity of a line item", p.Sprintf("%d", commerce.MaxQuantity)},
		{"stock of a product in one warehouse", p.Sprintf("%d", commerce.MaxInventoryLevel)}, {"stock of a product in all warehouses", p.Sprintf("%d", commerce.MaxTotalInventory)},
		{"ID", p.Sprintf("%d bytes", commerce.MaxIDLength)}, {"email address", p.Sprintf("%d bytes", commerce.MaxEmail)},
		{"idempotency key", p.Sprintf("%d bytes", commerce.MaxIdempotencyKey)}, {"name", p.Sprintf("%d bytes", commerce.MaxName)},
		{"note", p.Sprintf("%d bytes", commerce.MaxNote)}, {"search text", p.Sprintf("%d bytes", commerce.MaxFoldedName)},
		{"phone numbers", p.Sprintf("%d, each of %d bytes", commerce.MaxPhoneNumbers, commerce.MaxPhoneNumber)}, {"amount of money", p.Sprintf("%d digits, including decimals", commerce.MaxPriceDigits)},
	}))
}
