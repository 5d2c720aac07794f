package change_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// Mutations that add to a number of a record also write the edges that repeat the number. In this
// test, all edges repeat all numbers. The test is not parallel, because it changes the model.
func TestMutationsUpdateNumbersInEdges(t *testing.T) {
	for _, e := range []*model.Entity{&model.EntityProduct, &model.EntityCustomer} {
		for _, edge := range e.Edges() {
			lacks := edge.Omitted
			edge.Omitted = nil
			t.Cleanup(func() { edge.Omitted = lacks })
		}
	}
	world := workload.Fixture{Customers: 1, Products: 2, Warehouses: 1, Stock: 100}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, world.Dataset(t), dynamo.Options{})
		caller := change.Caller{Name: "tester"}
		move := func(id commerce.OrderID, to commerce.Status) {
			t.Helper()
			if _, err := r.Store.ChangeOrderStatus(t.Context(), caller, commerce.OrderStatusChange{OrderID: id, To: to, WarehouseID: "w0", WithoutAddress: true}); err != nil {
				t.Fatal(err)
			}
			r.CheckClean()
		}
		r.CheckClean()
		orders := storetest.PlaceOrders(t, r.Store, "c0", 2)
		r.CheckClean()
		if _, err := r.Store.SetOrderItem(t.Context(), caller, commerce.OrderItemChange{OrderID: orders[0], SKU: "p1", Quantity: 3}); err != nil {
			t.Fatal(err)
		}
		r.CheckClean()
		move(orders[0], commerce.Confirmed)
		move(orders[0], commerce.Shipped)
		move(orders[1], commerce.Cancelled)
		if _, err := r.Store.AdjustInventory(t.Context(), caller, commerce.InventoryAdjustment{SKU: "p0", WarehouseID: "w0", Delta: 7}); err != nil {
			t.Fatal(err)
		}
		r.CheckClean()
		for _, k := range [][2]string{{"PRODUCT#p0", "WITH_NAME"}, {"PRODUCT#p1", "WITH_CATEGORY"}} {
			edge, product := r.Get(k[0], k[1]), r.Get(k[0], "#METADATA")
			for _, name := range []string{model.AttrTotalInventory, model.AttrAvailable} {
				if edge[name] == nil || !storetest.EqualValues(edge[name], product[name]) {
					t.Errorf("%s of %s: the edge has %s, the product %s", name, k, storetest.FormatValue(edge[name]), storetest.FormatValue(product[name]))
				}
			}
		}
	})
}
