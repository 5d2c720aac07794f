package graph

import (
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

func TestGoldenModelDocs(t *testing.T) {
	const name = "../docs/data-model.md"
	golden.CheckSection(t, name, "keys", markdown.EntityKeysTable())
	golden.CheckSection(t, name, "attributes", markdown.AttributeList())
	golden.CheckSection(t, name, "patterns", bound.PatternsMarkdown(Schema()))
}

func TestGoldenLimitsOfValues(t *testing.T) {
	p := message.NewPrinter(language.English) // 1,000,000
	golden.CheckSection(t, "../docs/operations.md", "values", "\n"+p.Sprintf(`- most line items of an order: %d

- highest quantity of a line item: %d

- highest stock of a product: %d in one warehouse, %d in all warehouses

- longest ID: %d bytes

- longest email address: %d bytes

- longest idempotency key: %d bytes

- longest name: %d bytes

- longest note: %d bytes

- longest search text: %d bytes

- most phone numbers: %d, each up to %d bytes

- longest amount of money: %d digits, including decimals
`, commerce.MaxLines, commerce.MaxQuantity, commerce.MaxInventoryLevel, commerce.MaxTotalInventory, commerce.MaxIDLength, commerce.MaxEmail,
		commerce.MaxIdempotencyKey, commerce.MaxName, commerce.MaxNote, commerce.MaxFoldedName, commerce.MaxPhoneNumbers, commerce.MaxPhoneNumberLength,
		commerce.MaxPriceDigits)+"\n")
}
