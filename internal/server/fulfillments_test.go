package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// fulfil creates a fulfillment and returns its ID.
func (s *fixture) fulfil(t testing.TB, input mutationInput) string {
	t.Helper()
	var created struct{ ID string }
	if err := json.Unmarshal(s.mutate(t, "createFulfillment", input).Value, &created); err != nil {
		t.Fatal(err)
	}
	return created.ID
}

// An order of three mugs and a plate leaves two warehouses in parcels. Its status follows from them.
func TestFulfillments(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.placeWithStatus(t, commerce.Confirmed)
		mugs := func(n int) []mutationInput { return []mutationInput{{"sku": "mug", "quantity": n}} }
		parcel := func(warehouse string, lines []mutationInput) mutationInput {
			input := mutationInput{"orderId": id, "warehouseId": warehouse, "withoutAddress": true, "trackingNumber": "1Z " + warehouse}
			if lines != nil {
				input["lines"] = lines
			}
			return input
		}
		of := func(fulfillment string) mutationInput {
			return mutationInput{"orderId": id, "fulfillmentId": fulfillment}
		}
		want := func(what, status, state, shipped, stock string) {
			t.Helper()
			var got struct {
				Order struct {
					Status, FulfillmentState string
					Items                    struct {
						Nodes []struct {
							Sku     string
							Shipped int
						}
					}
				}
			}
			s.read(t, &got, `{ order(id: %q) { status fulfillmentState items { nodes { sku shipped } } } }`, id)
			if o := got.Order; o.Status != status || o.FulfillmentState != state || fmt.Sprint(o.Items.Nodes) != shipped || s.stock(t, "mug") != stock {
				t.Errorf("%s: the order is %+v, and the stock of mugs is %s", what, o, s.stock(t, "mug"))
			}
		}
		want("no parcel", "CONFIRMED", "UNFULFILLED", "[{mug 0} {plate 0}]", "99 of 102 available, 100 in north, 2 in south")
		s.refuse(t, "createFulfillment", parcel("south", mugs(3)), "INSUFFICIENT_STOCK input.warehouseId")
		s.refuse(t, "createFulfillment", parcel("north", mugs(4)), "INVALID input.lines.0.quantity")
		s.refuse(t, "createFulfillment", parcel("north", []mutationInput{{"sku": "bowl", "quantity": 1}}), "NOT_FOUND input.lines.0.sku")
		s.refuse(t, "createFulfillment", parcel("nowhere", mugs(1)), "NOT_FOUND input.warehouseId")
		s.refuse(t, "createFulfillment", parcel("north", mugs(1)).with("withoutAddress", false), "ADDRESS_MISSING input.orderId")
		if got := s.try(t, "createFulfillment", parcel("north", mugs(1)).with("expectedVersion", 1)); fmt.Sprint(reasonsOf(got)) != "[VERSION_CONFLICT input.expectedVersion]" {
			t.Errorf("another version of the order: %v", reasonsOf(got))
		}
		s.mutate(t, "holdOrder", mutationInput{"orderId": id, "reason": "Check"})
		s.refuse(t, "createFulfillment", parcel("north", mugs(1)), "INVALID_TRANSITION input.orderId")
		s.mutate(t, "releaseOrder", mutationInput{"orderId": id})

		first := s.fulfil(t, parcel("south", mugs(2)))
		want("two mugs", "CONFIRMED", "PARTIALLY_FULFILLED", "[{mug 2} {plate 0}]", "99 of 100 available, 100 in north, 0 in south")
		for _, mutation := range []string{"shipOrder", "cancelOrder"} {
			s.refuse(t, mutation, moveInput(mutation, id), "INVALID_TRANSITION input.orderId")
		}
		s.mutate(t, "cancelFulfillment", of(first))
		want("cancelled", "CONFIRMED", "UNFULFILLED", "[{mug 0} {plate 0}]", "99 of 102 available, 100 in north, 2 in south")
		s.mutate(t, "updateTracking", of(first).with("carrier", "DHL"))
		want("the tracking of a cancelled parcel changed", "CONFIRMED", "UNFULFILLED", "[{mug 0} {plate 0}]", "99 of 102 available, 100 in north, 2 in south")
		s.refuse(t, "cancelFulfillment", of(first), "INVALID input.fulfillmentId")
		s.refuse(t, "deliverFulfillment", of(first), "INVALID input.fulfillmentId")

		first = s.fulfil(t, parcel("south", mugs(2)))
		for _, mutation := range []string{"updateTracking", "deliverFulfillment", "cancelFulfillment"} {
			got := s.refuse(t, mutation, of(first).with("expectedVersion", 1), "VERSION_CONFLICT input.expectedVersion")
			if !strings.Contains(string(got.Value), first) {
				t.Errorf("%s: the payload of the conflict is %s, want fulfillment %s", mutation, got.Value, first)
			}
			s.refuse(t, mutation, of(id), "NOT_FOUND input.fulfillmentId")
		}
		s.mutate(t, "deliverFulfillment", of(first))
		second := s.fulfil(t, parcel("north", nil))
		want("all", "SHIPPED", "FULFILLED", "[{mug 3} {plate 1}]", "99 of 99 available, 99 in north, 0 in south")
		s.refuse(t, "cancelFulfillment", of(second), "INVALID_TRANSITION input.orderId")
		s.refuse(t, "deliverOrder", mutationInput{"orderId": id}, "INVALID_TRANSITION input.orderId")
		s.refuse(t, "createFulfillment", parcel("north", mugs(1)), "INVALID_TRANSITION input.orderId")
		s.mutate(t, "updateTracking", of(second).with("trackingNumber", "1Z new"))
		for number, found := range map[string]bool{"1Z south": true, "1Z new": true, "1Z north": false, "": false, "a#b": false} {
			var got struct{ OrderByTrackingNumber *struct{ ID string } }
			s.read(t, &got, `{ orderByTrackingNumber(trackingNumber: %q) { id items { nodes { product { name } } } } }`, number)
			if o := got.OrderByTrackingNumber; (o != nil) != found || found && o.ID != id {
				t.Errorf("the order with tracking number %q is %v", number, o)
			}
		}
		s.mutate(t, "deliverFulfillment", of(second).with("expectedVersion", 11))
		want("delivered", "DELIVERED", "FULFILLED", "[{mug 3} {plate 1}]", "99 of 99 available, 99 in north, 0 in south")
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// Pieces of a confirmed order are cancelled before and after a parcel. The total, the stock and the status
// follow from what is left.
func TestCancelledItems(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		cancel := func(id string, lines ...any) mutationInput {
			var input []mutationInput
			for i := 0; i < len(lines); i += 2 {
				input = append(input, mutationInput{"sku": lines[i], "quantity": lines[i+1]})
			}
			return mutationInput{"orderId": id, "lines": input}
		}
		want := func(id, what, order, items, stock string) {
			t.Helper()
			var got struct {
				Order struct {
					Status string
					Total  struct{ Amount string }
					Items  struct {
						Nodes []struct {
							Sku                          string
							Quantity, Shipped, Cancelled int
						}
					}
				}
			}
			s.read(t, &got, `{ order(id: %q) { status total { amount } items { nodes { sku quantity shipped cancelled } } } }`, id)
			o := got.Order
			if state := o.Status + " " + o.Total.Amount; state != order || fmt.Sprint(o.Items.Nodes) != items || s.stock(t, "mug") != stock {
				t.Errorf("%s: the order is %s with %v, and the stock of mugs is %s", what, state, o.Items.Nodes, s.stock(t, "mug"))
			}
		}
		pending := s.placeWithStatus(t, commerce.Pending)
		s.refuse(t, "cancelOrderItems", cancel(pending, "mug", 1), "INVALID_TRANSITION input.orderId")
		s.mutate(t, "cancelOrder", mutationInput{"orderId": pending})

		id := s.placeWithStatus(t, commerce.Confirmed)
		want(id, "confirmed", "CONFIRMED 34.50", "[{mug 3 0 0} {plate 1 0 0}]", "99 of 102 available, 100 in north, 2 in south")
		s.refuse(t, "cancelOrderItems", cancel(id, "mug", 4), "INVALID input.lines.0.quantity")
		s.refuse(t, "cancelOrderItems", cancel(id, "mug", 2, "mug", 2), "INVALID input.lines.1.quantity")
		s.refuse(t, "cancelOrderItems", cancel(id, "bowl", 1), "NOT_FOUND input.lines.0.sku")
		s.refuse(t, "cancelOrderItems", cancel(id, "mug", 3, "plate", 1), "INVALID input.lines")
		s.mutate(t, "cancelOrderItems", cancel(id, "plate", 1))
		want(id, "no plate", "CONFIRMED 22.50", "[{mug 3 0 0} {plate 0 0 1}]", "99 of 102 available, 100 in north, 2 in south")
		s.refuse(t, "cancelOrderItems", cancel(id, "plate", 1), "INVALID input.lines.0.quantity")
		s.mutate(t, "recordPayment", mutationInput{"orderId": id, "kind": "CAPTURE", "amount": mutationInput{"amount": "22.50"}, "provider": "stripe", "reference": "a"})
		s.refuse(t, "cancelOrderItems", cancel(id, "mug", 1), "INVALID input.orderId") // 22.50 is paid
		s.mutate(t, "recordPayment", mutationInput{"orderId": id, "kind": "REFUND", "amount": mutationInput{"amount": "15"}, "provider": "stripe", "reference": "b"})
		s.mutate(t, "cancelOrderItems", cancel(id, "mug", 1))
		want(id, "two mugs", "CONFIRMED 15.00", "[{mug 2 0 1} {plate 0 0 1}]", "100 of 102 available, 100 in north, 2 in south")

		parcel := s.fulfil(t, mutationInput{"orderId": id, "warehouseId": "south", "withoutAddress": true, "lines": lines("mug")})
		s.refuse(t, "cancelOrderItems", cancel(id, "mug", 2), "INVALID input.lines.0.quantity")
		s.mutate(t, "deliverFulfillment", mutationInput{"orderId": id, "fulfillmentId": parcel})
		last := cancel(id, "mug", 1).with("idempotencyKey", "k")
		s.mutate(t, "cancelOrderItems", last)
		s.mutate(t, "cancelOrderItems", last)
		want(id, "one mug", "DELIVERED 7.50", "[{mug 1 1 2} {plate 0 0 1}]", "101 of 101 available, 100 in north, 1 in south")
		s.refuse(t, "requestReturn", mutationInput{"orderId": id, "lines": []mutationInput{{"sku": "mug", "quantity": 2, "reason": "broken"}}}, "INVALID input.lines.0.quantity")

		whole := s.placeWithStatus(t, commerce.Confirmed)
		s.mutate(t, "cancelOrderItems", cancel(whole, "plate", 1))
		s.mutate(t, "shipOrder", moveInput("shipOrder", whole))
		want(whole, "shipped whole", "SHIPPED 22.50", "[{mug 3 3 0} {plate 0 0 1}]", "98 of 98 available, 97 in north, 1 in south")
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}
