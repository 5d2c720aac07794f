package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Confirmed orders are listed by the time of their confirmation, until all pieces are shipped or
// cancelled. Orders on hold stay in the list. The list exists only after an operator has added it.
func TestOrdersToShip(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		const list = `{ ordersToShip { nodes { id waitingSince hold { reason } } } }`
		got := s.withoutLog(t).api.ask(t, list, nil)
		if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "UNAVAILABLE" || !strings.Contains(got.Errors[0].Message, "ordergraph table apply orderWaiting") {
			t.Fatalf("without the list: %+v", got.Errors)
		}
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}, model.EntityOrderWaiting.Name)
		var ids []string
		for range 6 {
			ids = append(ids, s.placeWith(t, mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "mug", "quantity": 2}}}))
		}
		type node struct {
			ID           string
			WaitingSince *string
			Hold         *struct{ Reason string }
		}
		waiting := func() (nodes []node) {
			t.Helper()
			var got struct{ OrdersToShip struct{ Nodes []node } }
			s.read(t, &got, list)
			return got.OrdersToShip.Nodes
		}
		want := func(what string, orders ...int) {
			t.Helper()
			var got, all []string
			for _, o := range waiting() {
				got = append(got, o.ID)
			}
			for _, i := range orders {
				all = append(all, ids[i])
			}
			if !slices.Equal(got, all) {
				t.Errorf("%s: the orders are %v, want %v", what, got, all)
			}
		}
		move := func(mutation string, i int) {
			t.Helper()
			s.clock.pass(time.Second)
			s.mutate(t, mutation, moveInput(mutation, ids[i]))
		}
		want("pending orders")
		for _, i := range []int{3, 0, 5, 1, 4} {
			move("confirmOrder", i)
		}
		want("confirmed", 3, 0, 5, 1, 4)
		s.wire.reset()
		want("one page", 3, 0, 5, 1, 4)
		if got := fmt.Sprint(s.wire.operationNames()); got != "[Query BatchGetItem]" {
			t.Errorf("the page took the requests %s", got)
		}
		move("holdOrder", 0)
		s.mutate(t, "addOrderNote", mutationInput{"orderId": ids[3], "note": "n"})
		want("a hold and a note", 3, 0, 5, 1, 4)
		if all := waiting(); len(all) != 5 || all[1].Hold == nil || all[0].Hold != nil || all[0].WaitingSince == nil || *all[0].WaitingSince >= *all[1].WaitingSince {
			t.Errorf("the waiting orders are %+v", all)
		}
		move("shipOrder", 3)
		move("cancelOrder", 0)
		want("shipped and cancelled", 5, 1, 4)
		parcel := mutationInput{"orderId": ids[5], "warehouseId": "north", "withoutAddress": true, "lines": []mutationInput{{"sku": "mug", "quantity": 1}}}
		first := s.fulfil(t, parcel)
		want("partly shipped", 5, 1, 4)
		s.mutate(t, "cancelFulfillment", mutationInput{"orderId": ids[5], "fulfillmentId": first})
		s.fulfil(t, parcel)
		s.fulfil(t, parcel)
		want("shipped in two parcels", 1, 4)
		parcel["orderId"] = ids[1]
		s.fulfil(t, parcel)
		s.mutate(t, "cancelOrderItems", mutationInput{"orderId": ids[1], "lines": []mutationInput{{"sku": "mug", "quantity": 1}}})
		want("the rest is cancelled", 4)
		move("shipOrder", 4)
		want("all are shipped")
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// Customers cannot list orders to ship.
func TestCustomersCannotListOrdersToShip(t *testing.T) {
	_, g := liveWithAuthentication(t)
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01"})
	if got := g.ask(t, customer, `{ ordersToShip { nodes { id } } }`); !strings.Contains(got, `"code":"FORBIDDEN"`) {
		t.Errorf("a customer lists orders to ship: %s", got)
	}
}
