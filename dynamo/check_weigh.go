package dynamo

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
)

// weighing sums what pending and confirmed orders hold of some products. Summing reads all open orders, so each sum is
// made once for all of the products. It is safe for concurrent use.
type weighing struct {
	skus []commerce.SKU

	// turn is held by who weighs or looks; the others may have to wait for as long as the index lags, or until they are stopped.
	turn    chan struct{}
	weighed []weights
}

// weights are one weighing's sums.
type weights struct {
	// before are the products as they were read before that, by longer than the index lags behind. A product's sum is what the
	// orders hold only if the product has not changed since.
	before map[commerce.SKU]record
	held   map[commerce.SKU]int
}

// newWeighing is a weighing of those of the units that are to be weighed.
func newWeighing(ks []unitKey, why map[unitKey]suspicion) *weighing {
	w := &weighing{turn: make(chan struct{}, 1)}
	for _, k := range ks {
		if why[k].weigh {
			w.skus = append(w.skus, commerce.SKU(k.id))
		}
	}
	return w
}

// weights returns the n-th sums, from 0, and makes them where nobody has asked for them yet.
//
// Errors: those of failed, and the context's.
func (w *weighing) weights(ctx context.Context, c *check, n int) (weights, error) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return weights{}, fmt.Errorf("weigh products: %w", ctx.Err())
	}
	for len(w.weighed) <= n {
		before, err := c.products(ctx, w.skus)
		if err != nil {
			return weights{}, err
		}
		if err := waitFor(ctx, c.opts.IndexLag); err != nil {
			return weights{}, err
		}
		held, err := c.heldNow(ctx, w.skus)
		if err != nil {
			return weights{}, err
		}
		w.weighed = append(w.weighed, weights{before: before, held: held})
	}
	return w.weighed[n], nil
}

// products reads products' records.
func (c *check) products(ctx context.Context, skus []commerce.SKU) (map[commerce.SKU]record, error) {
	b := &keyBuilder{shards: c.s.shards}
	wanted := make([]keys, len(skus))
	for i, sku := range skus {
		wanted[i] = productKey(b, sku)
	}
	found, err := c.reads.get(ctx, consistent, wanted...)
	if err != nil {
		return nil, err
	}
	products := make(map[commerce.SKU]record, len(skus))
	for i, sku := range skus {
		products[sku] = found[wanted[i]]
	}
	return products, nil
}

// heldNow sums what the orders that reserve stock hold of products. The index tells which orders; they themselves are read
// consistently. What damaged orders should hold takes the place of what they say.
//
// Errors: those of failed.
func (c *check) heldNow(ctx context.Context, skus []commerce.SKU) (map[commerce.SKU]int, error) {
	c.mu.Lock()
	held := make(map[commerce.SKU]int, len(skus))
	for _, sku := range skus {
		held[sku] = c.damagedHold[sku]
	}
	c.mu.Unlock()
	counted := map[commerce.OrderID]bool{}
	// An order moves from list to list as statuses follow each other: in that order none is missed, though one may be met twice.
	for _, status := range commerce.Statuses() {
		if !status.Reserves() {
			continue
		}
		base, err := patternOrdersByStatus.PK.Key(status.String())
		if err != nil {
			return nil, err
		}
		for shard := range c.s.shards {
			partition := base + shardSuffix(shard, c.s.shards)
			err := c.reads.query(ctx, &patternOrdersByStatus, partition, string(patternOrdersByStatus.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
				return c.weigh(ctx, c.uncounted(out.Items, counted), held)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return held, nil
}

// uncounted are the orders among records of the index that are to be counted, and counts them. Damaged ones are not, nor what other
// software has there.
func (c *check) uncounted(page []map[string]types.AttributeValue, counted map[commerce.OrderID]bool) []commerce.OrderID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []commerce.OrderID
	for _, rec := range page {
		k := keyOf(rec)
		id := commerce.OrderID(keyValue(entityOrder.PK, k.PK))
		if e := entityOf(k); e == nil || e.Name != entityOrder.Name || c.damaged[id] || counted[id] {
			continue
		}
		counted[id] = true
		ids = append(ids, id)
	}
	return ids
}

// weigh adds to held what orders hold of the products that it has.
func (c *check) weigh(ctx context.Context, ids []commerce.OrderID, held map[commerce.SKU]int) error {
	b := &keyBuilder{shards: c.s.shards}
	wanted := make([]keys, len(ids))
	for i, id := range ids {
		wanted[i] = orderKey(b, id)
	}
	if b.err != nil {
		return b.err
	}
	found, err := c.reads.get(ctx, consistent, wanted...)
	if err != nil {
		return err
	}
	// Few orders do not carry their items: each of those takes a request.
	var apart []string
	add := func(sku commerce.SKU, quantity int) {
		if _, asked := held[sku]; asked {
			held[sku] += quantity
		}
	}
	for _, k := range wanted {
		order := found[k]
		status, err := commerce.ParseStatus(textOf(order, "status"))
		if err != nil || !status.Reserves() {
			continue
		}
		at := reader{record: order}
		lines, err := decodeLines(order["items"], at.currency(c.s.currency))
		if err != nil {
			apart = append(apart, k.PK)
			continue
		}
		for _, line := range lines {
			add(line.SKU, line.Quantity)
		}
	}
	var mu sync.Mutex
	return Parallel(ctx, len(apart), c.opts.Parallel, func(ctx context.Context, i int) error {
		return c.reads.query(ctx, &patternOrderItems, apart[i], string(patternOrderItems.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
			mu.Lock()
			defer mu.Unlock()
			for _, rec := range out.Items {
				at := reader{record: rec}
				add(commerce.SKU(keyValue(entityOrderItem.SK, at.text(attrSK))), at.number("qty"))
			}
			return nil
		})
	})
}
