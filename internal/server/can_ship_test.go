package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// canShip returns the fields canShipFrom for both warehouses of a query with %s in their place.
func (s *fixture) canShip(t testing.TB, query string, arguments ...any) string {
	t.Helper()
	const fields = `north: canShipFrom(warehouseId: "north") south: canShipFrom(warehouseId: "south") none: canShipFrom(warehouseId: "no#where")`
	got := s.api.ask(t, fmt.Sprintf(query, append(arguments, fields)...), nil)
	if len(got.Errors) > 0 {
		t.Fatalf("%+v", got.Errors)
	}
	data := strings.NewReplacer("{", "", "}", "", `"`, "").Replace(string(got.Data))
	_, values, _ := strings.Cut(data, ":")
	return fmt.Sprintf("%s in %d requests", values, got.Extensions.Explain.Totals.Requests)
}

// One warehouse can ship an order if it has all pieces that are still open. All products of an
// order, and all orders of a list, need one BatchGetItem.
func TestWarehousesThatCanShip(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t)) // 100 mugs in the north and 2 in the south, plates only in the north
		want := func(when, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		const order, quote = `{ order(id: %q) { %s } }`, `{ quote(input: {items: %s}) { %s } }`
		id := s.placeWith(t, mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "mug", "quantity": 4}}})
		want("4 mugs", s.canShip(t, order, id), "north:true,south:false,none:false in 2 requests")
		s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
		s.fulfil(t, mutationInput{"orderId": id, "warehouseId": "north", "withoutAddress": true, "lines": []mutationInput{{"sku": "mug", "quantity": 2}}})
		want("2 open mugs", s.canShip(t, order, id), "north:true,south:true,none:false in 2 requests")
		s.fulfil(t, mutationInput{"orderId": id, "warehouseId": "south", "withoutAddress": true})
		want("no open piece", s.canShip(t, order, id), "north:true,south:true,none:false in 2 requests")

		both := s.place(t, "ann", "mug", "plate")
		want("a mug and a plate", s.canShip(t, order, both), "north:true,south:false,none:false in 2 requests")

		want("a quote of 3 mugs", s.canShip(t, quote, `[{sku: "mug", quantity: 1}, {sku: "mug", quantity: 2}]`), "north:true,south:false,none:false in 2 requests")
		want("a quote of a missing product", s.canShip(t, quote, `[{sku: "spoon", quantity: 1}]`), "north:false,south:false,none:false in 2 requests")
		want("an invalid quote", s.canShip(t, quote, `[]`), "north:false,south:false,none:false in 0 requests")
		list := s.api.ask(t, `{ orders { nodes { canShipFrom(warehouseId: "north") } } }`, nil)
		reads := 0
		for _, r := range list.Extensions.Explain.Requests {
			if r.AccessPattern == model.LevelsOfLines.ID {
				reads++
			}
		}
		if reads != 1 || len(list.Errors) > 0 {
			t.Errorf("the stock of a list of orders took %d requests, %v", reads, list.Errors)
		}
	})
}

// Line items that the order's record does not embed are read first, with one Query.
func TestWarehousesThatCanShipLargeOrders(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		id := s.place(t, "ann", skus(commerce.MaxLines)...)
		if got := s.canShip(t, `{ order(id: %q) { %s } }`, id); got != "north:true,south:false,none:false in 3 requests" {
			t.Error(got)
		}
		for _, query := range []string{`{ order(id: %q) { itemCount items(first: 50) { nodes { sku } } canShipFrom(warehouseId: "north") } }`, `{ order(id: %q) { canShipFrom(warehouseId: "north") items(first: 2) { nodes { product { name } } } } }`} {
			got := s.api.ask(t, fmt.Sprintf(query, id), nil)
			for _, r := range got.Extensions.Explain.Requests {
				if r.Path == "" {
					t.Errorf("%s: the request %+v is in no plan", query, r)
				}
			}
			if len(got.Errors) > 0 || !strings.Contains(string(got.Data), `"canShipFrom":true`) {
				t.Errorf("%s: %s, %v", query, got.Data, got.Errors)
			}
		}
	})
}
