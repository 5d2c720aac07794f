package dynamo_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// confirmed places and confirms an order of n pieces, and returns a parcel with one of them.
func confirmed(t *testing.T, store *dynamo.Store, n int) commerce.FulfillmentRequest {
	t.Helper()
	o, err := store.PlaceOrder(t.Context(), change.Caller{Name: "me"}, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: n}}})
	if err == nil {
		_, err = store.ChangeOrderStatus(t.Context(), change.Caller{Name: "me"}, commerce.OrderStatusChange{OrderID: o.ID, To: commerce.Confirmed})
	}
	if err != nil {
		t.Fatal(err)
	}
	return commerce.FulfillmentRequest{OrderID: o.ID, WarehouseID: "w1", Lines: []commerce.FulfillmentLine{{SKU: "p01", Quantity: 1}}, WithoutAddress: true, TrackingNumber: "1Z"}
}

// Of ten concurrent parcels with one piece each, only two are shipped, because two pieces were ordered. A check
// repairs what follows from them, and an export contains them.
func TestConcurrentFulfillments(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		if _, err := r.Store.SetInventoryLevel(t.Context(), change.Caller{}, commerce.InventoryLevelChange{SKU: "p01", WarehouseID: "w1", Quantity: new(50)}); err != nil {
			t.Fatal(err)
		}
		parcel := confirmed(t, r.Store, 2)
		var clients sync.WaitGroup
		var mu sync.Mutex
		shipped := 0
		for range 10 {
			clients.Go(func() {
				_, err := r.Store.CreateFulfillment(t.Context(), change.Caller{Name: "me"}, parcel)
				if err != nil && !commerce.IsUserError(err) {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					shipped++
				}
			})
		}
		clients.Wait()
		if shipped != 2 {
			t.Errorf("%d parcels were shipped, want 2", shipped)
		}
		r.CheckClean()
		before := r.All()
		key := "ORDER#" + string(parcel.OrderID)
		for name, damage := range map[string]storetest.Item{
			"counts": {"fulfillments": storetest.Num("1"), "undelivered": storetest.Num("0")},
			"pieces": {"shippedLines": before[key+" #METADATA"]["shippedLines"], "undelivered": storetest.Num("5")},
		} {
			r.Set(key, "#METADATA", damage)
			found, _ := r.Check(check.Options{Repair: true, IndexLag: check.NoIndexLag})
			if len(found) == 0 || found[0].Kind != "fulfillments" || !model.EqualRecords(model.Record(r.All()[key+" #METADATA"]), model.Record(before[key+" #METADATA"])) {
				t.Errorf("%s: the check found %v", name, found)
			}
		}
		empty := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
		if _, err := empty.Store.Import(t.Context(), strings.NewReader(strings.Join(storetest.Export(t, r.Store, 1), "")), bulk.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		empty.CheckClean()
		if got := len(empty.All()); got < len(before)-1 {
			t.Errorf("%d records were imported, want %d", got, len(before))
		}
	})
}

// A table that is older than fulfillments refuses them until an operator has added the feature. Older servers
// reject the table from then on, because they do not know the feature.
func TestFulfillmentsInAnOldTable(t *testing.T) {
	r, clock := oldTable(t)
	store := r.Store
	if _, err := store.SetInventoryLevel(t.Context(), change.Caller{}, commerce.InventoryLevelChange{SKU: "p01", WarehouseID: "w1", Quantity: new(50)}); err != nil {
		t.Fatal(err)
	}
	parcel := confirmed(t, store, 1)
	var unavailable *model.DerivationUnavailable
	if _, err := store.CreateFulfillment(t.Context(), change.Caller{Name: "me"}, parcel); !errors.As(err, &unavailable) || unavailable.Name != model.OrderFulfillments {
		t.Errorf("the fulfillment: %v", err)
	}
	if _, err := store.ApplyDerivation(t.Context(), derivation(t, model.OrderFulfillments), applied(clock, model.Written)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateFulfillment(t.Context(), change.Caller{Name: "me"}, parcel); err != nil {
		t.Errorf("the fulfillment: %v", err)
	}
}
