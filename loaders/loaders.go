// Package loaders reads records for one GraphQL request so that none is read twice and those that can share a DynamoDB
// request do.
//
// A Loader belongs to one request and one access pattern. Whoever looks ahead in the query gives it keys with Plan: they
// are read at once, in one batch, without waiting. Load hands out what was planned. A Load that nobody planned waits a
// quarter of a millisecond for company where a BatchGetItem can serve several keys, and not at all where only a Query can.
package loaders

import (
	"context"
	"sync"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
)

// maxQueries is how many Queries one batch makes at once.
const maxQueries = 16

// Keys of lists name the list and the page.
type (
	// Listed is a page of the list that belongs to one thing: a customer's orders, a category's products.
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

// Loaders are the loaders of one GraphQL request. They are safe for concurrent use.
type Loaders struct {
	Customer       *Loader[commerce.CustomerID, *commerce.Customer]
	CustomerOrder  *Loader[dynamo.CustomerOrderKey, *commerce.Order]
	OrderItem      *Loader[dynamo.OrderItemKey, *commerce.LineItem]
	InventoryLevel *Loader[dynamo.InventoryLevelKey, *commerce.InventoryLevel]
	Warehouse      *Loader[commerce.WarehouseID, *commerce.Warehouse]
	Employee       *Loader[commerce.EmployeeID, *commerce.Employee]
	// CustomerIDByEmail finds whose an e-mail address is, in the form of commerce.ParseEmail.
	CustomerIDByEmail *Loader[string, commerce.CustomerID]
	// CountedOrders counts the orders of customers whose records keep no count.
	CountedOrders *Loader[commerce.CustomerID, int]

	CustomerOrders      *Loader[PlacedOrders, orders]
	OrdersByStatus      *Loader[StatusOrders, orders]
	Orders              *Loader[StatusOrders, orders]
	EmployeeOrders      *Loader[Listed[commerce.EmployeeID], orders]
	ProductOrderItems   *Loader[Listed[commerce.SKU], items]
	Customers           *Loader[dynamo.Page, customers]
	EmployeeCustomers   *Loader[Listed[commerce.EmployeeID], customers]
	Products            *Loader[Listed[string], dynamo.Slice[*commerce.Product]]
	WarehouseInventory  *Loader[Listed[commerce.WarehouseID], levels]
	Warehouses          *Loader[dynamo.Page, dynamo.Slice[*commerce.Warehouse]]
	Employees           *Loader[HiredEmployees, employees]
	EmployeesByName     *Loader[Listed[string], employees]
	EmployeesByJobTitle *Loader[Listed[string], employees]
	WarehouseEmployees  *Loader[Listed[commerce.WarehouseID], employees]

	// Pages of what an order or a product does not have at hand. OrderItems, Timeline and ProductInventory read them where
	// they must; plans give them keys.
	OrderItemsPage *Loader[Listed[commerce.OrderID], items]
	TimelinePage   *Loader[Listed[commerce.OrderID], dynamo.Slice[*commerce.Event]]
	InventoryPage  *Loader[Listed[commerce.SKU], levels]

	// What may have come with a whole item collection is read through methods of Loaders.
	order        *Loader[commerce.OrderID, *commerce.Order]
	product      *Loader[commerce.SKU, *commerce.Product]
	wholeOrder   *Loader[commerce.OrderID, *dynamo.WholeOrder]
	wholeProduct *Loader[commerce.SKU, *dynamo.WholeProduct]

	viewer Viewer
	plans  *sync.WaitGroup
}

// New returns the loaders of one GraphQL request, which give the viewer no more than they may see; their requests to the store end with
// ctx. report is told what a plan's callback panicked with.
func New(ctx context.Context, s *dynamo.Store, viewer Viewer, report func(panicked any)) *Loaders {
	r := request{ctx: ctx, report: report, plans: &sync.WaitGroup{}}
	return &Loaders{
		viewer:            viewer,
		plans:             r.plans,
		Customer:          newLoader(r, false, ofCustomers(viewer.customer, s.CustomersByID)),
		CustomerOrder:     newLoader(r, false, ofCustomers(func(k dynamo.CustomerOrderKey) bool { return viewer.ordersOf(k.Customer) }, s.CustomerOrdersByID)),
		OrderItem:         newLoader(r, false, s.OrderItemsByID),
		InventoryLevel:    newLoader(r, false, s.InventoryLevelsByID),
		Warehouse:         newLoader(r, false, s.WarehousesByID),
		Employee:          newLoader(r, false, s.EmployeesByID),
		CustomerIDByEmail: one(r, s.CustomerIDByEmail),
		CountedOrders: one(r, func(ctx context.Context, id commerce.CustomerID) (int, error) {
			if !viewer.ordersOf(id) {
				return 0, nil
			}
			return s.OrderCount(ctx, id)
		}),

		CustomerOrders: one(r, func(ctx context.Context, k PlacedOrders) (orders, error) {
			if !viewer.ordersOf(k.Customer) {
				return orders{}, nil
			}
			return s.CustomerOrders(ctx, k.Customer, k.Placed, k.Page)
		}),
		OrdersByStatus: one(r, func(ctx context.Context, k StatusOrders) (orders, error) {
			return s.OrdersByStatus(ctx, k.Statuses.list()[0], k.Placed, k.Page)
		}),
		Orders: one(r, func(ctx context.Context, k StatusOrders) (orders, error) {
			return s.Orders(ctx, k.Statuses.list(), k.Placed, k.Page)
		}),
		Customers: one(r, s.Customers),
		Employees: one(r, func(ctx context.Context, k HiredEmployees) (employees, error) {
			return s.Employees(ctx, k.Hired, k.Page)
		}),
		Warehouses:          one(r, s.Warehouses),
		EmployeeOrders:      listed(r, s.EmployeeOrders),
		ProductOrderItems:   listed(r, s.ProductOrderItems),
		EmployeeCustomers:   listed(r, s.EmployeeCustomers),
		Products:            listed(r, s.Products),
		WarehouseInventory:  listed(r, s.WarehouseInventory),
		EmployeesByName:     listed(r, s.EmployeesByName),
		EmployeesByJobTitle: listed(r, s.EmployeesByJobTitle),
		WarehouseEmployees:  listed(r, s.WarehouseEmployees),

		order:          newLoader(r, false, ordersFor(viewer, s)),
		product:        newLoader(r, false, s.ProductsBySKU),
		wholeOrder:     one(r, s.WholeOrder),
		wholeProduct:   one(r, s.WholeProduct),
		OrderItemsPage: listed(r, s.OrderItems),
		TimelinePage:   listed(r, s.Timeline),
		InventoryPage:  listed(r, s.ProductInventory),
	}
}

// Wait returns when all that was planned is read, also what nobody asked for in the end. It may be called once no more
// plans are begun from outside, in a context with a Span: without one, plans that nothing follows from are not waited for.
func (l *Loaders) Wait() { l.plans.Wait() }

// one is a loader of what takes a request of its own for each key: several run at once, up to maxQueries.
func one[K comparable, V any](r request, read func(context.Context, K) (V, error)) *Loader[K, V] {
	return newLoader(r, true, func(ctx context.Context, keys []K) ([]dynamo.Result[V], error) {
		results := make([]dynamo.Result[V], len(keys))
		err := dynamo.Parallel(ctx, len(keys), maxQueries, func(ctx context.Context, i int) error {
			results[i].Value, results[i].Err = read(ctx, keys[i])
			return nil // each key has its own error
		})
		return results, err
	})
}

// listed is a loader of pages of the lists that belong to one thing.
func listed[ID comparable, V any](r request, read func(context.Context, ID, dynamo.Page) (V, error)) *Loader[Listed[ID], V] {
	return one(r, func(ctx context.Context, k Listed[ID]) (V, error) { return read(ctx, k.Of, k.Page) })
}
