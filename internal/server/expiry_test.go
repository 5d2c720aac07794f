package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Orders expire that are neither confirmed, held nor paid in time, also if no server ran at that minute. Two
// servers cancel each of them once, although each request of one server can be lost. Then the stock is
// available again.
func TestOrdersExpire(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		available := func() string {
			return s.stock(t, "mug")
		}
		before := available()
		in := func(d time.Duration) string { return s.clock.Now().Add(d).Format(time.RFC3339) }
		place := func(d time.Duration) string {
			s.clock.pass(time.Second)
			return s.placeWith(t, mutationInput{"customerId": "ann", "items": lines("mug"), "expiresAt": in(d)})
		}
		expired := []string{place(time.Minute), place(time.Hour), place(2 * time.Minute)}
		confirmed, held, paid, authorized, voided, edited, later := place(time.Minute), place(time.Minute), place(time.Minute), place(time.Minute), place(time.Minute), place(time.Minute), place(time.Hour*30)
		expired = append(expired, edited)
		payment := mutationInput{"kind": "CAPTURE", "amount": mutationInput{"amount": "1"}, "provider": "stripe", "reference": "1"}
		s.mutate(t, "confirmOrder", mutationInput{"orderId": confirmed})
		s.mutate(t, "holdOrder", mutationInput{"orderId": held, "reason": "Fraud?"})
		s.mutate(t, "releaseOrder", mutationInput{"orderId": held})
		s.mutate(t, "recordPayment", payment.with("orderId", paid))
		s.mutate(t, "recordPayment", payment.with("orderId", authorized).with("kind", "AUTHORIZATION").with("reference", "2"))
		s.mutate(t, "recordPayment", payment.with("orderId", voided).with("kind", "AUTHORIZATION").with("reference", "3"))
		s.mutate(t, "recordPayment", payment.with("orderId", voided).with("kind", "VOID").with("reference", "4"))
		s.mutate(t, "setOrderItem", mutationInput{"orderId": edited, "sku": "mug", "quantity": 2})

		list := func() (ids []string) {
			var got struct {
				ExpiringOrders struct{ Nodes []struct{ ID string } }
			}
			s.read(t, &got, `{ expiringOrders { nodes { id expiresAt } } }`)
			for _, o := range got.ExpiringOrders.Nodes {
				ids = append(ids, o.ID)
			}
			return ids
		}
		if got, want := list(), []string{expired[0], edited, expired[2], expired[1], later}; !slices.Equal(got, want) {
			t.Errorf("the list of expiring orders contains %v, want %v", got, want)
		}
		if n, err := s.store.ExpireOrders(t.Context()); n != 0 || err != nil {
			t.Errorf("%d orders expire too early (%v)", n, err)
		}
		s.clock.pass(24 * time.Hour)

		kills := 0
		killed := func(at int) { // a server that is killed after its request number "at"
			n := 0
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			lossy := dynamodb.New(db.Options(), func(o *dynamodb.Options) {
				next := o.HTTPClient
				o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
					if n++; n > at {
						kills++
						kill()
						return nil, ctx.Err()
					}
					return next.Do(r)
				})
				o.RetryMaxAttempts = 1
			})
			store, err := dynamo.New(storetest.WithoutResponseDate(lossy), dynamo.Options{Table: s.table, Clock: s.clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = store.ExpireOrders(ctx)
		}
		for at := range 4 {
			killed(at)
		}
		if kills == 0 {
			t.Error("no server was killed")
		}
		var servers sync.WaitGroup
		for range 2 {
			servers.Go(func() {
				for {
					if _, err := s.store.ExpireOrders(t.Context()); err == nil {
						return
					}
				}
			})
		}
		servers.Wait()
		for _, id := range append(slices.Clone(expired), confirmed, held, paid, authorized, voided, later) {
			var order json.RawMessage
			s.read(t, &order, `{ order(id: %q) { status expiresAt timeline { nodes { type note actor noteVisibility } } } }`, id)
			got := string(order)
			event := `{"type":"CANCELLED","note":"expired without a payment","actor":"order-expiry","noteVisibility":"CUSTOMER"}`
			switch cancelled := strings.Count(got, event); {
			case slices.Contains(expired, id) && (cancelled != 1 || !strings.Contains(got, `"status":"CANCELLED"`) || !strings.Contains(got, `"expiresAt":null`)):
				t.Errorf("an expired order is %s", got)
			case !slices.Contains(expired, id) && (cancelled != 0 || strings.Contains(got, `"status":"CANCELLED"`) || (id == later) == strings.Contains(got, `"expiresAt":null`)):
				t.Errorf("an order that has not expired is %s", got)
			}
		}
		if got := list(); !slices.Equal(got, []string{later}) {
			t.Errorf("the list of expiring orders contains %v, want %s", got, later)
		}
		for _, id := range []string{confirmed, held, paid, authorized, voided, later} {
			s.mutate(t, "cancelOrder", mutationInput{"orderId": id})
		}
		if got := available(); got != before {
			t.Errorf("the stock is %s, want %s", got, before)
		}
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// An unreadable order does not keep the orders after it from expiring.
func TestUnreadableOrderThatExpires(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	var ids []string
	for range 2 {
		ids = append(ids, s.placeWith(t, mutationInput{"customerId": "ann", "items": lines("mug"), "expiresAt": s.clock.Now().Add(time.Minute).Format(time.RFC3339)}))
		s.clock.pass(time.Second)
	}
	s.change(t, "ORDER#"+ids[0], "#METADATA", map[string]attribute{"total": storetest.Str("much")})
	s.clock.pass(time.Hour)
	if n, err := s.store.ExpireOrders(t.Context()); n != 1 || !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("%d orders expire (%v), want 1 and an error", n, err)
	}
	if got := s.order(t, ids[1]); got.Status != "CANCELLED" {
		t.Errorf("the readable order is %+v", got)
	}
}

// The setting is the expiry of orders that have no own, and customers cannot choose another one.
func TestExpiryOfNewOrders(t *testing.T) {
	_, g := liveWithAuthentication(t)
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01"})
	got := g.ask(t, customer, `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "sku_mug", quantity: 1}], expiresAt: "2126-01-01T00:00:00Z"}) { order { id } userErrors { code } } }`)
	if !strings.Contains(got, `"code":"FORBIDDEN"`) {
		t.Errorf("a customer sets the expiry: %s", got)
	}
	if got := g.ask(t, customer, `{ expiringOrders { nodes { id } } }`); !strings.Contains(got, `"code":"FORBIDDEN"`) {
		t.Errorf("a customer lists expiring orders: %s", got)
	}

	db := storetest.Engines()[0].Client(t)
	s := newFixture(t, db, smallDataset(t))
	order := mutationInput{"customerId": "ann", "items": lines("mug")}
	for _, at := range []string{"2026-03-01T07:00:00Z", "2027-04-01T00:00:00Z"} {
		s.refuse(t, "placeOrder", order.with("expiresAt", at), "INVALID input.expiresAt")
	}
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	store, err := dynamo.New(storetest.WithoutResponseDate(db), dynamo.Options{Table: s.table, Clock: func() time.Time { return now }, OrderExpiry: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	place := func(store *dynamo.Store) *commerce.Order {
		placed, err := store.PlaceOrder(t.Context(), change.Caller{Name: "test"}, commerce.OrderRequest{CustomerID: "ann", Lines: []commerce.OrderLine{{SKU: "mug", Quantity: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		return placed
	}
	placed := place(store)
	if placed.ExpiresAt == nil || !placed.ExpiresAt.Equal(placed.PlacedAt.Add(30*time.Minute)) {
		t.Errorf("the order expires at %v", placed.ExpiresAt)
	}

	storetest.DeleteLayout(t, db, s.table) // as if an older version had created the table
	old, err := dynamo.New(storetest.WithoutResponseDate(db), dynamo.Options{Table: s.table, Clock: func() time.Time { return now }, OrderExpiry: 30 * time.Minute})
	if err == nil {
		err = old.CheckTable(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if placed := place(old); placed.ExpiresAt != nil {
		t.Errorf("without %s, the order expires at %v", model.EntityOrderExpiry.Name, placed.ExpiresAt)
	}
}
