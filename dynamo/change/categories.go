package change

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// enterCategory counts a product more in a category, which begins with its first product.
func (c *change) enterCategory(name string) {
	c.countCategory(model.CategoryRecord(&c.KeyBuilder, commerce.Category{Name: name}), 1, nil)
}

// leaveCategory counts a product less in a category, which ends with its last product. A category
// whose products nobody has counted, or that can be in no key, stays as it is.
//
// The category is not read before: a transaction that is refused tells what it is like.
func (c *change) leaveCategory(name string) {
	b := c.former()
	r := model.CategoryRecord(b, commerce.Category{Name: name})
	if b.Err != nil {
		return
	}
	stands, known := c.known[model.KeyOf(r)]
	at := model.Reader{Record: stands}
	switch {
	case known && !table.IsCounted(stands, model.AttrProductCount):
	case known && at.Number(model.AttrProductCount) <= 1:
		c.remove(stands, table.Still(stands, model.AttrProductCount))
	default:
		c.countCategory(r, -1, table.Is(model.AttrProductCount, ">", model.Num(1)))
	}
}

// countCategory adds to the number of products of a category, if a condition holds; nil for none.
func (c *change) countCategory(r model.Record, by int, when table.Condition) {
	c.tally(r, model.Record{model.AttrProductCount: model.Num(by), model.AttrVersion: model.Num(1)}, when, model.AttrCategory)
}
