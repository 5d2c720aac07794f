package check

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/counting"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/repair"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// stockRecount computes the quantities of some products that pending and confirmed orders reserve.
// It reads all open orders in one or more passes. Each pass serves all of the products. A
// stockRecount is safe for concurrent use.
//
// The index lists the open orders, and it lags behind the table. When an order is confirmed, it
// first leaves the list of pending orders and then enters the list of confirmed orders. So a pass
// can miss the order. Therefore the results of the passes are combined while the product's record
// is unchanged:
//
//   - A mutation that changes the reserved quantity of a product raises the product's stock
//     revision in the same transaction. While the product's record is unchanged, the same orders
//     reserve the same quantities of the product.
//   - Every order is read consistently from the table. So an order that was counted does reserve
//     the product, and the combined passes never count too much.
//   - The index contains every write that is older than Options.IndexLag. Each pass begins this
//     long after the previous pass, and after the read of the product. A pass misses an order only
//     if the order was confirmed during the pass or shortly before it. An order is confirmed only
//     once, so two passes together miss no order.
//
// A repair requires that the product's record is still unchanged.
type stockRecount struct {
	skus []commerce.SKU
	// sumStock reports whether the passes compute the reserved quantities. Otherwise a pass reads the
	// products and waits for the index, so that the caller can count orders in the index.
	sumStock bool

	// turn is a lock that allows only one pass at a time. It is a channel, so that a caller can stop
	// waiting when its context ends.
	turn    chan struct{}
	tallies map[commerce.SKU]*productTally
	// passes contains the sums after each pass.
	passes []map[commerce.SKU]stockSum
}

// productTally contains the quantities of one product that orders reserve. It combines the passes
// since the product's record last changed.
type productTally struct {
	product model.Record
	passes  int
	held    map[commerce.OrderID]int
}

// stockSum is the quantity of one product that orders reserve, as counted after a pass.
type stockSum struct {
	// product is the product's record. The sum is valid as long as this record is unchanged.
	product model.Record
	// passes is the number of passes that contributed to the sum.
	passes int
	held   int
	// orders is the number of orders that contain the product. It is nil if they were not counted.
	orders *int
}

// newStockRecount returns a recount of those products whose stock or orders must be counted.
func newStockRecount(targets []target, candidates map[target]candidate) *stockRecount {
	r := &stockRecount{turn: make(chan struct{}, 1), tallies: map[commerce.SKU]*productTally{}}
	for _, k := range targets {
		r.sumStock = r.sumStock || candidates[k].recountStock
		if candidates[k].recountStock || candidates[k].countOrders {
			r.skus = append(r.skus, commerce.SKU(k.id))
		}
	}
	return r
}

// afterPass returns the sum for a product after pass n, which starts at 0. It runs the pass unless
// another caller already has.
//
// Errors: the context's error, or an error that table.WrapError wraps.
func (r *stockRecount) afterPass(ctx context.Context, c *check, sku commerce.SKU, n int) (stockSum, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return stockSum{}, fmt.Errorf("recount products: %w", ctx.Err())
	}
	for len(r.passes) <= n {
		if err := r.runPass(ctx, c); err != nil {
			return stockSum{}, err
		}
	}
	return r.passes[n][sku], nil
}

// runPass reads all open orders once and adds the quantities that they reserve to the tallies. If a
// product's record has changed, its tally restarts at zero.
//
// Errors: the context's error, or an error that table.WrapError wraps.
func (r *stockRecount) runPass(ctx context.Context, c *check) error {
	products, err := counting.Products(ctx, c.client, r.skus)
	if err != nil {
		return err
	}
	for _, sku := range r.skus {
		if t := r.tallies[sku]; t == nil || !model.EqualRecords(t.product, products[sku]) {
			r.tallies[sku] = &productTally{product: products[sku], held: map[commerce.OrderID]int{}}
		}
	}
	if err := table.Sleep(ctx, c.opts.IndexLag); err != nil {
		return fmt.Errorf("wait for the index: %w", err)
	}
	var mu sync.Mutex
	if !r.sumStock {
		return r.finishPass()
	}
	err = c.readOpenOrders(ctx, func(id commerce.OrderID, held counting.Holding) {
		mu.Lock()
		defer mu.Unlock()
		for sku, quantity := range held {
			if t := r.tallies[sku]; t != nil {
				t.held[id] = quantity
			}
		}
	})
	if err != nil {
		return err
	}
	return r.finishPass()
}

// finishPass stores the sums after a pass.
func (r *stockRecount) finishPass() error {
	sums := make(map[commerce.SKU]stockSum, len(r.skus))
	for sku, t := range r.tallies {
		t.passes++
		s := stockSum{product: t.product, passes: t.passes}
		for _, quantity := range t.held {
			s.held += quantity
		}
		sums[sku] = s
	}
	r.passes = append(r.passes, sums)
	return nil
}

// readOpenOrders calls add with the quantities that each open order reserves. It may call add twice
// for an order whose status changes. The index lists the orders, which are then read consistently
// from the table. The orders in c.misleading are verified with their copies instead.
//
// Errors are wrapped by table.WrapError.
func (c *check) readOpenOrders(ctx context.Context, add func(commerce.OrderID, counting.Holding)) error {
	// An order moves from list to list in the order of its statuses. The lists are read in this order.
	for _, status := range commerce.Statuses() {
		if !status.ReservesStock() {
			continue
		}
		base, err := model.OrdersByStatus.PK.Build(status.String())
		if err != nil {
			return err
		}
		for shard := range c.table.Shards {
			partition := base + model.ShardSuffix(shard, c.table.Shards)
			err := c.client.Query(ctx, &model.OrdersByStatus.AccessPattern, partition, string(model.OrdersByStatus.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
				return c.readHoldings(ctx, out.Items, add)
			})
			if err != nil {
				return err
			}
		}
	}
	misleading := c.misleadingOrders()
	return table.Parallel(ctx, len(misleading), c.opts.Parallel, func(ctx context.Context, i int) error {
		v := misleading[i]
		if err := v.read(ctx, c); err != nil {
			return err
		}
		held, known := v.holding(v.verify(c))
		if !known {
			c.mu.Lock()
			c.markUncertainLocked(v)
			c.mu.Unlock()
		}
		add(v.id, held)
		return nil
	})
}

// misleadingOrders returns a verifier for each misleading order.
func (c *check) misleadingOrders() []*orderVerifier {
	c.mu.Lock()
	defer c.mu.Unlock()
	verifiers := make([]*orderVerifier, 0, len(c.misleading))
	for id, extra := range c.misleading {
		verifiers = append(verifiers, &orderVerifier{id: id, extraCustomers: extra})
	}
	return verifiers
}

// readHoldings reads the orders on a page of the index and calls add with the quantities that they
// reserve. It skips the orders in c.misleading and the records of other software.
//
// Errors are wrapped by table.WrapError.
func (c *check) readHoldings(ctx context.Context, page []map[string]types.AttributeValue, add func(commerce.OrderID, counting.Holding)) error {
	var ids []commerce.OrderID
	var keys []model.Keys
	c.mu.Lock()
	for _, rec := range page {
		k := model.KeyOf(rec)
		id := commerce.OrderID(model.KeyValue(model.EntityOrder.PK, k.PK))
		if _, misleading := c.misleading[id]; misleading {
			continue
		}
		if e := model.EntityOf(k); e != nil && e.Name == model.EntityOrder.Name {
			ids, keys = append(ids, id), append(keys, k)
		}
	}
	c.mu.Unlock()
	found, err := c.client.Get(ctx, repair.Consistent, keys...)
	if err != nil {
		return err
	}
	// Few orders lack an embedded item list. For each of these orders, one request reads the items.
	var unlisted []int
	for i, k := range keys {
		held, listed := counting.ListedHolding(c.table, found[k])
		if !listed {
			unlisted = append(unlisted, i)
			continue
		}
		add(ids[i], held)
	}
	return table.Parallel(ctx, len(unlisted), c.opts.Parallel, func(ctx context.Context, i int) error {
		index := unlisted[i]
		var items []model.Record
		err := c.client.Query(ctx, &model.OrderItems.AccessPattern, keys[index].PK, string(model.OrderItems.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
			for _, rec := range out.Items {
				items = append(items, rec)
			}
			return nil
		})
		if err != nil {
			return err
		}
		add(ids[index], counting.ItemsHolding(items))
		return nil
	})
}
