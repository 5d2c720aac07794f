package races_test

import (
	"errors"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// firstTransactions returns a Chooser with fixed faults for the first transactions, in order.
func firstTransactions(kinds ...faults.Kind) faults.Chooser {
	return func(r faults.Request) faults.Kind {
		if !r.IsTransaction() || len(kinds) == 0 {
			return faults.None
		}
		kind := kinds[0]
		kinds = kinds[1:]
		return kind
	}
}

// smallFixture is a fixture with one record of each kind and 10 pieces of the product.
var smallFixture = workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Employees: 1, Stock: 10}

func orderOnePiece(key string) workload.Mutation {
	m := workload.Mutation{Field: "placeOrder", Input: map[string]any{"customerId": "c0", "items": []map[string]any{{"sku": "p0", "quantity": 1}}}}
	if key != "" {
		m.Input["idempotencyKey"] = key
	}
	return m
}

// available returns the available pieces of the product of the small fixture.
func available(a *storetest.AuditResult) int {
	return a.Records[storetest.Key{PK: "PRODUCT#p0", SK: "#METADATA"}].Int("available")
}

// The client does not see faults that end before the request's deadline.
func TestTransientFaults(t *testing.T) {
	for name, kinds := range map[string][]faults.Kind{
		"conflicts":  {faults.TransactionConflict, faults.TransactionConflict, faults.TransactionConflict, faults.TransactionConflict},
		"throttling": {faults.ThroughputExceeded, faults.Throttling, faults.ThroughputExceeded},
		"faults":     {faults.InternalServerError, faults.ConnectionRefused, faults.InternalServerError},
		"everything": {faults.ConnectionRefused, faults.Throttling, faults.TransactionConflict, faults.TransactionInProgress, faults.InternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				s := newFaultyServer(t, db, smallFixture, firstTransactions(kinds...))
				a, err := workload.NewClient().Send(t.Context(), s.url, orderOnePiece(""))
				if err != nil || !a.Succeeded() {
					t.Errorf("%v, %v", a, err)
				}
				met := 0
				for _, n := range s.faults.Counts() {
					met += n
				}
				audited := storetest.AssertConsistent(t, db, s.table, 1)
				if len(audited.Orders) != 1 || available(audited) != 9 || met != len(kinds) {
					t.Errorf("%d orders after %d faults and %d pieces left, want 1 order after %d faults and 9 pieces", len(audited.Orders), met, available(audited), len(kinds))
				}
			})
		})
	}
}

// lastingFault returns a Chooser with the same fault for every transaction. At the fourth
// transaction, it calls the function passed. The test's function then lets the deadline of the
// request pass.
func lastingFault(kind faults.Kind, passed func()) faults.Chooser {
	attempts := 0
	return func(r faults.Request) faults.Kind {
		if !r.IsTransaction() {
			return faults.None
		}
		if attempts++; attempts == 4 {
			passed()
		}
		return kind
	}
}

// If a fault lasts until the deadline of a request, the request returns ErrUnavailable and writes
// nothing.
func TestLastingFaults(t *testing.T) {
	for _, kind := range []faults.Kind{faults.TransactionConflict, faults.TransactionInProgress, faults.ThroughputExceeded, faults.Throttling, faults.InternalServerError, faults.ConnectionRefused} {
		t.Run(string(kind), func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				s := newFaultyServer(t, db, smallFixture, noFaults)
				before := storetest.AssertConsistent(t, db, s.table, 1)
				ctx := workload.NewManualDeadline(t.Context())
				failing, between := faults.WrapClient(db, lastingFault(kind, ctx.Expire))
				store, err := dynamo.New(failing, dynamo.Options{Table: s.table})
				if err != nil {
					t.Fatal(err)
				}
				order := commerce.OrderRequest{CustomerID: "c0", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}}
				if _, err := store.PlaceOrder(ctx, change.Caller{ID: "test", Name: "test", IdempotencyKey: "k"}, order); !errors.Is(err, table.ErrUnavailable) {
					t.Errorf("the error is %v, want ErrUnavailable", err)
				}
				if n := between.Counts()[kind]; n != 4 {
					t.Errorf("%d attempts, want 4", n)
				}
				after := storetest.AssertConsistent(t, db, s.table, 1)
				if len(after.Records) != len(before.Records) || available(after) != 10 {
					t.Errorf("%d records and %d available pieces, want %d and 10", len(after.Records), available(after), len(before.Records))
				}
			})
		})
	}
}

// If a fault lasts until the deadline, the server returns UNAVAILABLE and null for the mutation.
// Send verifies that.
func TestLastingFaultsOverHTTP(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFaultyServer(t, db, smallFixture, noFaults)
		expire := func() {}
		failing, _ := faults.WrapClient(db, lastingFault(faults.TransactionConflict, func() { expire() }))
		store, err := dynamo.New(failing, dynamo.Options{Table: s.table})
		if err != nil {
			t.Fatal(err)
		}
		url, passed := workload.ServeWithDeadline(t, store, io.Discard)
		expire = passed
		if a, err := workload.NewClient().Send(t.Context(), url, orderOnePiece("k")); !errors.Is(err, workload.ErrUnknownOutcome) {
			t.Errorf("the server returned %v, %v, want UNAVAILABLE", a, err)
		}
		if a := storetest.AssertConsistent(t, db, s.table, 1); len(a.Orders) > 0 || available(a) != 10 {
			t.Errorf("%d orders and %d pieces left, want 0 and 10", len(a.Orders), available(a))
		}
		if a, err := workload.NewClient().Send(t.Context(), s.url, orderOnePiece("k")); err != nil || !a.Succeeded() {
			t.Errorf("after the faults, the server returned %v, %v", a, err)
		}
	})
}

// Without an idempotency key, the SDK's token protects the transaction. When the connection breaks,
// the SDK repeats the transaction with the same token, and the engine executes it once.
func TestLostReplyWithoutKey(t *testing.T) {
	for _, kind := range []faults.Kind{faults.ConnectionReset, faults.ResponseTimeout} {
		t.Run(string(kind), func(t *testing.T) {
			storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
				s := newFaultyServer(t, db, smallFixture, firstTransactions(kind, kind, faults.None, kind))
				c := workload.NewClient()
				if a, err := c.Send(t.Context(), s.url, orderOnePiece("")); err != nil || !a.Succeeded() {
					t.Errorf("%v, %v", a, err)
				}
				adjust := workload.Mutation{Field: "adjustInventory", Input: map[string]any{"sku": "p0", "warehouseId": "w0", "delta": 5}}
				if a, err := c.Send(t.Context(), s.url, adjust); err != nil || a.Record().Quantity != 15 {
					t.Errorf("%v, %v", a, err)
				}
				a := storetest.AssertConsistent(t, db, s.table, 1)
				if len(a.Orders) != 1 || available(a) != 14 || s.faults.LostCommits() < 2 {
					t.Errorf("%d orders and %d pieces left after %d lost responses, want 1 and 14 after at least 2", len(a.Orders), available(a), s.faults.LostCommits())
				}
			})
		})
	}
}
