package change

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// incrementCategory adds 1 to the product count of a category. If the category has no record, the
// transaction creates it.
func (c *change) incrementCategory(name string) {
	c.adjustCategoryCount(model.CategoryRecord(&c.KeyBuilder, commerce.Category{Name: name}), 1, nil)
}

// decrementCategory subtracts 1 from a category's product count. If no product remains, it deletes
// the category's record.
func (c *change) decrementCategory(name string) {
	b := c.oldKeyBuilder()
	r := model.CategoryRecord(b, commerce.Category{Name: name})
	if b.Err != nil {
		return // the name is not valid in a key
	}
	current, known := c.known[model.KeyOf(r)]
	category := model.Reader{Record: current}
	switch {
	case known && !table.RecordHasNumber(current, model.AttrProductCount): // the category has no count
	case known && category.Number(model.AttrProductCount) <= 1:
		c.remove(current, table.AttributesUnchanged(current, model.AttrProductCount))
	default:
		// If the condition fails, DynamoDB returns the record, and the next attempt uses it.
		c.adjustCategoryCount(r, -1, table.CompareAttribute(model.AttrProductCount, ">", model.Num(1)))
	}
}

// adjustCategoryCount adds delta to the product count of a category. r is the category's record.
// The parameter when is the condition of the write, or nil.
func (c *change) adjustCategoryCount(r model.Record, delta int, when table.Condition) {
	c.addToCounters(r, model.Record{model.AttrProductCount: model.Num(delta), model.AttrVersion: model.Num(1)}, when, model.AttrCategory)
}
