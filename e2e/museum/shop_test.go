package museum_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

type input = map[string]any

// shop is a table with a server. It contains the customers c0 to c2, and the products p0 to p2 at 1.50,
// 2.50 and 3.50 USD. The warehouses w0 and w1 have two units of each product. Time passes only when it
// is read, so the order of IDs is always the same.
type shop struct {
	*testing.T
	engine *embedded.Store
	opts   dynamo.Options
	client *workload.Client
	url    string
	// interrupted is the URL of another server. Before the next transaction of that server, it calls
	// the function interruption once.
	interrupted  string
	interruption atomic.Pointer[func()]
}

func newShop(t *testing.T, shards int) *shop {
	t.Helper()
	s := &shop{T: t, engine: embedded.New(), client: workload.NewClient()}
	now := atomic.Int64{}
	now.Store(storetest.FirstOrderTime().UnixMilli())
	s.opts = dynamo.Options{Table: storetest.TableName(), Shards: shards, Entropy: rand.NewChaCha8([32]byte{1}),
		Clock: func() time.Time { return time.UnixMilli(now.Add(10)) }}
	store := storetest.NewTable(t, s.engine.Client(), s.opts)
	storetest.LoadDataset(t, store, workload.Fixture{Customers: 3, Products: 3, Warehouses: 2, Employees: 2, Stock: 2}.Dataset(t))
	t.Cleanup(s.client.HTTP.CloseIdleConnections)
	s.url = s.serve(s.engine.Client())
	s.interrupted = s.serve(s.proxy(func(operation, body string, send func(string) string) string {
		if other := s.interruption.Load(); operation == "TransactWriteItems" && other != nil {
			s.interruption.Store(nil)
			(*other)()
		}
		return send(body)
	}))
	return s
}

// proxy returns a client of the engine. The function exchange gets each request, and returns the
// response. It can send the request to the engine. It is not called concurrently.
func (s *shop) proxy(exchange func(operation, body string, send func(body string) (response string)) string) *dynamodb.Client {
	var mu sync.Mutex
	return s.engine.Client(func(o *dynamodb.Options) {
		o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (response *http.Response, err error) {
			mu.Lock()
			defer mu.Unlock()
			request, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			w := httptest.NewRecorder()
			body := exchange(operation, string(request), func(body string) string {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				s.engine.ServeHTTP(w, r)
				return w.Body.String()
			})
			response = w.Result()
			response.Body, response.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			return response, nil
		})
	})
}

// serve starts a server that sends its requests with the client db.
func (s *shop) serve(db *dynamodb.Client, change ...func(*server.Options)) string {
	s.Helper()
	store, err := dynamo.New(db, s.opts)
	if err == nil {
		err = store.Ping(s.Context())
	}
	if err != nil {
		s.Fatal(err)
	}
	changes := store.OpenFeed(feed.EngineSource(s.engine), feed.Options{})
	s.Cleanup(changes.Close)
	change = append([]func(*server.Options){func(o *server.Options) { o.Graph.Feed = changes }}, change...)
	return workload.Serve(s, store, io.Discard, change...)
}

// serveCustomers starts a server that verifies tokens. It returns its URL, and a function that returns
// the token of a customer.
func (s *shop) serveCustomers() (url string, token func(customer string) string) {
	s.Helper()
	key, keys := authtest.NewKey(s, "key", "ES256"), filepath.Join(s.TempDir(), "jwks.json")
	if err := os.WriteFile(keys, authtest.JWKS(s, key.JWK(s, nil)), 0o600); err != nil {
		s.Fatal(err)
	}
	tokens, err := auth.New(s.Context(), auth.Options{JWKS: keys, Issuer: authtest.Issuer, Audience: authtest.Audience, RoleClaim: "role", CustomerClaim: "customer_id", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	url = s.serve(s.engine.Client(), func(o *server.Options) { o.Auth = tokens })
	return url, func(customer string) string {
		return key.Token(s, authtest.Claims(time.Now(), authtest.Object{"role": "CUSTOMER", "sub": customer, "customer_id": customer}), nil)
	}
}

// send sends a mutation to a server.
func (s *shop) send(url, field string, in input) workload.Response {
	s.Helper()
	a, err := s.client.Send(s.Context(), url, workload.Mutation{Field: field, Input: in})
	if err != nil {
		s.Fatalf("%s: %v", field, err)
	}
	return a
}

// do makes a mutation that must succeed, and returns the ID of its record.
func (s *shop) do(field string, in input) string {
	s.Helper()
	a := s.send(s.url, field, in)
	if !a.Succeeded() {
		s.Errorf("%s is rejected: %v", field, a)
	}
	return a.Record().ID
}

// reject makes a mutation that must be rejected with a user error.
func (s *shop) reject(code, field string, in input) {
	s.Helper()
	s.wantCode(code, s.send(s.url, field, in))
}

func (s *shop) wantCode(code string, a workload.Response) {
	s.Helper()
	if !slices.Equal(a.UserErrorCodes, []string{code}) {
		s.Errorf("the response is %v, want the user error %s", a, code)
	}
}

// during makes a mutation on the other server, and calls other between its reads and its writes.
func (s *shop) during(other func(), field string, in input) workload.Response {
	s.Helper()
	s.interruption.Store(&other)
	a := s.send(s.interrupted, field, in)
	if s.interruption.Load() != nil {
		s.Errorf("%s has sent no transaction", field)
	}
	return a
}

// place places an order of units of p0, and returns its ID.
func (s *shop) place(customer string, units int) string {
	s.Helper()
	return s.do("placeOrder", order(customer, units))
}

func order(customer string, units int) input {
	return input{"customerId": customer, "items": []input{{"sku": "p0", "quantity": units}}}
}

// post sends a document and returns the body of the response.
func (s *shop) post(url, token, document string) string {
	s.Helper()
	response := s.open(url, token, "application/json", document)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(body)
}

func (s *shop) open(url, token, accept, document string) *http.Response {
	s.Helper()
	body, err := json.Marshal(input{"query": document})
	if err != nil {
		s.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.HTTP.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	return response
}

// want compares the data of a query.
func (s *shop) want(query, data string) {
	s.Helper()
	if got, want := s.post(s.url, "", query), `{"data":`+data+`}`; got != want {
		s.Errorf("the response to %s is\n%s, want\n%s", query, got, want)
	}
}

// wantStock compares the units of p0 that customers can order.
func (s *shop) wantStock(available int) {
	s.Helper()
	s.want(`{ product(sku: "p0") { available } }`, fmt.Sprintf(`{"product":{"available":%d}}`, available))
}

// subscribe subscribes to an order, after an event unless the ID is empty. It returns a function that
// waits for the next update, and returns its ID and the note of its event.
func (s *shop) subscribe(url, order, after string) func() (id, note string) {
	s.Helper()
	response := s.open(url, "", "text/event-stream", fmt.Sprintf("subscription { orderUpdated(id: %q, after: %s) { id event { note } } }", order, quoteOrNull(after)))
	s.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return func() (id, note string) {
		s.Helper()
		for lines.Scan() {
			if update := regexp.MustCompile(`"id":"(.*?)","event":{"note":"(.*?)"`).FindStringSubmatch(lines.Text()); update != nil {
				return update[1], update[2]
			}
		}
		s.Fatalf("the subscription has ended: %v", lines.Err())
		return "", ""
	}
}

func quoteOrNull(text string) string {
	if text == "" {
		return "null"
	}
	return strconv.Quote(text)
}

// note adds a note to an order, which is an event that subscribers receive.
func (s *shop) note(order, text string) { s.do("addOrderNote", input{"orderId": order, "note": text}) }
