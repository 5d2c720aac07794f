package races_test

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/faults"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// script lets the first transactions meet these faults, in this order.
func script(kinds ...faults.Kind) faults.Chooser {
	return func(r faults.Request) faults.Kind {
		if !r.Writes() || len(kinds) == 0 {
			return faults.None
		}
		kind := kinds[0]
		kinds = kinds[1:]
		return kind
	}
}

// small is a shop with one of everything, with 10 pieces.
var small = shoptest.World{Customers: 1, Products: 1, Warehouses: 1, Employees: 1, Stock: 10}

func one(key string) shoptest.Mutation {
	m := shoptest.Mutation{Field: "placeOrder", Input: map[string]any{"customerId": "c0", "items": []map[string]any{{"sku": "p0", "quantity": 1}}}}
	if key != "" {
		m.Input["idempotencyKey"] = key
	}
	return m
}

// available is how many pieces are left of a small shop's product.
func available(a *storetest.Audited) int {
	return a.Records[storetest.Key{PK: "PRODUCT#p0", SK: "#METADATA"}].Int("available")
}

// Trouble that passes within the request's time is none of the caller's.
func TestPassingTrouble(t *testing.T) {
	for name, kinds := range map[string][]faults.Kind{
		"conflicts":  {faults.Conflict, faults.Conflict, faults.Conflict, faults.Conflict},
		"throttling": {faults.Throughput, faults.Throttling, faults.Throughput},
		"faults":     {faults.Internal, faults.Refused, faults.Internal},
		"everything": {faults.Refused, faults.Throttling, faults.Conflict, faults.InProgress, faults.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
				s := open(t, db, small, script(kinds...))
				a, err := shoptest.NewClient().Send(t.Context(), s.url, one(""))
				if err != nil || !a.Done() {
					t.Errorf("%v, %v", a, err)
				}
				met := 0
				for _, n := range s.fault.Counts() {
					met += n
				}
				audited := storetest.Clean(t, db, s.table, 1)
				if len(audited.Orders) != 1 || available(audited) != 9 || met != len(kinds) {
					t.Errorf("%d orders after %d faults, %d pieces left, want 1 after %d, 9", len(audited.Orders), met, available(audited), len(kinds))
				}
			})
		})
	}
}

// lasting lets every transaction meet a fault, and lets the request's time be over with the fourth.
func lasting(kind faults.Kind, passed func()) faults.Chooser {
	attempts := 0
	return func(r faults.Request) faults.Kind {
		if !r.Writes() {
			return faults.None
		}
		if attempts++; attempts == 4 {
			passed()
		}
		return kind
	}
}

// Trouble that stays until the request's time is over is told as such, and nothing is written.
func TestLastingTrouble(t *testing.T) {
	for _, kind := range []faults.Kind{faults.Conflict, faults.InProgress, faults.Throughput, faults.Throttling, faults.Internal, faults.Refused} {
		t.Run(string(kind), func(t *testing.T) {
			storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
				s := open(t, db, small, faultless)
				before := storetest.Clean(t, db, s.table, 1)
				ctx := shoptest.NewDeadline(t.Context())
				failing, between := faults.Between(db, lasting(kind, ctx.Pass))
				store, err := dynamo.New(failing, dynamo.Options{Table: s.table})
				if err != nil {
					t.Fatal(err)
				}
				order := commerce.NewOrder{CustomerID: "c0", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}}}
				if _, err := store.PlaceOrder(ctx, change.Caller{ID: "test", Name: "test", IdempotencyKey: "k"}, order); !errors.Is(err, table.ErrUnavailable) {
					t.Errorf("the error is %v, want ErrUnavailable", err)
				}
				if n := between.Counts()[kind]; n != 4 {
					t.Errorf("%d attempts, want 4", n)
				}
				after := storetest.Clean(t, db, s.table, 1)
				if len(after.Records) != len(before.Records) || available(after) != 10 {
					t.Errorf("%d records and %d pieces, want %d and 10", len(after.Records), available(after), len(before.Records))
				}
			})
		})
	}
}

// What lasts longer than a request may take is UNAVAILABLE for the caller, with null for the
// mutation: Send makes sure of that.
func TestLastingTroubleOverHTTP(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := open(t, db, small, faultless)
		over := func() {}
		failing, _ := faults.Between(db, lasting(faults.Conflict, func() { over() }))
		store, err := dynamo.New(failing, dynamo.Options{Table: s.table})
		if err != nil {
			t.Fatal(err)
		}
		url, passed := shoptest.ServeUntil(t, store, io.Discard)
		over = passed
		if a, err := shoptest.NewClient().Send(t.Context(), url, one("k")); !errors.Is(err, shoptest.ErrNoAnswer) {
			t.Errorf("the answer is %v, %v, want UNAVAILABLE", a, err)
		}
		if a := storetest.Clean(t, db, s.table, 1); len(a.Orders) > 0 || available(a) != 10 {
			t.Errorf("%d orders, %d pieces left, want none and 10", len(a.Orders), available(a))
		}
		if a, err := shoptest.NewClient().Send(t.Context(), s.url, one("k")); err != nil || !a.Done() {
			t.Errorf("once the trouble is over, the answer is %v, %v", a, err)
		}
	})
}

// The transaction is made, and nobody hears of it: with a key the caller's second request gets the
// answer of the first.
func TestLostReplyWithKey(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		// The SDK does not repeat a request whose reply breaks off.
		s := open(t, db, small, script(faults.Cut))
		c := shoptest.NewClient()
		if a, err := c.Send(t.Context(), s.url, one("k")); !errors.Is(err, shoptest.ErrNoAnswer) {
			t.Errorf("the first request is answered %v, %v, want UNAVAILABLE", a, err)
		}
		made := storetest.Clean(t, db, s.table, 1)
		if len(made.Orders) != 1 || s.fault.LostCommits() != 1 {
			t.Fatalf("%d orders, %d replies lost, want 1 and 1", len(made.Orders), s.fault.LostCommits())
		}
		for range 3 {
			if a, err := c.Send(t.Context(), s.url, one("k")); err != nil || a.Record().ID != made.Orders[0] {
				t.Errorf("the second request is answered %v, %v, want order %s", a, err, made.Orders[0])
			}
		}
		if a := storetest.Clean(t, db, s.table, 1); len(a.Orders) != 1 || available(a) != 9 {
			t.Errorf("%d orders, %d pieces left, want 1 and 9", len(a.Orders), available(a))
		}
	})
}

// A caller without a key has the SDK's: it sends a transaction again under the same token when the
// connection breaks, and the engine does it once.
func TestLostReplyWithoutKey(t *testing.T) {
	for _, kind := range []faults.Kind{faults.Reset, faults.Silence} {
		t.Run(string(kind), func(t *testing.T) {
			storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
				s := open(t, db, small, script(kind, kind, faults.None, kind))
				c := shoptest.NewClient()
				if a, err := c.Send(t.Context(), s.url, one("")); err != nil || !a.Done() {
					t.Errorf("%v, %v", a, err)
				}
				adjust := shoptest.Mutation{Field: "adjustInventory", Input: map[string]any{"sku": "p0", "warehouseId": "w0", "delta": 5}}
				if a, err := c.Send(t.Context(), s.url, adjust); err != nil || a.Record().Quantity != 15 {
					t.Errorf("%v, %v", a, err)
				}
				a := storetest.Clean(t, db, s.table, 1)
				if len(a.Orders) != 1 || available(a) != 14 || s.fault.LostCommits() < 2 {
					t.Errorf("%d orders, %d pieces left after %d lost replies, want 1, 14 after 2 or more", len(a.Orders), available(a), s.fault.LostCommits())
				}
			})
		})
	}
}

// A refusal is worked out of what the table says: a request that is repeated while the first one is
// under way must not be told that the last piece is gone, which it has got itself.
func TestTheLastPieceTwice(t *testing.T) {
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		const pieces = 10
		s := open(t, db, small, faultless)
		c := shoptest.NewClient()
		var placed atomic.Int64
		for i := range pieces {
			key := string(rune('a' + i))
			ids := make([]string, 4)
			// All that is left, at once under one key.
			inParallel(len(ids), len(ids), func(n int) {
				m := one(key)
				m.Input["items"] = []map[string]any{{"sku": "p0", "quantity": pieces}}
				a, err := c.Send(t.Context(), s.url, m)
				if err != nil || !a.Done() {
					t.Errorf("%s: %v, %v", key, a, err)
					return
				}
				placed.Add(1)
				ids[n] = a.Record().ID
			})
			for _, id := range ids {
				if id != ids[0] {
					t.Errorf("key %s has the orders %v", key, ids)
				}
			}
			cancel := shoptest.Mutation{Field: "cancelOrder", Input: map[string]any{"orderId": ids[0]}}
			if a, err := c.Send(t.Context(), s.url, cancel); err != nil || !a.Done() {
				t.Fatalf("cancel: %v, %v", a, err)
			}
		}
		if a := storetest.Clean(t, db, s.table, 1); len(a.Orders) != pieces || available(a) != pieces {
			t.Errorf("%d orders, %d pieces left, want %d and %d", len(a.Orders), available(a), pieces, pieces)
		}
	})
}
