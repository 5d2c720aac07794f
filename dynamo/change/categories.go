package change

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// incrementCategory increments the product count of a category. A category is created with its
// first product.
func (c *change) incrementCategory(name string) {
	c.countCategory(model.CategoryRecord(&c.KeyBuilder, commerce.Category{Name: name}), 1, nil)
}

// decrementCategory decrements the product count of a category. A category is deleted with its last
// product. A category without a count, or with a name that no key can contain, stays unchanged.
//
// It does not read the category first: a failed transaction returns the record.
func (c *change) decrementCategory(name string) {
	b := c.oldKeyBuilder()
	r := model.CategoryRecord(b, commerce.Category{Name: name})
	if b.Err != nil {
		return
	}
	current, known := c.known[model.KeyOf(r)]
	category := model.Reader{Record: current}
	switch {
	case known && !table.HasNumber(current, model.AttrProductCount):
	case known && category.Number(model.AttrProductCount) <= 1:
		c.remove(current, table.Unchanged(current, model.AttrProductCount))
	default:
		c.countCategory(r, -1, table.Compare(model.AttrProductCount, ">", model.Num(1)))
	}
}

// countCategory adds to the product count of a category if a condition holds. when may be nil.
func (c *change) countCategory(r model.Record, delta int, when table.Condition) {
	c.addToCounters(r, model.Record{model.AttrProductCount: model.Num(delta), model.AttrVersion: model.Num(1)}, when, model.AttrCategory)
}
