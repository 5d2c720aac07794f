package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	checking "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// lowStock returns the levels in the list of low stock, as "sku quantity of reorder point".
func (s *fixture) lowStock(t testing.TB, arguments string) (all []string) {
	t.Helper()
	var got struct {
		Warehouse struct {
			LowStock struct {
				Nodes []struct {
					SKU                    string
					Quantity, ReorderPoint int
				}
			}
		}
	}
	s.read(t, &got, `{ warehouse(id: "north") { lowStock%s { nodes { sku quantity reorderPoint } } } }`, arguments)
	for _, l := range got.Warehouse.LowStock.Nodes {
		all = append(all, fmt.Sprintf("%s %d of %d", l.SKU, l.Quantity, l.ReorderPoint))
	}
	return all
}

// wantLowStock compares the list of low stock, and checks that the table is consistent.
func (s *fixture) wantLowStock(t testing.TB, after string, want ...string) {
	t.Helper()
	if got := s.lowStock(t, ""); !slices.Equal(got, want) {
		t.Errorf("after %s, the stock of %q is low, want %q", after, got, want)
	}
	storetest.AssertConsistent(t, s.db, s.table, 1)
}

// The list of low stock follows every mutation that changes a quantity or a reorder point.
func TestLowStock(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}, model.EntityLowStock.Name)
		level := func(sku string) mutationInput { return mutationInput{"sku": sku, "warehouseId": "north"} }
		s.mutate(t, "setInventoryLevel", level("p00").with("reorderPoint", 9))
		s.mutate(t, "setInventoryLevel", level("p01").with("reorderPoint", 11))
		s.wantLowStock(t, "new reorder points", "p01 10 of 11")

		id := s.place(t, "ann", "p00", "p00", "p01", "p02")
		s.wantLowStock(t, "an order", "p01 10 of 11")
		s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
		s.mutate(t, "createFulfillment", mutationInput{"orderId": id, "warehouseId": "north", "withoutAddress": true})
		s.wantLowStock(t, "a parcel", "p00 8 of 9", "p01 9 of 11")
		if got := s.lowStock(t, "(below: 9)"); !slices.Equal(got, []string{"p00 8 of 9"}) {
			t.Errorf("below 9: %q", got)
		}
		for _, none := range []string{"(below: 8)", "(below: 0)", "(below: -1)"} {
			if got := s.lowStock(t, none); len(got) > 0 {
				t.Errorf("%s: %q", none, got)
			}
		}

		s.mutate(t, "requestReturn", mutationInput{"orderId": id, "lines": []mutationInput{{"sku": "p00", "quantity": 1, "reason": "broken"}}})
		var returned struct {
			Order struct {
				Returns struct{ Nodes []struct{ ID string } }
			}
		}
		s.read(t, &returned, `{ order(id: %q) { returns { nodes { id } } } }`, id)
		back := mutationInput{"orderId": id, "returnId": returned.Order.Returns.Nodes[0].ID}
		s.mutate(t, "approveReturn", back)
		s.mutate(t, "receiveReturn", back.with("warehouseId", "north").with("lines", []mutationInput{{"sku": "p00", "restocked": 1}}))
		s.wantLowStock(t, "a return", "p01 9 of 11")

		s.mutate(t, "transferInventory", mutationInput{"sku": "p00", "fromWarehouseId": "north", "toWarehouseId": "south", "quantity": 5})
		s.mutate(t, "adjustInventory", level("p01").with("delta", 2))
		s.wantLowStock(t, "a transfer and an adjustment", "p00 4 of 9")
		s.mutate(t, "setInventoryLevel", level("p00").with("quantity", 2).with("reorderPoint", 3))
		s.wantLowStock(t, "a stock count", "p00 2 of 3")
		s.mutate(t, "setInventoryLevel", level("p00").with("reorderPoint", 0))
		s.wantLowStock(t, "the removal of the reorder point")
		s.refuse(t, "setInventoryLevel", level("p00").with("reorderPoint", -1), "INVALID input.reorderPoint")
		s.refuse(t, "setInventoryLevel", mutationInput{"sku": "p03", "warehouseId": "south", "reorderPoint": 3}, "INVALID input.quantity")
	})
}

// A cancelled parcel returns to the stock, which is then no longer low.
func TestLowStockOfACancelledParcel(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		s.listLowStock(t, db, 10)
		id := s.place(t, "ann", skus(commerce.MaxLines)...)
		s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
		ship := mutationInput{"orderId": id, "warehouseId": "north", "withoutAddress": true}
		// A transaction has no room for 45 changes of the list.
		if got := s.refuse(t, "shipOrder", ship, "TOO_MANY_LINES input.orderId"); !strings.Contains(got.UserErrors[0].Message, "a further parcel") {
			t.Errorf("the message is %s", got.UserErrors[0].Message)
		}
		s.refuse(t, "createFulfillment", ship, "TOO_MANY_LINES input.lines")
		first := func(n int) (some []mutationInput) {
			for _, sku := range skus(n) {
				some = append(some, mutationInput{"sku": sku, "quantity": 1})
			}
			return some
		}
		parcel := s.fulfil(t, ship.with("lines", first(30)))
		if got := s.lowStock(t, "(first: 100)"); len(got) != 30 {
			t.Errorf("after a parcel of 30 lines, %d levels are low", len(got))
		}
		s.mutate(t, "cancelFulfillment", mutationInput{"orderId": id, "fulfillmentId": parcel})
		s.wantLowStock(t, "the cancellation")

		// If the reorder points came after a larger parcel, some of them must go to cancel it.
		setAll := func(skus []string, reorderPoint int) {
			for _, sku := range skus {
				s.mutate(t, "setInventoryLevel", mutationInput{"sku": sku, "warehouseId": "north", "reorderPoint": reorderPoint})
			}
		}
		all := skus(commerce.MaxLines)
		setAll(all, 0)
		parcel = s.fulfil(t, ship.with("lines", first(commerce.MaxLines-1)))
		setAll(all, 20)
		cancel := mutationInput{"orderId": id, "fulfillmentId": parcel}
		if got := s.refuse(t, "cancelFulfillment", cancel, "INVALID input.orderId"); !strings.Contains(got.UserErrors[0].Message, "has 44 line items whose stock is low, but only 7 fit") {
			t.Errorf("the message is %s", got.UserErrors[0].Message)
		}
		setAll(all[7:], 0)
		s.mutate(t, "cancelFulfillment", cancel)
		s.wantLowStock(t, "the cancellation of a large parcel", "p00 10 of 20", "p01 10 of 20", "p02 10 of 20", "p03 10 of 20", "p04 10 of 20", "p05 10 of 20", "p06 10 of 20")
	})
}

// A shipment does not trust a level that it has read: another client can set a reorder point before
// the transaction.
func TestReorderPointDuringAShipment(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		s.listLowStock(t, db, 5)
		for _, reorderPoint := range []int{10, 0} {
			id := s.place(t, "ann", "p50", "p00")
			s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
			other := s.secondServer(t)
			if err := other.store.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.wire.beforeNextTransaction(func() {
				other.mutate(t, "setInventoryLevel", mutationInput{"sku": "p50", "warehouseId": "north", "reorderPoint": reorderPoint})
			})
			s.mutate(t, "shipOrder", mutationInput{"orderId": id, "warehouseId": "north", "withoutAddress": true})
			if reorderPoint > 0 {
				s.wantLowStock(t, "a reorder point during a shipment", "p50 9 of 10")
			} else {
				s.wantLowStock(t, "its removal during a shipment")
			}
		}
	})
}

// Two shipments of a product without a reorder point do not exclude each other, even if the table
// has the list of low stock.
func TestShipmentsWithoutReorderPointsDoNotConflict(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		s.listLowStock(t, db, 5)
		var ids [2]string
		for i, customer := range []string{"ann", "bob"} {
			ids[i] = s.place(t, customer, "p50")
			s.mutate(t, "confirmOrder", mutationInput{"orderId": ids[i]})
		}
		ship := func(s *fixture, id string) {
			s.mutate(t, "shipOrder", mutationInput{"orderId": id, "warehouseId": "north", "withoutAddress": true})
		}
		other := s.secondServer(t)
		s.wire.reset()
		s.wire.beforeNextTransaction(func() { ship(other, ids[1]) })
		ship(s, ids[0])
		if n := len(s.wire.committed()); n != 1 {
			t.Errorf("%d transactions were committed", n)
		}
		sent := 0
		for _, name := range s.wire.operationNames() {
			if name == "TransactWriteItems" {
				sent++
			}
		}
		if sent != 1 {
			t.Errorf("%d transactions were sent, want 1", sent)
		}
	})
}

// Without the list, there are no reorder points either, so that a list that is added later is
// complete.
func TestLowStockNeedsTheList(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t)).withoutLog(t)
		for _, request := range []string{
			`{ warehouse(id: "north") { lowStock { nodes { sku } } } }`,
			`mutation { setInventoryLevel(input: {sku: "mug", warehouseId: "north", reorderPoint: 5}) { userErrors { code } } }`,
		} {
			got := s.api.ask(t, request, nil)
			if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "UNAVAILABLE" || !strings.Contains(got.Errors[0].Message, "ordergraph table apply inventoryLevelLowStock") {
				t.Errorf("%s: %+v", request, got.Errors)
			}
		}
	})
}

// A repair restores the list from the levels.
func TestRepairOfLowStock(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		s.listLowStock(t, db, 11)
		s.remove(t, "PRODUCT#p00", "WITH_LOW_STOCK#north")
		s.change(t, "PRODUCT#p01", "WAREHOUSE#north", map[string]attribute{"quantity": number(12)})
		s.change(t, "PRODUCT#p02", "WAREHOUSE#north", map[string]attribute{"quantity": number(3)})
		s.change(t, "PRODUCT#p03", "WITH_LOW_STOCK#north", map[string]attribute{"gsi1sk": storetest.Str("1#p03")})
		if summary, err := s.store.CheckRecords(t.Context(), checking.Options{Repair: true, IndexLag: checking.NoIndexLag}); err != nil || summary.UnrepairedCount() > 0 {
			t.Fatalf("the repair reports %+v, %v", summary, err)
		}
		if got := s.lowStock(t, "(first: 100)"); len(got) != commerce.MaxLines-1 || got[0] != "p02 3 of 11" || slices.Contains(got, "p01 12 of 11") {
			t.Errorf("the list is %q", got)
		}
		storetest.AssertConsistent(t, s.db, s.table, 1)
	})
}
