package check_test

import (
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// The repairs of one customer's orders each append an event, and each replaces the customer's last
// event. They run in parallel, but do not refuse each other. The store writes to a file, so that
// transactions take long enough to overlap.
func TestRepairsOfOneCustomersOrders(t *testing.T) {
	t.Parallel()
	file, err := embedded.Open(filepath.Join(t.TempDir(), "orders.db"), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for name, db := range map[string]func(t *testing.T) *dynamodb.Client{
		"file":           func(*testing.T) *dynamodb.Client { return file.Client() },
		"dynamodb-local": func(t *testing.T) *dynamodb.Client { return storetest.Engines()[1].Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			dataset := storetest.SmallDataset(t, 3)
			dataset.Orders = nil
			r := storetest.NewRawTable(t, db(t), dataset, dynamo.Options{})
			if _, err := r.Store.SetInventoryLevel(t.Context(), change.Caller{Name: "t"}, commerce.InventoryLevelChange{SKU: "p01", WarehouseID: "w1", Quantity: new(500)}); err != nil {
				t.Fatal(err)
			}
			const orders = 40
			for range orders {
				order, err := r.Store.PlaceOrder(t.Context(), change.Caller{Name: "t"}, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: 1}}})
				if err != nil {
					t.Fatal(err)
				}
				pk := "ORDER#" + string(order.ID)
				r.Set(pk, "#METADATA", storetest.Item{"status": storetest.Str("confirmed"), "version": storetest.Num("2")})
			}
			inconsistencies, summary := r.Check(check.Options{Repair: true})
			if got := storetest.CountByKind(inconsistencies)["timeline"]; got != orders || summary.UnrepairedCount() > 0 {
				t.Errorf("%d timelines found, want %d; %d inconsistencies left: %+v", got, orders, summary.UnrepairedCount(), inconsistencies)
			}
			r.CheckClean()
		})
	}
}
