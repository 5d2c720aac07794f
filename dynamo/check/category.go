package check

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/counting"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// categoryUnit is a category's record, and how many products the category's list has.
type categoryUnit struct {
	selfContained
	name   string
	record model.Record
	// products is the number of products, as counted while the record stood still. changed reports
	// that the record changed meanwhile.
	products int
	changed  bool
}

func (u *categoryUnit) key(*table.Table) model.Keys {
	return model.EntityCategory.KeyWith(map[string]string{"category": u.name})
}

func (u *categoryUnit) add(_ *model.Entity, rec model.Record) { u.record = rec }

// read counts the products. Each mutation that changes which products a category has changes the
// category's record. So the number is right if the record is the same before and after, and the
// index has caught up in between with what was written before.
func (u *categoryUnit) read(ctx context.Context, c *check) error {
	before, err := c.client.Record(ctx, u.key(c.table))
	if err != nil {
		return err
	}
	if err := table.Wait(ctx, c.opts.IndexLag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	if u.products, err = counting.Length(ctx, c.client, &model.Products.AccessPattern, u.name); err != nil {
		return err
	}
	u.record, err = c.client.Record(ctx, u.key(c.table))
	u.changed = !model.SameRecord(before, u.record)
	return err
}

// doubt requires that the record stood still.
func (u *categoryUnit) doubt(*repair.Verdict) string {
	if u.changed {
		return "the category changed each time that its products were counted"
	}
	return ""
}

func (u *categoryUnit) judge(c *check) *repair.Verdict {
	v := &repair.Verdict{Table: c.table, Basis: u.key(c.table), Believed: u.record}
	want := commerce.Category{Name: u.name, ProductCount: u.products, Version: 1}
	switch {
	case u.record == nil && u.products > 0:
		v.Absent(repair.DriftCategoryCount, model.CategoryRecord(c.table.KeyBuilder(), want), nil, fmt.Sprintf("the category has products: %d", u.products))
	case u.record == nil:
	case u.products == 0:
		v.Orphan(repair.DriftCategoryCount, u.record, "the category has no products")
	default:
		at := model.Reader{Record: v.Legible(&model.EntityCategory, u.record)}
		want.Version = at.Number(model.AttrVersion)
		v.Compare(&model.EntityCategory, u.record, model.CategoryRecord(c.table.KeyBuilder(), want), repair.DriftKeyAttribute)
	}
	return v
}

// seeCategory notes the number in a category's record, if nothing else is wrong with the record.
func (c *check) seeCategory(rec model.Record) {
	name := model.KeyValue(model.EntityCategory.SK, model.TextOf(rec, model.AttrSK))
	at := model.Reader{Record: rec}
	recorded := at.Number(model.AttrProductCount)
	if u := (&categoryUnit{name: name, record: rec, products: recorded}); recorded == 0 || !u.judge(c).Clean() {
		recorded = counting.Uncounted
	}
	c.categories.Keep(model.KeyOf(rec), recorded)
}

// seeProduct counts a product in its category.
func (c *check) seeProduct(u *productUnit) {
	name := model.KeyValue(model.EntityProduct.IndexPK, model.TextOf(u.main(), model.AttrIndexPK))
	if u.truth != nil {
		name = u.truth.Category
	}
	if k := (&categoryUnit{name: name}).key(c.table); k.PK != "" { // else it is in no category
		c.categories.Count(k)
	}
}

// suspectCategories suspects those whose number of products is another one than was seen.
func (c *check) suspectCategories() {
	for _, k := range c.categories.Candidates(true) {
		c.suspect(unitKey{unitCategory, model.KeyValue(model.EntityCategory.SK, k.SK)}, suspicion{})
	}
}
