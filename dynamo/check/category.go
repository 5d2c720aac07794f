package check

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// categoryVerifier verifies a category's record, which stores the number of its products.
type categoryVerifier struct {
	baseVerifier
	name   string
	record model.Record
	// products is the number of products in the index. changed reports a change during the count.
	products int
	changed  bool
}

func (v *categoryVerifier) key(*table.Table) model.Keys {
	return model.EntityCategory.KeyFromValues(map[string]string{"category": v.name})
}

func (v *categoryVerifier) addRecord(_ *model.Entity, rec model.Record) { v.record = rec }

// read counts the category's products in the index. A mutation that adds or removes a product
// changes the category's record, so read compares the record before and after the count.
func (v *categoryVerifier) read(ctx context.Context, c *check) error {
	before, err := c.client.getConsistent(ctx, v.key(c.table))
	if err != nil {
		return err
	}
	if err := c.waitForIndex(ctx); err != nil {
		return err
	}
	counted, err := c.countList(ctx, model.AttrProductCount, &model.EntityCategory, v.name, model.Range{})
	if err != nil {
		return err
	}
	v.products = counted.int(productCount(v.name))
	v.record, err = c.client.getConsistent(ctx, v.key(c.table))
	v.changed = !model.EqualRecords(before, v.record)
	return err
}

// uncertainty returns a message if the record changed during the count, which may then be wrong.
func (v *categoryVerifier) uncertainty(*diagnosis) string {
	if v.changed {
		return "the category's record changed each time its products were counted"
	}
	return ""
}

func (v *categoryVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table, trustedKey: v.key(c.table), trusted: v.record}
	want := commerce.Category{Name: v.name, ProductCount: v.products, Version: 1}
	switch {
	case v.record == nil && v.products > 0:
		diag.addMissing(kindCategoryCount, model.CategoryRecord(c.table.KeyBuilder(), want), nil, fmt.Sprintf("the category has products: %d", v.products))
	case v.record == nil:
	case v.products == 0:
		diag.addOrphan(kindCategoryCount, v.record, "the category has no products")
	default:
		at := model.Reader{Record: diag.withoutUnreadable(&model.EntityCategory, v.record)}
		want.Version = at.Number(model.AttrVersion)
		diag.compare(&model.EntityCategory, v.record, model.CategoryRecord(c.table.KeyBuilder(), want), kindKeyAttribute)
	}
	return diag
}

// recordCategoryCount stores the product count of a scanned category record, to compare it with
// the number of scanned products. If the record is inconsistent or its count is 0, it stores
// MissingCount, so that the category is verified again in any case.
func (c *check) recordCategoryCount(rec model.Record) {
	name := model.FirstPlaceholderValue(model.EntityCategory.SK, model.TextOf(rec, model.AttrSK))
	at := model.Reader{Record: rec}
	recorded := at.Number(model.AttrProductCount)
	if v := (&categoryVerifier{name: name, record: rec, products: recorded}); recorded == 0 || !v.verify(c).isClean() {
		recorded = missing
	}
	c.numbers.setStored(productCount(name), recorded)
}

func (c *check) countInCategory(v *productVerifier) {
	name := model.FirstPlaceholderValue(model.EntityProduct.IndexPK, model.TextOf(v.record(), model.AttrIndexPK))
	if v.decoded != nil {
		name = v.decoded.Category
	}
	if (&categoryVerifier{name: name}).key(c.table).PK != "" { // the key is empty if the product has no category
		c.numbers.add(c.layout(), &commerce.Product{Category: name})
	}
}

// productCount identifies the product count of a category.
func productCount(category string) number {
	return number{derive.TargetOf(&model.EntityCategory, category), model.AttrProductCount}
}

// addCategoryCandidates selects categories whose stored count differs from the scanned products.
func (c *check) addCategoryCandidates() {
	for _, name := range c.numbers.candidates(&model.EntityCategory, model.AttrProductCount, true) {
		c.addCandidate(target{targetCategory, name}, candidate{})
	}
}
