package check_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// mutateContinuously makes n mutations one after the other. Some are refused, because stock runs
// out and orders cannot take every status.
func mutateContinuously(ctx context.Context, store *dynamo.Store, seed uint64, n int) error {
	random := rand.New(rand.NewPCG(seed, 0))
	caller := change.Caller{Name: fmt.Sprintf("live%d", seed)}
	var orders []commerce.OrderID
	pick := func() commerce.OrderID {
		if len(orders) == 0 {
			return commerce.OrderID(storetest.SmallOrderID(random.IntN(storetest.SmallOrderCount)))
		}
		return orders[random.IntN(len(orders))]
	}
	customer := commerce.CustomerID([]string{"c1", "c2"}[seed%2])
	for i := range n {
		sku := commerce.SKU([]string{"p00", "p01"}[random.IntN(2)])
		var err error
		switch random.IntN(10) {
		case 0, 1:
			var o *commerce.Order
			if o, err = store.PlaceOrder(ctx, caller, commerce.OrderRequest{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: sku, Quantity: 1}}}); err == nil {
				orders = append(orders, o.ID)
			}
		case 2:
			_, err = store.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: pick(), To: commerce.Confirmed})
		case 3:
			_, err = store.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: pick(), To: commerce.Cancelled})
		case 4:
			_, err = store.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: pick(), To: commerce.Shipped, WarehouseID: "w1", WithoutAddress: true})
		case 5:
			_, err = store.SetOrderItem(ctx, caller, commerce.OrderItemChange{OrderID: pick(), SKU: sku, Quantity: random.IntN(4)})
		case 6:
			_, err = store.AdjustInventory(ctx, caller, commerce.InventoryAdjustment{SKU: sku, WarehouseID: "w1", Delta: random.IntN(7) - 2})
		case 7:
			_, err = store.TransferInventory(ctx, caller, commerce.InventoryTransfer{SKU: sku, FromWarehouseID: []commerce.WarehouseID{"w1", "w2"}[random.IntN(2)], ToWarehouseID: "w2", Quantity: 1 + random.IntN(3)})
		case 8:
			email := fmt.Sprintf("live%d-%d@example.com", seed, i)
			_, err = store.UpdateCustomer(ctx, caller, commerce.CustomerChange{ID: customer, Email: &email})
		default:
			reps := []commerce.EmployeeID{"", "e1", "e2"}
			_, err = store.AssignAccountRep(ctx, caller, commerce.AccountRepChange{CustomerID: customer, EmployeeID: reps[random.IntN(3)]})
		}
		if err != nil && !commerce.IsUserError(err) {
			return err
		}
	}
	return nil
}

// Mutations write consistent records, and a concurrent check reports no inconsistency.
func TestCheckDuringMutationsFindsNothing(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var made [3]atomic.Int64
		var writers sync.WaitGroup
		for seed := range made {
			writers.Go(func() {
				for round := uint64(0); ctx.Err() == nil; round++ {
					if err := mutateContinuously(context.Background(), r.Store, 3*round+uint64(seed), 5); err != nil {
						t.Errorf("mutation: %v", err)
						return
					}
					made[seed].Add(5)
				}
			})
		}
		mutations := func() (n int64) {
			for i := range made {
				n += made[i].Load()
			}
			return n
		}
		// A check counts if mutations were made before, during and after it.
		checks, unsettled := 0, 0
		for checks < longtest.Size(3, 5) || mutations() < int64(longtest.Size(60, 180)) {
			before := mutations()
			inconsistencies, summary := r.Check(check.Options{Repair: true, Segments: 2})
			if len(inconsistencies) > 0 {
				t.Errorf("found %+v", inconsistencies)
			}
			if before > 0 && mutations() > before {
				checks++
				unsettled += summary.Unverified
			}
			if t.Failed() {
				break
			}
		}
		stop()
		writers.Wait()
		t.Logf("%d checks ran concurrently with %d mutations and left %d records unverified", checks, mutations(), unsettled)
		// Two customers, two products and the latest orders change all the time.
		if unsettled > 2*checks {
			t.Errorf("%d checks could not verify %d records", checks, unsettled)
		}
		r.CheckClean()
	})
}
