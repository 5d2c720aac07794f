package server_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/internal/price"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// datasetOptions are the numbers of records in a generated dataset.
type datasetOptions struct {
	customers, orders, items, products int
	// status returns the status of the n-th order. If it is nil, orders are pending.
	status func(n int) commerce.Status
}

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// orderID returns the ID of the n-th order of a generated dataset.
func orderID(n int) commerce.OrderID {
	var id ulid.ULID
	hash := sha256.Sum256(fmt.Append(nil, n))
	copy(id[6:], hash[:])
	if err := id.SetTime(uint64(began.Add(time.Duration(n) * time.Second).UnixMilli())); err != nil {
		panic(err)
	}
	return commerce.OrderID(id.String())
}

// generateDataset makes a dataset. The customers place orders in turn, one each second.
func generateDataset(t testing.TB, o datasetOptions) commerce.Dataset {
	t.Helper()
	price, err := commerce.ParseMoney("1.25", "USD")
	if err != nil {
		t.Fatal(err)
	}
	dataset := commerce.Dataset{
		Warehouses: []commerce.Warehouse{{ID: "hall", Name: "Hall"}},
		Employees:  []commerce.Employee{{ID: "rep", Name: "Rep", JobTitle: "Rep", HireDate: "2020-01-01", WarehouseID: "hall"}},
	}
	for i := range o.customers {
		id := fmt.Sprintf("customer-%03d", i)
		dataset.Customers = append(dataset.Customers, commerce.Customer{
			ID: commerce.CustomerID(id), Name: "Customer " + id, Email: id + "@example.com", AccountRepID: "rep",
			CreatedAt: began.Add(time.Duration(i) * time.Second), UpdatedAt: began, Version: 1,
		})
	}
	for i := range o.products {
		sku := commerce.SKU(fmt.Sprintf("product-%03d", i))
		dataset.Products = append(dataset.Products, commerce.Product{SKU: sku, Name: "Product", Category: "Things", UnitPrice: price, Version: 1})
	}
	for i := range o.orders {
		status := commerce.Pending
		if o.status != nil {
			status = o.status(i)
		}
		at := began.Add(time.Duration(i) * time.Second)
		order := commerce.OrderWithItems{Order: commerce.Order{
			ID: orderID(i), CustomerID: dataset.Customers[i%o.customers].ID, Status: status, PlacedAt: at, UpdatedAt: at, Version: 1,
		}}
		for j := range o.items {
			product := dataset.Products[(i+j)%o.products]
			order.Lines = append(order.Lines, commerce.LineItem{SKU: product.SKU, Name: product.Name, Quantity: 1, UnitPrice: price})
		}
		dataset.Orders = append(dataset.Orders, order)
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}

// patterns returns the names of the requests' access patterns in one line.
func (e explained) patterns() string {
	var parts []string
	times := map[string]int{}
	for _, r := range e.Requests {
		part := r.AccessPattern
		if r.Operation == "BatchGetItem" {
			part += " batch"
		}
		if times[part]++; times[part] == 1 {
			parts = append(parts, part)
		}
	}
	for i, part := range parts {
		if times[part] > 1 {
			parts[i] = fmt.Sprintf("%d×%s", times[part], part)
		}
	}
	return strings.Join(parts, ", ")
}

// usualToMaximum returns the table cell for a usual cost and its maximum, such as "1–2".
func usualToMaximum[N int | float64](usual, maximum N) string {
	if usual == maximum {
		return fmt.Sprint(usual)
	}
	return fmt.Sprint(usual) + "–" + fmt.Sprint(maximum)
}

const requestCosts = "../../docs/request-costs.md"

// bounded returns the bound of an operation on a table with one shard.
func bounded(t testing.TB, text string) bound.Bound {
	t.Helper()
	checked := graph.CheckDocuments(graph.Options{Documents: []document.TrustedDocument{{ID: "checked", Text: text}}}, 1)
	if len(checked) != 1 || len(checked[0].Errors) > 0 {
		t.Fatalf("%s: %+v", text, checked)
	}
	return checked[0].Bound
}

// The table of request costs has the costs of the queries in testdata/budgets.graphql, on a dataset
// of 120 orders, and their bounds. Text after a '#' is a note for readers. The table omits queries
// with the note "not in the docs".
func TestGoldenRequestBudgets(t *testing.T) {
	t.Parallel()
	queries, err := os.ReadFile("testdata/budgets.graphql")
	if err != nil {
		t.Fatal(err)
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		dataset := generateDataset(t, datasetOptions{customers: 30, orders: 120, items: 3, products: 40, status: func(n int) commerce.Status {
			return commerce.Statuses()[n%5]
		}})
		for _, p := range dataset.Products {
			dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: "hall", Quantity: 10})
		}
		store := storetest.NewTable(t, db, dynamo.Options{})
		storetest.LoadDataset(t, store, dataset)
		api := serve(t, store)

		rows := [][]string{{"query", "requests", "round trips", "read units", "access patterns"}}
		value := regexp.MustCompile(`"[^"]+"`)
		for line := range strings.Lines(string(queries)) {
			query, note, _ := strings.Cut(strings.TrimSpace(line), " # ")
			var data map[string]any
			e := api.read(t, &data, "%s", query)
			e.budget(t, e.Totals.Requests, e.Totals.RoundTrips) // no request is unplanned
			for name, v := range data {
				if v == nil {
					t.Errorf("%s: %s is null", query, name)
				}
			}
			most := bounded(t, query)
			if e.Totals.Requests > most.Requests || e.Totals.RoundTrips > most.RoundTrips || e.Totals.ReadUnits > most.ReadUnits {
				t.Errorf("%s: took %+v, more than its bound %+v", query, e.Totals, most)
			}
			if note == "not in the docs" {
				continue
			}
			cell := markdown.CodeCell(strings.TrimSuffix(strings.TrimPrefix(value.ReplaceAllString(query, `"..."`), "{ "), " }"))
			if note != "" {
				cell += ", " + note
			}
			rows = append(rows, []string{cell, usualToMaximum(e.Totals.Requests, most.Requests), usualToMaximum(e.Totals.RoundTrips, most.RoundTrips),
				usualToMaximum(e.Totals.ReadUnits, most.ReadUnits), e.patterns()})
		}
		unit := fmt.Sprintf("A million read units cost $%s.\n\n", price.Standard().PerMillion(price.Units{Read: 1}))
		golden.CheckSection(t, requestCosts, "queries", unit+markdown.Table(rows))

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
			// Each level reads a page and one more record. The level with two statuses reads three pages.
			if maximum := 3*(50+1) + 3*50 + 2; read > maximum {
				t.Errorf("%d orders were read for a page of 50, want at most %d", read, maximum)
			}
			e.budget(t, 5, 4)
		})
	})
}

// The last page of a long list costs the same as the first: requests, round trips, records and read
// units.
func TestDeepPagesCostWhatTheFirstCosts(t *testing.T) {
	t.Parallel()
	orders := longtest.Size(500, 10_000)
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.NewTable(t, db, dynamo.Options{})
		storetest.LoadDataset(t, store, generateDataset(t, datasetOptions{customers: 1, orders: orders, items: 1, products: 1}))
		api := serve(t, store)
		for name, query := range map[string]string{
			"a customer with many orders": `{ list: customer(id: "customer-000") { orders(%s) { nodes { id items { nodes { name } } } pageInfo { hasNextPage hasPreviousPage startCursor } } } }`,
			"a status with many orders":   `{ list: ordersByStatus(status: PENDING, %s) { nodes { id customer { name } } pageInfo { hasNextPage hasPreviousPage startCursor } } }`,
		} {
			t.Run(name, func(t *testing.T) {
				first := readPage(t, api, query, `first: 50`)
				last := readPage(t, api, query, `last: 50`)
				deep := readPage(t, api, query, fmt.Sprintf(`first: 50, after: %q`, cursorBefore(t, api, query, last.PageInfo.StartCursor)))
				if first.Nodes[0].ID != string(orderID(orders-1)) || last.Nodes[49].ID != string(orderID(0)) || deep.Nodes[49].ID != string(orderID(0)) {
					t.Errorf("the first page begins with %s, the last page ends with %s, the page before the last cursor ends with %s", first.Nodes[0].ID, last.Nodes[49].ID, deep.Nodes[49].ID)
				}
				if deep.PageInfo.HasNextPage || !deep.PageInfo.HasPreviousPage {
					t.Errorf("the last page has %+v", deep.PageInfo)
				}
				for name, page := range map[string]page{"last": last, "deep": deep} {
					page.cost.budget(t, first.cost.Totals.Requests, first.cost.Totals.RoundTrips)
					// The first page reads one more order to set hasNextPage.
					if records, expected := recordsRead(page.cost), recordsRead(first.cost); records > expected || records < expected-1 {
						t.Errorf("the %s page read %d records, the first %d", name, records, expected)
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

// page is a page of orders and its cost.
type page struct {
	Nodes    []struct{ ID string }
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor                  string
	}
	cost explained
}

// readPage reads a page of the list "list", or of "orders" in it.
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

// cursorBefore returns the cursor of the order that precedes a cursor's order.
func cursorBefore(t *testing.T, api api, query, cursor string) string {
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
