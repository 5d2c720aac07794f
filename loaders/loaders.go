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

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
)

// maxQueries is how many Queries one batch makes at once.
const maxQueries = 16

// Keys of lists name the list and the page.
type (
	// Listed is a page of the list that belongs to one thing: a customer's orders, a category's
	// products.
	Listed[ID comparable] struct {
		Of   ID
		Page dynamo.Page
	}
	// PlacedOrders is a page of a customer's orders of a time.
	PlacedOrders struct {
		Customer commerce.CustomerID
		Placed   commerce.TimeRange
		Page     dynamo.Page
	}
	// StatusOrders is a page of the orders in some statuses and of a time.
	StatusOrders struct {
		Statuses StatusSet
		Placed   commerce.TimeRange
		Page     dynamo.Page
	}
	// HiredEmployees is a page of the employees hired on some days.
	HiredEmployees struct {
		Hired commerce.DateRange
		Page  dynamo.Page
	}
)

// StatusSet is a set of statuses; the empty one stands for all of them.
type StatusSet uint8

// Statuses returns the set of some statuses.
func Statuses(of ...commerce.Status) StatusSet {
	var s StatusSet
	for _, status := range of {
		s |= 1 << status
	}
	return s
}

func (s StatusSet) list() []commerce.Status {
	var list []commerce.Status
	for _, status := range commerce.Statuses() {
		if s&(1<<status) != 0 {
			list = append(list, status)
		}
	}
	return list
}

// Short names for what the loaders read.
type (
	orders    = dynamo.Slice[*commerce.Order]
	items     = dynamo.Slice[*commerce.LineItem]
	customers = dynamo.Slice[*commerce.Customer]
	employees = dynamo.Slice[*commerce.Employee]
	levels    = dynamo.Slice[*commerce.InventoryLevel]
)

// Loaders are the loaders of one GraphQL request. They are safe for concurrent use. One that is not
// used costs its room here, and nothing else.
type Loaders struct {
	Customer       Loader[commerce.CustomerID, *commerce.Customer]
	CustomerOrder  Loader[dynamo.CustomerOrderKey, *commerce.Order]
	OrderItem      Loader[dynamo.OrderItemKey, *commerce.LineItem]
	InventoryLevel Loader[dynamo.InventoryLevelKey, *commerce.InventoryLevel]
	Warehouse      Loader[commerce.WarehouseID, *commerce.Warehouse]
	Employee       Loader[commerce.EmployeeID, *commerce.Employee]
	// CustomerIDByEmail finds whose an e-mail address is, in the form of commerce.ParseEmail.
	CustomerIDByEmail Loader[string, commerce.CustomerID]
	// CountedOrders counts the orders of customers whose records keep no count.
	CountedOrders Loader[commerce.CustomerID, int]

	CustomerOrders      Loader[PlacedOrders, orders]
	OrdersByStatus      Loader[StatusOrders, orders]
	Orders              Loader[StatusOrders, orders]
	EmployeeOrders      Loader[Listed[commerce.EmployeeID], orders]
	ProductOrderItems   Loader[Listed[commerce.SKU], items]
	Customers           Loader[dynamo.Page, customers]
	EmployeeCustomers   Loader[Listed[commerce.EmployeeID], customers]
	Products            Loader[Listed[string], dynamo.Slice[*commerce.Product]]
	WarehouseInventory  Loader[Listed[commerce.WarehouseID], levels]
	Warehouses          Loader[dynamo.Page, dynamo.Slice[*commerce.Warehouse]]
	Employees           Loader[HiredEmployees, employees]
	EmployeesByName     Loader[Listed[string], employees]
	EmployeesByJobTitle Loader[Listed[string], employees]
	WarehouseEmployees  Loader[Listed[commerce.WarehouseID], employees]

	// Pages of what an order or a product does not have at hand. OrderItems, Timeline and
	// ProductInventory read them where they must; plans give them keys.
	OrderItemsPage Loader[Listed[commerce.OrderID], items]
	TimelinePage   Loader[Listed[commerce.OrderID], dynamo.Slice[*commerce.Event]]
	InventoryPage  Loader[Listed[commerce.SKU], levels]

	// What may have come with a whole item collection is read through methods of Loaders.
	order        Loader[commerce.OrderID, *commerce.Order]
	product      Loader[commerce.SKU, *commerce.Product]
	wholeOrder   Loader[commerce.OrderID, *dynamo.WholeOrder]
	wholeProduct Loader[commerce.SKU, *dynamo.WholeProduct]

	// ctx ends the loaders' requests, not the context of whoever asks first: one caller who goes
	// away does not fail the others.
	ctx    context.Context
	store  *dynamo.Store
	viewer Viewer
	report func(panicked any)
}

// New returns the loaders of one GraphQL request, which give the viewer no more than they may see;
// their requests to the store end with ctx. report is told what a plan's callback panicked with.
func New(ctx context.Context, s *dynamo.Store, viewer Viewer, report func(panicked any)) *Loaders {
	l := &Loaders{ctx: ctx, store: s, viewer: viewer, report: report}
	// A function that held a variable would be made for every request; these hold none.
	l.Customer.batched(l, func(l *Loaders, ctx context.Context, keys []commerce.CustomerID) ([]dynamo.Result[*commerce.Customer], error) {
		return ofCustomers(ctx, keys, l.viewer.everyCustomer(), l.viewer.customer, l.store.CustomersByID)
	})
	l.CustomerOrder.batched(l, (*Loaders).customerOrders)
	l.OrderItem.batched(l, func(l *Loaders, ctx context.Context, keys []dynamo.OrderItemKey) ([]dynamo.Result[*commerce.LineItem], error) {
		return l.store.OrderItemsByID(ctx, keys)
	})
	l.InventoryLevel.batched(l, func(l *Loaders, ctx context.Context, keys []dynamo.InventoryLevelKey) ([]dynamo.Result[*commerce.InventoryLevel], error) {
		return l.store.InventoryLevelsByID(ctx, keys)
	})
	l.Warehouse.batched(l, func(l *Loaders, ctx context.Context, keys []commerce.WarehouseID) ([]dynamo.Result[*commerce.Warehouse], error) {
		return l.store.WarehousesByID(ctx, keys)
	})
	l.Employee.batched(l, func(l *Loaders, ctx context.Context, keys []commerce.EmployeeID) ([]dynamo.Result[*commerce.Employee], error) {
		return l.store.EmployeesByID(ctx, keys)
	})
	l.order.batched(l, (*Loaders).ordersByID)
	l.product.batched(l, func(l *Loaders, ctx context.Context, keys []commerce.SKU) ([]dynamo.Result[*commerce.Product], error) {
		return l.store.ProductsBySKU(ctx, keys)
	})

	stored(l, &l.CustomerIDByEmail, (*dynamo.Store).CustomerIDByEmail)
	l.CountedOrders.single(l, func(l *Loaders, ctx context.Context, id commerce.CustomerID) (int, error) {
		if !l.viewer.ordersOf(id) {
			return 0, nil
		}
		return l.store.OrderCount(ctx, id)
	})
	l.CustomerOrders.single(l, func(l *Loaders, ctx context.Context, k PlacedOrders) (orders, error) {
		if !l.viewer.ordersOf(k.Customer) {
			return orders{}, nil
		}
		return l.store.CustomerOrders(ctx, k.Customer, k.Placed, k.Page)
	})
	l.OrdersByStatus.single(l, func(l *Loaders, ctx context.Context, k StatusOrders) (orders, error) {
		return l.store.OrdersByStatus(ctx, k.Statuses.list()[0], k.Placed, k.Page)
	})
	l.Orders.single(l, func(l *Loaders, ctx context.Context, k StatusOrders) (orders, error) {
		return l.store.Orders(ctx, k.Statuses.list(), k.Placed, k.Page)
	})
	stored(l, &l.Customers, (*dynamo.Store).Customers)
	l.Employees.single(l, func(l *Loaders, ctx context.Context, k HiredEmployees) (employees, error) {
		return l.store.Employees(ctx, k.Hired, k.Page)
	})
	stored(l, &l.Warehouses, (*dynamo.Store).Warehouses)
	stored(l, &l.wholeOrder, (*dynamo.Store).WholeOrder)
	stored(l, &l.wholeProduct, (*dynamo.Store).WholeProduct)

	listed(l, &l.EmployeeOrders, (*dynamo.Store).EmployeeOrders)
	listed(l, &l.ProductOrderItems, (*dynamo.Store).ProductOrderItems)
	listed(l, &l.EmployeeCustomers, (*dynamo.Store).EmployeeCustomers)
	listed(l, &l.Products, (*dynamo.Store).Products)
	listed(l, &l.WarehouseInventory, (*dynamo.Store).WarehouseInventory)
	listed(l, &l.EmployeesByName, (*dynamo.Store).EmployeesByName)
	listed(l, &l.EmployeesByJobTitle, (*dynamo.Store).EmployeesByJobTitle)
	listed(l, &l.WarehouseEmployees, (*dynamo.Store).WarehouseEmployees)
	listed(l, &l.OrderItemsPage, (*dynamo.Store).OrderItems)
	listed(l, &l.TimelinePage, (*dynamo.Store).Timeline)
	listed(l, &l.InventoryPage, (*dynamo.Store).ProductInventory)
	return l
}
