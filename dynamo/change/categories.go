package change

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// incrementCategory increments the product count of a category. If the category has no record, the
// transaction creates it.
func (c *change) incrementCategory(name string) {
	c.adjustCategoryCount(model.CategoryRecord(&c.KeyBuilder, commerce.Category{Name: name}), 1, nil)
}

// decrementCategory decrements the product count of a category, or deletes the category with its
// last product. It does nothing if the category has no count, or if the name is not valid in a key.
//
// decrementCategory does not read the category first. It adds the condition that the category has
// more than one product. If the condition fails, DynamoDB returns the record for the next attempt.
func (c *change) decrementCategory(name string) {
	b := c.oldKeyBuilder()
	r := model.CategoryRecord(b, commerce.Category{Name: name})
	if b.Err != nil {
		return
	}
	current, known := c.known[model.KeyOf(r)]
	category := model.Reader{Record: current}
	switch {
	case known && !table.RecordHasNumber(current, model.AttrProductCount):
	case known && category.Number(model.AttrProductCount) <= 1:
		c.remove(current, table.AttributesUnchanged(current, model.AttrProductCount))
	default:
		c.adjustCategoryCount(r, -1, table.CompareAttribute(model.AttrProductCount, ">", model.Num(1)))
	}
}

// adjustCategoryCount adds delta to the product count of a category. when is the condition of the write,
// or nil.
func (c *change) adjustCategoryCount(r model.Record, delta int, when table.Condition) {
	c.addToCounters(r, model.Record{model.AttrProductCount: model.Num(delta), model.AttrVersion: model.Num(1)}, when, model.AttrCategory)
}
