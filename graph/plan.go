package graph

import (
	"context"
	"iter"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/loaders"
)

// plan looks ahead in a query, so that reads whose keys are known run side by side, and look-ups of
// one kind share a request however deep they stand. It works level by level: when the records of a
// level are there, the plan gives the loaders all keys of the next level at once. It is complete
// before the operation is executed; resolvers then only pick up what was planned.
//
// A plan saves requests and time; it decides nothing. What it does not know of, or refuses because
// an argument is wrong, the resolver reads or refuses by itself.
type plan struct {
	*planning
	// level takes what is known to be read.
	level *loaders.Level
}

// planning is what all levels of a plan share.
type planning struct {
	resolver *Resolver
	loaders  *loaders.Loaders
	// arguments are those that contain variables.
	arguments []any
}

// argumentsOf returns the arguments of a field, as its resolver gets them; the zero value where
// they cannot be read.
func argumentsOf[A any](p plan, f *operation.Field) *A {
	if a, ok := p.argumentsOf(f).(*A); ok {
		return a
	}
	return new(A)
}

func (p plan) argumentsOf(f *operation.Field) any { return f.ArgumentsIn(p.planning.arguments) }

// target is a record, or the id of one, with what the query selects of it.
type target[T any] struct {
	of         T
	selections []*operation.SelectionSet
}

// fields are the fields that a query selects of each target, in turn.
func fields[T any](targets []target[T]) iter.Seq2[T, *operation.Field] {
	return func(yield func(T, *operation.Field) bool) {
		for i := range targets {
			for _, s := range targets[i].selections {
				for _, f := range s.Reads {
					if !yield(targets[i].of, f) {
						return
					}
				}
			}
		}
	}
}

// wanted are keys that a loader is to read, with what the query selects of each.
type wanted[K comparable] struct {
	keys []K
	path string
	// room is how many keys there may be, where that is known.
	room int
	// seen has the keys, where they are many.
	seen map[K]struct{}
	of   selectedOf[K]
}

// selectedOf is what a query selects of keys.
type selectedOf[K comparable] struct {
	// each is what it selects of every key, as most often it is the same; else apart says it key by
	// key.
	each  []*operation.SelectionSet
	apart map[K][]*operation.SelectionSet
}

// manyKeys is from how many keys on a map finds one faster than a look at each.
const manyKeys = 8

func (w *wanted[K]) has(key K) bool {
	if w.seen != nil {
		_, ok := w.seen[key]
		return ok
	}
	return slices.Contains(w.keys, key)
}

// add adds a key, and what the query selects of it at a place. Nobody may write to selections any
// more.
func (w *wanted[K]) add(key K, path string, selections []*operation.SelectionSet) {
	if w.keys == nil {
		w.keys, w.path, w.of.each = make([]K, 0, max(1, w.room)), path, selections
	}
	known := w.has(key)
	if w.of.apart == nil && !same(w.of.each, selections) {
		w.of.apart = make(map[K][]*operation.SelectionSet, len(w.keys)+1)
		for _, k := range w.keys {
			w.of.apart[k] = w.of.each
		}
	}
	if w.of.apart != nil {
		w.of.apart[key] = union(w.of.apart[key], selections)
	}
	if known {
		return
	}
	w.keys = append(w.keys, key)
	switch {
	case w.seen != nil:
		w.seen[key] = struct{}{}
	case len(w.keys) > manyKeys:
		w.seen = make(map[K]struct{}, cap(w.keys))
		for _, k := range w.keys {
			w.seen[k] = struct{}{}
		}
	}
}

// same reports whether two lists of selections are one.
func same(a, b []*operation.SelectionSet) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// union has the selections of both lists. It writes to neither.
func union(have, more []*operation.SelectionSet) []*operation.SelectionSet {
	if len(have) == 0 || same(have, more) {
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

func (o *selectedOf[K]) selections(key K) []*operation.SelectionSet {
	if o.apart != nil {
		return o.apart[key]
	}
	return o.each
}

func (o *selectedOf[K]) readsMore() bool {
	reads := func(selections []*operation.SelectionSet) bool {
		return slices.ContainsFunc(selections, (*operation.SelectionSet).ReadsMore)
	}
	for _, selections := range o.apart {
		if reads(selections) {
			return true
		}
	}
	return o.apart == nil && reads(o.each)
}

// targets are the keys themselves as targets, for what can be read without the records.
func (w *wanted[K]) targets() []target[K] {
	if !w.of.readsMore() {
		return nil
	}
	targets := make([]target[K], len(w.keys))
	for i, key := range w.keys {
		targets[i] = target[K]{key, w.of.selections(key)}
	}
	return targets
}

// split parts the keys of which a condition holds from the others.
func (w *wanted[K]) split(holds func(K) bool) (those, others wanted[K]) {
	if !slices.ContainsFunc(w.keys, holds) {
		return wanted[K]{}, *w
	}
	for _, key := range w.keys {
		if holds(key) {
			those.add(key, w.path, w.of.selections(key))
		} else {
			others.add(key, w.path, w.of.selections(key))
		}
	}
	return those, others
}

// starter is a loader's Plan.
type starter[K comparable, V any] func(ctx context.Context, at *loaders.Level, keys []K, then func(context.Context, *loaders.Level, []loaders.Found[K, V]))

// start gives wanted keys to a loader; when the records are there, then plans what follows from
// them, as a level of its own.
func start[K comparable, V any](ctx context.Context, p plan, w *wanted[K], with starter[K, V], then func(plan, context.Context, []target[V])) {
	if len(w.keys) == 0 {
		return
	}
	ctx = table.SpanOf(ctx).At(ctx, w.path)
	if then == nil || !w.of.readsMore() {
		with(ctx, p.level, w.keys, nil)
		return
	}
	of := w.of
	with(ctx, p.level, w.keys, func(ctx context.Context, next *loaders.Level, found []loaders.Found[K, V]) {
		targets := make([]target[V], len(found))
		for i := range found {
			targets[i] = target[V]{found[i].Value, of.selections(found[i].Key)}
		}
		then(plan{p.planning, next}, ctx, targets)
	})
}

// startRecords is start for the records that an access pattern reads by their keys.
func startRecords[K comparable, V any](ctx context.Context, p plan, w *wanted[K], pattern *model.Lookup[K, V], then func(plan, context.Context, []target[V])) {
	if len(w.keys) > 0 {
		start(ctx, p, w, loaders.Records(p.loaders, pattern).Plan, then)
	}
}

// startList is start for pages of lists.
func startList[T any](ctx context.Context, p plan, w *wanted[dynamo.ListRequest], pattern *model.List[T], then func(plan, context.Context, []target[T])) {
	if len(w.keys) == 0 {
		return
	}
	l := loaders.Pages(p.loaders, pattern)
	ctx = table.SpanOf(ctx).At(ctx, w.path)
	if then == nil || !w.of.readsMore() {
		l.Plan(ctx, p.level, w.keys, nil)
		return
	}
	of := w.of
	l.Plan(ctx, p.level, w.keys, func(ctx context.Context, next *loaders.Level, pages []loaders.Found[dynamo.ListRequest, dynamo.Slice[T]]) {
		n := 0
		for i := range pages {
			n += len(pages[i].Value.Items)
		}
		targets := make([]target[T], 0, n)
		for i := range pages {
			selections := of.selections(pages[i].Key)
			for _, item := range pages[i].Value.Items {
				targets = append(targets, target[T]{item, selections})
			}
		}
		then(plan{p.planning, next}, ctx, targets)
	})
}

// addList adds a page of a list, unless its arguments are wrong. Its resolver refuses them.
func addList(p plan, w *wanted[dynamo.ListRequest], f *operation.Field, q *paging.Request) {
	if q.Err == nil && p.argumentsOf(f) != nil {
		w.add(q.Key, f.Path, f.Records)
	}
}

// addRef adds a record that another refers to; an empty ID refers to nothing.
func addRef[ID ~string](w *wanted[ID], f *operation.Field, id ID) {
	if id != "" {
		w.add(id, f.Path, f.Records)
	}
}

// addBatch adds the keys of a batch, without those that are malformed.
func addBatch[ID ~string](w *wanted[ID], f *operation.Field, arguments interface{ keys() ([]ID, error) }) {
	keys, _ := arguments.keys() // the resolver refuses too many
	w.room = max(w.room, len(keys))
	for _, key := range keys {
		addRef(w, f, key)
	}
}

// refs are records that a level of the query refers to by ID: those of one kind share a request. An
// order with its timeline, and a product with its inventory, is one Query of its item collection.
type refs struct {
	customers       wanted[commerce.CustomerID]
	orders          wanted[commerce.OrderID]
	wholeOrders     wanted[commerce.OrderID]
	products        wanted[commerce.SKU]
	wholeProducts   wanted[commerce.SKU]
	inventoryLevels wanted[model.InventoryLevelKey]
	employees       wanted[commerce.EmployeeID]
	warehouses      wanted[commerce.WarehouseID]
}

// order returns the list for an order that the query names, of which this is selected.
func (r *refs) order(selections []*operation.SelectionSet) *wanted[commerce.OrderID] {
	if operation.Selects(selections, "timeline") {
		return &r.wholeOrders
	}
	return &r.orders
}

// product returns the list for a product that the query names, of which this is selected.
func (r *refs) product(selections []*operation.SelectionSet) *wanted[commerce.SKU] {
	if operation.Selects(selections, "inventory") {
		return &r.wholeProducts
	}
	return &r.products
}

// record plans what is selected of a record that is there.
func (p plan) record(ctx context.Context, record any, selections []*operation.SelectionSet) {
	switch record := record.(type) {
	case *commerce.Customer:
		p.customers(ctx, []target[*commerce.Customer]{{record, selections}})
	case *commerce.Order:
		p.orders(ctx, []target[*commerce.Order]{{record, selections}})
	case *commerce.Product:
		p.products(ctx, []target[*commerce.Product]{{record, selections}})
	case *commerce.InventoryLevel:
		p.inventoryLevels(ctx, []target[*commerce.InventoryLevel]{{record, selections}})
	case *commerce.Employee:
		p.employees(ctx, []target[*commerce.Employee]{{record, selections}})
	case *commerce.Warehouse:
		p.warehouses(ctx, []target[*commerce.Warehouse]{{record, selections}})
	}
}

// query plans the root fields.
func (p plan) query(ctx context.Context, root *operation.SelectionSet) {
	var (
		named  refs
		emails wanted[string]
		items  wanted[model.OrderItemKey]
		counts wanted[dynamo.ListRequest]
	)
	for _, f := range root.Reads {
		switch {
		case p.rootRecord(f, &named):
		case f.Name == "customerByEmail":
			if email, err := commerce.ParseEmail(argumentsOf[queryCustomerByEmailArguments](p, f).email); err == nil {
				emails.add(email, f.Path, f.Records)
			}
		case f.Name == "orderItem":
			if key, ok := argumentsOf[queryOrderItemArguments](p, f).key(); ok {
				items.add(key, f.Path, f.Records)
			}
		case f.Name == operation.EntitiesField:
			p.entities(ctx, f, &named)
		case f.Name == "quote":
			lines, _ := argumentsOf[queryQuoteArguments](p, f).input.Lines() // the resolver refuses others
			for _, line := range lines {
				named.products.add(line.SKU, f.Path, nil)
			}
		case f.Name == "orderCounts":
			counts.add(loaders.AllOrderCounts(), f.Path, f.Records)
		case f.Name == "viewer":
			for who, of := range fields([]target[*commerce.Principal]{{new(p.resolver.principal(ctx)), f.Records}}) {
				viewerReference(who, of, &named)
			}
		}
	}
	p.wholeRefs(ctx, &named)
	p.itemsByID(ctx, &items, &named)
	p.refs(ctx, &named)
	p.emails(ctx, &emails)
	startList(ctx, p, &counts, model.OrderCounts, nil)
	p.rootLists(ctx, root)
}

// itemsByID plans items of orders, and what they refer to: at once, but for those who see the own
// orders only, as it is not known yet whose the orders are.
func (p plan) itemsByID(ctx context.Context, w *wanted[model.OrderItemKey], named *refs) {
	if !p.loaders.OwnOrders() {
		startRecords(ctx, p, w, model.OrderItem, nil)
		itemRefs(w.targets(), named)
		return
	}
	p.loaders.PlanOwnItems(table.SpanOf(ctx).At(ctx, w.path), p.level, w.keys, func(ctx context.Context, next *loaders.Level, there []model.OrderItemKey) {
		var to refs
		for _, key := range there {
			itemRefs([]target[model.OrderItemKey]{{key, w.of.selections(key)}}, &to)
		}
		plan{p.planning, next}.refs(ctx, &to)
	})
}

// emails plans customers by e-mail address: whose it is, then the customer.
func (p plan) emails(ctx context.Context, w *wanted[string]) {
	if len(w.keys) == 0 {
		return
	}
	loaders.Records(p.loaders, model.EmailClaim).Plan(table.SpanOf(ctx).At(ctx, w.path), p.level, w.keys, func(ctx context.Context, next *loaders.Level, found []loaders.Found[string, commerce.CustomerID]) {
		var ids wanted[commerce.CustomerID]
		for _, f := range found {
			ids.add(f.Value, w.path, w.of.selections(f.Key))
		}
		plan{p.planning, next}.customerRefs(ctx, &ids)
	})
}
