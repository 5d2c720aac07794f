package check

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// stockRecount computes the stock that pending and confirmed orders reserve. It is safe for
// concurrent use.
//
// A pass finds the orders through the index. The index lags behind the table, so a pass can miss an
// order that is being confirmed. Therefore, stockRecount combines two passes. If the product's
// record does not change during the two passes, the combined result is exact, for these reasons:
//
//   - Every mutation that changes a product's reserved quantity also changes the product's record.
//   - A pass never counts too much, because it reads each order with strong consistency.
//   - Each pass first waits Options.IndexLag, so the index contains all earlier writes. An order is
//     confirmed only once, so at most one pass misses the order.
type stockRecount struct {
	skus []commerce.SKU
	// sumStock reports whether a pass computes reserved quantities. If sumStock is false, a pass only
	// reads the products and waits until the index is up to date. The caller of the recount then
	// counts the orders that contain a product.
	sumStock bool

	// turn is a lock, because only one pass may run at a time. It is a channel instead of a mutex, so
	// that a caller can stop waiting when its context ends.
	turn    chan struct{}
	tallies map[commerce.SKU]*productTally
	// passes contains the results of each pass.
	passes []map[commerce.SKU]stockSum
}

// productTally contains, for each order, the reserved quantity of one product. It combines the
// results of all passes since the product's record last changed.
type productTally struct {
	product model.Record
	passes  int
	held    map[commerce.OrderID]int
}

// stockSum is the total quantity of one product that orders reserve, as computed by a pass.
type stockSum struct {
	// product is the product's record. The sum is valid as long as this record is unchanged.
	product model.Record
	// passes is the number of passes whose results are combined in the sum.
	passes int
	held   int
	// orders is the number of orders that contain the product, or nil if these orders were not
	// counted.
	orders *int
}

// newStockRecount returns a stockRecount for the products in targets whose stock or orders must be
// counted.
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

// sumAfterPass returns the result of pass n for a product. The first pass has the number 0. If pass
// n has not run yet, sumAfterPass runs it.
func (r *stockRecount) sumAfterPass(ctx context.Context, c *check, sku commerce.SKU, n int) (stockSum, error) {
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

// runPass adds the reserved quantities of all pending and confirmed orders to the tallies. If a
// product's record has changed since the last pass, the product's tally restarts at zero.
func (r *stockRecount) runPass(ctx context.Context, c *check) error {
	products, err := readProducts(ctx, c.client, r.skus)
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
	err = c.readOpenOrders(ctx, func(id commerce.OrderID, held reservation) {
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

// readOpenOrders calls add with the reserved quantities of each pending or confirmed order. If the
// order's status changes meanwhile, readOpenOrders may call add twice.
func (c *check) readOpenOrders(ctx context.Context, add func(commerce.OrderID, reservation)) error {
	// Read the list of pending orders before the list of confirmed orders. Otherwise, an order that is
	// confirmed between these reads would be missed.
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
			err := c.client.query(ctx, &model.OrdersByStatus.AccessPattern, partition, string(model.OrdersByStatus.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
				return c.readReservations(ctx, out.Items, add)
			})
			if err != nil {
				return err
			}
		}
	}
	// For these orders, the index or the order's own record is wrong, so use an orderVerifier.
	misleading := c.misleadingOrders()
	return table.Parallel(ctx, len(misleading), c.opts.Parallel, func(ctx context.Context, i int) error {
		v := misleading[i]
		if err := v.read(ctx, c); err != nil {
			return err
		}
		held, known := v.reservation(v.verify(c))
		if !known {
			c.mu.Lock()
			c.markUncertainStockLocked(v)
			c.mu.Unlock()
		}
		add(v.id, held)
		return nil
	})
}

func (c *check) misleadingOrders() []*orderVerifier {
	c.mu.Lock()
	defer c.mu.Unlock()
	verifiers := make([]*orderVerifier, 0, len(c.misleading))
	for id, extra := range c.misleading {
		verifiers = append(verifiers, &orderVerifier{id: id, extraCustomers: extra})
	}
	return verifiers
}

// readReservations processes one page of the index. It reads the page's orders from the table, and
// calls add with each order's reserved quantities. It skips the orders in c.misleading, because
// readOpenOrders processes them separately.
func (c *check) readReservations(ctx context.Context, page []map[string]types.AttributeValue, add func(commerce.OrderID, reservation)) error {
	var ids []commerce.OrderID
	var keys []model.Keys
	c.mu.Lock()
	for _, rec := range page {
		k := model.KeyOf(rec)
		id := commerce.OrderID(model.FirstPlaceholderValue(model.EntityOrder.PK, k.PK))
		if _, misleading := c.misleading[id]; misleading {
			continue
		}
		if e := model.EntityOf(k); e != nil && e.Name == model.EntityOrder.Name {
			ids, keys = append(ids, id), append(keys, k)
		}
	}
	c.mu.Unlock()
	found, err := c.client.get(ctx, consistent, keys...)
	if err != nil {
		return err
	}
	// If an order's record has no embedded item list, read the item records with a separate request.
	// Few orders lack this list.
	var unlisted []int
	for i, k := range keys {
		held, listed := embeddedItemsReservation(c.table, found[k])
		if !listed {
			unlisted = append(unlisted, i)
			continue
		}
		add(ids[i], held)
	}
	return table.Parallel(ctx, len(unlisted), c.opts.Parallel, func(ctx context.Context, i int) error {
		index := unlisted[i]
		var items []model.Record
		err := c.client.query(ctx, &model.OrderItems.AccessPattern, keys[index].PK, string(model.OrderItems.SK), types.SelectAllAttributes, func(out *dynamodb.QueryOutput) error {
			for _, rec := range out.Items {
				items = append(items, rec)
			}
			return nil
		})
		if err != nil {
			return err
		}
		add(ids[index], itemRecordsReservation(items))
		return nil
	})
}
