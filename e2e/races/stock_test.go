package races_test

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// Each client orders one to three units of several products, through two servers. An order reserves
// either all its units or none. No order is rejected if all its units are available.
func TestOversoldProducts(t *testing.T) {
	const buyers, products, stock = 80, 4, 50
	lines := func(i int) []map[string]any {
		var items []map[string]any
		for j := range 1 + i%3 {
			items = append(items, map[string]any{"sku": fmt.Sprintf("p%d", (i+j)%products), "quantity": 1 + (i/3+j)%3})
		}
		// Half of the orders list their products in reverse order, so that transactions conflict.
		if i%2 == 0 {
			slices.Reverse(items)
		}
		return items
	}
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		table := storetest.TableName()
		store := storetest.NewTable(t, db, dynamo.Options{Table: table})
		storetest.LoadDataset(t, store, workload.Fixture{Customers: 5, Products: products, Warehouses: 1, Stock: stock}.Dataset(t))
		second, err := dynamo.New(db, dynamo.Options{Table: table})
		if err != nil {
			t.Fatal(err)
		}
		urls := []string{workload.Serve(t, store, io.Discard), workload.Serve(t, second, io.Discard)}
		c := workload.NewClient()
		t.Cleanup(c.HTTP.CloseIdleConnections)
		answers := make([]workload.Response, buyers)
		var buying sync.WaitGroup
		for i := range buyers {
			buying.Go(func() {
				order := workload.Mutation{Field: "placeOrder", Input: map[string]any{"customerId": fmt.Sprintf("c%d", i%5), "items": lines(i)}}
				var err error
				if answers[i], err = c.Send(t.Context(), urls[i%2], order); err != nil {
					t.Errorf("order %d: %v", i, err)
				}
			})
		}
		buying.Wait()
		placed := 0
		for i, a := range answers {
			if a.Succeeded() {
				placed++
			} else if slices.ContainsFunc(a.UserErrorCodes, func(code string) bool { return code != "INSUFFICIENT_STOCK" }) {
				t.Errorf("order %d: %v", i, a)
			}
		}
		a := storetest.AssertConsistent(t, db, table, 1)
		if len(a.Orders) != placed || placed == buyers {
			t.Errorf("%d orders are in the table, %d were placed, want equal numbers and fewer than %d", len(a.Orders), placed, buyers)
		}
		// The clients order more units than are available, so at least one product has few units left.
		least := stock
		for j := range products {
			least = min(least, a.Records[storetest.Key{PK: fmt.Sprintf("PRODUCT#p%d", j), SK: "#METADATA"}].Int("available"))
		}
		if least > 2 {
			t.Errorf("%d orders were refused, but at least %d pieces of every product are left", buyers-placed, least)
		}
	})
}
