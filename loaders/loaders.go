// Package loaders batches and deduplicates the reads of one GraphQL request. Each record is read
// once. Reads that can share a DynamoDB request are sent together.
//
// A Loader belongs to one GraphQL request and one access pattern. A query plan adds keys with
// Loader.Plan. These keys are read in one batch, concurrently with the other reads of the same
// Level. Loader.Load then returns the planned value. Keys that were not planned are batched until a
// caller waits for a value.
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

	// The loaders of item collections. If the item collection of an order or a product was planned,
	// the loader of orders or products uses it.
	orderCollections   Loader[commerce.OrderID, *dynamo.OrderPartition]
	productCollections Loader[commerce.SKU, *dynamo.ProductPartition]

	mu sync.Mutex
	// patterns contains the other loaders. The index is the number of the access pattern. A loader is
	// created when it is first used.
	patterns [model.LastPattern + 1]any

	// ctx is the context of all requests to the store. Several callers can wait for the same read, so
	// a caller that is cancelled must not end the read.
	ctx         context.Context
	store       *dynamo.Store
	viewer      Viewer
	reportPanic func(panicked any)
	// observeBatch is called for each batch. pattern is the ID of the access pattern, and keys is the
	// number of keys in the batch. observeBatch may be nil.
	observeBatch func(pattern string, keys int)
}

// New returns the loaders of one GraphQL request. The loaders return only records that the viewer
// may read. Their requests to the store end when ctx ends. If a callback of Plan panics, report is
// called with the panic value. If observeBatch is not nil, it is called with the ID of the access
// pattern and the number of keys of each batch.
func New(ctx context.Context, s *dynamo.Store, viewer Viewer, report func(panicked any), observeBatch func(pattern string, keys int)) *Loaders {
	l := &Loaders{ctx: ctx, store: s, viewer: viewer, reportPanic: report, observeBatch: observeBatch}
	// These functions capture no variables, so no memory is allocated for them in each request.
	l.OrderCountQueries.initSingle(l, model.CustomerOrders.ID, func(l *Loaders, ctx context.Context, id commerce.CustomerID) (int, error) {
		if !l.viewer.canReadOrdersOf(id) {
			return 0, nil
		}
		return l.store.CountCustomerOrders(ctx, id)
	})
	l.orderCollections.initSingle(l, model.OrderCollection.ID, func(l *Loaders, ctx context.Context, id commerce.OrderID) (*dynamo.OrderPartition, error) {
		return l.store.ReadOrderPartition(ctx, id)
	})
	l.productCollections.initSingle(l, model.ProductInventory.ID, func(l *Loaders, ctx context.Context, sku commerce.SKU) (*dynamo.ProductPartition, error) {
		return l.store.ReadProductPartition(ctx, sku)
	})
	return l
}

// RecordLoader returns the loader of an access pattern that looks up records by key.
func RecordLoader[K comparable, V any](l *Loaders, p *model.LookupPattern[K, V]) *Loader[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.patterns[p.Number()].(*Loader[K, V])
	if !ok {
		loader = &Loader[K, V]{loaders: l, pattern: p.ID, batchReader: lookupReader[K, V]{p}}
		overrideReaders(l, loader)
		l.patterns[p.Number()] = loader
	}
	return loader
}

// PageLoader returns the loader of an access pattern that reads pages of lists.
func PageLoader[V any](l *Loaders, p *model.ListPattern[V]) *Loader[dynamo.ListRequest, dynamo.Page[V]] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.patterns[p.Number()].(*Loader[dynamo.ListRequest, dynamo.Page[V]])
	if !ok {
		loader = &Loader[dynamo.ListRequest, dynamo.Page[V]]{loaders: l, pattern: p.ID, keyReader: listReader[V]{p}}
		l.patterns[p.Number()] = loader
	}
	return loader
}

// overrideReaders replaces the readers of some loaders: loaders that check access, use item
// collections or cannot batch keys.
func overrideReaders(l *Loaders, loader any) {
	switch loader := loader.(type) {
	case *Loader[commerce.CustomerID, *commerce.Customer]:
		loader.batchReader = batchFunc[commerce.CustomerID, *commerce.Customer]((*Loaders).readCustomersByID)
	case *Loader[commerce.OrderID, *commerce.Order]:
		loader.batchReader = batchFunc[commerce.OrderID, *commerce.Order]((*Loaders).readOrdersByID)
		loader.collections = collectionRecordSource[commerce.OrderID, *dynamo.OrderPartition, *commerce.Order]{&l.orderCollections, func(w *dynamo.OrderPartition) *commerce.Order { return w.Order }}
	case *Loader[model.CustomerOrderKey, *commerce.Order]:
		loader.batchReader = batchFunc[model.CustomerOrderKey, *commerce.Order]((*Loaders).readCustomerOrders)
	case *Loader[commerce.SKU, *commerce.Product]:
		loader.collections = collectionRecordSource[commerce.SKU, *dynamo.ProductPartition, *commerce.Product]{&l.productCollections, func(w *dynamo.ProductPartition) *commerce.Product { return w.Product }}
	case *Loader[string, commerce.CustomerID]:
		// The client chooses the email address, so the address may be invalid in a key. For an invalid
		// address, ReadRecord returns an InvalidError, which the client sees. ReadRecords would report
		// that the table contains a corrupt reference.
		loader.batchReader, loader.keyReader = nil, keyReaderFunc[string, commerce.CustomerID](func(l *Loaders, ctx context.Context, email string) (commerce.CustomerID, error) {
			return dynamo.ReadRecord(ctx, l.store, model.EmailClaim, email)
		})
	}
}
