package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// holder is the holder of a token of one issuer.
type holder struct {
	g      *authenticatedServer
	claims authtest.Object
}

func (h holder) query(t *testing.T, query string) (status int, answer string) {
	t.Helper()
	w := ask(h.g, http.MethodPost, server.PathGraphQL, post(query), "Authorization", "Bearer "+h.g.token(t, h.claims))
	return w.Code, w.Body.String()
}

// placeOrder places an order with an idempotency key, or repeats the request. It returns the
// order's ID.
func (h holder) placeOrder(t *testing.T, customer, key string) string {
	t.Helper()
	_, answer := h.query(t, fmt.Sprintf(`mutation { placeOrder(input: {customerId: %q, items: [{sku: "prod_100", quantity: 1}], idempotencyKey: %q}) { order { id } userErrors { code } } }`, customer, key))
	_, id, found := strings.Cut(answer, `"order":{"id":"`)
	if !found {
		t.Fatalf("the response to %v is %s", h.claims, answer)
	}
	return id[:26]
}

// Principals with the same subject but different issuers or customers share no idempotency key and
// no rate limit. Their orders show the subject as the actor.
func TestOneSubjectOfSeveralPrincipals(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		store := storetest.SampleStore(t, db)
		now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		opts := server.Options{Graph: graph.Options{Rates: rate.Options{Burst: 2000, Restore: 1, Now: func() time.Time { return now }}}}
		const other = "https://other.example/"
		first := newAuthenticatedServer(t, store, opts)
		second := newAuthenticatedServer(t, store, opts, func(o *auth.Options) { o.Issuer = other })
		customer := func(id string) authtest.Object {
			return authtest.Object{"sub": "pages", "role": "CUSTOMER", "customer_id": id}
		}
		staff := authtest.Object{"sub": "pages", "role": "STAFF"}
		all := []struct {
			holder
			customer string
		}{
			{holder{first, customer("cust_01")}, "cust_01"},
			{holder{first, customer("cust_001")}, "cust_001"},
			{holder{first, staff}, "cust_01"},
			{holder{second, authtest.Object{"iss": other, "sub": "pages", "role": "STAFF"}}, "cust_01"},
			{holder{second, authtest.Object{"iss": other, "sub": "pages", "role": "CUSTOMER", "customer_id": "cust_01"}}, "cust_01"},
		}
		placed := map[string]int{}
		for i, h := range all {
			id := h.placeOrder(t, h.customer, "k")
			if before, known := placed[id]; known {
				t.Errorf("principal %d got the order of principal %d", i, before)
			}
			placed[id] = i
			if again := h.placeOrder(t, h.customer, "k"); again != id {
				t.Errorf("principal %d placed the orders %s and %s with the same idempotency key", i, id, again)
			}
		}
		for id := range placed {
			_, answer := holder{first, staff}.query(t, fmt.Sprintf(`{ order(id: %q) { timeline(first: 1) { nodes { actor } } } }`, id))
			if !strings.Contains(answer, `"actor":"pages"`) {
				t.Errorf("the actor of the event is not the subject of the token: %s", answer)
			}
		}
		// One principal spends all of its points. The others keep theirs.
		const costly = `{ customer(id: "cust_01") { orders(first: 50) { nodes { id status timeline(first: 10) { nodes { id at } } } } } }`
		limited := false
		for range 2000 {
			if status, _ := all[0].query(t, costly); status == http.StatusTooManyRequests {
				limited = true
				break
			}
		}
		if !limited {
			t.Fatal("no principal exceeded its rate limit")
		}
		for i, h := range all[1:] {
			if status, answer := h.query(t, costly); status != http.StatusOK {
				t.Errorf("principal %d: status %d, %s", i+1, status, answer)
			}
		}
	})
}
