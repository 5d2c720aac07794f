package change

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// enterCategory counts a product more in a category, which begins with its first product. A number
// that cannot be read stays.
func (c *change) enterCategory(name string) {
	r := model.CategoryRecord(&c.KeyBuilder, commerce.Category{Name: name})
	if known := c.known[model.KeyOf(r)]; known[model.AttrProductCount] != nil && !table.IsCounted(known, model.AttrProductCount) {
		return
	}
	c.countCategory(r, 1, table.Either(table.Lacks(model.AttrProductCount), table.Counted(model.AttrProductCount)))
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

// countCategory adds to the number of products of a category, and to the version unless it cannot be
// read.
func (c *change) countCategory(r model.Record, by int, when table.Condition) {
	deltas := map[string]int{model.AttrProductCount: by}
	if known := c.known[model.KeyOf(r)]; known[model.AttrVersion] == nil || table.IsCounted(known, model.AttrVersion) {
		deltas[model.AttrVersion] = 1
		when = table.AllOf(when, table.Either(table.Lacks(model.AttrVersion), table.Counted(model.AttrVersion)))
	}
	var e table.Expression
	text := e.Adding(deltas, model.Record{"entity": r["entity"], model.AttrCategory: r[model.AttrCategory]})
	c.set(model.KeyOf(r), text, &e, units.Write(c.known[model.KeyOf(r)], r), when)
}
