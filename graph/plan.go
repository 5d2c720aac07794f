package graph

import (
	"context"
	"iter"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/loaders"
)

// plan reads the records of an operation before the resolvers run (lookahead). It reads level by
// level. A level is a set of reads that run concurrently, because all their keys are known. Lookups
// with the same access pattern share a request, at any depth of the query. The records of a level
// determine the keys of the next level. The plan ends before the execution starts.
//
// A plan saves requests and time, but never changes a response. If a field is not planned, its
// resolver reads the record. If the arguments are invalid, the resolver returns the error.
type plan struct {
	*planState
	// level collects the reads of the current level.
	level *loaders.Level
}

// planState is the state that all levels of a plan share.
type planState struct {
	resolver *Resolver
	loaders  *loaders.Loaders
	// arguments are the arguments that contain variables.
	arguments []any
}

// argumentsOf returns the arguments of a field as the struct that its resolver receives. For
// invalid arguments, it returns the zero value.
func argumentsOf[A any](p plan, f *operation.Field) *A {
	if a, ok := p.argumentsOf(f).(*A); ok {
		return a
	}
	return new(A)
}

func (p plan) argumentsOf(f *operation.Field) any { return f.ArgumentsIn(p.planState.arguments) }

// planTarget is a record or its ID, with the query's selections for the record.
type planTarget[T any] struct {
	value      T
	selections []*operation.SelectionSet
}

// selectedFields iterates over each target with each of its selected fields that may read records.
func selectedFields[T any](targets []planTarget[T]) iter.Seq2[T, *operation.Field] {
	return func(yield func(T, *operation.Field) bool) {
		for i := range targets {
			for _, s := range targets[i].selections {
				for _, f := range s.Reads {
					if !yield(targets[i].value, f) {
						return
					}
				}
			}
		}
	}
}

// pendingKeys are keys for a loader, with the selections of each key.
type pendingKeys[K comparable] struct {
	keys []K
	path string
	// capacity is the expected number of keys, or 0 if it is unknown.
	capacity int
	// seen is the set of keys. It is nil while there are few keys.
	seen       map[K]struct{}
	selections keySelections[K]
}

// keySelections are the selections of keys.
type keySelections[K comparable] struct {
	// shared are the selections of every key if all keys have the same selections, which is the usual
	// case. Otherwise perKey contains the selections of each key.
	shared []*operation.SelectionSet
	perKey map[K][]*operation.SelectionSet
}

// maxLinearSearchKeys is the number of keys above which a map is faster than a linear search.
const maxLinearSearchKeys = 8

func (w *pendingKeys[K]) has(key K) bool {
	if w.seen != nil {
		_, ok := w.seen[key]
		return ok
	}
	return slices.Contains(w.keys, key)
}

// add adds a key with its selections. Callers must not modify the selections afterwards.
func (w *pendingKeys[K]) add(key K, path string, selections []*operation.SelectionSet) {
	if w.keys == nil {
		w.keys, w.path, w.selections.shared = make([]K, 0, max(1, w.capacity)), path, selections
	}
	known := w.has(key)
	if w.selections.perKey == nil && !sameSlice(w.selections.shared, selections) {
		w.selections.perKey = make(map[K][]*operation.SelectionSet, len(w.keys)+1)
		for _, k := range w.keys {
			w.selections.perKey[k] = w.selections.shared
		}
	}
	if w.selections.perKey != nil {
		w.selections.perKey[key] = unionSelections(w.selections.perKey[key], selections)
	}
	if known {
		return
	}
	w.keys = append(w.keys, key)
	switch {
	case w.seen != nil:
		w.seen[key] = struct{}{}
	case len(w.keys) > maxLinearSearchKeys:
		w.seen = make(map[K]struct{}, cap(w.keys))
		for _, k := range w.keys {
			w.seen[k] = struct{}{}
		}
	}
}

// sameSlice reports whether two slices share their elements in memory.
func sameSlice(a, b []*operation.SelectionSet) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// unionSelections returns the selections of both slices without duplicates. It modifies neither slice.
func unionSelections(have, more []*operation.SelectionSet) []*operation.SelectionSet {
	if len(have) == 0 || sameSlice(have, more) {
		return more
	}
	have = slices.Clip(have)
	for _, s := range more {
		if !slices.Contains(have, s) {
			have = append(have, s)
		}
	}
	return have
}

func (o *keySelections[K]) of(key K) []*operation.SelectionSet {
	if o.perKey != nil {
		return o.perKey[key]
	}
	return o.shared
}

func (o *keySelections[K]) hasReads() bool {
	reads := func(selections []*operation.SelectionSet) bool {
		return slices.ContainsFunc(selections, (*operation.SelectionSet).HasReads)
	}
	for _, selections := range o.perKey {
		if reads(selections) {
			return true
		}
	}
	return o.perKey == nil && reads(o.shared)
}

// targets returns a target for each key, to plan the reads that depend only on the key.
func (w *pendingKeys[K]) targets() []planTarget[K] {
	if !w.selections.hasReads() {
		return nil
	}
	targets := make([]planTarget[K], len(w.keys))
	for i, key := range w.keys {
		targets[i] = planTarget[K]{key, w.selections.of(key)}
	}
	return targets
}

// split divides the keys into keys that satisfy a condition and all other keys.
func (w *pendingKeys[K]) split(holds func(K) bool) (matching, others pendingKeys[K]) {
	if !slices.ContainsFunc(w.keys, holds) {
		return pendingKeys[K]{}, *w
	}
	for _, key := range w.keys {
		if holds(key) {
			matching.add(key, w.path, w.selections.of(key))
		} else {
			others.add(key, w.path, w.selections.of(key))
		}
	}
	return matching, others
}

// planFunc is the type of a loader's Plan method.
type planFunc[K comparable, V any] func(ctx context.Context, at *loaders.Level, keys []K, then func(context.Context, *loaders.Level, []loaders.FoundValue[K, V]))

// planKeys passes the pending keys to planLoads, the Plan method of a loader. When the records have
// been read, planKeys calls its argument "then", which plans the next level.
func planKeys[K comparable, V any](ctx context.Context, p plan, w *pendingKeys[K], planLoads planFunc[K, V], then func(plan, context.Context, []planTarget[V])) {
	if len(w.keys) == 0 {
		return
	}
	ctx = trace.SpanFromContext(ctx).WithPath(ctx, w.path)
	if then == nil || !w.selections.hasReads() {
		planLoads(ctx, p.level, w.keys, nil)
		return
	}
	of := w.selections
	planLoads(ctx, p.level, w.keys, func(ctx context.Context, next *loaders.Level, found []loaders.FoundValue[K, V]) {
		targets := make([]planTarget[V], len(found))
		for i := range found {
			targets[i] = planTarget[V]{found[i].Value, of.of(found[i].Key)}
		}
		then(plan{p.planState, next}, ctx, targets)
	})
}

// planRecords plans reads of records by key.
func planRecords[K comparable, V any](ctx context.Context, p plan, w *pendingKeys[K], pattern *model.LookupPattern[K, V], then func(plan, context.Context, []planTarget[V])) {
	if len(w.keys) > 0 {
		planKeys(ctx, p, w, loaders.RecordLoader(p.loaders, pattern).Plan, then)
	}
}

// planList plans pages of lists.
func planList[T any](ctx context.Context, p plan, w *pendingKeys[dynamo.ListRequest], pattern *model.ListPattern[T], then func(plan, context.Context, []planTarget[T])) {
	if len(w.keys) == 0 {
		return
	}
	l := loaders.PageLoader(p.loaders, pattern)
	ctx = trace.SpanFromContext(ctx).WithPath(ctx, w.path)
	if then == nil || !w.selections.hasReads() {
		l.Plan(ctx, p.level, w.keys, nil)
		return
	}
	of := w.selections
	l.Plan(ctx, p.level, w.keys, func(ctx context.Context, next *loaders.Level, pages []loaders.FoundValue[dynamo.ListRequest, dynamo.Page[T]]) {
		n := 0
		for i := range pages {
			n += len(pages[i].Value.Items)
		}
		targets := make([]planTarget[T], 0, n)
		for i := range pages {
			selections := of.of(pages[i].Key)
			for _, item := range pages[i].Value.Items {
				targets = append(targets, planTarget[T]{item, selections})
			}
		}
		then(plan{p.planState, next}, ctx, targets)
	})
}

// addList adds a page of a list. It ignores invalid arguments, because the resolver rejects them.
func addList(p plan, w *pendingKeys[dynamo.ListRequest], f *operation.Field, q *paging.Request) {
	if q.Err == nil && p.argumentsOf(f) != nil {
		w.add(q.Key, f.Path, f.Records)
	}
}

// addReference adds the ID of a referenced record, unless the ID is empty.
func addReference[ID ~string](w *pendingKeys[ID], f *operation.Field, id ID) {
	if id != "" {
		w.add(id, f.Path, f.Records)
	}
}

// addBatch adds the well-formed keys of a batch.
func addBatch[ID ~string](w *pendingKeys[ID], f *operation.Field, arguments interface{ keys() ([]ID, error) }) {
	keys, _ := arguments.keys() // the resolver rejects too many keys
	w.capacity = max(w.capacity, len(keys))
	for _, key := range keys {
		addReference(w, f, key)
	}
}

// pendingRecords are the keys of the records that one level of the plan reads. Records of one kind
// share a request. If the query selects an order's timeline or a product's inventory, one Query
// reads the item collection instead.
type pendingRecords struct {
	customers          pendingKeys[commerce.CustomerID]
	orders             pendingKeys[commerce.OrderID]
	orderCollections   pendingKeys[commerce.OrderID]
	products           pendingKeys[commerce.SKU]
	productCollections pendingKeys[commerce.SKU]
	inventoryLevels    pendingKeys[model.InventoryLevelKey]
	employees          pendingKeys[commerce.EmployeeID]
	warehouses         pendingKeys[commerce.WarehouseID]
}

// order returns the pending keys in r for orders with these selections.
func (r *pendingRecords) order(selections []*operation.SelectionSet) *pendingKeys[commerce.OrderID] {
	if operation.SelectsFieldWithReads(selections, "timeline") {
		return &r.orderCollections
	}
	return &r.orders
}

// product returns the pending keys in r for products with these selections.
func (r *pendingRecords) product(selections []*operation.SelectionSet) *pendingKeys[commerce.SKU] {
	if operation.SelectsFieldWithReads(selections, "inventory") {
		return &r.productCollections
	}
	return &r.products
}

// planAfterRecord plans the reads for the selections of a record that has already been read.
func (p plan) planAfterRecord(ctx context.Context, record any, selections []*operation.SelectionSet) {
	switch record := record.(type) {
	case *commerce.Customer:
		p.customers(ctx, []planTarget[*commerce.Customer]{{record, selections}})
	case *commerce.Order:
		p.orders(ctx, []planTarget[*commerce.Order]{{record, selections}})
	case *commerce.Product:
		p.products(ctx, []planTarget[*commerce.Product]{{record, selections}})
	case *commerce.InventoryLevel:
		p.inventoryLevels(ctx, []planTarget[*commerce.InventoryLevel]{{record, selections}})
	case *commerce.Employee:
		p.employees(ctx, []planTarget[*commerce.Employee]{{record, selections}})
	case *commerce.Warehouse:
		p.warehouses(ctx, []planTarget[*commerce.Warehouse]{{record, selections}})
	}
}

// planRootFields plans the root fields.
func (p plan) planRootFields(ctx context.Context, root *operation.SelectionSet) {
	var (
		referenced pendingRecords
		emails     pendingKeys[string]
		items      pendingKeys[model.OrderItemKey]
		counts     pendingKeys[dynamo.ListRequest]
	)
	for _, f := range root.Reads {
		switch {
		case p.rootRecord(f, &referenced):
		case f.Name == "customerByEmail":
			if email, err := commerce.ParseEmail(argumentsOf[queryCustomerByEmailArguments](p, f).email); err == nil {
				emails.add(email, f.Path, f.Records)
			}
		case f.Name == "orderItem":
			if key, ok := argumentsOf[queryOrderItemArguments](p, f).key(); ok {
				items.add(key, f.Path, f.Records)
			}
		case f.Name == operation.EntitiesField:
			p.planEntities(ctx, f, &referenced)
		case f.Name == "quote":
			lines, _ := argumentsOf[queryQuoteArguments](p, f).input.Lines() // the resolver rejects invalid lines
			for _, line := range lines {
				referenced.products.add(line.SKU, f.Path, nil)
			}
		case f.Name == "orderCounts":
			counts.add(loaders.AllOrderCountsRequest(), f.Path, f.Records)
		case f.Name == "viewer":
			for principal, f := range selectedFields([]planTarget[*commerce.Principal]{{new(p.resolver.principal(ctx)), f.Records}}) {
				viewerReference(principal, f, &referenced)
			}
		}
	}
	p.planCollections(ctx, &referenced)
	p.planItemsByID(ctx, &items, &referenced)
	p.planReferences(ctx, &referenced)
	p.planCustomersByEmail(ctx, &emails)
	planList(ctx, p, &counts, model.OrderCounts, nil)
	p.rootLists(ctx, root)
}

// planItemsByID plans line items and, in the same level, the orders and products that they refer to.
// For callers who may see only their own orders, it reads the orders first, to check their owners.
func (p plan) planItemsByID(ctx context.Context, w *pendingKeys[model.OrderItemKey], referenced *pendingRecords) {
	if !p.loaders.OnlyOwnOrders() {
		planRecords(ctx, p, w, model.OrderItem, nil)
		addItemReferences(w.targets(), referenced)
		return
	}
	p.loaders.PlanItemsAfterOrders(trace.SpanFromContext(ctx).WithPath(ctx, w.path), p.level, w.keys, func(ctx context.Context, next *loaders.Level, visible []model.OrderItemKey) {
		var to pendingRecords
		for _, key := range visible {
			addItemReferences([]planTarget[model.OrderItemKey]{{key, w.selections.of(key)}}, &to)
		}
		plan{p.planState, next}.planReferences(ctx, &to)
	})
}

// planCustomersByEmail plans reads of customers by email address: first the customer's ID, then the
// customer.
func (p plan) planCustomersByEmail(ctx context.Context, w *pendingKeys[string]) {
	if len(w.keys) == 0 {
		return
	}
	loaders.RecordLoader(p.loaders, model.EmailClaim).Plan(trace.SpanFromContext(ctx).WithPath(ctx, w.path), p.level, w.keys, func(ctx context.Context, next *loaders.Level, found []loaders.FoundValue[string, commerce.CustomerID]) {
		var ids pendingKeys[commerce.CustomerID]
		for _, f := range found {
			ids.add(f.Value, w.path, w.selections.of(f.Key))
		}
		plan{p.planState, next}.planCustomersByID(ctx, &ids)
	})
}
