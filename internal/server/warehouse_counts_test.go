package server_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	checking "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// wantProductCount compares the number of products of a warehouse; -1 is null.
func (s *fixture) wantProductCount(t testing.TB, warehouse string, want int) {
	t.Helper()
	var data struct {
		Warehouse struct{ ProductCount *int }
	}
	got := s.withoutLog(t).api.ask(t, fmt.Sprintf(`{ warehouse(id: %q) { productCount } }`, warehouse), nil)
	if err := json.Unmarshal(got.Data, &data); err != nil {
		t.Fatal(err)
	}
	n := -1
	if data.Warehouse.ProductCount != nil {
		n = *data.Warehouse.ProductCount
	} else if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "UNAVAILABLE" {
		t.Errorf("warehouse %s: %+v", warehouse, got.Errors)
	}
	if n != want {
		t.Errorf("warehouse %s has %d products, want %d", warehouse, n, want)
	}
}

// A warehouse counts the products that have an inventory level in it. Only the first level of a
// product changes the warehouse's record.
func TestProductsOfWarehouses(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.wantProductCount(t, "north", 3)
		s.wantProductCount(t, "south", 1)
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "plate", "warehouseId": "south", "quantity": 0})
		s.wantProductCount(t, "south", 2)
		s.mutate(t, "createProduct", mutationInput{"sku": "jug", "name": "Jug", "category": "Kitchen", "unitPrice": mutationInput{"amount": "9.00"}})
		s.mutate(t, "adjustInventory", mutationInput{"sku": "jug", "warehouseId": "south", "delta": 2})
		s.wantProductCount(t, "south", 3)
		s.mutate(t, "createWarehouse", mutationInput{"id": "west", "name": "West"})
		s.wantProductCount(t, "west", 0)

		before := s.records(t)
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "plate", "warehouseId": "south", "quantity": 5})
		s.mutate(t, "adjustInventory", mutationInput{"sku": "jug", "warehouseId": "south", "delta": -2})
		order := s.place(t, "ann", "mug", "plate")
		s.mutate(t, "updateShippingAddress", mutationInput{"orderId": order, "shippingAddress": mutationInput{"recipient": "Ann", "line1": "1 Main St", "city": "Portland", "countryCode": "US"}})
		s.mutate(t, "confirmOrder", mutationInput{"orderId": order})
		s.mutate(t, "shipOrder", mutationInput{"orderId": order, "warehouseId": "north"})
		for k, record := range s.records(t) {
			if record != before[k] && (k == "WAREHOUSE#north #METADATA" || k == "WAREHOUSE#south #METADATA") {
				t.Errorf("a change of quantities wrote the record %s: %s", k, record)
			}
		}
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// The products of a warehouse of an earlier version are not counted before a repair has counted them,
// and exactly after it.
func TestProductsOfEarlierWarehousesAreCountedByARepair(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "createWarehouse", mutationInput{"id": "west", "name": "West"})
		for _, warehouse := range []string{"north", "south", "west"} {
			s.change(t, "WAREHOUSE#"+warehouse, "#METADATA", map[string]attribute{"productCount": nil})
		}
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "plate", "warehouseId": "south", "quantity": 4})
		s.wantProductCount(t, "south", -1)
		if summary, err := s.store.CheckRecords(t.Context(), checking.Options{IndexLag: checking.NoIndexLag}); err != nil || summary.UnrepairedCount() > 0 {
			t.Errorf("a check found %+v, %v", summary, err)
		}
		if _, err := s.store.CheckRecords(t.Context(), checking.Options{Repair: true, IndexLag: checking.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		s.wantProductCount(t, "north", 3)
		s.wantProductCount(t, "south", 2)
		s.wantProductCount(t, "west", 0)
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "plate", "warehouseId": "west", "quantity": 4})
		s.wantProductCount(t, "west", 1)
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}
