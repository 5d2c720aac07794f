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

// The selections of each kind of record are planned in two steps. Fields that need only the
// record's ID are planned together with the record. The other fields are planned when the record
// has been read. The plans of fields with an access pattern are generated (reads_generated.go).
// This file plans the kinds of records, and the fields that the schema declares with
// @reads(byHand).

// planReferences plans referenced records, and the reads that need only their IDs.
func (p plan) planReferences(ctx context.Context, r *refs) {
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

// wholeRefs plans order item collections and product item collections. Later references to the same
// records use these collections.
func (p plan) wholeRefs(ctx context.Context, r *refs) {
	planKeys(ctx, p, &r.wholeOrders, p.loaders.PlanWholeOrders, plan.wholeOrders)
	planKeys(ctx, p, &r.wholeProducts, p.loaders.PlanWholeProducts, plan.inventoryOf)
	p.productLists(ctx, r.wholeProducts.targets())
}

func (p plan) customerRefs(ctx context.Context, w *wanted[commerce.CustomerID]) {
	startRecords(ctx, p, w, model.CustomerByID, plan.customerRecords)
	p.customerIDs(ctx, w.targets())
}

// orderRefs plans orders. Orders whose item collection is already planned are taken from there.
func (p plan) orderRefs(ctx context.Context, w *wanted[commerce.OrderID]) {
	collections, single := w.split(p.loaders.WholeOrderPlanned)
	planKeys(ctx, p, &collections, p.loaders.PlanWholeOrders, plan.wholeOrders)
	startOrders(ctx, p, &single, model.OrderByID, func(id commerce.OrderID) commerce.OrderID { return id })
}

// startOrders plans orders and the reads that need only their IDs. Callers who see only their own
// orders read the orders first, because the owners must be known.
func startOrders[K comparable](ctx context.Context, p plan, w *wanted[K], pattern *model.Lookup[K, *commerce.Order], id func(K) commerce.OrderID) {
	if p.loaders.OwnOrders() {
		startRecords(ctx, p, w, pattern, plan.orders)
		return
	}
	startRecords(ctx, p, w, pattern, plan.orderRecords)
	planOrderIDs(ctx, p, w.targets(), id)
}

// productRefs plans products. Products whose item collection is already planned are taken from
// there.
func (p plan) productRefs(ctx context.Context, w *wanted[commerce.SKU]) {
	collections, single := w.split(p.loaders.WholeProductPlanned)
	planKeys(ctx, p, &collections, p.loaders.PlanWholeProducts, plan.inventoryOf)
	startRecords(ctx, p, &single, model.ProductBySKU, nil)
	p.inventoryBySKU(ctx, single.targets())
	p.productLists(ctx, w.targets())
}

// ids converts targets to targets with the IDs of their records.
func ids[ID, T any](targets []target[T], id func(T) ID) []target[ID] {
	out := make([]target[ID], len(targets))
	for i, t := range targets {
		out[i] = target[ID]{id(t.of), t.selections}
	}
	return out
}

// customers plans the selections of customers in a list.
func (p plan) customers(ctx context.Context, targets []target[*commerce.Customer]) {
	p.primeCustomers(ctx, targets)
	p.customerRecords(ctx, targets)
	p.customerIDs(ctx, ids(targets, func(c *commerce.Customer) commerce.CustomerID { return c.ID }))
}

// primeCustomers stores customers in the loader if the query selects the customer of a customer's
// orders. The orders then need no read for their customer.
func (p plan) primeCustomers(ctx context.Context, targets []target[*commerce.Customer]) {
	for customer, f := range fields(targets) {
		// A record from an edge lacks the count, so it cannot replace the customer's record.
		if f.Name == "orders" && customer.OrderCount != nil && operation.Selects(f.Records, "customer") {
			loaders.Records(p.loaders, model.CustomerByID).Prime(ctx, customer.ID, customer)
		}
	}
}

// customerIDs plans the reads that need only the IDs of customers.
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

// customerRecords plans the reads that need the records of customers.
func (p plan) customerRecords(ctx context.Context, targets []target[*commerce.Customer]) {
	var to refs
	var uncounted []*commerce.Customer
	path := ""
	for customer, f := range fields(targets) {
		if f.Name == "orderCount" && customer.OrderCount == nil {
			uncounted, path = append(uncounted, customer), f.Path
			continue
		}
		if f.Name == "spending" && !customer.SpendingComplete { // an edge does not contain this attribute
			to.customers.add(customer.ID, f.Path, nil)
		}
		customerReference(customer, f, &to)
	}
	p.planReferences(ctx, &to)
	if len(uncounted) > 0 {
		p.loaders.PlanOrderCounts(table.SpanOf(ctx).At(ctx, path), p.level, uncounted)
	}
}

// orders plans the selections of orders in a list.
func (p plan) orders(ctx context.Context, targets []target[*commerce.Order]) {
	p.orderRecords(ctx, targets)
	planOrderIDs(ctx, p, targets, func(o *commerce.Order) commerce.OrderID { return o.ID })
}

// planOrderIDs plans the reads that need only the IDs of orders. If an order item collection is
// already planned, its timeline is planned as part of the level. Asking the loader for the
// collection before the level runs would read it at once and delay the other reads of the level.
func planOrderIDs[T any](ctx context.Context, p plan, targets []target[T], id func(T) commerce.OrderID) {
	var timelines wanted[dynamo.ListRequest]
	var collections wanted[commerce.OrderID]
	for i := range targets {
		id := id(targets[i].of)
		for _, f := range fields(targets[i : i+1]) {
			switch {
			case f.Name != "timeline":
			case p.loaders.WholeOrderPlanned(id):
				collections.add(id, f.Path, targets[i].selections)
			default:
				q := p.timelineOf(f, id)
				addList(p, &timelines, f, &q)
			}
		}
	}
	startList(ctx, p, &timelines, model.Timeline, plan.orderEvents)
	planKeys(ctx, p, &collections, p.loaders.PlanWholeOrders, plan.wholeTimelines)
}

func (p plan) timelineOf(f *operation.Field, id commerce.OrderID) paging.Request {
	return p.resolver.timeline(id, argumentsOf[orderTimelineArguments](p, f), f.Beyond)
}

// wholeOrders plans the selections of orders that were read as item collections.
func (p plan) wholeOrders(ctx context.Context, targets []target[*commerce.Order]) {
	p.orderRecords(ctx, targets)
	p.wholeTimelines(ctx, targets)
}

// wholeTimelines plans the selections in timelines that were read with their orders. It also plans
// the timelines of orders whose item collection is too large for one read.
func (p plan) wholeTimelines(ctx context.Context, targets []target[*commerce.Order]) {
	var timelines wanted[dynamo.ListRequest]
	var events []target[*commerce.Event]
	for order, f := range fields(targets) {
		if f.Name != "timeline" {
			continue
		}
		request := p.timelineOf(f, order.ID)
		if request.Err != nil || p.argumentsOf(f) == nil {
			continue
		}
		slice, ok := p.loaders.TimelineAtHand(order.ID, request.Key.Page)
		if !ok {
			addList(p, &timelines, f, &request)
		}
		for _, event := range slice.Items {
			events = append(events, target[*commerce.Event]{event, f.Records})
		}
	}
	p.orderEvents(ctx, events)
	startList(ctx, p, &timelines, model.Timeline, plan.orderEvents)
}

func (p plan) orderEvents(ctx context.Context, targets []target[*commerce.Event]) {
	var to refs
	for event, f := range fields(targets) {
		orderEventReference(event, f, &to)
	}
	p.planReferences(ctx, &to)
}

// orderRecords plans the reads that need the records of orders.
func (p plan) orderRecords(ctx context.Context, targets []target[*commerce.Order]) {
	var (
		to     refs
		pages  wanted[dynamo.ListRequest]
		single wanted[model.OrderItemKey]
		loaded []target[*commerce.LineItem]
	)
	to.customers.room = len(targets)
	for order, f := range fields(targets) {
		switch f.Name {
		case "items":
			loaded = append(loaded, p.itemsOf(order, f, &pages)...)
		case "item":
			sku, ok := lookupID[commerce.SKU](argumentsOf[orderItemArguments](p, f).productID)
			if !ok {
				continue
			}
			if item, ok := p.loaders.ItemAtHand(order, sku); !ok {
				single.add(model.OrderItemKey{Order: order.ID, SKU: sku}, f.Path, f.Records)
			} else if item != nil {
				loaded = append(loaded, target[*commerce.LineItem]{item, f.Records})
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
	itemRefs(itemKeys(loaded), &to)
	p.planReferences(ctx, &to)
}

// countItems adds a read of all items of an order without a stored count, unless the items have
// been read.
func (p plan) countItems(o *commerce.Order, f *operation.Field, pages *wanted[dynamo.ListRequest]) {
	allItems := loaders.AllItems(o.ID)
	if _, ok := p.loaders.ItemsAtHand(o, allItems.Page); !ok {
		pages.add(allItems, f.Path, nil)
	}
}

// primeOrders stores orders in the loader if the query selects the order of an order's items. The
// items then need no read for their order.
func (p plan) primeOrders(ctx context.Context, targets []target[*commerce.Order]) {
	var orders []*commerce.Order
	for order, f := range fields(targets) {
		if (f.Name == "items" || f.Name == "item") && operation.Selects(f.Records, "order") {
			orders = append(orders, order)
		}
	}
	p.loaders.PrimeOrders(ctx, orders)
}

// itemsOf returns the items of an order if they have been read. Otherwise it adds the page that
// must be read.
func (p plan) itemsOf(o *commerce.Order, f *operation.Field, pages *wanted[dynamo.ListRequest]) []target[*commerce.LineItem] {
	if o.EmbedsItems && !slices.ContainsFunc(f.Records, (*operation.SelectionSet).ReadsMore) {
		return nil
	}
	request := p.resolver.orderItems(o.ID, argumentsOf[orderItemsArguments](p, f), f.Beyond)
	if request.Err != nil || p.argumentsOf(f) == nil {
		return nil
	}
	slice, ok := p.loaders.ItemsAtHand(o, request.Key.Page)
	if !ok {
		key := request.Key
		if o.ItemCount == nil && f.WithCount {
			key = loaders.AllItems(o.ID) // one Query returns the count and the page
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

func (p plan) lineItems(ctx context.Context, targets []target[*commerce.LineItem]) {
	var to refs
	itemRefs(itemKeys(targets), &to)
	p.planReferences(ctx, &to)
}

func itemKeys(targets []target[*commerce.LineItem]) []target[model.OrderItemKey] {
	return ids(targets, func(i *commerce.LineItem) model.OrderItemKey {
		return model.OrderItemKey{Order: i.OrderID, SKU: i.SKU}
	})
}

// itemRefs adds the references of line items: their orders and products.
func itemRefs(targets []target[model.OrderItemKey], to *refs) {
	for key, f := range fields(targets) {
		orderItemReference(key, f, to)
	}
}

// products plans the selections of products in a list.
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

// inventoryOf plans the selections of inventory that was read with its product. It also plans the
// inventory of other products, and of products whose item collection is too large for one read.
func (p plan) inventoryOf(ctx context.Context, targets []target[*commerce.Product]) {
	var levels []target[*commerce.InventoryLevel]
	var missing wanted[dynamo.ListRequest]
	for product, f := range fields(targets) {
		if f.Name != "inventory" {
			continue
		}
		request := p.resolver.productInventory(product.SKU, argumentsOf[productInventoryArguments](p, f), f.Beyond)
		if request.Err != nil || p.argumentsOf(f) == nil {
			continue
		}
		slice, ok := p.loaders.InventoryAtHand(product.SKU, request.Key.Page)
		if !ok {
			addList(p, &missing, f, &request)
		}
		for _, level := range slice.Items {
			levels = append(levels, target[*commerce.InventoryLevel]{level, f.Records})
		}
	}
	p.inventoryLevels(ctx, levels)
	startList(ctx, p, &missing, model.ProductInventory, plan.inventoryLevels)
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

func (p plan) inventoryLevels(ctx context.Context, targets []target[*commerce.InventoryLevel]) {
	var to refs
	levelRefs(ids(targets, func(l *commerce.InventoryLevel) model.InventoryLevelKey {
		return model.InventoryLevelKey{SKU: l.SKU, Warehouse: l.WarehouseID}
	}), &to)
	p.planReferences(ctx, &to)
}

// levelRefs adds the references of inventory levels: their products and warehouses.
func levelRefs(targets []target[model.InventoryLevelKey], to *refs) {
	for key, f := range fields(targets) {
		inventoryLevelReference(key, f, to)
	}
}

// categories plans nothing, because a category refers to no record.
func (plan) categories(context.Context, []target[*commerce.Category]) {}

// employees plans the selections of employees in a list.
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

// employeeRecords plans the reads that need the records of employees.
func (p plan) employeeRecords(ctx context.Context, targets []target[*commerce.Employee]) {
	var to refs
	for employee, f := range fields(targets) {
		employeeReference(employee, f, &to)
	}
	p.planReferences(ctx, &to)
}

// warehouses plans the selections of warehouses in a list.
func (p plan) warehouses(ctx context.Context, targets []target[*commerce.Warehouse]) {
	p.warehouseLists(ctx, ids(targets, func(w *commerce.Warehouse) commerce.WarehouseID { return w.ID }))
}
