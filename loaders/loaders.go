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

// maxConcurrentQueries is the maximum number of concurrent Queries of one batch.
const maxConcurrentQueries = 16

// Loaders holds the loaders of one GraphQL request. It is safe for concurrent use.
type Loaders struct {
	// OrderCountQueries counts the orders of customers whose records have no count.
	OrderCountQueries Loader[commerce.CustomerID, int]

	// Item collections. Planned orders and products are taken from their planned item collections.
	orderCollections   Loader[commerce.OrderID, *dynamo.OrderItemCollection]
	productCollections Loader[commerce.SKU, *dynamo.ProductItemCollection]

	mu sync.Mutex
	// patterns are the loaders of access patterns, by the pattern's number. Each is created at its
	// first use.
	patterns [model.LastPattern + 1]any

	// ctx ends the requests of all loaders. The context of a single caller does not end a shared read,
	// so a cancelled caller does not fail the others.
	ctx         context.Context
	store       *dynamo.Store
	viewer      Viewer
	reportPanic func(panicked any)
}

// New returns the loaders of one GraphQL request. They return only records that the viewer may
// read. Their requests to the store end with ctx. report is called with the value of a panic in a
// callback of Plan.
func New(ctx context.Context, s *dynamo.Store, viewer Viewer, report func(panicked any)) *Loaders {
	l := &Loaders{ctx: ctx, store: s, viewer: viewer, reportPanic: report}
	// These functions capture no variables, so that requests do not allocate them.
	l.OrderCountQueries.initSingle(l, func(l *Loaders, ctx context.Context, id commerce.CustomerID) (int, error) {
		if !l.viewer.canReadOrdersOf(id) {
			return 0, nil
		}
		return l.store.OrderCount(ctx, id)
	})
	l.orderCollections.initSingle(l, func(l *Loaders, ctx context.Context, id commerce.OrderID) (*dynamo.OrderItemCollection, error) {
		return l.store.OrderItemCollection(ctx, id)
	})
	l.productCollections.initSingle(l, func(l *Loaders, ctx context.Context, sku commerce.SKU) (*dynamo.ProductItemCollection, error) {
		return l.store.ProductItemCollection(ctx, sku)
	})
	return l
}

// Records returns the loader of an access pattern that reads records by key.
func Records[K comparable, V any](l *Loaders, p *model.Lookup[K, V]) *Loader[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.patterns[p.Number()].(*Loader[K, V])
	if !ok {
		loader = &Loader[K, V]{loaders: l, batchReader: lookupReader[K, V]{p}}
		overrideReaders(l, loader)
		l.patterns[p.Number()] = loader
	}
	return loader
}

// Pages returns the loader of an access pattern that reads pages of lists.
func Pages[V any](l *Loaders, p *model.List[V]) *Loader[dynamo.ListRequest, dynamo.Page[V]] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.patterns[p.Number()].(*Loader[dynamo.ListRequest, dynamo.Page[V]])
	if !ok {
		loader = &Loader[dynamo.ListRequest, dynamo.Page[V]]{loaders: l, keyReader: listReader[V]{p}}
		l.patterns[p.Number()] = loader
	}
	return loader
}

// overrideReaders replaces the readers of loaders that check access, use item collections or cannot
// batch.
func overrideReaders(l *Loaders, loader any) {
	switch loader := loader.(type) {
	case *Loader[commerce.CustomerID, *commerce.Customer]:
		loader.batchReader = batchFunc[commerce.CustomerID, *commerce.Customer]((*Loaders).customersByID)
	case *Loader[commerce.OrderID, *commerce.Order]:
		loader.batchReader = batchFunc[commerce.OrderID, *commerce.Order]((*Loaders).ordersByID)
		loader.collections = collectionSource[commerce.OrderID, *dynamo.OrderItemCollection, *commerce.Order]{&l.orderCollections, func(w *dynamo.OrderItemCollection) *commerce.Order { return w.Order }}
	case *Loader[model.CustomerOrderKey, *commerce.Order]:
		loader.batchReader = batchFunc[model.CustomerOrderKey, *commerce.Order]((*Loaders).customerOrders)
	case *Loader[commerce.SKU, *commerce.Product]:
		loader.collections = collectionSource[commerce.SKU, *dynamo.ProductItemCollection, *commerce.Product]{&l.productCollections, func(w *dynamo.ProductItemCollection) *commerce.Product { return w.Product }}
	case *Loader[string, commerce.CustomerID]:
		// An email address comes from the client. If it cannot be part of a key, the client gets the
		// error.
		loader.batchReader, loader.keyReader = nil, singleFunc[string, commerce.CustomerID](func(l *Loaders, ctx context.Context, email string) (commerce.CustomerID, error) {
			return dynamo.ReadRecord(ctx, l.store, model.EmailClaim, email)
		})
	}
}
