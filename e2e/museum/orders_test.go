package museum_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

var orderRooms = []room{{
	name: "retried-while-running", sources: []string{"janavipandole/Cara#4929", "medusajs/medusa#1887"},
	there: "A client repeats a request with the same key while the first one is running, and gets a conflict or an internal error.",
	here:  "Both requests get the same order, which is placed once.",
	test: func(t *testing.T) {
		s := newShop(t)
		in, first := order("c0", 4), "" // a second order would be rejected
		in["idempotencyKey"] = "k"
		second := s.during(func() { first = s.do("placeOrder", in) }, "placeOrder", in)
		if !second.Succeeded() || second.Record().ID != first {
			s.Errorf("the second response is %v, want the order %s", second, first)
		}
		s.wantStock(0)
	},
}, {
	name: "keys-of-two-callers", sources: []string{"janavipandole/Cara#4950"},
	there: "The keys of requests are unique for all customers together, so a customer cannot use a key of another customer.",
	here:  "Each caller has its own keys.",
	test: func(t *testing.T) {
		s := newShop(t)
		url, token := s.serveCustomers()
		for _, customer := range []string{"c0", "c1"} {
			document := fmt.Sprintf(`mutation { placeOrder(input: {customerId: %q, items: [{sku: "p0", quantity: 1}], idempotencyKey: "k"}) { order { status } userErrors { code } } }`, customer)
			if body := s.post(url, token(customer), document); body != `{"data":{"placeOrder":{"order":{"status":"PENDING"},"userErrors":[]}}}` {
				s.Errorf("the response to %s is %s", customer, body)
			}
		}
		s.wantStock(2)
	},
}, {
	name: "false-conflict", sources: []string{"medusajs/medusa#3206", "medusajs/medusa#3556"}, variant: "loser-gets-a-reason",
	there: "Several orders are placed at the same time, and some fail with a conflict, although there is enough stock.",
	here:  "All orders are placed, even by the same customer.",
	test: func(t *testing.T) {
		s := newShop(t)
		if a := s.during(func() { s.place("c0", 1) }, "placeOrder", order("c0", 1)); !a.Succeeded() {
			s.Errorf("the second order is rejected: %v", a)
		}
		s.want(`{ customer(id: "c0") { orderCount } }`, `{"customer":{"orderCount":2}}`)
	},
}, {
	name: "read-by-another-customer", sources: []string{"evershopcommerce/evershop#881", "dotnet/eShop#996"},
	there: "With the ID of an order, other customers or strangers can read it.",
	here:  "For them, the order does not exist.",
	test: func(t *testing.T) {
		s := newShop(t)
		url, token := s.serveCustomers()
		query := fmt.Sprintf(`{ order(id: %q) { status } }`, s.place("c0", 1))
		for customer, want := range map[string]string{"c0": `{"data":{"order":{"status":"PENDING"}}}`, "c1": `{"data":{"order":null}}`} {
			if body := s.post(url, token(customer), query); body != want {
				s.Errorf("%s reads %s, want %s", customer, body, want)
			}
		}
	},
}, {
	name: "cancelled-by-another-customer", sources: []string{"dotnet/eShop#996"},
	there: "With the ID of an order, every customer can cancel it.",
	here:  "Other customers get the user error `NOT_FOUND`.",
	test: func(t *testing.T) {
		s := newShop(t)
		url, token := s.serveCustomers()
		id := s.place("c0", 1)
		body := s.post(url, token("c1"), fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q}) { order { id } userErrors { code } } }`, id))
		if body != `{"data":{"cancelOrder":{"order":null,"userErrors":[{"code":"NOT_FOUND"}]}}}` {
			s.Errorf("the response to another customer is %s", body)
		}
		s.want(fmt.Sprintf(`{ order(id: %q) { status } }`, id), `{"order":{"status":"PENDING"}}`)
	},
}, {
	name: "update-before-creation", sources: []string{"Shopify/shopify-app-js#603"},
	there: "The update of an order is sent before its creation, if both happen within a second.",
	here:  "The events of an order are in order, even if the clock of the server that makes a change is behind.",
	test: func(t *testing.T) {
		s := newShop(t)
		id := s.place("c0", 1)
		clock := s.opts.Clock
		s.opts.Clock = func() time.Time { return clock().Add(-time.Hour) }
		behind := s.serve(storetest.WithoutResponseDate(s.engine.Client()))
		s.send(behind, "confirmOrder", input{"orderId": id})
		s.want(fmt.Sprintf(`{ order(id: %q) { timeline(first: 2) { nodes { type } } } }`, id), `{"order":{"timeline":{"nodes":[{"type":"PLACED"},{"type":"CONFIRMED"}]}}}`)
	},
}, {
	name: "outcome-unknown", sources: []string{"ned14/llfio#17", "containerd/containerd#10158"},
	there: "A sync of the disk fails. A program syncs again, and takes the success of the second sync as proof that its data is safe.",
	here:  "If the store does not confirm a commit, the error states that the outcome is unknown. The same request with the same key then returns the order that was placed.",
	test: func(t *testing.T) {
		s := newShop(t)
		transactions := 0
		lossy, _ := faults.WrapClient(s.engine.Client(), func(r faults.Request) faults.Kind {
			if r.IsTransaction() {
				transactions++
			}
			if r.IsTransaction() && transactions == 1 {
				return faults.TruncatedResponse
			}
			return faults.None
		})
		url := s.serve(lossy)
		const document = `mutation { placeOrder(input: {customerId: "c0", items: [{sku: "p0", quantity: 1}], idempotencyKey: "k"}) { order { status } userErrors { code } } }`
		if body := s.post(url, "", document); !strings.Contains(body, "it is unknown whether the change was made") {
			s.Errorf("the first response is %s", body)
		}
		if body := s.post(url, "", document); body != `{"data":{"placeOrder":{"order":{"status":"PENDING"},"userErrors":[]}}}` {
			s.Errorf("the second response is %s", body)
		}
		s.wantStock(3)
	},
}, {
	name: "stale-payload", sources: []string{"etcd-io/etcd#20418", "etcd-io/etcd#741"},
	there: "A client has written a value, but then reads an older one from a server that is behind.",
	here:  "The payload of a mutation shows the state after the mutation, although a replica of the table is behind.",
	test: func(t *testing.T) {
		s := newShop(t)
		behind := newShop(t)
		s.opts.Clock = behind.opts.Clock
		next := s.engine
		db := s.engine.Client(func(o *dynamodb.Options) {
			o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				r.Body, next = io.NopCloser(strings.NewReader(string(body))), s.engine
				if _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); strings.Contains(operation, "Get") && !strings.HasPrefix(operation, "Transact") && !strings.Contains(string(body), `"ConsistentRead":true`) {
					text := strings.ReplaceAll(string(body), s.opts.Table, behind.opts.Table)
					r.Body, r.ContentLength, next = io.NopCloser(strings.NewReader(text)), int64(len(text)), behind.engine
				}
				return next.Do(r)
			})
		})
		body := s.post(s.serve(db), "", `mutation { placeOrder(input: {customerId: "c0", items: [{sku: "p0", quantity: 1}]}) { order { customer { orderCount } } } }`)
		if want := `{"data":{"placeOrder":{"order":{"customer":{"orderCount":1}}}}}`; body != want {
			s.Errorf("the response is %s, want %s", body, want)
		}
	},
}}
