package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// stock is the stock of a product or of a stock bucket in the table.
type stock struct {
	total, available int
	// bucketed means that the product has several buckets.
	bucketed bool
	// levels are the inventory levels, and held the items of open orders, both as text.
	levels, held string
}

// stocks returns the stock of all products and of their further stock buckets, their stock revisions
// and their versions. Levels and held items of products with several buckets are left out, because
// an order changes only the buckets that its units come from.
func (s *fixture) stocks(t testing.TB) (stocks map[string]stock, revisions, versions map[string]int) {
	t.Helper()
	audited, err := storetest.Audit(t.Context(), s.db, s.table, 1)
	if err != nil {
		t.Fatal(err)
	}
	stocks, revisions, versions = map[string]stock{}, map[string]int{}, map[string]int{}
	var ks []storetest.Key
	for k := range audited.Records {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, func(a, b storetest.Key) int { return strings.Compare(a.PK+" "+a.SK, b.PK+" "+b.SK) })
	for _, k := range ks {
		r := audited.Records[k]
		sku, ofProduct := strings.CutPrefix(k.PK, "PRODUCT#")
		bucket, ofBucket := strings.CutPrefix(k.PK, "STOCK#")
		item, isItem := strings.CutPrefix(k.SK, "ITEM#")
		switch {
		case ofProduct && k.SK == "#METADATA":
			product := stocks[sku]
			product.total, product.available = r.Int("totalInventory"), r.Int("available")
			stocks[sku], versions[sku] = product, r.Int("version")
			if revisions[sku] = 0; r.Has("stockRevision") {
				revisions[sku] = r.Int("stockRevision")
			}
		case ofBucket:
			stocks[bucket] = stock{available: r.Int("available"), bucketed: true}
			versions[bucket] = r.Int("version")
			if revisions[bucket] = 0; r.Has("stockRevision") {
				revisions[bucket] = r.Int("stockRevision")
			}
		case ofProduct && strings.HasPrefix(k.SK, "WAREHOUSE#") && r.Int("quantity") != 0: // a new level with quantity 0 does not change the stock
			product := stocks[sku]
			product.levels += k.SK + ": " + storetest.FormatValue(r["quantity"]) + " "
			stocks[sku] = product
		case isItem && slices.Contains([]string{"pending", "confirmed"}, audited.Records[storetest.Key{PK: k.PK, SK: "#METADATA"}].Text("status")):
			product := stocks[item]
			product.held += k.PK + ": " + storetest.FormatValue(r["qty"]) + " "
			stocks[item] = product
		}
	}
	for name := range stocks {
		if sku, _, isBucket := strings.Cut(name, "#"); isBucket {
			product := stocks[sku]
			product.levels, product.held, product.bucketed = "", "", true
			stocks[sku] = product
		}
	}
	return stocks, revisions, versions
}

// A mutation increases the stock revision by one if it changes a product's counters, its levels, or
// the items of open orders. Other mutations do not, unless the product has several stock buckets. A
// change of stock does not increase the version. By default a third of the mutations is tested.
func TestStockRevisions(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		changing := map[string]bool{}
		for i, c := range costs() {
			if i%longtest.Size(6, 1) > 0 || !storetest.RunsCase(t, 4, i) {
				continue
			}
			s := newFixture(t, db, longDataset(t))
			s.listLowStock(t, db, c.lowStock)
			input := c.input(s, t)
			before, revisions, versions := s.stocks(t)
			s.try(t, c.mutation, input, `__typename`)
			after, now, versionsNow := s.stocks(t)
			for sku, current := range after {
				want, most := revisions[sku], revisions[sku]
				if was, existed := before[sku]; existed {
					if was != current {
						changing[c.mutation] = true
						want++
					}
					if most = want; current.bucketed || was.bucketed {
						most = revisions[sku] + 1
					}
				}
				if now[sku] < want || now[sku] > most {
					t.Errorf("%s %s changed %s with revision %d to\n%+v with revision %d, from\n%+v", c.mutation, c.variant, sku, revisions[sku], current, now[sku], before[sku])
				}
				if was, existed := versions[sku]; existed && c.mutation != "updateProduct" && versionsNow[sku] != was {
					t.Errorf("%s %s changed the version of %s from %d to %d", c.mutation, c.variant, sku, was, versionsNow[sku])
				}
			}
		}
		want := map[string]bool{"placeOrder": true, "shipOrder": true, "cancelOrder": true, "setOrderItem": true, "removeOrderItem": true, "setInventoryLevel": true, "adjustInventory": true, "transferInventory": true, "receiveReturn": true, "createFulfillment": true, "cancelFulfillment": true, "cancelOrderItems": true, "updateProduct": true}
		for _, c := range costs() {
			if !longtest.Enabled() || !storetest.IsEmbedded(t) {
				continue // some mutations were left out
			}
			if changing[c.mutation] != want[c.mutation] {
				t.Errorf("%s changes stock: %v, want %v", c.mutation, changing[c.mutation], want[c.mutation])
			}
		}
	})
}
