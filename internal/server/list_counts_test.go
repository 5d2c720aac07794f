package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	checking "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// orderCountOf is the `orderCount` of a product or an employee, nil for null.
func (s *fixture) orderCountOf(t testing.TB, record string) *int {
	t.Helper()
	var data struct {
		Of struct{ OrderCount *int }
	}
	got := s.withoutLog(t).api.ask(t, `{ of: `+record+` { orderCount } }`, nil)
	if err := json.Unmarshal(got.Data, &data); err != nil {
		t.Fatal(err)
	}
	if (data.Of.OrderCount == nil) != (len(got.Errors) == 1 && got.Errors[0].Extensions["code"] == "UNAVAILABLE") {
		t.Errorf("%s: %s with %+v", record, got.Data, got.Errors)
	}
	return data.Of.OrderCount
}

// wantOrderCounts compares the numbers of orders of some products and employees; -1 is null.
func (s *fixture) wantOrderCounts(t testing.TB, want map[string]int) {
	t.Helper()
	for record, n := range want {
		if got := s.orderCountOf(t, record); (got == nil) != (n < 0) || got != nil && *got != n {
			shown := "null"
			if got != nil {
				shown = fmt.Sprint(*got)
			}
			t.Errorf("%s has %s orders, want %d", record, shown, n)
		}
	}
}

const (
	mug, plate = `product(sku: "mug")`, `product(sku: "plate")`
	rita, sam  = `employee(id: "rita")`, `employee(id: "sam")`
)

// A product counts the orders that have a line item of it, and an account rep those that were
// placed when the employee was the rep. Cancelled orders count.
func TestOrdersOfProductsAndAccountReps(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.wantOrderCounts(t, map[string]int{mug: 0, plate: 0, rita: 0, sam: 0})
		s.mutate(t, "assignAccountRep", mutationInput{"customerId": "ann", "employeeId": "rita"})
		first := s.place(t, "ann", "mug", "plate")
		s.mutate(t, "assignAccountRep", mutationInput{"customerId": "ann", "employeeId": "sam"})
		second := s.place(t, "ann", "mug")
		s.wantOrderCounts(t, map[string]int{mug: 2, plate: 1, rita: 1, sam: 1})
		s.mutate(t, "setOrderItem", mutationInput{"orderId": second, "sku": "mug", "quantity": 3})
		s.mutate(t, "setOrderItem", mutationInput{"orderId": second, "sku": "plate", "quantity": 1})
		s.mutate(t, "removeOrderItem", mutationInput{"orderId": second, "sku": "mug"})
		s.mutate(t, "cancelOrder", mutationInput{"orderId": first})
		s.wantOrderCounts(t, map[string]int{mug: 1, plate: 2, rita: 1, sam: 1})
		s.mutate(t, "createProduct", mutationInput{"sku": "jug", "name": "Jug", "category": "Kitchen", "unitPrice": mutationInput{"amount": "9.00"}})
		s.mutate(t, "hireEmployee", mutationInput{"id": "tom", "name": "Tom", "jobTitle": "Packer", "hireDate": "2026-03-01"})
		s.wantOrderCounts(t, map[string]int{`product(sku: "jug")`: 0, `employee(id: "tom")`: 0})
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// The orders of products and employees of other software are not counted before a repair has
// counted them, and exactly after it.
func TestOrdersOfOtherSoftwaresProductsAreCountedByARepair(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		const abc, def, eve = `product(sku: "abc")`, `product(sku: "def")`, `employee(id: "eve")`
		s, order := externalFixture(t, db)
		s.mutate(t, "assignAccountRep", mutationInput{"customerId": "cust_01", "employeeId": "eve"})
		s.place(t, "cust_01", "abc")
		s.mutate(t, "removeOrderItem", mutationInput{"orderId": order, "sku": "abc"})
		s.wantOrderCounts(t, map[string]int{abc: -1, def: -1, eve: -1})
		if _, err := s.store.CheckRecords(t.Context(), checking.Options{Repair: true, IndexLag: checking.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		s.wantOrderCounts(t, map[string]int{abc: 1, def: 1, eve: 1})
		s.place(t, "cust_01", "abc")
		s.wantOrderCounts(t, map[string]int{abc: 2, def: 1, eve: 2})
	})
}

// Orders that are loaded into a table count for the products and account reps that it has, also if
// they replace others. Loading that ends early leaves no numbers.
func TestLoadedOrdersCountForProductsAndAccountRepsOfTheTable(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "assignAccountRep", mutationInput{"customerId": "ann", "employeeId": "rita"})
		placed := commerce.OrderID(s.place(t, "ann", "mug"))
		order := func(id commerce.OrderID, rep commerce.EmployeeID, skus ...commerce.SKU) commerce.OrderWithItems {
			at, _ := id.Time()
			o := commerce.OrderWithItems{Order: commerce.Order{ID: id, CustomerID: "ann", AccountRepID: rep, Status: commerce.Delivered, Total: storetest.USD("1"), PlacedAt: at, UpdatedAt: at, Version: 1}}
			for _, sku := range skus {
				o.Lines = append(o.Lines, commerce.LineItem{SKU: sku, Name: "x", Quantity: 1, UnitPrice: storetest.USD("1")})
			}
			return o
		}
		dataset := commerce.Dataset{Orders: []commerce.OrderWithItems{order(placed, "sam", "mug", "plate"), order("01KJM6JM00000000000000ZZZZ", "rita", "plate")}}
		for range 2 {
			if _, err := s.store.Load(t.Context(), dataset); err != nil {
				t.Fatal(err)
			}
			s.wantOrderCounts(t, map[string]int{mug: 1, plate: 2, rita: 1, sam: 1})
		}
		if _, err := s.store.Load(t.Context(), commerce.Dataset{Products: smallDataset(t).Products, Employees: smallDataset(t).Employees}); err != nil {
			t.Fatal(err)
		}
		s.wantOrderCounts(t, map[string]int{mug: 1, plate: 2, rita: 1, sam: 1})
		ctx, stop := context.WithCancel(t.Context())
		more := commerce.Dataset{Orders: []commerce.OrderWithItems{order("01KJM6JM00000000000000ZZZX", "rita", "mug")}}
		if _, err := s.store.LoadAll(ctx, slices.Values([]commerce.Dataset{more}), func(bulk.LoadProgress) { stop() }); err == nil {
			t.Error("LoadAll returned no error although its context was canceled")
		}
		s.wantOrderCounts(t, map[string]int{mug: -1, rita: -1, plate: 2, sam: 1})
	})
}

// A list by name, which lacks the number, reads the record for it.
func TestOrderCountOfAProductInAListByName(t *testing.T) {
	t.Parallel()
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	s.place(t, "ann", "mug")
	var data struct {
		Products struct{ Nodes []struct{ OrderCount int } }
	}
	s.read(t, &data, `{ products(namePrefix: "mug") { nodes { orderCount } } }`)
	if len(data.Products.Nodes) != 1 || data.Products.Nodes[0].OrderCount != 1 {
		t.Errorf("found %+v, want one product with one order", data.Products.Nodes)
	}
}
