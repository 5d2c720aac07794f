package graph

import (
	"context"
	"iter"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/loaders"
)

// plan looks ahead in a query, so that reads whose keys are known start together, and look-ups of one kind share a request
// however deep they stand. It works level by level: when the records of a level are there, the plan gives the loaders all
// keys of the next level at once, before any resolver sees the records. Resolvers then only pick up what was planned.
//
// A plan saves requests and time; it decides nothing. What it does not know of, or refuses because an argument is wrong,
// the resolver reads or refuses by itself.
type plan struct {
	resolver  *Resolver
	loaders   *loaders.Loaders
	operation *graphql.OperationContext
	// generated has the generated readers of arguments.
	generated *executionContext
}

// target is a record, or the id of one, with what the query selects of it.
type target[T any] struct {
	of         T
	selections []*selection
}

// fields are the fields that a query selects of each target, in turn.
func fields[T any](targets []target[T]) iter.Seq2[T, *selected] {
	return func(yield func(T, *selected) bool) {
		for _, t := range targets {
			for _, s := range t.selections {
				for _, f := range s.each() {
					if !yield(t.of, f) {
						return
					}
				}
			}
		}
	}
}

// wanted are keys that a loader is to read, with what the query selects of each.
type wanted[K comparable] struct {
	keys       []K
	selections map[K][]*selection
	path       string
}

func (w *wanted[K]) add(key K, path string, selections []*selection) {
	if w.selections == nil {
		w.selections, w.path = map[K][]*selection{}, path
	}
	if _, ok := w.selections[key]; !ok {
		w.keys = append(w.keys, key)
	}
	have := w.selections[key]
	for _, s := range selections {
		if !slices.Contains(have, s) {
			have = append(have, s)
		}
	}
	w.selections[key] = have
}

// targets are the keys themselves as targets, for what can be read without the records.
func (w *wanted[K]) targets() []target[K] {
	targets := make([]target[K], len(w.keys))
	for i, key := range w.keys {
		targets[i] = target[K]{key, w.selections[key]}
	}
	return targets
}

// split parts the keys of which a condition holds from the others.
func (w *wanted[K]) split(holds func(K) bool) (those, others wanted[K]) {
	for _, key := range w.keys {
		if holds(key) {
			those.add(key, w.path, w.selections[key])
		} else {
			others.add(key, w.path, w.selections[key])
		}
	}
	return those, others
}

func (w *wanted[K]) readsMore() bool {
	for _, selections := range w.selections {
		for _, s := range selections {
			if s.readsMore() {
				return true
			}
		}
	}
	return false
}

// starter is a loader's Plan.
type starter[K comparable, V any] func(ctx context.Context, keys []K, then func(context.Context, []loaders.Found[K, V]))

// start gives wanted keys to a loader; when the records are there, then plans what follows from them.
func start[K comparable, V any](ctx context.Context, w *wanted[K], with starter[K, V], then func(context.Context, []target[V])) {
	if len(w.keys) == 0 {
		return
	}
	ctx = dynamo.SpanOf(ctx).At(ctx, w.path)
	if then == nil || !w.readsMore() {
		with(ctx, w.keys, nil)
		return
	}
	with(ctx, w.keys, func(ctx context.Context, found []loaders.Found[K, V]) {
		targets := make([]target[V], len(found))
		for i, f := range found {
			targets[i] = target[V]{f.Value, w.selections[f.Key]}
		}
		then(ctx, targets)
	})
}

// startList is start for pages of lists.
func startList[K comparable, T any](ctx context.Context, w *wanted[K], l *loaders.Loader[K, dynamo.Slice[T]], then func(context.Context, []target[T])) {
	start(ctx, w, l.Plan, func(ctx context.Context, pages []target[dynamo.Slice[T]]) {
		var targets []target[T]
		for _, page := range pages {
			for _, item := range page.of.Items {
				targets = append(targets, target[T]{item, page.selections})
			}
		}
		then(ctx, targets)
	})
}

// addList adds a page of a list, unless its arguments are wrong.
func addList[K comparable](w *wanted[K], f *selected, l list[K]) {
	if l.err == nil && !f.refused.Load() {
		w.add(l.key, f.path, f.records())
	}
}

// addID adds a record by the id in an argument, unless that is wrong.
func addID[ID ~string](w *wanted[ID], f *selected, id string) {
	if parsed, err := commerce.ParseID[ID](id); err == nil {
		w.add(parsed, f.path, f.records())
	}
}

// addRef adds a record that another refers to; an empty id refers to nothing.
func addRef[ID ~string](w *wanted[ID], f *selected, id ID) {
	if id != "" {
		w.add(id, f.path, f.records())
	}
}

// refs are records that a level of the query refers to by id, from wherever: those of one kind share a request.
type refs struct {
	customers  wanted[commerce.CustomerID]
	orders     wanted[commerce.OrderID]
	products   wanted[commerce.SKU]
	employees  wanted[commerce.EmployeeID]
	warehouses wanted[commerce.WarehouseID]
}

// query plans the root fields.
func (p *plan) query(ctx context.Context, root *selection) {
	var (
		named         refs
		wholeOrders   wanted[commerce.OrderID]
		wholeProducts wanted[commerce.SKU]
		emails        wanted[string]
		items         wanted[dynamo.OrderItemKey]
		levels        wanted[dynamo.InventoryLevelKey]
		customers     wanted[dynamo.Page]
		byStatus      wanted[loaders.StatusOrders]
		merged        wanted[loaders.StatusOrders]
		byCategory    wanted[loaders.Listed[string]]
		hired         wanted[loaders.HiredEmployees]
		byName        wanted[loaders.Listed[string]]
		byJobTitle    wanted[loaders.Listed[string]]
		warehouses    wanted[dynamo.Page]
	)
	r := p.resolver
	for _, f := range root.each() {
		switch f.Name {
		case "customer":
			addID(&named.customers, f, f.text("id"))
		case "customerByEmail":
			if email, err := commerce.ParseEmail(f.text("email")); err == nil {
				emails.add(email, f.path, f.records())
			}
		case "customers":
			addList(&customers, f, r.whole("Query.customers", f.paging()))
		case "order":
			id, err := commerce.ParseOrderID(f.text("id"))
			switch {
			case err != nil:
			case selects(f.records(), "timeline"):
				wholeOrders.add(id, f.path, f.records())
			default:
				named.orders.add(id, f.path, f.records())
			}
		case "orderItem":
			order, err := commerce.ParseOrderID(f.text("orderId"))
			sku, err2 := commerce.ParseID[commerce.SKU](f.text("productId"))
			if err == nil && err2 == nil {
				items.add(dynamo.OrderItemKey{Order: order, SKU: sku}, f.path, f.records())
			}
		case "orders":
			addList(&merged, f, r.orders(f.statuses(ctx), f.placed(ctx), f.paging()))
		case "ordersByStatus":
			addList(&byStatus, f, r.ordersByStatus(f.status(ctx), f.placed(ctx), f.paging()))
		case "product":
			sku, err := commerce.ParseID[commerce.SKU](f.text("sku"))
			switch {
			case err != nil:
			case selects(f.records(), "inventory"):
				wholeProducts.add(sku, f.path, f.records())
			default:
				named.products.add(sku, f.path, f.records())
			}
		case "products":
			addList(&byCategory, f, r.searched("Query.products", "category", f.text("category"), f.paging()))
		case "inventoryLevel":
			sku, err := commerce.ParseID[commerce.SKU](f.text("sku"))
			warehouse, err2 := commerce.ParseID[commerce.WarehouseID](f.text("warehouseId"))
			if err == nil && err2 == nil {
				levels.add(dynamo.InventoryLevelKey{SKU: sku, Warehouse: warehouse}, f.path, f.records())
			}
		case "employee":
			addID(&named.employees, f, f.text("id"))
		case "employees":
			addList(&hired, f, r.employees(f.hired(ctx), f.paging()))
		case "employeesByName":
			addList(&byName, f, r.searched("Query.employeesByName", "name", f.text("name"), f.paging()))
		case "employeesByJobTitle":
			addList(&byJobTitle, f, r.searched("Query.employeesByJobTitle", "jobTitle", f.text("jobTitle"), f.paging()))
		case "warehouse":
			addID(&named.warehouses, f, f.text("id"))
		case entitiesField:
			p.entities(ctx, f, &named, &wholeOrders, &wholeProducts)
		case "warehouses":
			addList(&warehouses, f, r.whole("Query.warehouses", f.paging()))
		}
	}
	l := p.loaders
	// An order with its timeline, and a product with its inventory, is one Query of its item collection.
	start(ctx, &wholeOrders, l.PlanWholeOrders, p.wholeOrders)
	start(ctx, &wholeProducts, l.PlanWholeProducts, p.inventoryOf)
	p.productSKUs(ctx, wholeProducts.targets())
	p.itemsByID(ctx, &items, &named)
	start(ctx, &levels, l.InventoryLevel.Plan, nil)
	levelRefs(levels.targets(), &named)
	p.refs(ctx, &named)
	p.emails(ctx, &emails)
	startList(ctx, &customers, l.Customers, p.customers)
	startList(ctx, &byStatus, l.OrdersByStatus, p.orders)
	startList(ctx, &merged, l.Orders, p.orders)
	startList(ctx, &byCategory, l.Products, p.products)
	startList(ctx, &hired, l.Employees, p.employees)
	startList(ctx, &byName, l.EmployeesByName, p.employees)
	startList(ctx, &byJobTitle, l.EmployeesByJobTitle, p.employees)
	startList(ctx, &warehouses, l.Warehouses, p.warehouses)
}

// itemsByID plans items of orders, and what they refer to: at once, but for those who see the own orders only, as it is not known yet whose
// the orders are.
func (p *plan) itemsByID(ctx context.Context, w *wanted[dynamo.OrderItemKey], named *refs) {
	if !p.loaders.OwnOrders() {
		start(ctx, w, p.loaders.OrderItem.Plan, nil)
		itemRefs(w.targets(), named)
		return
	}
	p.loaders.PlanOwnItems(dynamo.SpanOf(ctx).At(ctx, w.path), w.keys, func(ctx context.Context, there []dynamo.OrderItemKey) {
		var to refs
		for _, key := range there {
			itemRefs([]target[dynamo.OrderItemKey]{{key, w.selections[key]}}, &to)
		}
		p.refs(ctx, &to)
	})
}

// emails plans customers by e-mail address: whose it is, then the customer.
func (p *plan) emails(ctx context.Context, w *wanted[string]) {
	if len(w.keys) == 0 {
		return
	}
	p.loaders.CustomerIDByEmail.Plan(dynamo.SpanOf(ctx).At(ctx, w.path), w.keys, func(ctx context.Context, found []loaders.Found[string, commerce.CustomerID]) {
		var ids wanted[commerce.CustomerID]
		for _, f := range found {
			ids.add(f.Value, w.path, w.selections[f.Key])
		}
		p.customerRefs(ctx, &ids)
	})
}

// selects tells whether one of the selections has a field.
func selects(selections []*selection, name string) bool {
	for _, s := range selections {
		for _, f := range s.each() {
			if f.Name == name {
				return true
			}
		}
	}
	return false
}
