package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
)

// executedOrders is a typical page of orders with totals, placement times, customers and items.
const executedOrders = `query($n: Int) { ordersByStatus(status: PENDING, first: $n) { nodes { id status total { amount } placedAt customer { name } items { nodes { productId name quantity unitPrice { amount } } } } } }`

// inMemory returns orders without reading them, so that benchmarks measure only the execution.
type inMemory struct {
	*Resolver
	orders   []*commerce.Order
	customer *commerce.Customer
	items    []*commerce.LineItem
}

type (
	inMemoryQuery struct {
		QueryResolver
		of *inMemory
	}
	inMemoryOrder struct {
		OrderResolver
		of *inMemory
	}
)

func (m *inMemory) Query() QueryResolver { return inMemoryQuery{m.Resolver.Query(), m} }
func (m *inMemory) Order() OrderResolver { return inMemoryOrder{m.Resolver.Order(), m} }

func (q inMemoryQuery) OrdersByStatus(ctx context.Context, status commerce.Status, placed *commerce.TimeRange, first *int32, after *string, last *int32, before *string) (*OrderConnection, error) {
	asked := q.of.Resolver.pageRequest("Query.ordersByStatus")
	(&queryOrdersByStatusArguments{status, placed, first, after, last, before}).list(&asked, currentField(ctx).PageInfo)
	return newConnection(ctx, &asked, dynamo.Page[*commerce.Order]{Items: q.of.orders}, asked.Err)
}

func (o inMemoryOrder) Customer(context.Context, *commerce.Order) (*commerce.Customer, error) {
	return o.of.customer, nil
}

func (o inMemoryOrder) Items(ctx context.Context, of *commerce.Order, first *int32, after *string, last *int32, before *string) (*OrderItemConnection, error) {
	asked := o.of.Resolver.orderItemsRequest(of.ID, &orderItemsArguments{first, after, last, before}, currentField(ctx).PageInfo)
	return newConnection(ctx, &asked, dynamo.Page[*commerce.LineItem]{Items: o.of.items}, asked.Err)
}

// executing returns a function that executes executedOrders for 50 orders of three items each, with
// an execution or with the oracle.
func executing(t testing.TB, byOracle bool) func() int {
	price, err := commerce.ParseMoney("29.99", "USD")
	if err != nil {
		t.Fatal(err)
	}
	of := inMemory{customer: &commerce.Customer{ID: "cust_01", Name: "Ann Arbor"}}
	for i := range 50 {
		of.orders = append(of.orders, &commerce.Order{ID: commerce.OrderID(fmt.Sprintf("01HVMK3P2Q00000000000000%02d", i)), CustomerID: "cust_01", Status: commerce.Pending, Total: price, PlacedAt: time.Unix(1_700_000_000+int64(i), 0)})
	}
	for i := range 3 {
		of.items = append(of.items, &commerce.LineItem{SKU: commerce.SKU(fmt.Sprintf("prod_%d", i)), Name: "A chair of wood", Quantity: 2, UnitPrice: price})
	}
	pair := newExecutorPair(t, Options{Store: &dynamo.Store{}}, func(r *Resolver) ResolverRoot {
		of.Resolver = r
		return &of
	})
	e, run := pair.executor, pair.executor.run
	if byOracle {
		e, run = pair.oracle.Executor, pair.oracle.run
	}
	e.lookahead = false
	prepared, _, errs := e.prepare(t.Context(), Request{Query: executedOrders, Variables: map[string]any{"n": json.Number("50")}})
	if errs = append(errs, e.readArguments(t.Context(), prepared)...); len(errs) > 0 {
		t.Fatal(errs)
	}
	ctx := context.WithValue(withReportedErrors(t.Context()), pairKey{}, e)
	return func() int {
		response, _ := run(ctx, prepared, nil)
		return len(response.Data)
	}
}

// BenchmarkExecution measures the execution of an operation with all records in memory: 50 orders
// with 150 items.
func BenchmarkExecution(b *testing.B) {
	for _, by := range []string{"executor", "oracle"} {
		b.Run(by, func(b *testing.B) {
			execute := executing(b, by == "oracle")
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(int64(execute()))
			}
		})
	}
}

// The allocations of an execution grow by fewer than two per order: the connection of its items,
// and the response. An allocation per field or element would exceed the limit.
func TestExecutionsAllocateLittle(t *testing.T) {
	if raceenabled.On || testing.CoverMode() != "" {
		t.Skip("the race detector and coverage add allocations")
	}
	execute := executing(t, false)
	execute()
	const most = 94 // 78 when this was written
	if got := testing.AllocsPerRun(20, func() { execute() }); got > most {
		t.Errorf("%v allocations for 50 orders of 3 items, want at most %d", got, most)
	}
}
