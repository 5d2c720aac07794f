// Package loaders reads records for one GraphQL request. It reads each record only once, and reads
// several records with one DynamoDB request where possible.
//
// A Loader belongs to one GraphQL request and one access pattern, which is one way to read the
// table. A query plan calls Loader.Plan to add the keys that the request will need. These keys are
// read in one batch, concurrently with the other reads of the same Level. Loader.Load then returns
// the values. If a query plan did not add a key, Load adds it to a batch, which is read when a
// caller waits for one of its values.
package loaders

import (
	"context"
	"sync"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// maxConcurrentQueries is the maximum number of Queries of one batch that run concurrently.
const maxConcurrentQueries = 16

// Loaders holds the loaders of one GraphQL request. It is safe for concurrent use.
type Loaders struct {
	// OrderCountQueries counts the orders of customers that have no stored count.
	OrderCountQueries Loader[commerce.CustomerID, int]
	// StockBuckets reads the stock of products outside their own records.
	StockBuckets Loader[dynamo.StockBucketsOf, commerce.StockBucket]

	// These loaders read the item collections of orders and products. If a query plan reads an item
	// collection, the order or product in it needs no read of its own.
	orderCollections   Loader[commerce.OrderID, *dynamo.OrderPartition]
	productCollections Loader[commerce.SKU, *dynamo.ProductPartition]

	mu sync.Mutex
	// patterns contains the loaders of the access patterns. The index is the number of the access
	// pattern, such as 6 for AP6. Each loader is created when it is first used.
	patterns [model.LastPattern + 1]any
	// custom contains the loaders of access patterns of custom fields. Their numbers are higher.
	custom map[int]any

	// ctx is the context of all requests to the store. The context of a caller is not used, because
	// other callers may wait for the same read.
	ctx    context.Context
	store  *dynamo.Store
	viewer access.Viewer
	// reportPanic is called with the panic value if a callback of Plan panics.
	reportPanic func(panicked any)
	// observeBatch is called for each batch, with the ID of the access pattern and the number of keys.
	// It may be nil.
	observeBatch func(pattern string, keys int)
}

// New returns the loaders of one GraphQL request. The loaders return only records that the viewer
// may read. Their requests to the store end when ctx ends.
func New(ctx context.Context, s *dynamo.Store, viewer access.Viewer, report func(panicked any), observeBatch func(pattern string, keys int)) *Loaders {
	l := &Loaders{ctx: ctx, store: s, viewer: viewer, reportPanic: report, observeBatch: observeBatch}
	// These functions capture no variables, so that creating the loaders of a request allocates no
	// memory for them.
	l.OrderCountQueries.initSingle(l, model.CustomerOrders.ID, func(l *Loaders, ctx context.Context, id commerce.CustomerID) (int, error) {
		if !l.viewer.Records(model.CustomerOrders.Owner).Includes(id) {
			return 0, nil
		}
		return l.store.CountCustomerOrders(ctx, id)
	})
	l.StockBuckets.loaders, l.StockBuckets.pattern = l, model.StockBuckets.ID
	l.StockBuckets.batchReader = batchFunc[dynamo.StockBucketsOf, commerce.StockBucket](func(l *Loaders, ctx context.Context, products []dynamo.StockBucketsOf) ([]dynamo.LookupResult[commerce.StockBucket], error) {
		return l.store.SumStockBuckets(ctx, products)
	})
	l.orderCollections.initSingle(l, model.OrderCollection.ID, func(l *Loaders, ctx context.Context, id commerce.OrderID) (*dynamo.OrderPartition, error) {
		return l.store.ReadOrderPartition(ctx, id)
	})
	l.productCollections.initSingle(l, model.ProductInventory.ID, func(l *Loaders, ctx context.Context, sku commerce.SKU) (*dynamo.ProductPartition, error) {
		return l.store.ReadProductPartition(ctx, sku)
	})
	return l
}

// RecordLoader returns the loader of an access pattern that looks up single records by key.
func RecordLoader[K comparable, V any](l *Loaders, p *model.LookupPattern[K, V]) *Loader[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.of(p.Number()).(*Loader[K, V])
	if !ok {
		loader = &Loader[K, V]{loaders: l, pattern: p.ID, batchReader: lookupReader[K, V]{p}}
		overrideReaders(l, loader)
		l.set(p.Number(), loader)
	}
	return loader
}

// PageLoader returns the loader of an access pattern that reads pages of lists.
func PageLoader[V any](l *Loaders, p *model.ListPattern[V]) *Loader[dynamo.ListRequest, dynamo.Page[V]] {
	l.mu.Lock()
	defer l.mu.Unlock()
	loader, ok := l.of(p.Number()).(*Loader[dynamo.ListRequest, dynamo.Page[V]])
	if !ok {
		loader = &Loader[dynamo.ListRequest, dynamo.Page[V]]{loaders: l, pattern: p.ID, keyReader: listReader[V]{p}}
		addCollections(l, p.ID, loader)
		l.set(p.Number(), loader)
	}
	return loader
}

// of returns the loader of the access pattern with a number, or nil. The caller must hold l.mu.
func (l *Loaders) of(number int) any {
	if number < len(l.patterns) {
		return l.patterns[number]
	}
	return l.custom[number]
}

func (l *Loaders) set(number int, loader any) {
	switch {
	case number < len(l.patterns):
		l.patterns[number] = loader
	case l.custom == nil:
		l.custom = map[int]any{number: loader}
	default:
		l.custom[number] = loader
	}
}

// overrideReaders replaces the reader of a loader if the loader must check access, or if its keys
// cannot share a request. It also connects loaders with item collections.
func overrideReaders(l *Loaders, loader any) {
	switch loader := loader.(type) {
	case *Loader[commerce.OrderID, *commerce.Order]:
		loader.batchReader = batchFunc[commerce.OrderID, *commerce.Order]((*Loaders).readOrdersByID)
		if !l.OnlyOwnOrders() {
			loader.collections = recordOf(&l.orderCollections, func(w *dynamo.OrderPartition) *commerce.Order { return w.Order })
		}
	case *Loader[commerce.SKU, *commerce.Product]:
		loader.collections = recordOf(&l.productCollections, func(w *dynamo.ProductPartition) *commerce.Product { return w.Product })
	case *Loader[string, commerce.CustomerID]:
		// The email address comes from a client, so it can be invalid in a DynamoDB key. For an invalid
		// address, ReadRecord returns an InvalidError. ReadRecords would report corrupt data instead.
		loader.batchReader, loader.keyReader = nil, keyReaderFunc[string, commerce.CustomerID](func(l *Loaders, ctx context.Context, email string) (commerce.CustomerID, error) {
			return dynamo.ReadRecord(ctx, l.store, model.EmailClaim, email)
		})
	}
}

// addCollections connects the loaders of lists with the item collections that contain these lists.
func addCollections(l *Loaders, pattern string, loader any) {
	switch pattern {
	case model.OrderItems.ID:
		loader.(*Loader[dynamo.ListRequest, dynamo.Page[*commerce.LineItem]]).collections = listOf(&l.orderCollections,
			func(w *dynamo.OrderPartition) ([]*commerce.LineItem, bool) { return w.Items, w.Complete }, lineItemPosition)
	case model.Timeline.ID:
		loader.(*Loader[dynamo.ListRequest, dynamo.Page[*commerce.Event]]).collections = listOf(&l.orderCollections,
			func(w *dynamo.OrderPartition) ([]*commerce.Event, bool) { return w.Events, w.Complete }, eventPosition)
	case model.ProductInventory.ID:
		loader.(*Loader[dynamo.ListRequest, dynamo.Page[*commerce.InventoryLevel]]).collections = listOf(&l.productCollections,
			func(w *dynamo.ProductPartition) ([]*commerce.InventoryLevel, bool) { return w.Levels, w.Complete }, inventoryPosition)
	}
}

// CheckReadable returns a model.DerivationUnavailable if a derived number in the records of an entity
// is not readable.
func (l *Loaders) CheckReadable(e *model.Entity, attribute string) error {
	return l.store.CheckReadable(e, attribute)
}
