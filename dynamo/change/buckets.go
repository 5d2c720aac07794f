package change

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// stockShare is one of the records over which the stock of a product is spread. The first share of a
// product is the product's own record.
type stockShare struct {
	key    model.Keys
	record model.Record
	// available is the number of available units in the share, or their change.
	available int
}

// number returns a number attribute of the share.
func (s stockShare) number(name string) int {
	at := model.Reader{Record: s.record}
	return at.Number(name)
}

// stockKeys returns the keys of the records over which the stock of a product is spread.
func (c *change) stockKeys(sku commerce.SKU, buckets int) []model.Keys {
	keys := []model.Keys{model.ProductBySKU.Key(&c.KeyBuilder, sku)}
	for number := 1; number < buckets; number++ {
		keys = append(keys, model.KeysOfStockBucket(&c.KeyBuilder, model.StockBucketKey{SKU: sku, Number: number}))
	}
	return keys
}

// readStock reads all shares of a product's stock, and returns them with their sum. The shares change
// while they are read. So if the sum is less than the needed units, readStock reads again until all
// shares have the same values in two successive reads. Because each change increments a revision, they
// had these values at the same time.
//
// Errors: model.ErrCorrupt, errors from table.WrapError.
func (c *change) readStock(ctx context.Context, sku commerce.SKU, buckets, needed int) (shares []stockShare, sum int, err error) {
	keys := c.stockKeys(sku, buckets)
	var before []model.Record
	for {
		records, err := c.read(ctx, keys...)
		if err != nil {
			return nil, 0, err
		}
		shares, sum = make([]stockShare, len(keys)), 0
		for i, r := range records {
			at := model.Reader{Record: r}
			shares[i] = stockShare{keys[i], r, at.Number(model.AttrAvailable)}
			sum += shares[i].available
			if err := at.Err(); err != nil {
				return nil, 0, err
			}
		}
		if sum >= needed || slices.EqualFunc(before, records, model.EqualRecords) {
			return shares, sum, nil
		}
		before = records
		for _, k := range keys {
			delete(c.known, k)
		}
	}
}

// productToSell decodes a product and sets its available units. If the stock is spread over several
// buckets, the first attempt of a mutation assumes that one of them contains enough units. Later
// attempts read them.
//
// It returns the errors of readStock.
func (c *change) productToSell(ctx context.Context, record model.Record, units int) (*commerce.Product, error) {
	p, _ := c.table.DecodeProduct(model.Reader{Record: record}) // the caller rejects a malformed product
	if p == nil || p.StockBuckets <= 1 {
		return p, nil
	}
	if c.attempt == 0 {
		c.assumesStock, p.Available = true, math.MaxInt
		return p, nil
	}
	_, sum, err := c.readStock(ctx, p.SKU, p.StockBuckets, units)
	p.Available = sum
	return p, err
}

// takeStock chooses the buckets whose units an order takes. A hash of the order's ID chooses the first
// bucket. If it does not contain enough units, the order takes them from the fullest buckets. The
// transaction requires that the name and the price of the product stay the same.
func (c *change) takeStock(product *commerce.Product, record model.Record, units int, order string) {
	own, unchanged := model.KeyOf(record).Primary(), table.AttributesUnchanged(record, "name", "unitPrice", "currency")
	c.require(own, unchanged)
	if product.StockBuckets <= 1 || c.Err != nil {
		return
	}
	keys := c.stockKeys(product.SKU, product.StockBuckets)
	first := model.ShardOf(order, product.StockBuckets)
	taken := []stockShare{{key: keys[first], available: -units}}
	if c.attempt > 0 {
		taken = takeFromFullest(c.sharesOf(keys), first, units)
	}
	covered := slices.ContainsFunc(taken, func(s stockShare) bool { return s.key == own })
	for _, share := range taken {
		if share.key == own {
			continue
		}
		version := model.Record{model.AttrProductVersion: model.Num(product.Version)}
		if current, known := c.knownRecord(share.key); known && !model.EqualValues(current[model.AttrProductVersion], version[model.AttrProductVersion]) {
			// Other software or an old server has changed the product, but not its buckets.
			version = current
			if !covered {
				c.addConditionCheck(own, unchanged)
			}
			covered = true
		}
		c.require(share.key, table.AttributesUnchanged(version, model.AttrProductVersion))
	}
	c.spread[own] = taken
}

// sharesOf returns the known shares with the given keys.
func (c *change) sharesOf(keys []model.Keys) []stockShare {
	shares := make([]stockShare, len(keys))
	for i, k := range keys {
		record, _ := c.knownRecord(k)
		shares[i] = stockShare{key: k, record: record}
		shares[i].available = shares[i].number(model.AttrAvailable)
	}
	return shares
}

// takeFromFullest takes units from the share number first if it contains enough units, or from as few
// shares as possible. It returns the changes of these shares.
func takeFromFullest(shares []stockShare, first, units int) (taken []stockShare) {
	if shares[first].available >= units {
		shares = shares[first : first+1]
	}
	fullest := slices.SortedStableFunc(slices.Values(shares), func(a, b stockShare) int { return cmp.Compare(b.available, a.available) })
	for _, share := range fullest {
		if n := min(units, share.available); n > 0 {
			share.available = -n
			taken, units = append(taken, share), units-n
		}
	}
	return taken
}

// changesTo returns the changes of shares that spread the given number of available units evenly. The
// first one is the change of the product's own record.
func changesTo(shares []stockShare, available int) []stockShare {
	changes := slices.Clone(shares)
	for i, n := range commerce.SpreadStock(available, len(shares)) {
		changes[i].available = n - shares[i].available
	}
	return changes
}

// inShares divides the change of a product's derived numbers among the shares of its stock. Without
// several shares, it is one change of the record with the key k.
func (c *change) inShares(k model.Keys, d derive.Delta) (all []keyedDelta) {
	shares := c.spread[k.Primary()]
	if shares == nil {
		return []keyedDelta{{k, d}}
	}
	shares = slices.Clone(shares)
	for i := 1; i < len(shares); i++ {
		if c.knownMissing(shares[i].key) { // the product's own record takes its units
			shares[0].available, shares[i].available = shares[0].available+shares[i].available, 0
		}
	}
	for i, share := range shares {
		part := derive.Delta{Target: d.Target}
		for _, a := range d.Amounts {
			switch {
			case a.Attribute == model.AttrAvailable:
				a = a.WithInt(share.available)
			case i > 0:
				continue
			}
			part.Amounts = append(part.Amounts, a)
		}
		if i == 0 || share.available != 0 {
			all = append(all, keyedDelta{share.key, part})
		}
	}
	return all
}

// keyedDelta is the change of the derived numbers in the record with a key.
type keyedDelta struct {
	key model.Keys
	derive.Delta
}

// updateBuckets adds the writes for the buckets of a changed product. If their number changes, the
// available units are spread evenly over the new number of buckets.
//
// Errors: commerce.InvalidInput, model.DerivationUnavailable, and the errors of readStock.
func (c *change) updateBuckets(ctx context.Context, before, after *commerce.Product) error {
	if after.StockBuckets > before.StockBuckets {
		// Servers that do not know buckets must have stopped, because they would sell only the first one.
		if err := c.Derivations.CheckReadable(model.StockBucketStock); err != nil {
			return err
		}
	}
	bucket := func(i, available int) model.Record {
		return model.StockBucketRecord(&c.KeyBuilder, commerce.StockBucket{SKU: after.SKU, Number: strconv.Itoa(i), Available: available, ProductVersion: after.Version})
	}
	shares := make([]stockShare, after.StockBuckets)
	sum, orders := 0, 0
	if before.StockBuckets != after.StockBuckets {
		stored, available, err := c.readStock(ctx, after.SKU, before.StockBuckets, math.MinInt)
		if err != nil {
			return err
		}
		if own := stored[0].record; !table.RecordHasNumber(own, model.AttrAvailable) || !table.RecordHasNumber(own, model.AttrOrderCount) {
			return commerce.NewInvalidInput(commerce.FieldPath("stockBuckets"), "cannot be changed, because numbers are missing in the record of product %s: run `ordergraph check -repair`", after.SKU)
		}
		copy(shares, stored)
		sum = available
		for _, removed := range stored[min(len(stored), after.StockBuckets):] {
			if removed.record != nil {
				orders += removed.number(model.AttrOrderCount)
				c.remove(removed.record, table.AttributesUnchanged(removed.record, model.AttrAvailable, model.AttrOrderCount, model.AttrStockRevision))
			}
		}
	}
	changes := changesTo(shares, sum)
	for i, share := range changes {
		when := table.Condition(nil)
		if share.available < 0 {
			when = table.CompareAttribute(model.AttrAvailable, ">=", model.Num(-share.available))
		}
		switch {
		case i == 0 && before.StockBuckets != after.StockBuckets:
			c.increments[share.key] = counterAdjustment{share.key, map[string]int{model.AttrAvailable: share.available, model.AttrOrderCount: orders, model.AttrStockRevision: 1}, when}
		case i == 0:
		case i >= before.StockBuckets:
			c.upsert(bucket(i, share.available), nil)
		default:
			record := bucket(i, 0)
			delete(record, model.AttrOrderCount)
			c.addToCounters(record, model.Record{model.AttrAvailable: model.Num(share.available), model.AttrStockRevision: model.Num(1)}, when)
		}
	}
	return nil
}
