package server_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// bookOptions say how large a generated book is.
type bookOptions struct {
	customers, orders, items, products int
	// status is that of the n-th order; pending where it is nil.
	status func(n int) commerce.Status
}

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// orderID is the id of the n-th order of a generated book.
func orderID(n int) commerce.OrderID {
	var id ulid.ULID
	hash := sha256.Sum256(fmt.Append(nil, n))
	copy(id[6:], hash[:])
	if err := id.SetTime(uint64(began.Add(time.Duration(n) * time.Second).UnixMilli())); err != nil {
		panic(err)
	}
	return commerce.OrderID(id.String())
}

// generate makes a book: orders go to the customers in turn, a second apart.
func generate(t testing.TB, o bookOptions) commerce.Book {
	t.Helper()
	price, err := commerce.ParseMoney("1.25", "USD")
	if err != nil {
		t.Fatal(err)
	}
	book := commerce.Book{
		Warehouses: []commerce.Warehouse{{ID: "hall", Name: "Hall"}},
		Employees:  []commerce.Employee{{ID: "rep", Name: "Rep", JobTitle: "Rep", HireDate: "2020-01-01", WarehouseID: "hall"}},
	}
	for i := range o.customers {
		id := fmt.Sprintf("customer-%03d", i)
		book.Customers = append(book.Customers, commerce.Customer{
			ID: commerce.CustomerID(id), Name: "Customer " + id, Email: id + "@example.com", AccountRepID: "rep",
			CreatedAt: began.Add(time.Duration(i) * time.Second), UpdatedAt: began, Version: 1,
		})
	}
	for i := range o.products {
		sku := commerce.SKU(fmt.Sprintf("product-%03d", i))
		book.Products = append(book.Products, commerce.Product{SKU: sku, Name: "Product", Category: "Things", UnitPrice: price, Version: 1})
	}
	for i := range o.orders {
		status := commerce.Pending
		if o.status != nil {
			status = o.status(i)
		}
		at := began.Add(time.Duration(i) * time.Second)
		order := commerce.OrderWithItems{Order: commerce.Order{
			ID: orderID(i), CustomerID: book.Customers[i%o.customers].ID, Status: status, PlacedAt: at, UpdatedAt: at, Version: 1,
		}}
		for j := range o.items {
			product := book.Products[(i+j)%o.products]
			order.Lines = append(order.Lines, commerce.LineItem{SKU: product.SKU, Name: product.Name, Quantity: 1, UnitPrice: price})
		}
		book.Orders = append(book.Orders, order)
	}
	if err := book.Settle(); err != nil {
		t.Fatal(err)
	}
	return book
}

// Every line of the table of request budgets, on a book of 120 orders.
func TestRequestBudgets(t *testing.T) {
	t.Parallel()
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		book := generate(t, bookOptions{customers: 30, orders: 120, items: 3, products: 40, status: func(n int) commerce.Status {
			return commerce.Statuses()[n%5]
		}})
		for _, p := range book.Products {
			book.Levels = append(book.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: "hall", Quantity: 10})
		}
		store := storetest.NewTable(t, db, dynamo.Options{})
		storetest.Load(t, store, book)
		api := serve(t, store)

		for _, line := range []struct {
			name, query          string
			requests, roundTrips int
		}{
			{"an order with items", `{ order(id: "%[1]s") { items { nodes { name } } } }`, 1, 1},
			{"an order with items and timeline", `{ order(id: "%[1]s") { items { nodes { name } } timeline { nodes { at } } } }`, 1, 1},
			{"an order with its timeline alone", `{ order(id: "%[1]s") { timeline { nodes { at } } } }`, 1, 1},
			{"a customer with orders with items", `{ customer(id: "customer-001") { name orders(first: 100) { nodes { items { nodes { name } } } } } }`, 2, 1},
			{"orders of a status with customers and items", `{ ordersByStatus(status: PENDING, first: 50) { nodes { customer { name } items { nodes { name } } } } }`, 2, 2},
			{"a customer with orders with items with products", `{ customer(id: "customer-001") { orders { nodes { items { nodes { product { name } } } } } } }`, 3, 2},
			{"a product with its inventory", `{ product(sku: "product-001") { name inventory { nodes { quantity } } } }`, 1, 1},
			{"an employee with customers and orders", `{ employee(id: "rep") { name customers { nodes { name } } orders { nodes { id } } } }`, 3, 1},
			{"a warehouse with employees and inventory", `{ warehouse(id: "hall") { name employees { nodes { name } } inventory { nodes { quantity } } } }`, 3, 1},
			{"two customers", `{ a: customer(id: "customer-001") { name } b: customer(id: "customer-002") { name } }`, 1, 1},
			{"one customer twice", `{ a: customer(id: "customer-001") { name } b: customer(id: "customer-001") { email } }`, 1, 1},
			{"one order twice", `{ a: order(id: "%[1]s") { status } b: order(id: "%[1]s") { total { amount } } }`, 1, 1},
			{"a customer's e-mail address", `{ customerByEmail(email: "customer-001@example.com") { name } }`, 2, 2},
			{"an order when the customer is known", `{ customer(id: "customer-000") { order(id: "%[1]s") { id items { nodes { name } } } } }`, 2, 1},
			{"an item with its product and order", `{ orderItem(orderId: "%[1]s", productId: "product-000") { name product { name } order { status } } }`, 3, 1},
			{"ids alone read no other records", `{ ordersByStatus(status: PENDING) { nodes { id itemCount total { amount } availableTransitions } } }`, 1, 1},
			{"open orders", `{ orders(first: 50, statuses: [PENDING, CONFIRMED]) { nodes { id } } }`, 2, 2},
			{"customers with their orders' products", `{ customers(first: 10) { nodes { orders { nodes { items { nodes { product { name } } } } } } } }`, 1 + 10 + 1, 3},
		} {
			t.Run(line.name, func(t *testing.T) {
				query := line.query
				if slices.Contains([]byte(query), '%') {
					query = fmt.Sprintf(query, orderID(0))
				}
				api.read(t, nil, "%s", query).budget(t, line.requests, line.roundTrips)
			})
		}

		t.Run("orders over all statuses", func(t *testing.T) {
			var page struct {
				Orders struct{ Nodes []struct{ ID string } }
			}
			e := api.read(t, &page, `{ orders(first: 50) { nodes { id } } }`)
			if len(page.Orders.Nodes) != 50 {
				t.Errorf("%d orders, want 50", len(page.Orders.Nodes))
			}
			read := 0
			for _, r := range e.Requests {
				read += r.Items
			}
			// A page and one more of each level, but three pages of the level that has two
			// statuses.
			if most := 3*(50+1) + 3*50 + 2; read > most {
				t.Errorf("%d orders were read for a page of 50, want at most %d", read, most)
			}
			e.budget(t, 5, 4)
		})
	})
}

// The last page of a long list costs what the first costs: requests, round trips, records and
// read units.
func TestDeepPagesCostWhatTheFirstCosts(t *testing.T) {
	t.Parallel()
	orders := longtest.Size(500, 10_000)
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, db, dynamo.Options{})
		storetest.Load(t, store, generate(t, bookOptions{customers: 1, orders: orders, items: 1, products: 1}))
		api := serve(t, store)
		for name, query := range map[string]string{
			"a customer with many orders": `{ list: customer(id: "customer-000") { orders(%s) { nodes { id items { nodes { name } } } pageInfo { hasNextPage hasPreviousPage startCursor } } } }`,
			"a status with many orders":   `{ list: ordersByStatus(status: PENDING, %s) { nodes { id customer { name } } pageInfo { hasNextPage hasPreviousPage startCursor } } }`,
		} {
			t.Run(name, func(t *testing.T) {
				first := readPage(t, api, query, `first: 50`)
				last := readPage(t, api, query, `last: 50`)
				deep := readPage(t, api, query, fmt.Sprintf(`first: 50, after: %q`, before(t, api, query, last.PageInfo.StartCursor)))
				if first.Nodes[0].ID != string(orderID(orders-1)) || last.Nodes[49].ID != string(orderID(0)) || deep.Nodes[49].ID != string(orderID(0)) {
					t.Errorf("the pages hold %s.., ..%s and ..%s", first.Nodes[0].ID, last.Nodes[49].ID, deep.Nodes[49].ID)
				}
				if deep.PageInfo.HasNextPage || !deep.PageInfo.HasPreviousPage {
					t.Errorf("the last page says %+v", deep.PageInfo)
				}
				for name, page := range map[string]page{"last": last, "deep": deep} {
					page.cost.budget(t, first.cost.Totals.Requests, first.cost.Totals.RoundTrips)
					// The first page reads one order more, to know that there are more.
					if records, of := recordsRead(page.cost), recordsRead(first.cost); records > of || records < of-1 {
						t.Errorf("the %s page read %d records, the first %d", name, records, of)
					}
					if page.cost.Totals.ReadUnits > first.cost.Totals.ReadUnits {
						t.Errorf("the %s page cost %v read units, the first %v", name, page.cost.Totals.ReadUnits, first.cost.Totals.ReadUnits)
					}
				}
			})
		}
	})
}

func recordsRead(e explained) int {
	n := 0
	for _, r := range e.Requests {
		n += r.Items
	}
	return n
}

// page is a page of orders and what it cost.
type page struct {
	Nodes    []struct{ ID string }
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor                  string
	}
	cost explained
}

// readPage reads a page of orders of a list that stands under "list", or under "orders" in it.
func readPage(t *testing.T, api api, query, arguments string) page {
	t.Helper()
	var data struct {
		List struct {
			page
			Orders page
		}
	}
	cost := api.read(t, &data, query, arguments)
	p := data.List.page
	if data.List.Orders.Nodes != nil {
		p = data.List.Orders
	}
	if len(p.Nodes) != 50 {
		t.Fatalf("%s: a page of %d orders, want 50", arguments, len(p.Nodes))
	}
	p.cost = cost
	return p
}

// before returns the cursor of the order that stands before the one of a cursor.
func before(t *testing.T, api api, query, cursor string) string {
	t.Helper()
	var data struct {
		List struct {
			page
			Orders page
		}
	}
	api.read(t, &data, query, fmt.Sprintf(`last: 1, before: %q`, cursor))
	if data.List.Orders.Nodes != nil {
		return data.List.Orders.PageInfo.StartCursor
	}
	return data.List.PageInfo.StartCursor
}
