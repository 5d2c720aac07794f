package bench_test

import (
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
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// orderCountKey and repOrderKey match the key of a counter record in a DynamoDB request.
var (
	orderCountKey = regexp.MustCompile(`"PART#[0-9]+"`)
	repOrderKey   = regexp.MustCompile(`"ORDERS#[0-9]+"`)
)

// BenchmarkOrderCountConflicts places 50 orders a second, then confirms, ships and delivers each
// order. It reports the number of conflicts per second between transactions that write the same
// order count record. The number of counter records is the number of parts.
func BenchmarkOrderCountConflicts(b *testing.B) {
	conflicts(b, model.OrderCountParts, orderCountKey, 1, true)
}

// BenchmarkAccountRepConflicts places 50 orders a second, ten of them concurrently, all for one
// account rep. It reports the number of conflicts per second between transactions that write the
// same counter record.
func BenchmarkAccountRepConflicts(b *testing.B) {
	conflicts(b, model.RepOrderCountParts, repOrderKey, 10, false)
}

// conflicts places 50 orders a second, with atOnce orders placed concurrently. If all is true, it
// also delivers the orders. Each transaction locks its records for 10 ms. An order fails after 50
// conflicts.
func conflicts(b *testing.B, parts int, record *regexp.Regexp, atOnce int, all bool) {
	const hold, every = 10 * time.Millisecond, 20 * time.Millisecond
	for _, parts := range []int{parts, 1} {
		b.Run(fmt.Sprintf("parts=%d", parts), func(b *testing.B) {
			held, conflicts, transactions := map[string]time.Time{}, 0, 0
			db, _ := faults.WrapClient(embedded.New().Client(), func(r faults.Request) faults.Kind {
				part := string(record.Find(r.Body))
				if !r.IsTransaction() || part == "" {
					return faults.None
				}
				if parts == 1 {
					part = ""
				}
				now := time.Now()
				if transactions++; now.Before(held[part]) {
					conflicts++
					return faults.TransactionConflict
				}
				held[part] = now.Add(hold)
				return faults.None
			})
			db = dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.Retryer = faults.OneAttempt() })
			store := storetest.NewTable(b, db, dynamo.Options{})
			dataset := workload.Fixture{Customers: b.N, Products: 10, Warehouses: 1, Employees: 1, Stock: 100 * b.N}.Dataset(b)
			for i := range dataset.Customers {
				dataset.Customers[i].AccountRepID = dataset.Employees[0].ID
			}
			storetest.LoadDataset(b, store, dataset)
			conflicts, transactions = 0, 0
			tick := time.NewTicker(every * time.Duration(atOnce))
			defer tick.Stop()
			var wg sync.WaitGroup
			var failed atomic.Int64
			began := time.Now()
			for i := range b.N {
				if i%atOnce == 0 {
					<-tick.C
				}
				wg.Go(func() {
					caller := change.Caller{Name: "bench"}
					order, err := store.PlaceOrder(b.Context(), caller, commerce.OrderRequest{
						CustomerID: commerce.CustomerID(fmt.Sprint("c", i)), Lines: []commerce.OrderLine{{SKU: commerce.SKU(fmt.Sprint("p", i%10)), Quantity: 1}},
					})
					for _, m := range []commerce.OrderStatusChange{{To: commerce.Confirmed}, {To: commerce.Shipped, WarehouseID: "w0", WithoutAddress: true}, {To: commerce.Delivered}} {
						if err != nil || !all {
							break
						}
						m.OrderID = order.ID
						time.Sleep(hold) // the embedded store answers at once
						_, err = store.ChangeOrderStatus(b.Context(), caller, m)
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
