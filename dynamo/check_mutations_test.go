package dynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// live makes mutations of a shop, one after the other, until it has made so many. What is refused is refused: stock runs
// out, and orders cannot move everywhere.
func live(ctx context.Context, store *dynamo.Store, seed uint64, n int) error {
	random := rand.New(rand.NewPCG(seed, 0))
	caller := dynamo.Caller{Name: fmt.Sprintf("live%d", seed)}
	var orders []commerce.OrderID
	pick := func() commerce.OrderID {
		if len(orders) == 0 {
			return commerce.OrderID(shopOrder(random.IntN(ordersOfShop)))
		}
		return orders[random.IntN(len(orders))]
	}
	customer := commerce.CustomerID([]string{"c1", "c2"}[seed%2])
	for i := range n {
		sku := commerce.SKU([]string{"p00", "p01"}[random.IntN(2)])
		var err error
		switch random.IntN(9) {
		case 0, 1:
			var o *commerce.Order
			if o, err = store.PlaceOrder(ctx, caller, commerce.NewOrder{CustomerID: customer, Lines: []commerce.OrderLine{{SKU: sku, Quantity: 1}}}); err == nil {
				orders = append(orders, o.ID)
			}
		case 2:
			_, err = store.MoveOrder(ctx, caller, commerce.OrderMove{OrderID: pick(), To: commerce.Confirmed})
		case 3:
			_, err = store.MoveOrder(ctx, caller, commerce.OrderMove{OrderID: pick(), To: commerce.Cancelled})
		case 4:
			_, err = store.MoveOrder(ctx, caller, commerce.OrderMove{OrderID: pick(), To: commerce.Shipped, WarehouseID: "w1"})
		case 5:
			_, err = store.SetOrderItem(ctx, caller, commerce.OrderItemChange{OrderID: pick(), SKU: sku, Quantity: random.IntN(4)})
		case 6:
			_, err = store.AdjustInventory(ctx, caller, commerce.InventoryAdjustment{SKU: sku, WarehouseID: "w1", Delta: random.IntN(7) - 2})
		case 7:
			email := fmt.Sprintf("live%d-%d@example.com", seed, i)
			_, err = store.UpdateCustomer(ctx, caller, commerce.CustomerChange{ID: customer, Email: &email})
		default:
			reps := []commerce.EmployeeID{"", "e1", "e2"}
			_, err = store.AssignAccountRep(ctx, caller, commerce.AccountRepChange{CustomerID: customer, EmployeeID: reps[random.IntN(3)]})
		}
		if err != nil && !commerce.IsRefusal(err) {
			return err
		}
	}
	return nil
}

// What mutations write is clean, and never looks like drift while they write it.
func TestACheckAmongMutationsFindsNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		var writers sync.WaitGroup
		done := make(chan struct{})
		for seed := range uint64(3) {
			writers.Go(func() {
				if err := live(context.Background(), r.store, seed, 60); err != nil {
					t.Errorf("mutation: %v", err)
				}
			})
		}
		go func() {
			writers.Wait()
			close(done)
		}()
		for running := true; running; {
			if drifts, _ := r.check(dynamo.CheckOptions{Repair: true, Segments: 2}); len(drifts) > 0 {
				t.Errorf("found %+v", drifts)
			}
			select {
			case <-done:
				running = false
			default:
			}
		}
		r.checkClean()
	})
}
