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
		{"line items of an order; quantity of a line item", p.Sprintf("%d; %d", commerce.MaxLines, commerce.MaxQuantity)},
		{"stock of a product in one warehouse; in all warehouses", p.Sprintf("%d; %d", commerce.MaxInventoryLevel, commerce.MaxTotalInventory)},
		{"ID; email address; idempotency key", p.Sprintf("%d; %d; %d bytes", commerce.MaxIDLength, commerce.MaxEmail, commerce.MaxIdempotencyKey)},
		{"name; note; search text", p.Sprintf("%d; %d; %d bytes", commerce.MaxName, commerce.MaxNote, commerce.MaxFoldedName)},
		{"phone numbers", p.Sprintf("%d, each of %d bytes", commerce.MaxPhoneNumbers, commerce.MaxPhoneNumber)},
		{"amount of money", p.Sprintf("%d digits, including decimals", commerce.MaxPriceDigits)},
	}))
}
