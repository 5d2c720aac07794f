package graph

import (
	"context"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/loaders"
)

// A read that needs only the ID of a record runs in the same level as the read of the record. All
// other reads that depend on a record run after it. reads_generated.go contains the code for most
// fields with @reads. The code in this file handles the fields with @reads(byHand).

// planCollections schedules reads of the item collections of orders and products. If the plan needs
// another record of such an item collection, the plan uses the item collection.
func (p plan) planCollections(ctx context.Context, r *pendingRecords) {
	planKeys(ctx, p, &r.orderCollections, loaders.RecordLoader(p.loaders, model.OrderByID).PlanCollections, plan.orders)
	planKeys(ctx, p, &r.productCollections, loaders.RecordLoader(p.loaders, model.ProductBySKU).PlanCollections, plan.planAfterProducts)
	p.productLists(ctx, r.productCollections.targets())
}

func (p plan) planOrdersByID(ctx context.Context, w *pendingKeys[commerce.OrderID]) {
	planOrders(ctx, p, w, model.OrderByID, func(id commerce.OrderID) commerce.OrderID { return id })
}

func (p plan) planProductsByID(ctx context.Context, w *pendingKeys[commerce.SKU]) {
	planRecords(ctx, p, w, model.ProductBySKU, plan.planAfterProducts)
	p.productLists(ctx, w.targets())
}

// products plans the reads that the selected fields of products require. The products themselves have
// already been read.
func (p plan) products(ctx context.Context, targets []planTarget[*commerce.Product]) {
	p.planAfterProducts(ctx, targets)
	p.productLists(ctx, targetIDs(targets, func(r *commerce.Product) commerce.SKU { return r.SKU }))
}

// planAfterProducts plans the reads that depend on the products' records.
func (p plan) planAfterProducts(ctx context.Context, targets []planTarget[*commerce.Product]) {
	var to pendingRecords
	var buckets pendingKeys[dynamo.StockBucketsOf]
	for product, f := range selectedFields(targets) {
		if f.Number != fieldProductAvailable && f.Number != fieldProductOrderCount {
			productReference(product, f, &to)
			continue
		}
		if product.Partial {
			to.products.add(product.SKU, f.Path, nil)
		}
		if product.StockBuckets > 1 {
			buckets.add(dynamo.StockBucketsOf{SKU: product.SKU, Buckets: product.StockBuckets}, f.Path, nil)
		}
	}
	planKeys(ctx, p, &buckets, p.loaders.StockBuckets.Plan, nil)
	p.planReferences(ctx, &to)
}

func (p plan) planCustomersByID(ctx context.Context, w *pendingKeys[commerce.CustomerID]) {
	planRecords(ctx, p, w, model.CustomerByID, plan.planAfterCustomers)
	p.planByCustomerID(ctx, w.targets())
}

// planOrders schedules lookups of orders and the reads that need only the orders' IDs. If the
// caller may see only its own orders, these reads run after the lookups.
func planOrders[K comparable](ctx context.Context, p plan, w *pendingKeys[K], pattern *model.LookupPattern[K, *commerce.Order], id func(K) commerce.OrderID) {
	if p.loaders.OnlyOwnOrders() {
		planRecords(ctx, p, w, pattern, plan.orders)
		return
	}
	planRecords(ctx, p, w, pattern, plan.planAfterOrders)
	p.orderLists(ctx, targetIDs(w.targets(), id))
}

// targetIDs replaces the record in each target with the ID of the record.
func targetIDs[ID, T any](targets []planTarget[T], id func(T) ID) []planTarget[ID] {
	out := make([]planTarget[ID], len(targets))
	for i, t := range targets {
		out[i] = planTarget[ID]{id(t.value), t.selections}
	}
	return out
}

// customers plans the reads that the selected fields of customers require. The customers themselves
// have already been read.
func (p plan) customers(ctx context.Context, targets []planTarget[*commerce.Customer]) {
	p.primeCustomers(ctx, targets)
	p.planAfterCustomers(ctx, targets)
	p.planByCustomerID(ctx, targetIDs(targets, func(c *commerce.Customer) commerce.CustomerID { return c.ID }))
}

// deletedCustomers plans nothing, because a deleted customer has no fields that are read separately.
func (p plan) deletedCustomers(context.Context, []planTarget[*commerce.DeletedCustomer]) {}

// unmatchedPayments plans nothing, because an unmatched payment has no fields that are read
// separately.
func (p plan) unmatchedPayments(context.Context, []planTarget[*commerce.UnmatchedPayment]) {}

// webhooks plans the reads that the selected fields of webhooks require.
func (p plan) webhooks(ctx context.Context, targets []planTarget[*commerce.Webhook]) {
	var states pendingKeys[commerce.WebhookID]
	var failures pendingKeys[dynamo.ListRequest]
	for webhook, f := range selectedFields(targets) {
		if f.Number != fieldWebhookFailures {
			states.add(webhook.ID, f.Path, nil)
			continue
		}
		q := p.resolver.webhookFailuresRequest(webhook, argumentsOf[webhookFailuresArguments](p, f), f.PageInfo)
		addList(&failures, f, &q)
	}
	planRecords(ctx, p, &states, model.WebhookStates, nil)
	planList(ctx, p, &failures, model.WebhookFailures, nil)
}

// primeCustomers adds customers to the loader of customers if the query selects "orders { customer
// }". Resolving the field "customer" then needs no read.
func (p plan) primeCustomers(ctx context.Context, targets []planTarget[*commerce.Customer]) {
	for customer, f := range selectedFields(targets) {
		// A customer without an order count may come from a list whose records lack some
		// attributes. Such a customer must not replace the complete record in the loader.
		if f.Number == fieldCustomerOrders && customer.OrderCount != nil && operation.SelectsFieldWithReads(f.Records, fieldOrderCustomer) {
			loaders.RecordLoader(p.loaders, model.CustomerByID).Prime(ctx, customer.ID, customer)
		}
	}
}

// planByCustomerID plans the reads that depend only on the customers' IDs.
func (p plan) planByCustomerID(ctx context.Context, targets []planTarget[commerce.CustomerID]) {
	p.customerLists(ctx, targets)
	var spending pendingKeys[dynamo.ListRequest]
	for customer, f := range selectedFields(targets) {
		if f.Number == fieldCustomerSpending {
			if key, err := loaders.SpendingRequest(customer, argumentsOf[customerSpendingArguments](p, f).placed); err == nil {
				spending.add(key, f.Path, f.Records)
			}
		}
	}
	planList(ctx, p, &spending, model.CustomerSpending, nil)
}

// planAfterCustomers plans the reads that depend on the customers' records.
func (p plan) planAfterCustomers(ctx context.Context, targets []planTarget[*commerce.Customer]) {
	var to pendingRecords
	var uncounted []*commerce.Customer
	path := ""
	for customer, f := range selectedFields(targets) {
		if f.Number == fieldCustomerOrderCount && customer.OrderCount == nil {
			uncounted, path = append(uncounted, customer), f.Path
			continue
		}
		if f.Number == fieldCustomerSpending && !customer.SpendingComplete { // it is always false in a copy from a list, so read the customer's own record
			to.customers.add(customer.ID, f.Path, nil)
		}
		customerReference(customer, f, &to)
	}
	p.planReferences(ctx, &to)
	if len(uncounted) > 0 {
		p.loaders.PlanCustomerOrderCounts(trace.SpanFromContext(ctx).WithPath(ctx, path), p.level, uncounted)
	}
}

// orders plans the reads that the selected fields of orders require. The orders themselves have
// already been read.
func (p plan) orders(ctx context.Context, targets []planTarget[*commerce.Order]) {
	p.planAfterOrders(ctx, targets)
	p.orderLists(ctx, targetIDs(targets, func(o *commerce.Order) commerce.OrderID { return o.ID }))
}

// planAfterOrders plans the reads that depend on the orders' records.
func (p plan) planAfterOrders(ctx context.Context, targets []planTarget[*commerce.Order]) {
	var (
		to     pendingRecords
		pages  pendingKeys[dynamo.ListRequest]
		loaded []planTarget[*commerce.LineItem]
		// The stock of the line items in stock is selected. unread contains the requests for
		// further ones.
		stock  []planTarget[*commerce.LineItem]
		unread pendingKeys[dynamo.ListRequest]
	)
	to.customers.capacity = len(targets)
	for i := range targets {
		for order, f := range selectedFields(targets[i : i+1]) {
			switch f.Number {
			case fieldOrderItems:
				loaded = append(loaded, p.loadedItems(targets[i], f, &pages)...)
			case fieldOrderItem:
				key, ok := argumentsOf[orderItemArguments](p, f).key(order.ID)
				if !ok {
					continue
				}
				if item, ok := p.loaders.CachedOrderItem(order, key.SKU); !ok {
					to.lineItems.add(key, f.Path, f.Records)
				} else if item != nil {
					loaded = append(loaded, planTarget[*commerce.LineItem]{item, f.Records})
				}
			case fieldOrderItemCount:
				if order.ItemCount == nil {
					p.planItemCount(order, f, &pages)
				}
			case fieldOrderCanShipFrom:
				all := loaders.AllOrderItemsRequest(order.ID)
				items, ok := p.loaders.CachedOrderItems(order, all.Page)
				if !ok {
					unread.add(all, f.Path, targets[i].selections)
				}
				for _, item := range items.Items {
					stock = append(stock, planTarget[*commerce.LineItem]{item, targets[i].selections})
				}
			default:
				orderReference(order, f, &to)
			}
		}
	}
	p.primeOrders(ctx, targets)
	planList(ctx, p, &pages, model.OrderItems, plan.lineItems)
	if len(unread.keys) == 0 {
		p.planStock(ctx, stock)
	}
	// Otherwise, one request reads the stock of all orders, after the line items.
	planList(ctx, p, &unread, model.OrderItems, func(p plan, ctx context.Context, read []planTarget[*commerce.LineItem]) {
		p.planStock(ctx, append(stock, read...))
	})
	p.planAfterItems(ctx, itemKeys(loaded), &to)
}

// planStock schedules reads of the stock of line items, for each warehouse in a field canShipFrom. The
// selections are the ones of the order.
func (p plan) planStock(ctx context.Context, targets []planTarget[*commerce.LineItem]) {
	var levels pendingKeys[model.InventoryLevelKey]
	for item, f := range selectedFields(targets) {
		if f.Number == fieldOrderCanShipFrom {
			p.addLevel(&levels, item.SKU, argumentsOf[orderCanShipFromArguments](p, f).warehouseID, f)
		}
	}
	planRecords(ctx, p, &levels, model.LevelsOfLines, nil)
}

// addLevel adds the key of an inventory level, unless the warehouse's ID is malformed.
func (p plan) addLevel(to *pendingKeys[model.InventoryLevelKey], sku commerce.SKU, warehouseID string, f *operation.Field) {
	if warehouse, ok := lookupID[commerce.WarehouseID](warehouseID); ok {
		to.add(model.InventoryLevelKey{SKU: sku, Warehouse: warehouse}, f.Path, nil)
	}
}

// lineItems plans the reads that the selected fields of line items require, after they were read.
func (p plan) lineItems(ctx context.Context, targets []planTarget[*commerce.LineItem]) {
	p.planAfterItems(ctx, itemKeys(targets), &pendingRecords{})
}

// planAfterItems plans the lookups of the records in to, and the reads that the selected fields of
// line items require. The line items are the ones in to, and targets, which need no lookup.
func (p plan) planAfterItems(ctx context.Context, targets []planTarget[model.OrderItemKey], to *pendingRecords) {
	addOrderItemReferences(targets, to)
	p.planReferences(ctx, to)
	p.planReturned(ctx, append(targets, to.lineItems.targets()...))
}

// addOrderItemReferences adds the keys of the records to which the selected fields refer.
func addOrderItemReferences(targets []planTarget[model.OrderItemKey], to *pendingRecords) {
	for item, f := range selectedFields(targets) {
		orderItemReference(item, f, to)
	}
}

// planReturned schedules reads of the returns of orders, if the numbers of returned pieces are
// selected.
func (p plan) planReturned(ctx context.Context, targets []planTarget[model.OrderItemKey]) {
	var returns pendingKeys[dynamo.ListRequest]
	for item, f := range selectedFields(targets) {
		if f.Number == fieldOrderItemReturned {
			returns.add(loaders.AllRecords(&model.OrderReturns.AccessPattern, string(item.Order)), f.Path, nil)
		}
	}
	planList(ctx, p, &returns, model.OrderReturns, nil)
}

// planItemCount schedules a read of all line items of an order. The items must be counted, because
// the order has no stored item count.
func (p plan) planItemCount(o *commerce.Order, f *operation.Field, pages *pendingKeys[dynamo.ListRequest]) {
	allItems := loaders.AllOrderItemsRequest(o.ID)
	if _, ok := p.loaders.CachedOrderItems(o, allItems.Page); !ok {
		pages.add(allItems, f.Path, nil)
	}
}

// primeOrders adds orders to the loader of orders if the query selects "order" or "shipped" of line
// items. Resolving these fields then needs no read.
func (p plan) primeOrders(ctx context.Context, targets []planTarget[*commerce.Order]) {
	var orders []*commerce.Order
	for order, f := range selectedFields(targets) {
		if (f.Number == fieldOrderItems || f.Number == fieldOrderItem) && (operation.SelectsFieldWithReads(f.Records, fieldOrderItemOrder) || operation.SelectsFieldWithReads(f.Records, fieldOrderItemShipped)) {
			orders = append(orders, order)
		}
	}
	p.loaders.PrimeOrders(ctx, orders)
}

// loadedItems returns the requested line items of an order if they have already been read.
// Otherwise, it adds the requested page to pages.
func (p plan) loadedItems(order planTarget[*commerce.Order], f *operation.Field, pages *pendingKeys[dynamo.ListRequest]) []planTarget[*commerce.LineItem] {
	o := order.value
	if o.EmbedsItems && !slices.ContainsFunc(f.Records, (*operation.SelectionSet).HasReads) {
		return nil
	}
	request := p.resolver.orderItemsRequest(o.ID, argumentsOf[orderItemsArguments](p, f), f.PageInfo)
	if request.Err != nil {
		return nil
	}
	slice, ok := p.loaders.CachedOrderItems(o, request.Key.Page)
	if !ok {
		key := request.Key
		if o.ItemCount == nil && operation.SelectsFieldWithReads(order.selections, fieldOrderItemCount) {
			key = loaders.AllOrderItemsRequest(o.ID) // reading all items returns both the count and the page
		}
		pages.add(key, f.Path, f.Records)
		return nil
	}
	targets := make([]planTarget[*commerce.LineItem], len(slice.Items))
	for i, item := range slice.Items {
		targets[i] = planTarget[*commerce.LineItem]{item, f.Records}
	}
	return targets
}

func itemKeys(targets []planTarget[*commerce.LineItem]) []planTarget[model.OrderItemKey] {
	return targetIDs(targets, func(i *commerce.LineItem) model.OrderItemKey {
		return model.OrderItemKey{Order: i.OrderID, SKU: i.SKU}
	})
}
