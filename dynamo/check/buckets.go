package check

import (
	"context"
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// addStoredBucket adds the numbers in a scanned bucket of a product's stock.
func (c *check) addStoredBucket(rec model.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sku, at := commerce.SKU(model.FirstPlaceholderValue(model.EntityStockBucket.PK, model.KeyOf(rec).PK)), model.Reader{Record: rec}
	c.numbers.addStored(productStock(sku), at.Number(model.AttrAvailable), false)
	c.numbers.addStored(productOrders(sku), at.Number(model.AttrOrderCount), false)
	c.buckets[sku] = true
	c.addCandidateLocked(target{targetProduct, string(sku)}, candidate{})
}

// readBuckets reads the other stock buckets of a product with the given record. If the record and the
// scan show no other buckets, it returns nil. The scan may have passed the buckets before the stock
// was spread.
func (c *check) readBuckets(ctx context.Context, t derive.Target, product model.Record) ([]model.Record, error) {
	sku, at := commerce.SKU(t.Value(0)), model.Reader{Record: product}
	c.mu.Lock()
	spread := t.Entity == &model.EntityProduct && (c.buckets[sku] || at.Number(model.AttrStockBuckets) > 1)
	c.mu.Unlock()
	if !spread {
		return nil, nil
	}
	keys := bucketKeys(c.table.KeyBuilder(), sku)
	found, err := c.client.get(ctx, consistent, keys...)
	records := make([]model.Record, len(keys))
	for i, k := range keys {
		records[i] = found[k]
	}
	return records, err
}

// bucketKeys returns the keys of all other stock buckets that a product can have.
func bucketKeys(b *model.KeyBuilder, sku commerce.SKU) (keys []model.Keys) {
	for number := 1; number < commerce.MaxStockBuckets; number++ {
		keys = append(keys, model.KeysOfStockBucket(b, model.StockBucketKey{SKU: sku, Number: number}))
	}
	return keys
}

// storedShares returns the available units in each share of a product's stock, and the sum of the order
// counts in the other buckets.
func (v *productVerifier) storedShares(p *commerce.Product) (shares []int, orders int) {
	shares = []int{p.Available}
	for _, rec := range v.buckets[:min(len(v.buckets), p.StockBuckets-1)] {
		at := model.Reader{Record: rec}
		shares, orders = append(shares, at.Number(model.AttrAvailable)), orders+at.Number(model.AttrOrderCount)
	}
	return shares, orders
}

// verifyBuckets reports missing, wrong or superfluous buckets of a product. shares are the right
// numbers of available units. If counted is true, they depend on all buckets.
func (v *productVerifier) verifyBuckets(diag *diagnosis, p *commerce.Product, shares []int, counted bool) {
	keys := bucketKeys(diag.table.KeyBuilder(), v.sku)
	for i, rec := range v.buckets {
		if i+1 >= len(shares) {
			if rec != nil {
				diag.addOrphan(kindStockBucket, rec, "the product does not have a stock bucket with this number")
			}
			continue
		}
		if counted {
			diag.dependencies = append(diag.dependencies, unchangedRecord{key: keys[i], asRead: rec})
		}
		at := model.Reader{Record: rec}
		want := model.StockBucketRecord(diag.table.KeyBuilder(), commerce.StockBucket{
			SKU: v.sku, Number: strconv.Itoa(i + 1), Available: shares[i+1], OrderCount: at.Number(model.AttrOrderCount), ProductVersion: p.Version,
		})
		if rec == nil {
			diag.addMissing(kindStockBucket, want, nil, "this bucket of the product's stock is missing")
			continue
		}
		if diag.table.Layout.Derivations().Of(model.StockBucketStock).State == model.Absent {
			diag.addFinding(kindStockBucket, keys[i], "the table does not have "+model.StockBucketStock+": set the stockBuckets of the product to 1", remedyManual)
		}
		changed := at.Number(model.AttrAvailable) != shares[i+1]
		diag.compare(&model.EntityStockBucket, rec, want, kindStockBucket)
		if changed {
			diag.setUnreported(rec, model.Record{model.AttrStockRevision: model.Num(at.Number(model.AttrStockRevision) + 1)})
		}
	}
}
