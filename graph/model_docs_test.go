package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

func TestGoldenModelDocs(t *testing.T) {
	const name = "../docs/data-model.md"
	golden.CheckSection(t, name, "keys", entityKeysTable())
	golden.CheckSection(t, name, "attributes", attributeList())
	golden.CheckSection(t, name, "patterns", bound.PatternsMarkdown(Schema()))
}

// entityKeysTable returns a Markdown table with the key templates of each entity.
func entityKeysTable() string {
	rows := [][]string{{"entity", markdown.CodeCell(model.AttrPK) + ", " + markdown.CodeCell(model.AttrSK), markdown.CodeCell(model.AttrIndexPK) + ", " + markdown.CodeCell(model.AttrIndexSK)}}
	for _, e := range model.Entities() {
		entity, index := markdown.CodeCell(e.Name), ""
		if e.IsEdge() {
			entity += " (edge)"
		}
		if e.IndexPK != "" {
			index = markdown.CodeCell(string(e.IndexPK)) + ", " + markdown.CodeCell(string(e.IndexSK))
		}
		if e.Sharded && index != "" {
			index += " (sharded)"
		}
		if e.Optional {
			index += " (optional)"
		}
		primary := markdown.CodeCell(string(e.PK)) + ", " + markdown.CodeCell(string(e.SK))
		if e.Sharded && index == "" {
			primary += " (sharded)"
		}
		rows = append(rows, []string{entity, primary, index})
	}
	return markdown.Table(rows)
}

// attributeList returns a Markdown code block with the attributes of each entity, such as
//
//	category: category! S≤200, productCount N, version N
//
// Entities with the same attributes share a line. The list omits edges, the key attributes and the
// attribute "entity".
func attributeList() string {
	var lines, records []string
	add := func(record string, attributes []model.Attribute) {
		cells := make([]string, len(attributes))
		for i, a := range attributes {
			name := a.Name
			switch {
			case a.Required:
				name += "!"
			case a.Optional:
				name += "?"
			}
			cells[i] = name + " " + a.Type
			if a.MaxLength > 0 {
				cells[i] += fmt.Sprintf("≤%d", a.MaxLength)
			}
		}
		line := strings.Join(cells, ", ")
		if same := slices.Index(lines, line); same >= 0 {
			records[same] += ", " + record
			return
		}
		lines, records = append(lines, line), append(records, record)
	}
	for _, e := range model.Entities() {
		if attributes := model.AttributesOf(e); attributes != nil && !e.IsEdge() {
			add(e.Name, attributes)
		}
	}
	add("element of items", model.EmbeddedItemAttributes())
	add("shippingAddress, billingAddress", model.AddressAttributes())
	add("hold", model.HoldAttributes())
	add("contact", model.ContactAttributes())
	add("element of adjustments", model.AdjustmentAttributes())
	add("element of a return's lines", model.ReturnLineAttributes())
	add("element of a fulfillment's lines, shippedLines", model.FulfillmentLineAttributes())
	var b strings.Builder
	b.WriteString("```\n")
	for i, line := range lines {
		column := 0
		for cell := range strings.SplitSeq(records[i]+": "+line, ", ") {
			switch {
			case column == 0:
			case column+len(cell) > maxListColumns:
				b.WriteString(",\n  ")
				column = 2
			default:
				b.WriteString(", ")
			}
			b.WriteString(cell)
			column += len(cell) + 2
		}
		b.WriteString("\n")
	}
	b.WriteString("```\n")
	return b.String()
}

// maxListColumns is the approximate maximum length of a line of attributeList.
const maxListColumns = 90

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

- most adjustments of an order: %d, with labels up to %d bytes

- longest amount of money: %d digits, including decimals
`, commerce.MaxLines, commerce.MaxQuantity, commerce.MaxInventoryLevel, commerce.MaxTotalInventory, commerce.MaxIDLength, commerce.MaxEmail,
		commerce.MaxIdempotencyKey, commerce.MaxName, commerce.MaxNote, commerce.MaxFoldedName, commerce.MaxPhoneNumbers, commerce.MaxPhoneNumberLength, commerce.MaxAdjustments, commerce.MaxAdjustmentLabel,
		commerce.MaxPriceDigits)+"\n")
}
