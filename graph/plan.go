package graph

import (
	"context"
	"iter"
	"slices"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/loaders"
)

// plan reads the records of an operation before the resolvers run (lookahead). It reads them in
// levels: the records of one level contain the keys for the next level. A plan saves requests and
// time, but never changes a response.
type plan struct {
	*planState
	// level collects the reads of the current level. Their records contain the keys for the next
	// level.
	level *loaders.Level
}

// planState is the state that all levels of a plan share.
type planState struct {
	resolver *Resolver
	loaders  *loaders.Loaders
	// arguments is the result of operation.Prepared.VariableArguments.
	arguments []any
}

// argumentsOf returns the arguments of a field as the struct that its resolver receives.
func argumentsOf[A any](p plan, f *operation.Field) *A { return f.ArgumentsIn(p.arguments).(*A) }

// planTarget is a record, or the ID of a record, with the selections of the operation for this
// record.
type planTarget[T any] struct {
	value      T
	selections []*operation.SelectionSet
}

// selectedFields yields pairs: the value of a target, and a field that is selected for this target.
// It omits fields that never require a read.
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

// pendingKeys contains the keys that a loader must read, with the selections for each key.
type pendingKeys[K comparable] struct {
	keys []K
	path string
	// capacity is the expected number of keys. If it is unknown, capacity is 0.
	capacity int
	// seen contains the keys as a set, for faster lookups. While there are few keys, it is nil.
	seen       map[K]struct{}
	selections keySelections[K]
}

// keySelections contains the operation's selections for each key.
type keySelections[K comparable] struct {
	// Usually, the selections are the same for all keys. shared then contains these selections, and
	// perKey is nil. Otherwise, perKey contains the selections for each key.
	shared []*operation.SelectionSet
	perKey map[K][]*operation.SelectionSet
}

// maxLinearSearchKeys is the maximum number of keys that are searched without a map,
// because a map would not be faster.
const maxLinearSearchKeys = 8

func (w *pendingKeys[K]) has(key K) bool {
	if w.seen != nil {
		_, ok := w.seen[key]
		return ok
	}
	return slices.Contains(w.keys, key)
}

// add adds a key with its selections. The caller must not modify the selections afterwards.
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

// sameSlice reports whether two slices are the same part of the same array in memory.
func sameSlice(a, b []*operation.SelectionSet) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// unionSelections returns the selections without duplicates. It does not modify the slices.
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

// targets returns a target for each key, to plan the reads that need only the key. If the selected
// fields need no reads, it returns nil.
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

// planFunc is the type of the method Plan of a loader.
type planFunc[K comparable, V any] func(ctx context.Context, at *loaders.Level, keys []K, then func(context.Context, *loaders.Level, []loaders.FoundValue[K, V]))

// planKeys plans reads of the pending keys with planLoads, the method Plan of a loader. After the
// reads, it calls the parameter then to plan the next level.
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

// planRecords plans lookups of records by key. After the lookups, it calls the parameter then to
// plan the next level.
func planRecords[K comparable, V any](ctx context.Context, p plan, w *pendingKeys[K], pattern *model.LookupPattern[K, V], then func(plan, context.Context, []planTarget[V])) {
	if len(w.keys) > 0 {
		planKeys(ctx, p, w, loaders.RecordLoader(p.loaders, pattern).Plan, then)
	}
}

// planList plans reads of list pages. After the pages have been read, it calls the function then
// with their records.
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

// addList adds the page request q of the field f to the pending keys w. If the arguments are
// invalid, addList adds nothing, because the resolver rejects them.
func addList(w *pendingKeys[dynamo.ListRequest], f *operation.Field, q *paging.Request) {
	if q.Err == nil {
		w.add(q.Key, f.Path, f.Records)
	}
}

// addReference adds the ID of a record that another record refers to. If the ID is empty, there is
// no such record, and addReference adds nothing.
func addReference[ID ~string](w *pendingKeys[ID], f *operation.Field, id ID) {
	if id != "" {
		w.add(id, f.Path, f.Records)
	}
}

// addBatch adds the well-formed keys of a field that looks up records by a list of keys.
func addBatch[ID ~string](w *pendingKeys[ID], f *operation.Field, arguments interface{ keys() ([]ID, error) }) {
	keys, _ := arguments.keys() // if there are too many keys, the resolver returns the error
	w.capacity = max(w.capacity, len(keys))
	for _, key := range keys {
		addReference(w, f, key)
	}
}

// planRootFields plans the reads for the root fields of a query.
func (p plan) planRootFields(ctx context.Context, root *operation.SelectionSet) {
	var referenced pendingRecords
	var sales, parcels pendingKeys[dynamo.ListRequest]
	var levels pendingKeys[model.InventoryLevelKey]
	for _, f := range root.Reads {
		switch {
		case p.rootRecord(f, &referenced):
		case f.Number == 0:
			p.planCustomQuery(ctx, f)
		case f.Name == operation.EntitiesField:
			p.planEntities(ctx, f, &referenced)
		case f.Number == fieldQueryQuote:
			request, _ := argumentsOf[queryQuoteArguments](p, f).input.Request() // if it is invalid, the resolver returns the error
			for _, line := range request.Lines {
				referenced.products.add(line.SKU, f.Path, nil)
				for sku, stock := range selectedFields([]planTarget[commerce.SKU]{{line.SKU, f.Records}}) {
					p.addLevel(&levels, sku, argumentsOf[quoteCanShipFromArguments](p, stock).warehouseID, stock)
				}
			}
		case f.Number == fieldQuerySales:
			a := argumentsOf[querySalesArguments](p, f)
			if key, err := loaders.SalesRequest(a.placed, a.currency); err == nil { // otherwise, the resolver returns the error
				sales.add(key, f.Path, f.Records)
			}
		case f.Number == fieldQueryOrderByTrackingNumber:
			parcels.add(trackedFulfillment(argumentsOf[queryOrderByTrackingNumberArguments](p, f).trackingNumber), f.Path, f.Records)
		case f.Number == fieldQueryViewer:
			for principal, f := range selectedFields([]planTarget[*access.Principal]{{new(p.resolver.principal(ctx)), f.Records}}) {
				viewerReference(principal, f, &referenced)
			}
		}
	}
	p.planCollections(ctx, &referenced)
	if p.loaders.OnlyOwnOrders() {
		p.planItemsAfterOrders(ctx, referenced.lineItems)
		referenced.lineItems = pendingKeys[model.OrderItemKey]{}
	}
	p.planAfterItems(ctx, nil, &referenced)
	p.planCustomersByEmail(ctx, &referenced.customerIDs)
	p.rootLists(ctx, root)
	planList(ctx, p, &sales, model.DailySales, nil)
	planRecords(ctx, p, &levels, model.LevelsOfLines, nil)
	planList(ctx, p, &parcels, model.TrackedFulfillments, func(p plan, ctx context.Context, targets []planTarget[*commerce.Fulfillment]) {
		var orders pendingKeys[commerce.OrderID]
		for _, t := range targets {
			orders.add(t.value.OrderID, parcels.path, t.selections)
		}
		p.planOrdersByID(ctx, &orders)
	})
}

// planItemsAfterOrders plans lookups of line items for a caller that may read only its own orders.
// So the orders are read first.
func (p plan) planItemsAfterOrders(ctx context.Context, w pendingKeys[model.OrderItemKey]) {
	p.loaders.PlanItemsAfterOrders(trace.SpanFromContext(ctx).WithPath(ctx, w.path), p.level, w.keys, func(ctx context.Context, next *loaders.Level, visible []model.OrderItemKey) {
		targets := make([]planTarget[model.OrderItemKey], len(visible))
		for i, key := range visible {
			targets[i] = planTarget[model.OrderItemKey]{key, w.selections.of(key)}
		}
		plan{p.planState, next}.planAfterItems(ctx, targets, &pendingRecords{})
	})
}

// planCustomersByEmail plans reads of customers by email address. The first read returns the
// customer's ID, and the next one returns the customer.
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
