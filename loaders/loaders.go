// Package loaders batches and deduplicates the reads of one GraphQL request. Each record is read
// once, and reads that can share a DynamoDB request do.
//
// A Loader belongs to one request and one access pattern. A query plan adds keys with Plan. They
// are read in one batch, concurrently with the other reads of the same Level. Load then returns the
// planned value. Keys that were not planned are batched until a caller waits for a value.
package loaders

import (
	"context"
	"sync"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// maxQueries is the maximum number of concurrent Queries of one batch.
const maxQueries = 16

// Loaders holds the loaders of one GraphQL request. It is safe for concurrent use.
type Loaders struct {
	// CountedOrders counts the orders of customers whose records have no count.
	CountedOrders Loader[commerce.CustomerID, int]

	// Item collections. Planned orders and products are taken from their planned item collections.
	wholeOrder   Loader[commerce.OrderID, *dynamo.WholeOrder]
	wholeProduct Loader[commerce.SKU, *dynamo.WholeProduct]

	mu sync.Mutex
	// patterns are the loaders of access patterns, by the pattern's number. Each is created at its
	// first use.
	patterns [model.LastPattern + 1]any

	// ctx ends the requests of all loaders. The context of a single caller does not end a shared read,
	// so a cancelled caller does not fail the others.
	ctx    context.Context
	store  *dynamo.Store
	viewer Viewer
	report func(panicked any)
}

// New returns the loaders of one GraphQL request. They return only records that the viewer may
// read. Their requests to the store end with ctx. report is called with the value of a panic in a
// callback of Plan.
func New(ctx context.Context, s *dynamo.Store, viewer Viewer, report func(panicked any)) *Loaders {
	l := &Loaders{ctx: ctx, store: s, viewer: viewer, report: report}
	// These functions capture no variables, so that requests do not allocate them.
	l.CountedOrders.single(l, func(l *Loaders, ctx context.Context, id commerce.CustomerID) (int, error) {
		if !l.viewer.ordersOf(id) {
			return 0, nil
		}
		return l.store.OrderCount(ctx, id)
	})
	l.wholeOrder.single(l, func(l *Loaders, ctx context.Context, id commerce.OrderID) (*dynamo.WholeOrder, error) {
		return l.store.WholeOrder(ctx, id)
	})
	l.wholeProduct.single(l, func(l *Loaders, ctx context.Context, sku commerce.SKU) (*dynamo.WholeProduct, error) {
		return l.store.WholeProduct(ctx, sku)
	})
	return l
}

// Records returns the loader of an access pattern that reads records by key.
func Records[K comparable, V any](l *Loaders, p *model.Lookup[K, V]) *Loader[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.patterns[p.Number()].(*Loader[K, V])
	if !ok {
		loader = &Loader[K, V]{all: l, many: lookup[K, V]{p}}
		special(l, loader)
		l.patterns[p.Number()] = loader
	}
	return loader
}

// Pages returns the loader of an access pattern that reads pages of lists.
func Pages[V any](l *Loaders, p *model.List[V]) *Loader[dynamo.ListRequest, dynamo.Slice[V]] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.patterns[p.Number()].(*Loader[dynamo.ListRequest, dynamo.Slice[V]])
	if !ok {
		loader = &Loader[dynamo.ListRequest, dynamo.Slice[V]]{all: l, one: list[V]{p}}
		l.patterns[p.Number()] = loader
	}
	return loader
}

// special replaces the readers of loaders that check access, use item collections or cannot batch.
func special(l *Loaders, loader any) {
	switch loader := loader.(type) {
	case *Loader[commerce.CustomerID, *commerce.Customer]:
		loader.many = batched[commerce.CustomerID, *commerce.Customer]((*Loaders).customersByID)
	case *Loader[commerce.OrderID, *commerce.Order]:
		loader.many = batched[commerce.OrderID, *commerce.Order]((*Loaders).ordersByID)
		loader.collections = collected[commerce.OrderID, *dynamo.WholeOrder, *commerce.Order]{&l.wholeOrder, func(w *dynamo.WholeOrder) *commerce.Order { return w.Order }}
	case *Loader[model.CustomerOrderKey, *commerce.Order]:
		loader.many = batched[model.CustomerOrderKey, *commerce.Order]((*Loaders).customerOrders)
	case *Loader[commerce.SKU, *commerce.Product]:
		loader.collections = collected[commerce.SKU, *dynamo.WholeProduct, *commerce.Product]{&l.wholeProduct, func(w *dynamo.WholeProduct) *commerce.Product { return w.Product }}
	case *Loader[string, commerce.CustomerID]:
		// An email address comes from the client. If it cannot be part of a key, the client gets the error.
		loader.many, loader.one = nil, single[string, commerce.CustomerID](func(l *Loaders, ctx context.Context, email string) (commerce.CustomerID, error) {
			return dynamo.ReadRecord(ctx, l.store, model.EmailClaim, email)
		})
	}
}
