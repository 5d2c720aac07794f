package graph

import (
	"context"

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
	w.selections[key] = append(w.selections[key], selections...)
}

// targets are the keys themselves as targets, for what can be read without the records.
func (w *wanted[K]) targets() []target[K] {
	targets := make([]target[K], len(w.keys))
	for i, key := range w.keys {
		targets[i] = target[K]{key, w.selections[key]}
	}
	return targets
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

// query plans the root fields.
func (p *plan) query(ctx context.Context, root *selection) {
	var (
		customers   wanted[commerce.CustomerID]
		orders      wanted[commerce.OrderID]
		products    wanted[commerce.SKU]
		employees   wanted[commerce.EmployeeID]
		warehouses  wanted[commerce.WarehouseID]
		emails      wanted[string]
		items       wanted[dynamo.OrderItemKey]
		levels      wanted[dynamo.InventoryLevelKey]
		all         wanted[dynamo.Page]
		byStatus    wanted[loaders.StatusOrders]
		merged      wanted[loaders.StatusOrders]
		byCategory  wanted[loaders.Listed[string]]
		hired       wanted[loaders.HiredEmployees]
		byName      wanted[loaders.Listed[string]]
		byJobTitle  wanted[loaders.Listed[string]]
		everyPlaces wanted[dynamo.Page]
	)
	r := p.resolver
	for _, f := range root.each() {
		switch f.Name {
		case "customer":
			addID(&customers, f, f.text("id"))
		case "customerByEmail":
			if email, err := commerce.ParseEmail(f.text("email")); err == nil {
				emails.add(email, f.path, f.records())
			}
		case "customers":
			addList(&all, f, r.whole("Query.customers", f.paging()))
		case "order":
			if id, err := commerce.ParseOrderID(f.text("id")); err == nil {
				orders.add(id, f.path, f.records())
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
			addID(&products, f, f.text("sku"))
		case "products":
			addList(&byCategory, f, r.searched("Query.products", "category", f.text("category"), f.paging()))
		case "inventoryLevel":
			sku, err := commerce.ParseID[commerce.SKU](f.text("sku"))
			warehouse, err2 := commerce.ParseID[commerce.WarehouseID](f.text("warehouseId"))
			if err == nil && err2 == nil {
				levels.add(dynamo.InventoryLevelKey{SKU: sku, Warehouse: warehouse}, f.path, f.records())
			}
		case "employee":
			addID(&employees, f, f.text("id"))
		case "employees":
			addList(&hired, f, r.employees(f.hired(ctx), f.paging()))
		case "employeesByName":
			addList(&byName, f, r.searched("Query.employeesByName", "name", f.text("name"), f.paging()))
		case "employeesByJobTitle":
			addList(&byJobTitle, f, r.searched("Query.employeesByJobTitle", "jobTitle", f.text("jobTitle"), f.paging()))
		case "warehouse":
			addID(&warehouses, f, f.text("id"))
		case "warehouses":
			addList(&everyPlaces, f, r.whole("Query.warehouses", f.paging()))
		}
	}
	l := p.loaders
	p.namedOrders(ctx, &orders)
	p.namedProducts(ctx, &products)
	p.customerRefs(ctx, &customers)
	p.employeeRefs(ctx, &employees)
	p.warehouseRefs(ctx, &warehouses)
	p.emails(ctx, &emails)
	start(ctx, &items, l.OrderItem.Plan, nil)
	p.itemRefs(ctx, &items)
	start(ctx, &levels, l.InventoryLevel.Plan, nil)
	p.levelRefs(ctx, levels.targets())
	startList(ctx, &all, l.Customers, p.customers)
	startList(ctx, &byStatus, l.OrdersByStatus, p.orders)
	startList(ctx, &merged, l.Orders, p.orders)
	startList(ctx, &byCategory, l.Products, p.products)
	startList(ctx, &hired, l.Employees, p.employees)
	startList(ctx, &byName, l.EmployeesByName, p.employees)
	startList(ctx, &byJobTitle, l.EmployeesByJobTitle, p.employees)
	startList(ctx, &everyPlaces, l.Warehouses, p.warehouses)
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

// namedOrders plans orders that the query names by id: with their timelines in one Query each, else together in one
// BatchGetItem.
func (p *plan) namedOrders(ctx context.Context, w *wanted[commerce.OrderID]) {
	var whole, header wanted[commerce.OrderID]
	for _, id := range w.keys {
		if selects(w.selections[id], "timeline") {
			whole.add(id, w.path, w.selections[id])
		} else {
			header.add(id, w.path, w.selections[id])
		}
	}
	start(ctx, &whole, p.loaders.PlanWholeOrders, p.wholeOrders)
	start(ctx, &header, p.loaders.PlanOrders, p.orderRecords)
}

// namedProducts plans products that the query names by SKU: with their inventory in one Query each, else together in one
// BatchGetItem.
func (p *plan) namedProducts(ctx context.Context, w *wanted[commerce.SKU]) {
	var whole, alone wanted[commerce.SKU]
	for _, sku := range w.keys {
		if selects(w.selections[sku], "inventory") {
			whole.add(sku, w.path, w.selections[sku])
		} else {
			alone.add(sku, w.path, w.selections[sku])
		}
	}
	start(ctx, &whole, p.loaders.PlanWholeProducts, p.inventoryOf)
	start(ctx, &alone, p.loaders.PlanProducts, nil)
	p.productSKUs(ctx, w.targets())
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

// Refs plan records that others refer to by id, and what can be read by their ids alone.

func (p *plan) customerRefs(ctx context.Context, w *wanted[commerce.CustomerID]) {
	start(ctx, w, p.loaders.Customer.Plan, p.customerRecords)
	p.customerIDs(ctx, w.targets())
}

func (p *plan) orderRefs(ctx context.Context, w *wanted[commerce.OrderID]) {
	start(ctx, w, p.loaders.PlanOrders, p.orderRecords)
	p.orderIDs(ctx, w.targets())
}

func (p *plan) productRefs(ctx context.Context, w *wanted[commerce.SKU]) {
	start(ctx, w, p.loaders.PlanProducts, nil)
	targets := w.targets()
	p.inventoryBySKU(ctx, targets)
	p.productSKUs(ctx, targets)
}

func (p *plan) employeeRefs(ctx context.Context, w *wanted[commerce.EmployeeID]) {
	start(ctx, w, p.loaders.Employee.Plan, p.employeeRecords)
	p.employeeIDs(ctx, w.targets())
}

func (p *plan) warehouseRefs(ctx context.Context, w *wanted[commerce.WarehouseID]) {
	start(ctx, w, p.loaders.Warehouse.Plan, nil)
	p.warehouseIDs(ctx, w.targets())
}

// ids are the ids of records as targets.
func ids[ID, T any](targets []target[T], id func(T) ID) []target[ID] {
	out := make([]target[ID], len(targets))
	for i, t := range targets {
		out[i] = target[ID]{id(t.of), t.selections}
	}
	return out
}

// customers plans what follows from a list of customers.
func (p *plan) customers(ctx context.Context, targets []target[*commerce.Customer]) {
	p.primeCustomers(ctx, targets)
	p.customerRecords(ctx, targets)
	p.customerIDs(ctx, ids(targets, func(c *commerce.Customer) commerce.CustomerID { return c.ID }))
}

// primeCustomers lets orders find the customers that they were reached through, where the query goes back to them.
func (p *plan) primeCustomers(ctx context.Context, targets []target[*commerce.Customer]) {
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				// A REP edge lacks the count, so it cannot stand for the customer's record.
				if f.Name == "orders" && t.of.OrderCount != nil && selects(f.records(), "customer") {
					p.loaders.Customer.Prime(ctx, t.of.ID, t.of)
				}
			}
		}
	}
}

// customerIDs plans what can be read of customers by their ids.
func (p *plan) customerIDs(ctx context.Context, targets []target[commerce.CustomerID]) {
	var lists wanted[loaders.PlacedOrders]
	var orders wanted[dynamo.CustomerOrderKey]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				switch f.Name {
				case "orders":
					addList(&lists, f, p.resolver.customerOrders(t.of, f.placed(ctx), f.paging()))
				case "order":
					if id, err := commerce.ParseOrderID(f.text("id")); err == nil {
						orders.add(dynamo.CustomerOrderKey{Customer: t.of, Order: id}, f.path, f.records())
					}
				}
			}
		}
	}
	startList(ctx, &lists, p.loaders.CustomerOrders, p.orders)
	start(ctx, &orders, p.loaders.CustomerOrder.Plan, p.orderRecords)
	p.orderIDs(ctx, ids(orders.targets(), func(k dynamo.CustomerOrderKey) commerce.OrderID { return k.Order }))
}

// customerRecords plans what can only be read of customers when their records are there.
func (p *plan) customerRecords(ctx context.Context, targets []target[*commerce.Customer]) {
	var reps wanted[commerce.EmployeeID]
	var uncounted []*commerce.Customer
	path := ""
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				switch {
				case f.Name == "accountRep" && t.of.AccountRepID != "":
					reps.add(t.of.AccountRepID, f.path, f.records())
				case f.Name == "orderCount" && t.of.OrderCount == nil:
					uncounted, path = append(uncounted, t.of), f.path
				}
			}
		}
	}
	p.employeeRefs(ctx, &reps)
	if len(uncounted) > 0 {
		p.loaders.PlanOrderCounts(dynamo.SpanOf(ctx).At(ctx, path), uncounted)
	}
}

// orders plans what follows from a list of orders.
func (p *plan) orders(ctx context.Context, targets []target[*commerce.Order]) {
	p.orderRecords(ctx, targets)
	p.orderIDs(ctx, ids(targets, func(o *commerce.Order) commerce.OrderID { return o.ID }))
}

// orderIDs plans what can be read of orders by their ids.
func (p *plan) orderIDs(ctx context.Context, targets []target[commerce.OrderID]) {
	var timelines wanted[loaders.Listed[commerce.OrderID]]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				if f.Name == "timeline" && !p.loaders.WholeOrderPlanned(t.of) {
					addList(&timelines, f, p.resolver.timeline(t.of, f.paging()))
				}
			}
		}
	}
	start(ctx, &timelines, p.loaders.TimelinePage.Plan, nil)
}

// wholeOrders plans what follows from orders that came with their timelines, and the timelines of those that are too large to
// come whole.
func (p *plan) wholeOrders(ctx context.Context, targets []target[*commerce.Order]) {
	p.orderRecords(ctx, targets)
	var timelines wanted[loaders.Listed[commerce.OrderID]]
	for _, t := range targets {
		if p.loaders.TimelineAtHand(ctx, t.of.ID) {
			continue
		}
		for _, s := range t.selections {
			for _, f := range s.each() {
				if f.Name == "timeline" {
					addList(&timelines, f, p.resolver.timeline(t.of.ID, f.paging()))
				}
			}
		}
	}
	start(ctx, &timelines, p.loaders.TimelinePage.Plan, nil)
}

// orderRecords plans what can only be read of orders when their records are there.
func (p *plan) orderRecords(ctx context.Context, targets []target[*commerce.Order]) {
	var (
		customers wanted[commerce.CustomerID]
		reps      wanted[commerce.EmployeeID]
		pages     wanted[loaders.Listed[commerce.OrderID]]
		single    wanted[dynamo.OrderItemKey]
		atHand    []target[*commerce.LineItem]
	)
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				switch f.Name {
				case "customer":
					customers.add(t.of.CustomerID, f.path, f.records())
				case "accountRep":
					if t.of.AccountRepID != "" {
						reps.add(t.of.AccountRepID, f.path, f.records())
					}
				case "items":
					atHand = append(atHand, p.itemsOf(ctx, t.of, f, &pages)...)
				case "item":
					sku, err := commerce.ParseID[commerce.SKU](f.text("productId"))
					if err != nil {
						continue
					}
					if item, ok := p.loaders.ItemAtHand(ctx, t.of, sku); !ok {
						single.add(dynamo.OrderItemKey{Order: t.of.ID, SKU: sku}, f.path, f.records())
					} else if item != nil {
						atHand = append(atHand, target[*commerce.LineItem]{item, f.records()})
					}
				case "itemCount":
					if _, ok := p.loaders.ItemsAtHand(ctx, t.of, uncountedItems); !ok && t.of.ItemCount == nil {
						pages.add(loaders.Listed[commerce.OrderID]{Of: t.of.ID, Page: uncountedItems}, f.path, nil)
					}
				}
			}
		}
	}
	p.primeOrders(ctx, targets)
	p.customerRefs(ctx, &customers)
	p.employeeRefs(ctx, &reps)
	startList(ctx, &pages, p.loaders.OrderItemsPage, p.items)
	start(ctx, &single, p.loaders.OrderItem.Plan, nil)
	p.itemRefs(ctx, &single)
	p.items(ctx, atHand)
}

// primeOrders lets items find the orders that they were reached through, where the query goes back to them.
func (p *plan) primeOrders(ctx context.Context, targets []target[*commerce.Order]) {
	var back []*commerce.Order
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				if (f.Name == "items" || f.Name == "item") && selects(f.records(), "order") {
					back = append(back, t.of)
				}
			}
		}
	}
	p.loaders.PrimeOrders(ctx, back)
}

// itemsOf gives the items of an order that are at hand, or adds the page of them that has to be read.
func (p *plan) itemsOf(ctx context.Context, o *commerce.Order, f *selected, pages *wanted[loaders.Listed[commerce.OrderID]]) []target[*commerce.LineItem] {
	asked := p.resolver.orderItems(o.ID, f.paging())
	if asked.err != nil || f.refused.Load() {
		return nil
	}
	more := false
	for _, s := range f.records() {
		more = more || s.readsMore()
	}
	if o.EmbedsItems && !more {
		return nil
	}
	slice, ok := p.loaders.ItemsAtHand(ctx, o, asked.key.Page)
	if !ok {
		pages.add(asked.key, f.path, f.records())
		return nil
	}
	targets := make([]target[*commerce.LineItem], len(slice.Items))
	for i, item := range slice.Items {
		targets[i] = target[*commerce.LineItem]{item, f.records()}
	}
	return targets
}

// items plans what follows from items of orders.
func (p *plan) items(ctx context.Context, targets []target[*commerce.LineItem]) {
	var keys wanted[dynamo.OrderItemKey]
	for _, t := range targets {
		keys.add(dynamo.OrderItemKey{Order: t.of.OrderID, SKU: t.of.SKU}, "", t.selections)
	}
	p.itemRefs(ctx, &keys)
}

// itemRefs plans what can be read of items by the ids of their orders and products.
func (p *plan) itemRefs(ctx context.Context, w *wanted[dynamo.OrderItemKey]) {
	var products wanted[commerce.SKU]
	var orders wanted[commerce.OrderID]
	for _, t := range w.targets() {
		for _, s := range t.selections {
			for _, f := range s.each() {
				switch f.Name {
				case "product":
					products.add(t.of.SKU, f.path, f.records())
				case "order":
					orders.add(t.of.Order, f.path, f.records())
				}
			}
		}
	}
	p.productRefs(ctx, &products)
	p.orderRefs(ctx, &orders)
}

// products plans what follows from a list of products.
func (p *plan) products(ctx context.Context, targets []target[*commerce.Product]) {
	skus := ids(targets, func(product *commerce.Product) commerce.SKU { return product.SKU })
	p.inventoryBySKU(ctx, skus)
	p.productSKUs(ctx, skus)
}

// productSKUs plans what can be read of products by their SKUs, but their inventory.
func (p *plan) productSKUs(ctx context.Context, targets []target[commerce.SKU]) {
	var items wanted[loaders.Listed[commerce.SKU]]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				if f.Name == "orderItems" {
					addList(&items, f, belonging(p.resolver, "Product.orderItems", t.of, f.paging()))
				}
			}
		}
	}
	startList(ctx, &items, p.loaders.ProductOrderItems, p.items)
}

// inventoryOf plans what follows from products that came with their inventory, and the inventory of those that have too much of
// it to come whole.
func (p *plan) inventoryOf(ctx context.Context, targets []target[*commerce.Product]) {
	var levels []target[*commerce.InventoryLevel]
	var late []target[commerce.SKU]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				if f.Name != "inventory" {
					continue
				}
				asked := p.resolver.productInventory(t.of.SKU, f.paging())
				if asked.err != nil || f.refused.Load() {
					continue
				}
				slice, ok := p.loaders.InventoryAtHand(ctx, t.of.SKU, asked.key.Page)
				if !ok {
					late = append(late, target[commerce.SKU]{t.of.SKU, []*selection{s}})
				}
				for _, level := range slice.Items {
					levels = append(levels, target[*commerce.InventoryLevel]{level, f.records()})
				}
			}
		}
	}
	p.levels(ctx, levels)
	p.inventoryPages(ctx, late)
}

// inventoryBySKU plans pages of the inventory of products, but those that come with it.
func (p *plan) inventoryBySKU(ctx context.Context, targets []target[commerce.SKU]) {
	alone := make([]target[commerce.SKU], 0, len(targets))
	for _, t := range targets {
		if !p.loaders.WholeProductPlanned(t.of) {
			alone = append(alone, t)
		}
	}
	p.inventoryPages(ctx, alone)
}

func (p *plan) inventoryPages(ctx context.Context, targets []target[commerce.SKU]) {
	var pages wanted[loaders.Listed[commerce.SKU]]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				if f.Name == "inventory" {
					addList(&pages, f, p.resolver.productInventory(t.of, f.paging()))
				}
			}
		}
	}
	startList(ctx, &pages, p.loaders.InventoryPage, p.levels)
}

// levels plans what follows from inventory levels.
func (p *plan) levels(ctx context.Context, targets []target[*commerce.InventoryLevel]) {
	p.levelRefs(ctx, ids(targets, func(l *commerce.InventoryLevel) dynamo.InventoryLevelKey {
		return dynamo.InventoryLevelKey{SKU: l.SKU, Warehouse: l.WarehouseID}
	}))
}

// levelRefs plans what can be read of inventory levels by the ids of their products and warehouses.
func (p *plan) levelRefs(ctx context.Context, targets []target[dynamo.InventoryLevelKey]) {
	var products wanted[commerce.SKU]
	var warehouses wanted[commerce.WarehouseID]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				switch f.Name {
				case "product":
					products.add(t.of.SKU, f.path, f.records())
				case "warehouse":
					warehouses.add(t.of.Warehouse, f.path, f.records())
				}
			}
		}
	}
	p.productRefs(ctx, &products)
	p.warehouseRefs(ctx, &warehouses)
}

// employees plans what follows from a list of employees.
func (p *plan) employees(ctx context.Context, targets []target[*commerce.Employee]) {
	p.employeeRecords(ctx, targets)
	p.employeeIDs(ctx, ids(targets, func(e *commerce.Employee) commerce.EmployeeID { return e.ID }))
}

// employeeIDs plans what can be read of employees by their ids.
func (p *plan) employeeIDs(ctx context.Context, targets []target[commerce.EmployeeID]) {
	var customers, orders wanted[loaders.Listed[commerce.EmployeeID]]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				switch f.Name {
				case "customers":
					addList(&customers, f, belonging(p.resolver, "Employee.customers", t.of, f.paging()))
				case "orders":
					addList(&orders, f, belonging(p.resolver, "Employee.orders", t.of, f.paging()))
				}
			}
		}
	}
	startList(ctx, &customers, p.loaders.EmployeeCustomers, p.customers)
	startList(ctx, &orders, p.loaders.EmployeeOrders, p.orders)
}

// employeeRecords plans what can only be read of employees when their records are there.
func (p *plan) employeeRecords(ctx context.Context, targets []target[*commerce.Employee]) {
	var warehouses wanted[commerce.WarehouseID]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				if f.Name == "warehouse" && t.of.WarehouseID != "" {
					warehouses.add(t.of.WarehouseID, f.path, f.records())
				}
			}
		}
	}
	p.warehouseRefs(ctx, &warehouses)
}

// warehouses plans what follows from a list of warehouses.
func (p *plan) warehouses(ctx context.Context, targets []target[*commerce.Warehouse]) {
	p.warehouseIDs(ctx, ids(targets, func(w *commerce.Warehouse) commerce.WarehouseID { return w.ID }))
}

// warehouseIDs plans what can be read of warehouses by their ids.
func (p *plan) warehouseIDs(ctx context.Context, targets []target[commerce.WarehouseID]) {
	var staff, stock wanted[loaders.Listed[commerce.WarehouseID]]
	for _, t := range targets {
		for _, s := range t.selections {
			for _, f := range s.each() {
				switch f.Name {
				case "employees":
					addList(&staff, f, belonging(p.resolver, "Warehouse.employees", t.of, f.paging()))
				case "inventory":
					addList(&stock, f, belonging(p.resolver, "Warehouse.inventory", t.of, f.paging()))
				}
			}
		}
	}
	startList(ctx, &staff, p.loaders.WarehouseEmployees, p.employees)
	startList(ctx, &stock, p.loaders.WarehouseInventory, p.levels)
}
