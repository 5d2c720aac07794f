// Package loaders reads records for one GraphQL request so that none is read twice and those that
// can share a DynamoDB request do.
//
// A Loader belongs to one request and one access pattern. A plan gives it keys with Plan: they are
// read in one batch, without waiting, side by side with the other reads of the same Level. Load
// returns what was planned, which is no more than a look-up. Loads that no plan foresaw are batched
// until a caller waits for a value.
package loaders

import (
	"context"
	"sync"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// maxQueries is how many Queries one batch makes at once.
const maxQueries = 16

// Loaders are the loaders of one GraphQL request. They are safe for concurrent use.
type Loaders struct {
	// CountedOrders counts the orders of customers whose records keep no count.
	CountedOrders Loader[commerce.CustomerID, int]

	// Item collections. Orders and products that were planned whole are taken from them.
	wholeOrder   Loader[commerce.OrderID, *dynamo.WholeOrder]
	wholeProduct Loader[commerce.SKU, *dynamo.WholeProduct]

	mu sync.Mutex
	// patterns are the loaders of access patterns, by the pattern's number. Each is made when it is
	// first used.
	patterns [model.LastPattern + 1]any

	// ctx ends the loaders' requests. The context of the first caller does not: a caller that goes
	// away does not fail the others.
	ctx    context.Context
	store  *dynamo.Store
	viewer Viewer
	report func(panicked any)
}

// New returns the loaders of one GraphQL request, which give the viewer no more than they may see.
// Their requests to the store end with ctx. report is called with what a plan's callback panicked
// with.
func New(ctx context.Context, s *dynamo.Store, viewer Viewer, report func(panicked any)) *Loaders {
	l := &Loaders{ctx: ctx, store: s, viewer: viewer, report: report}
	// A function that held a variable would be made for every request; these hold none.
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

// Records returns the loader of the records that an access pattern reads by their keys.
func Records[K comparable, V any](l *Loaders, p *model.Lookup[K, V]) *Loader[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	made, ok := l.patterns[p.Number()].(*Loader[K, V])
	if !ok {
		made = &Loader[K, V]{all: l, many: lookup[K, V]{p}}
		special(l, made)
		l.patterns[p.Number()] = made
	}
	return made
}

// Pages returns the loader of the pages that an access pattern reads of lists.
func Pages[V any](l *Loaders, p *model.List[V]) *Loader[dynamo.ListRequest, dynamo.Slice[V]] {
	l.mu.Lock()
	defer l.mu.Unlock()
	made, ok := l.patterns[p.Number()].(*Loader[dynamo.ListRequest, dynamo.Slice[V]])
	if !ok {
		made = &Loader[dynamo.ListRequest, dynamo.Slice[V]]{all: l, one: list[V]{p}}
		l.patterns[p.Number()] = made
	}
	return made
}

// special sets what the loaders of some records do besides looking them up.
func special(l *Loaders, made any) {
	switch made := made.(type) {
	case *Loader[commerce.CustomerID, *commerce.Customer]:
		made.many = batched[commerce.CustomerID, *commerce.Customer]((*Loaders).customersByID)
	case *Loader[commerce.OrderID, *commerce.Order]:
		made.many = batched[commerce.OrderID, *commerce.Order]((*Loaders).ordersByID)
		made.collections = collected[commerce.OrderID, *dynamo.WholeOrder, *commerce.Order]{&l.wholeOrder, func(w *dynamo.WholeOrder) *commerce.Order { return w.Order }}
	case *Loader[model.CustomerOrderKey, *commerce.Order]:
		made.many = batched[model.CustomerOrderKey, *commerce.Order]((*Loaders).customerOrders)
	case *Loader[commerce.SKU, *commerce.Product]:
		made.collections = collected[commerce.SKU, *dynamo.WholeProduct, *commerce.Product]{&l.wholeProduct, func(w *dynamo.WholeProduct) *commerce.Product { return w.Product }}
	case *Loader[string, commerce.CustomerID]:
		// An e-mail address comes from the client: one that can be in no key is the client's error.
		made.many, made.one = nil, single[string, commerce.CustomerID](func(l *Loaders, ctx context.Context, email string) (commerce.CustomerID, error) {
			return dynamo.ReadRecord(ctx, l.store, model.EmailClaim, email)
		})
	}
}
