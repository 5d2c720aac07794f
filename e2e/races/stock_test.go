package races_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// noFaults is a Chooser without faults.
func noFaults(faults.Request) faults.Kind { return faults.None }

// placeConcurrently sends n orders concurrently, distributed over the servers. It returns the
// number of placed orders.
func placeConcurrently(t *testing.T, n int, urls []string, input func(i int) map[string]any) int {
	t.Helper()
	c := workload.NewClient()
	t.Cleanup(c.HTTP.CloseIdleConnections)
	answers := make([]workload.Response, n)
	inParallel(n, n, func(i int) {
		var err error
		answers[i], err = c.Send(t.Context(), urls[i%len(urls)], workload.Mutation{Field: "placeOrder", Input: input(i)})
		if err != nil {
			t.Errorf("order %d: %v", i, err)
		}
	})
	placed := 0
	for i, a := range answers {
		if a.Succeeded() {
			placed++
			continue
		}
		for _, code := range a.UserErrorCodes {
			if code != "INSUFFICIENT_STOCK" {
				t.Errorf("order %d: %v", i, a)
			}
		}
	}
	return placed
}

// forEachServerCount runs a test on both engines, with one server and with two servers for one
// table. By default, the test on DynamoDB Local runs only with two servers.
func forEachServerCount(t *testing.T, w workload.Fixture, test func(t *testing.T, s faultyServer, urls []string)) {
	for _, servers := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d", servers), func(t *testing.T) {
			each := storetest.ForEachEngine
			if servers == 1 {
				each = storetest.ForEachEngineIfLong
			}
			each(t, func(t *testing.T, db *dynamodb.Client) {
				s := newFaultyServer(t, db, w, noFaults)
				urls := []string{s.url}
				for len(urls) < servers {
					url, _ := s.startServer(t, noFaults)
					urls = append(urls, url)
				}
				test(t, s, urls)
			})
		})
	}
}

// 80 clients each order one of 50 pieces. 50 orders are placed.
func TestOversoldProduct(t *testing.T) {
	const buyers, pieces = 80, 50
	forEachServerCount(t, workload.Fixture{Customers: 5, Products: 1, Warehouses: 1, Stock: pieces}, func(t *testing.T, s faultyServer, urls []string) {
		placed := placeConcurrently(t, buyers, urls, func(i int) map[string]any {
			return map[string]any{"customerId": fmt.Sprintf("c%d", i%5), "items": []map[string]any{{"sku": "p0", "quantity": 1}}}
		})
		a := storetest.AssertConsistent(t, s.db, s.table, 1)
		left := a.Records[storetest.Key{PK: "PRODUCT#p0", SK: "#METADATA"}].Int("available")
		if placed != pieces || len(a.Orders) != pieces || left != 0 {
			t.Errorf("%d orders were placed, %d are in the table, %d pieces are left, want %d, %d and 0", placed, len(a.Orders), left, pieces, pieces)
		}
	})
}

// Each client orders one to three units of several products. An order reserves either all its units
// or none. No order is rejected if all its units are available.
func TestOversoldProducts(t *testing.T) {
	const buyers, products = 80, 4
	lines := func(i int) []map[string]any {
		var items []map[string]any
		for j := range 1 + i%3 {
			items = append(items, map[string]any{"sku": fmt.Sprintf("p%d", (i+j)%products), "quantity": 1 + (i/3+j)%3})
		}
		// Half of the orders list their products in reverse order, so that transactions conflict.
		if i%2 == 0 {
			slices.Reverse(items)
		}
		return items
	}
	forEachServerCount(t, workload.Fixture{Customers: 5, Products: products, Warehouses: 1, Stock: 50}, func(t *testing.T, s faultyServer, urls []string) {
		placed := placeConcurrently(t, buyers, urls, func(i int) map[string]any {
			return map[string]any{"customerId": fmt.Sprintf("c%d", i%5), "items": lines(i)}
		})
		a := storetest.AssertConsistent(t, s.db, s.table, 1)
		if len(a.Orders) != placed || placed == buyers {
			t.Errorf("%d orders are in the table, %d were placed, want equal numbers and fewer than %d", len(a.Orders), placed, buyers)
		}
		// The clients order more units than are available, so at least one product has few units left.
		least := 50
		for j := range products {
			least = min(least, a.Records[storetest.Key{PK: fmt.Sprintf("PRODUCT#p%d", j), SK: "#METADATA"}].Int("available"))
		}
		if least > 2 {
			t.Errorf("%d orders were refused, but at least %d pieces of every product are left", buyers-placed, least)
		}
	})
}

// Twelve confirmed orders are shipped concurrently from a warehouse that has units for five orders.
// Five shipments succeed. The other orders can then be shipped from another warehouse.
func TestOversoldWarehouse(t *testing.T) {
	const orders, pieces = 12, 5
	forEachServerCount(t, workload.Fixture{Customers: 2, Products: 2, Warehouses: 3, Stock: pieces}, func(t *testing.T, s faultyServer, urls []string) {
		c := workload.NewClient()
		t.Cleanup(c.HTTP.CloseIdleConnections)
		send := func(i int, m workload.Mutation) workload.Response {
			a, err := c.Send(t.Context(), urls[i%len(urls)], m)
			if err != nil {
				t.Errorf("%s %v: %v", m.Field, m.Input, err)
			}
			return a
		}
		ids := make([]string, orders)
		inParallel(orders, orders, func(i int) {
			placed := send(i, workload.Mutation{Field: "placeOrder", Input: map[string]any{"customerId": fmt.Sprintf("c%d", i%2),
				"items": []map[string]any{{"sku": "p0", "quantity": 1}, {"sku": "p1", "quantity": 1}}}})
			ids[i] = placed.Record().ID
			if a := send(i, workload.Mutation{Field: "confirmOrder", Input: map[string]any{"orderId": ids[i]}}); !a.Succeeded() {
				t.Errorf("confirm %s: %v", ids[i], a)
			}
		})
		// Each order is shipped twice concurrently, without an idempotency key. Only one shipment
		// succeeds.
		ship := func(from string) (shipped int) {
			answers := make([]workload.Response, 2*orders)
			inParallel(len(answers), len(answers), func(i int) {
				answers[i] = send(i, workload.Mutation{Field: "shipOrder", Input: map[string]any{"orderId": ids[i/2], "warehouseId": from, "withoutAddress": true}})
			})
			for _, a := range answers {
				if a.Succeeded() {
					shipped++
				}
			}
			return shipped
		}
		for _, step := range []struct {
			from    string
			shipped int
		}{{"w0", pieces}, {"w1", pieces}, {"w2", orders - 2*pieces}} {
			if n := ship(step.from); n != step.shipped {
				t.Errorf("%d orders were shipped from %s, want %d", n, step.from, step.shipped)
			}
			a := storetest.AssertConsistent(t, s.db, s.table, 1)
			if left := a.Records[storetest.Key{PK: "PRODUCT#p0", SK: "WAREHOUSE#" + step.from}].Int("quantity"); left != pieces-step.shipped {
				t.Errorf("%d pieces are left in %s, want %d", left, step.from, pieces-step.shipped)
			}
		}
	})
}
