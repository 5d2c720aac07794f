package bench_test

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/internal/embedded"
	"github.com/ordergraph/ordergraph/internal/faults"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// countsPartPattern matches the key of a part of the order counts in a request.
var countsPartPattern = regexp.MustCompile(`PART#[0-9]+`)

// BenchmarkOrderCountConflicts places 50 orders a second. Each order is then confirmed, shipped and
// delivered. The benchmark reports the transactions per second that DynamoDB would cancel, because
// a concurrent transaction writes the same part of the order counts. It assumes that a transaction
// holds its records for 10 ms. An order fails if its transaction is cancelled 50 times. With one
// part, one record counts all orders.
func BenchmarkOrderCountConflicts(b *testing.B) {
	const hold, every = 10 * time.Millisecond, 20 * time.Millisecond
	for _, spread := range []bool{true, false} {
		name := "parts=32"
		if !spread {
			name = "parts=1"
		}
		b.Run(name, func(b *testing.B) {
			held, conflicts, transactions := map[string]time.Time{}, 0, 0
			db, _ := faults.Between(embedded.New().Client(), func(r faults.Request) faults.Kind {
				if !r.Writes() || !bytes.Contains(r.Body, []byte("ORDER_COUNTS")) {
					return faults.None
				}
				part, now := "", time.Now()
				if spread {
					part = string(countsPartPattern.Find(r.Body))
				}
				if transactions++; now.Before(held[part]) {
					conflicts++
					return faults.Conflict
				}
				held[part] = now.Add(hold)
				return faults.None
			})
			db = dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.Retryer = faults.OneAttempt() })
			store := storetest.NewTable(b, db, dynamo.Options{})
			storetest.Load(b, store, shoptest.World{Customers: b.N, Products: 10, Warehouses: 1, Employees: 1, Stock: 100 * b.N}.Book(b))
			conflicts, transactions = 0, 0
			tick := time.NewTicker(every)
			defer tick.Stop()
			var wg sync.WaitGroup
			var failed atomic.Int64
			began := time.Now()
			for i := range b.N {
				<-tick.C
				wg.Go(func() {
					caller := change.Caller{Name: "bench"}
					order, err := store.PlaceOrder(b.Context(), caller, commerce.NewOrder{
						CustomerID: commerce.CustomerID(fmt.Sprint("c", i)), Lines: []commerce.OrderLine{{SKU: commerce.SKU(fmt.Sprint("p", i%10)), Quantity: 1}},
					})
					for _, m := range []commerce.OrderMove{{To: commerce.Confirmed}, {To: commerce.Shipped, WarehouseID: "w0", WithoutAddress: true}, {To: commerce.Delivered}} {
						if err != nil {
							break
						}
						m.OrderID = order.ID
						time.Sleep(hold) // the embedded store responds immediately
						_, err = store.MoveOrder(b.Context(), caller, m)
					}
					if err != nil {
						failed.Add(1)
					}
				})
			}
			wg.Wait()
			seconds := time.Since(began).Seconds()
			b.ReportMetric(float64(conflicts)/seconds, "conflicts/s")
			b.ReportMetric(float64(transactions-conflicts)/seconds, "transactions/s")
			b.ReportMetric(float64(failed.Load()), "failed-orders")
		})
	}
}
