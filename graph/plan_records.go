package graph

import (
	"context"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/loaders"
)

// What a query selects of each kind of record is planned in two steps: by the record's ID, together
// with reading the record itself, and by the record, when it is there. The fields that access
// patterns read are generated (reads_generated.go). Here are the kinds of records, and the fields
// that the schema says are planned by hand.

// refs plans records that others refer to by ID, and what can be read by their IDs alone.
func (p plan) refs(ctx context.Context, r *refs) {
	startRecords(ctx, p, &r.inventoryLevels, model.InventoryLevel, nil)
	levelRefs(r.inventoryLevels.targets(), r)
	p.orderRefs(ctx, &r.orders)
	p.productRefs(ctx, &r.products)
	p.customerRefs(ctx, &r.customers)
	startRecords(ctx, p, &r.employees, model.EmployeeByID, plan.employeeRecords)
	p.employeeIDs(ctx, r.employees.targets())
	startRecords(ctx, p, &r.warehouses, model.WarehouseByID, nil)
	p.warehouseLists(ctx, r.warehouses.targets())
}

// wholeRefs plans orders with their timelines and products with their inventory. Those of refs that
// refer to the same come from there.
func (p plan) wholeRefs(ctx context.Context, r *refs) {
	start(ctx, p, &r.wholeOrders, p.loaders.PlanWholeOrders, plan.wholeOrders)
	start(ctx, p, &r.wholeProducts, p.loaders.PlanWholeProducts, plan.inventoryOf)
	p.productLists(ctx, r.wholeProducts.targets())
}

func (p plan) customerRefs(ctx context.Context, w *wanted[commerce.CustomerID]) {
	startRecords(ctx, p, w, model.CustomerByID, plan.customerRecords)
	p.customerIDs(ctx, w.targets())
}

// orderRefs takes orders that come with their timelines from there.
func (p plan) orderRefs(ctx context.Context, w *wanted[commerce.OrderID]) {
	whole, alone := w.split(p.loaders.WholeOrderPlanned)
	start(ctx, p, &whole, p.loaders.PlanWholeOrders, plan.wholeOrders)
	startOrders(ctx, p, &alone, model.OrderByID, func(id commerce.OrderID) commerce.OrderID { return id })
}

// startOrders plans orders and what belongs to them: by their ids at once, but for those who see
// the own orders only, as it is not known yet whose they are.
func startOrders[K comparable](ctx context.Context, p plan, w *wanted[K], pattern *model.Lookup[K, *commerce.Order], id func(K) commerce.OrderID) {
	if p.loaders.OwnOrders() {
		startRecords(ctx, p, w, pattern, plan.orders)
		return
	}
	startRecords(ctx, p, w, pattern, plan.orderRecords)
	planOrderIDs(ctx, p, w.targets(), id)
}

// productRefs takes products that come with their inventory from there.
func (p plan) productRefs(ctx context.Context, w *wanted[commerce.SKU]) {
	whole, alone := w.split(p.loaders.WholeProductPlanned)
	start(ctx, p, &whole, p.loaders.PlanWholeProducts, plan.inventoryOf)
	startRecords(ctx, p, &alone, model.ProductBySKU, nil)
	p.inventoryBySKU(ctx, alone.targets())
	p.productLists(ctx, w.targets())
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
func (p plan) customers(ctx context.Context, targets []target[*commerce.Customer]) {
	p.primeCustomers(ctx, targets)
	p.customerRecords(ctx, targets)
	p.customerIDs(ctx, ids(targets, func(c *commerce.Customer) commerce.CustomerID { return c.ID }))
}

// primeCustomers lets orders find the customers that they were reached through, where the query
// goes back to them.
func (p plan) primeCustomers(ctx context.Context, targets []target[*commerce.Customer]) {
	for customer, f := range fields(targets) {
		// An edge lacks the count, so it cannot stand for the customer's record.
		if f.Name == "orders" && customer.OrderCount != nil && operation.Selects(f.Records, "customer") {
			loaders.Records(p.loaders, model.CustomerByID).Prime(ctx, customer.ID, customer)
		}
	}
}

// customerIDs plans what can be read of customers by their ids.
func (p plan) customerIDs(ctx context.Context, targets []target[commerce.CustomerID]) {
	p.customerLists(ctx, targets)
	var orders wanted[model.CustomerOrderKey]
	var spending wanted[dynamo.ListRequest]
	for customer, f := range fields(targets) {
		if f.Name == "spending" {
			if key, err := loaders.SpendingOf(customer, argumentsOf[customerSpendingArguments](p, f).placed); err == nil {
				spending.add(key, f.Path, f.Records)
			}
		}
		if f.Name == "order" {
			if id, ok := lookupID[commerce.OrderID](argumentsOf[customerOrderArguments](p, f).id); ok {
				orders.add(model.CustomerOrderKey{Customer: customer, Order: id}, f.Path, f.Records)
			}
		}
	}
	startList(ctx, p, &spending, model.CustomerSpending, nil)
	startOrders(ctx, p, &orders, model.CustomerOrder, func(k model.CustomerOrderKey) commerce.OrderID { return k.Order })
}

// customerRecords plans what can only be read of customers when their records are there.
func (p plan) customerRecords(ctx context.Context, targets []target[*commerce.Customer]) {
	var to refs
	var uncounted []*commerce.Customer
	path := ""
	for customer, f := range fields(targets) {
		if f.Name == "orderCount" && customer.OrderCount == nil {
			uncounted, path = append(uncounted, customer), f.Path
			continue
		}
		if f.Name == "spending" && !customer.SpendingComplete { // an edge does not tell
			to.customers.add(customer.ID, f.Path, nil)
		}
		customerReference(customer, f, &to)
	}
	p.refs(ctx, &to)
	if len(uncounted) > 0 {
		p.loaders.PlanOrderCounts(table.SpanOf(ctx).At(ctx, path), p.level, uncounted)
	}
}

// orders plans what follows from a list of orders.
func (p plan) orders(ctx context.Context, targets []target[*commerce.Order]) {
	p.orderRecords(ctx, targets)
	planOrderIDs(ctx, p, targets, func(o *commerce.Order) commerce.OrderID { return o.ID })
}

// planOrderIDs plans what can be read of orders by their ids. Those that come with their timelines
// are waited for in the level: whether they have come is not to be asked before it runs, as whoever
// asks then reads them, and all else that the level knows would wait.
func planOrderIDs[T any](ctx context.Context, p plan, targets []target[T], id func(T) commerce.OrderID) {
	var timelines wanted[dynamo.ListRequest]
	var whole wanted[commerce.OrderID]
	for i := range targets {
		id := id(targets[i].of)
		for _, f := range fields(targets[i : i+1]) {
			switch {
			case f.Name != "timeline":
			case p.loaders.WholeOrderPlanned(id):
				whole.add(id, f.Path, targets[i].selections)
			default:
				q := p.timelineOf(f, id)
				addList(p, &timelines, f, &q)
			}
		}
	}
	startList(ctx, p, &timelines, model.Timeline, plan.orderEvents)
	start(ctx, p, &whole, p.loaders.PlanWholeOrders, plan.wholeTimelines)
}

// timelineOf is the request for a page of an order's timeline.
func (p plan) timelineOf(f *operation.Field, id commerce.OrderID) paging.Request {
	return p.resolver.timeline(id, argumentsOf[orderTimelineArguments](p, f), f.Beyond)
}

// wholeOrders plans what follows from orders that came with their timelines.
func (p plan) wholeOrders(ctx context.Context, targets []target[*commerce.Order]) {
	p.orderRecords(ctx, targets)
	p.wholeTimelines(ctx, targets)
}

// wholeTimelines plans what follows from the timelines of orders that were to come with them, and
// those of orders that are too large to come whole.
func (p plan) wholeTimelines(ctx context.Context, targets []target[*commerce.Order]) {
	var timelines wanted[dynamo.ListRequest]
	var events []target[*commerce.Event]
	for order, f := range fields(targets) {
		if f.Name != "timeline" {
			continue
		}
		asked := p.timelineOf(f, order.ID)
		if asked.Err != nil || p.argumentsOf(f) == nil {
			continue
		}
		slice, ok := p.loaders.TimelineAtHand(order.ID, asked.Key.Page)
		if !ok {
			addList(p, &timelines, f, &asked)
		}
		for _, event := range slice.Items {
			events = append(events, target[*commerce.Event]{event, f.Records})
		}
	}
	p.orderEvents(ctx, events)
	startList(ctx, p, &timelines, model.Timeline, plan.orderEvents)
}

// orderEvents plans what follows from events of orders.
func (p plan) orderEvents(ctx context.Context, targets []target[*commerce.Event]) {
	var to refs
	for event, f := range fields(targets) {
		orderEventReference(event, f, &to)
	}
	p.refs(ctx, &to)
}

// orderRecords plans what can only be read of orders when their records are there.
func (p plan) orderRecords(ctx context.Context, targets []target[*commerce.Order]) {
	var (
		to     refs
		pages  wanted[dynamo.ListRequest]
		single wanted[model.OrderItemKey]
		atHand []target[*commerce.LineItem]
	)
	to.customers.room = len(targets)
	for order, f := range fields(targets) {
		switch f.Name {
		case "items":
			atHand = append(atHand, p.itemsOf(order, f, &pages)...)
		case "item":
			sku, ok := lookupID[commerce.SKU](argumentsOf[orderItemArguments](p, f).productID)
			if !ok {
				continue
			}
			if item, ok := p.loaders.ItemAtHand(order, sku); !ok {
				single.add(model.OrderItemKey{Order: order.ID, SKU: sku}, f.Path, f.Records)
			} else if item != nil {
				atHand = append(atHand, target[*commerce.LineItem]{item, f.Records})
			}
		case "itemCount":
			if order.ItemCount == nil {
				p.countItems(order, f, &pages)
			}
		default:
			orderReference(order, f, &to)
		}
	}
	p.primeOrders(ctx, targets)
	startList(ctx, p, &pages, model.OrderItems, plan.lineItems)
	startRecords(ctx, p, &single, model.OrderItem, nil)
	itemRefs(single.targets(), &to)
	itemRefs(itemKeys(atHand), &to)
	p.refs(ctx, &to)
}

// countItems adds all items of an order that keeps no count of them, unless they are at hand.
func (p plan) countItems(o *commerce.Order, f *operation.Field, pages *wanted[dynamo.ListRequest]) {
	all := loaders.AllItems(o.ID)
	if _, ok := p.loaders.ItemsAtHand(o, all.Page); !ok {
		pages.add(all, f.Path, nil)
	}
}

// primeOrders lets items find the orders that they were reached through, where the query goes back
// to them.
func (p plan) primeOrders(ctx context.Context, targets []target[*commerce.Order]) {
	var back []*commerce.Order
	for order, f := range fields(targets) {
		if (f.Name == "items" || f.Name == "item") && operation.Selects(f.Records, "order") {
			back = append(back, order)
		}
	}
	p.loaders.PrimeOrders(ctx, back)
}

// itemsOf gives the items of an order that are at hand, or adds the page of them that has to be
// read.
func (p plan) itemsOf(o *commerce.Order, f *operation.Field, pages *wanted[dynamo.ListRequest]) []target[*commerce.LineItem] {
	if o.EmbedsItems && !slices.ContainsFunc(f.Records, (*operation.SelectionSet).ReadsMore) {
		return nil
	}
	asked := p.resolver.orderItems(o.ID, argumentsOf[orderItemsArguments](p, f), f.Beyond)
	if asked.Err != nil || p.argumentsOf(f) == nil {
		return nil
	}
	slice, ok := p.loaders.ItemsAtHand(o, asked.Key.Page)
	if !ok {
		key := asked.Key
		if o.ItemCount == nil && f.WithCount {
			key = loaders.AllItems(o.ID) // one Query serves the count and the page
		}
		pages.add(key, f.Path, f.Records)
		return nil
	}
	targets := make([]target[*commerce.LineItem], len(slice.Items))
	for i, item := range slice.Items {
		targets[i] = target[*commerce.LineItem]{item, f.Records}
	}
	return targets
}

// lineItems plans what follows from items of orders.
func (p plan) lineItems(ctx context.Context, targets []target[*commerce.LineItem]) {
	var to refs
	itemRefs(itemKeys(targets), &to)
	p.refs(ctx, &to)
}

func itemKeys(targets []target[*commerce.LineItem]) []target[model.OrderItemKey] {
	return ids(targets, func(i *commerce.LineItem) model.OrderItemKey {
		return model.OrderItemKey{Order: i.OrderID, SKU: i.SKU}
	})
}

// itemRefs adds what items refer to: their orders and products.
func itemRefs(targets []target[model.OrderItemKey], to *refs) {
	for key, f := range fields(targets) {
		orderItemReference(key, f, to)
	}
}

// products plans what follows from a list of products.
func (p plan) products(ctx context.Context, targets []target[*commerce.Product]) {
	p.stockOf(ctx, targets)
	p.inventoryOf(ctx, targets)
	p.productLists(ctx, ids(targets, func(product *commerce.Product) commerce.SKU { return product.SKU }))
}

// stockOf plans the records of products from lists that lack the stock.
func (p plan) stockOf(ctx context.Context, targets []target[*commerce.Product]) {
	var partial wanted[commerce.SKU]
	for product, f := range fields(targets) {
		if product.Partial && (f.Name == "totalInventory" || f.Name == "available" || f.Name == "orderCount") {
			partial.add(product.SKU, f.Path, nil)
		}
	}
	startRecords(ctx, p, &partial, model.ProductBySKU, nil)
}

// inventoryOf plans what follows from products that came with their inventory, as others of the
// query may have, and the inventory of those that did not, or have too much of it to come whole.
func (p plan) inventoryOf(ctx context.Context, targets []target[*commerce.Product]) {
	var levels []target[*commerce.InventoryLevel]
	var late wanted[dynamo.ListRequest]
	for product, f := range fields(targets) {
		if f.Name != "inventory" {
			continue
		}
		asked := p.resolver.productInventory(product.SKU, argumentsOf[productInventoryArguments](p, f), f.Beyond)
		if asked.Err != nil || p.argumentsOf(f) == nil {
			continue
		}
		slice, ok := p.loaders.InventoryAtHand(product.SKU, asked.Key.Page)
		if !ok {
			addList(p, &late, f, &asked)
		}
		for _, level := range slice.Items {
			levels = append(levels, target[*commerce.InventoryLevel]{level, f.Records})
		}
	}
	p.inventoryLevels(ctx, levels)
	startList(ctx, p, &late, model.ProductInventory, plan.inventoryLevels)
}

// inventoryBySKU plans pages of the inventory of products.
func (p plan) inventoryBySKU(ctx context.Context, targets []target[commerce.SKU]) {
	var pages wanted[dynamo.ListRequest]
	for sku, f := range fields(targets) {
		if f.Name == "inventory" {
			q := p.resolver.productInventory(sku, argumentsOf[productInventoryArguments](p, f), f.Beyond)
			addList(p, &pages, f, &q)
		}
	}
	startList(ctx, p, &pages, model.ProductInventory, plan.inventoryLevels)
}

// inventoryLevels plans what follows from inventory levels.
func (p plan) inventoryLevels(ctx context.Context, targets []target[*commerce.InventoryLevel]) {
	var to refs
	levelRefs(ids(targets, func(l *commerce.InventoryLevel) model.InventoryLevelKey {
		return model.InventoryLevelKey{SKU: l.SKU, Warehouse: l.WarehouseID}
	}), &to)
	p.refs(ctx, &to)
}

// levelRefs adds what inventory levels refer to: their products and warehouses.
func levelRefs(targets []target[model.InventoryLevelKey], to *refs) {
	for key, f := range fields(targets) {
		inventoryLevelReference(key, f, to)
	}
}

// categories plans nothing: a category refers to no record.
func (plan) categories(context.Context, []target[*commerce.Category]) {}

// employees plans what follows from a list of employees.
func (p plan) employees(ctx context.Context, targets []target[*commerce.Employee]) {
	p.employeeRecords(ctx, targets)
	p.employeeIDs(ctx, ids(targets, func(e *commerce.Employee) commerce.EmployeeID { return e.ID }))
}

// employeeIDs plans what can be read of employees by their ids.
func (p plan) employeeIDs(ctx context.Context, targets []target[commerce.EmployeeID]) {
	p.employeeLists(ctx, targets)
	var counts wanted[dynamo.ListRequest]
	for employee, f := range fields(targets) {
		if f.Name == "orderCount" {
			counts.add(loaders.RepOrdersOf(employee), f.Path, nil)
		}
	}
	startList(ctx, p, &counts, model.EmployeeOrderCount, nil)
}

// employeeRecords plans what can only be read of employees when their records are there.
func (p plan) employeeRecords(ctx context.Context, targets []target[*commerce.Employee]) {
	var to refs
	for employee, f := range fields(targets) {
		employeeReference(employee, f, &to)
	}
	p.refs(ctx, &to)
}

// warehouses plans what follows from a list of warehouses.
func (p plan) warehouses(ctx context.Context, targets []target[*commerce.Warehouse]) {
	p.warehouseLists(ctx, ids(targets, func(w *commerce.Warehouse) commerce.WarehouseID { return w.ID }))
}
