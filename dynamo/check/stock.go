package check

import (
	"context"
	"fmt"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// productVerifier verifies the records in a product's partition, and the stored stock that depends
// on the orders.
type productVerifier struct {
	sku commerce.SKU
	recordWithEdges
	// levels are the product's inventory levels. others are the records of other entities.
	levels, others recordsWithEdges
	// buckets are the records of the product's other stock buckets, by number. They are nil if the stock is
	// not spread.
	buckets []model.Record
	// fromScan reports whether the records come from the scan instead of a later read.
	fromScan bool
	// recount counts the product's numbers again. It is nil if this is not needed. readings is the
	// number of its passes whose results the verifier has read.
	recount  *recount
	readings int
	// countOrders reports whether the orders that contain the product must be counted. counted is the
	// last result of the recount, or nil if the product changed meanwhile. orders is the number of orders.
	countOrders bool
	counted     *counted
	orders      *int
	// unreadableOrder is an unreadable order that may reserve stock of the product. If there is no
	// such order, unreadableOrder is empty.
	unreadableOrder commerce.OrderID

	// decoded is the product. It is nil if the product is missing or unreadable. levelSum is the sum
	// of the inventory levels. It is nil if a level is unreadable.
	decoded       *commerce.Product
	levelSum      *int
	decodedLevels []*commerce.InventoryLevel
}

func newProductVerifier(sku string) *productVerifier {
	v := &productVerifier{sku: commerce.SKU(sku)}
	v.clear()
	return v
}

func (v *productVerifier) clear() {
	v.recordWithEdges = newRecordWithEdges(&model.EntityProduct, map[string]string{"sku": string(v.sku)})
	v.levels, v.others = recordsWithEdges{}, recordsWithEdges{}
}

func (v *productVerifier) addRecord(e *model.Entity, rec model.Record) {
	switch e.BaseEntity().Name {
	case model.EntityProduct.Name:
		v.put(rec)
	case model.EntityInventoryLevel.Name:
		v.levels.add(e, rec)
	default:
		v.others.add(e, rec)
	}
}

func (v *productVerifier) key(*table.Table) model.Keys { return v.primaryKey }

// read waits for the recount, and then reads the product and its inventory levels. If the product's
// record has changed since the recount began, the recounted numbers are invalid.
func (v *productVerifier) read(ctx context.Context, c *check) error {
	v.counted, v.orders = nil, nil
	if v.recount == nil {
		return v.readCollection(ctx, c)
	}
	if v.unreadableOrder = c.uncertainOrder(v.sku); v.unreadableOrder != "" {
		return v.readCollection(ctx, c)
	}
	now, err := v.recount.afterPass(ctx, derive.TargetOf(&model.EntityProduct, string(v.sku)), v.readings)
	if err != nil {
		return err
	}
	v.readings++
	// Look for an unreadable order again, because the recount may have found one.
	v.unreadableOrder = c.uncertainOrder(v.sku)
	if v.countOrders {
		listed, err := c.countList(ctx, model.AttrOrderCount, &model.EntityProduct, string(v.sku), model.Range{})
		if err != nil {
			return err
		}
		n := listed.int(productOrders(v.sku))
		v.orders = &n
	}
	if err := v.readCollection(ctx, c); err != nil {
		return err
	}
	// A mutation that changes one of the counted numbers also changes the product's record.
	if model.EqualRecords(now.record, v.record()) && slices.EqualFunc(now.buckets, v.buckets, model.EqualRecords) {
		v.counted = &now
	}
	return nil
}

func (v *productVerifier) readCollection(ctx context.Context, c *check) error {
	v.clear()
	b := c.table.KeyBuilder()
	partition := model.ProductBySKU.Key(b, v.sku).PK
	if b.Err != nil {
		return b.Err
	}
	if err := c.client.readItemCollection(ctx, &model.ProductInventory.AccessPattern, partition, v.addRecord); err != nil {
		return err
	}
	var err error
	v.buckets, err = c.readBuckets(ctx, derive.TargetOf(&model.EntityProduct, string(v.sku)), v.record())
	return err
}

// uncertainty returns a message if the result of verify may be wrong: an order cannot be read, or
// the product changed during the recount. A finding is certain only if the product did not change
// during two passes (see recountTargets).
func (v *productVerifier) uncertainty(diag *diagnosis) string {
	switch {
	case v.recount == nil || v.record() == nil:
		return ""
	case v.unreadableOrder != "":
		return fmt.Sprintf("%s cannot be read and may reserve stock of the product", model.OrderByID.Key(diag.table.KeyBuilder(), v.unreadableOrder).PK)
	case v.counted == nil || !diag.isClean() && v.counted.passes < 2:
		return "the product changed each time its reserved stock was recounted"
	}
	return ""
}

// markRepaired prevents another recount after a repair. The recounted numbers are still right,
// because the repair succeeds only if the product has not changed since the recount.
func (v *productVerifier) markRepaired() { v.recount = nil }

func (v *productVerifier) hasMainRecord() bool { return v.record() != nil }

func (v *productVerifier) verify(c *check) *diagnosis {
	diag := &diagnosis{table: c.table}
	v.decoded, v.levelSum, v.decodedLevels = nil, nil, nil
	b := c.table.KeyBuilder()
	diag.trustedKey, diag.trusted = v.primaryKey, v.record()
	v.others.verify(diag)
	if v.record() == nil {
		v.verifyBuckets(diag, &commerce.Product{}, nil, false)
		for _, level := range v.levels.sorted() {
			if level.record() != nil {
				diag.addOrphan(kindOrphanInventoryLevel, level.record(), "the product does not exist")
			}
			level.verifyEdges(diag, nil)
		}
		v.verifyEdges(diag, nil)
		return diag
	}
	v.verifyInventoryLevels(diag)
	product, err := decode(diag, &v.recordWithEdges, v.primaryKey, c.table.DecodeProduct)
	if err != nil {
		diag.addUnreadable(model.KeyOf(v.record()), err)
		return diag
	}
	revision := model.Reader{Record: v.record()}
	next := revision.Number(model.AttrStockRevision) + 1
	if err := revision.Err(); err != nil {
		diag.addUnreadable(model.KeyOf(v.record()), err)
		return diag
	}
	v.decoded = product
	want := *product
	// The sum of the scanned inventory levels may be wrong, because they may change during the scan.
	// If the sum differs from the stored total, the check reads the levels again.
	if v.levelSum != nil && (v.fromScan || v.counted != nil) {
		want.TotalInventory = *v.levelSum
	}
	shares, storedOrders := v.storedShares(product)
	if v.counted != nil && v.orders != nil {
		want.OrderCount = new(*v.orders - storedOrders)
	}
	if v.levelSum != nil && v.counted != nil && v.counted.numbers != nil {
		total, stored := *v.levelSum+v.counted.numbers.int(productStock(v.sku)), 0
		for _, share := range shares {
			stored += share
		}
		if total != stored || slices.Min(shares) < 0 && slices.Max(shares) > 0 {
			shares = commerce.SpreadStock(total, len(shares))
		}
		want.Available = shares[0]
	}
	if want.Category == "" {
		// A product written by other software may have no category. Such a product is in no list and
		// needs no index keys, so ignore the errors of the key builder.
		b = &model.KeyBuilder{Layout: b.Layout}
	}
	expected, kind := model.EncodeWithEdges(b, &want), kindIndexKeys
	switch {
	case want.Category == "":
		delete(expected[0], model.AttrIndexPK)
		delete(expected[0], model.AttrIndexSK)
		kind = kindKeyAttribute
	case b.Err != nil:
		diag.addUnreadable(model.KeyOf(v.record()), b.Err)
		return diag
	}
	diag.compare(&model.EntityProduct, v.record(), expected[0], kind)
	// A repair of the stock also increments the stock revision, like every other change of the stock.
	// The repair is written only if the stored revision has not changed, or is still missing.
	if len(diag.fixes) > 0 && diag.fixes[len(diag.fixes)-1].key == model.KeyOf(v.record()) && (diag.hasKind(kindStockTotal) || diag.hasKind(kindStockAvailable)) {
		diag.fixes[len(diag.fixes)-1].set[model.AttrStockRevision] = model.Num(next)
	}
	v.verifyBuckets(diag, product, shares, v.counted != nil)
	diag.source = v.primaryKey
	v.verifyEdges(diag, expected)
	return diag
}

// productStock identifies the available stock of a product.
func productStock(sku commerce.SKU) number {
	return number{derive.TargetOf(&model.EntityProduct, string(sku)), model.AttrAvailable}
}

func (v *productVerifier) verifyInventoryLevels(diag *diagnosis) {
	sum, complete := 0, true
	for _, r := range v.levels.sorted() {
		if r.verify(diag) == nil {
			complete = complete && r.record() == nil
			continue
		}
		level, err := decode(diag, r, r.primaryKey, model.DecodeInventoryLevel)
		if err != nil {
			complete = false
			continue
		}
		sum += level.Quantity
		v.decodedLevels = append(v.decodedLevels, level)
	}
	if complete {
		v.levelSum = &sum
	}
}

func (v *productVerifier) updateCheckState(c *check, _, _ *diagnosis) {
	for _, level := range v.decodedLevels {
		c.addReferencedWarehouse(level.WarehouseID)
	}
}
