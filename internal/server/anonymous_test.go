package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// catalogQuery is a query that needs no token, and catalogAnswer its response.
const (
	catalogQuery  = `{ product(sku: "prod_100") { name } }`
	catalogAnswer = `{"data":{"product":{"name":"Widget A"}}`
)

// queryFrom sends a query without a token from a remote address.
func queryFrom(h http.Handler, remote, query string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, server.PathGraphQL, strings.NewReader(post(query)))
	r.RemoteAddr = remote
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// allUnauthenticated reports whether every error in a response has the code UNAUTHENTICATED.
func allUnauthenticated(answer string) bool {
	hints := strings.Count(answer, "send a token as Authorization: Bearer TOKEN")
	return hints > 0 && hints == strings.Count(answer, `"message":`) && hints == strings.Count(answer, `"code":"UNAUTHENTICATED"`)
}

// refusedWithoutToken has operations that need a token, one of each kind.
var refusedWithoutToken = map[string]string{
	"a customer":             `{ customer(id: "cust_01") { name } }`,
	"the viewer's contact":   `{ viewer { customer { name } } }`,
	"a list of customers":    `{ customers { nodes { id } } }`,
	"an order":               `{ order(id: "01HVMK3P2QRSV8T4X6Y9ZABCDE") { status } }`,
	"a list of orders":       `{ orders { nodes { id } } }`,
	"stock":                  `{ product(sku: "prod_100") { name totalInventory } }`,
	"a product's orders":     `{ product(sku: "prod_100") { orderItems { nodes { orderId } } } }`,
	"warehouses":             `{ warehouses { nodes { id } } }`,
	"employees":              `{ employees { nodes { id } } }`,
	"the schema":             `{ __schema { queryType { name } } }`,
	"a type":                 `{ __type(name: "Order") { name } }`,
	"the subgraph":           `{ _service { sdl } }`,
	"a mutation":             `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}]}) { order { id } } }`,
	"a change of the shop":   `mutation { createProduct(input: {sku: "x", name: "X", category: "C", unitPrice: {amount: "1"}}) { product { sku } } }`,
	"the catalog and orders": `{ product(sku: "prod_100") { name } orders { nodes { id } } }`,
	"following an order":     `subscription { orderUpdated(id: "01HVMK3P2QRSV8T4X6Y9ZABCDE") { id } }`,
	"following a customer":   `subscription { customerOrders(customerId: "cust_01") { id } }`,
	"following all orders":   `subscription { orderStatusChanged { id } }`,
}

// If the server is so configured, the catalog needs no token. Other fields are refused with
// UNAUTHENTICATED before anything is read.
func TestWithoutAToken(t *testing.T) {
	var reads atomic.Int64
	store := sampleThrough(t, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		reads.Add(1)
		return next.Do(r)
	})
	g := newAuthenticatedServer(t, store, server.Options{Anonymous: true})
	for _, w := range []*httptest.ResponseRecorder{
		ask(g, http.MethodPost, server.PathGraphQL, post(catalogQuery), server.ExplainHeader, "true"),
		ask(g, http.MethodGet, get(catalogQuery), "", "Accept", asGraphQL),
	} {
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), catalogAnswer) || strings.Contains(w.Body.String(), "explain") || w.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("an anonymous query of the catalog: status %d, %s", w.Code, w.Body)
		}
	}
	const viewer = `{ viewer { role permissions customer { __typename } } products(category: "Hardware", first: 1) { nodes { sku available } } }`
	if got, want := ask(g, http.MethodPost, server.PathGraphQL, post(viewer)).Body.String(), `{"data":{"viewer":{"role":"ANONYMOUS","permissions":["READ_VIEWER","READ_CATALOG","RESOLVE_ENTITIES"],"customer":null},"products":{"nodes":[{"sku"`; !strings.HasPrefix(got, want) {
		t.Errorf("the viewer is %s, want %s", got, want)
	}
	const entities = `{ _entities(representations: [{__typename: "Product", sku: "prod_100"}, {__typename: "Customer", id: "cust_01"}]) { __typename } }`
	reads.Store(0)
	if got := ask(g, http.MethodPost, server.PathGraphQL, post(entities)).Body.String(); !strings.Contains(got, `"data":{"_entities":[{"__typename":"Product"},null]}`) || !strings.Contains(got, `"UNAUTHENTICATED"`) || !strings.Contains(got, "send a token") || reads.Load() > 1 {
		t.Errorf("the entities are %s after %d reads, want only the product", got, reads.Load())
	}
	reads.Store(0)
	for name, query := range refusedWithoutToken {
		for accept, status := range map[string]int{asJSON: http.StatusOK, asGraphQL: http.StatusUnauthorized, "text/event-stream": http.StatusUnauthorized} {
			w := ask(g, http.MethodPost, server.PathGraphQL, post(query), "Accept", accept)
			if w.Code != status || !allUnauthenticated(w.Body.String()) || strings.Contains(w.Body.String(), `"data"`) {
				t.Errorf("%s: status %d, want %d: %s", name, w.Code, status, w.Body)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (status == http.StatusUnauthorized) != (challenge == "Bearer") {
				t.Errorf("%s: status %d, WWW-Authenticate is %q", name, w.Code, challenge)
			}
		}
	}
	if n := reads.Load(); n > 0 {
		t.Errorf("refused requests caused %d reads", n)
	}
	// Messages do not contain names of the schema.
	if got := ask(g, http.MethodPost, server.PathGraphQL, post(`{ product(sku: "x") { nam } }`)).Body.String(); strings.Contains(got, "Product") || !strings.Contains(got, "BAD_USER_INPUT") {
		t.Errorf("the message for an unknown field names the schema: %s", got)
	}
}

// An invalid Authorization header is refused even if the server accepts anonymous callers. Requests
// without a token are refused if the server does not accept anonymous callers.
func TestABadTokenIsNotAnonymous(t *testing.T) {
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{Anonymous: true})
	for header, given := range map[string]bool{
		"": false, "Bearer": false, "Bearer ": false, "Basic dXNlcjpwYXNzd29yZA==": false, "Bearer nonsense": true,
		"Bearer " + g.token(t, authtest.Object{"exp": 1}):                      true,
		"Bearer " + g.token(t, authtest.Object{"role": "ANONYMOUS"}):           true,
		"Bearer " + g.token(t, authtest.Object{"role": []string{"ANONYMOUS"}}): true,
		"Bearer " + g.token(t, customerClaims("cust_77")):                      true,
		"Bearer " + g.token(t, nil) + ", Bearer " + g.token(t, nil):            true,
	} {
		checkRefused(t, ask(g, http.MethodPost, server.PathGraphQL, post(catalogQuery), "Authorization", header), header, given)
	}
	if w := ask(g, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Authorization", "Bearer "+g.token(t, nil)); w.Body.String() != aliceAnswer {
		t.Errorf("a valid token: status %d, %s", w.Code, w.Body)
	}
	off := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{})
	checkRefused(t, ask(off, http.MethodPost, server.PathGraphQL, post(catalogQuery)), "a server that accepts tokens only", false)
}

// Callers without a token can execute trusted documents that only read the catalog.
func TestTrustedDocumentsWithoutAToken(t *testing.T) {
	trusted := func(id, text string) document.TrustedDocument { return document.TrustedDocument{ID: id, Text: text} }
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{Anonymous: true, Graph: graph.Options{
		TrustedOnly: true, Documents: []document.TrustedDocument{trusted("catalog", catalogQuery), trusted("orders", `{ orders { nodes { id } } }`)},
	}})
	if w := ask(g, http.MethodPost, server.PathGraphQL, `{"documentId":"catalog"}`); !strings.HasPrefix(w.Body.String(), catalogAnswer) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	hash := sha256.Sum256([]byte(catalogQuery))
	if w := ask(g, http.MethodPost, server.PathGraphQL, fmt.Sprintf(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":%q}}}`, hex.EncodeToString(hash[:]))); !strings.HasPrefix(w.Body.String(), catalogAnswer) {
		t.Errorf("the persisted query by its hash: status %d, %s", w.Code, w.Body)
	}
	if w := ask(g, http.MethodPost, server.PathGraphQL, `{"documentId":"orders"}`); !allUnauthenticated(w.Body.String()) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	checkRefusal(t, ask(g, http.MethodPost, server.PathGraphQL, post(`{ product(sku: "prod_101") { name } }`)), http.StatusOK, "DOCUMENT_NOT_TRUSTED", asJSON)
}

// Callers without a token share the points of their network address. They use no points of other
// addresses or of tokens.
func TestPointsOfAddresses(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{Anonymous: true, Graph: graph.Options{
		Limits: document.Limits{Cost: 100}, Rates: rate.Options{Burst: 100, Restore: 2, Now: func() time.Time { return now }},
	}})
	left := func(remote string) int {
		t.Helper()
		return costOf(t, queryFrom(g, remote, `{ __typename }`)).Available
	}
	for _, c := range []struct {
		remote string
		left   int
	}{
		{"203.0.113.7:1000", 99},
		{"203.0.113.7:2000", 98}, // any port of the address
		{"[::ffff:203.0.113.7]:3000", 97},
		{"203.0.113.8:1000", 99},
		{"[2001:db8:1:2::1]:1000", 99},
		{"[2001:db8:1:2:ffff::2%eth0]:1000", 98}, // the same network
		{"[2001:db8:1:3::1]:1000", 99},
		{"@", 99}, // no address
		{"", 98},
	} {
		if got := left(c.remote); got != c.left {
			t.Errorf("%q has %d points left, want %d", c.remote, got, c.left)
		}
	}
	for range 97 {
		queryFrom(g, "203.0.113.7:1000", `{ __typename }`)
	}
	checkRefusal(t, queryFrom(g, "203.0.113.7:4000", catalogQuery), http.StatusTooManyRequests, "RATE_LIMITED", asJSON)
	if got := left("203.0.113.8:1000"); got != 98 {
		t.Errorf("another address has %d points left", got)
	}
	if w := queryFrom(g, "203.0.113.7:1000", aliceQuery, "Authorization", "Bearer "+g.token(t, nil)); w.Body.String() == "" || costOf(t, w).Available != 98 {
		t.Errorf("a token from the address without points: status %d, %s", w.Code, w.Body)
	}
}

// All callers without a token together have half of the slots for requests and half of the
// concurrent cost, from any number of addresses.
func TestAnonymousCallersLeaveRoomForTokens(t *testing.T) {
	b := newBlocked()
	g := newAuthenticatedServer(t, sampleThrough(t, b.pass), server.Options{Anonymous: true, Admission: admission.New(admission.Sizes{admission.PoolRequests: 4, admission.PoolOperationCost: 16_000})})
	token := "Bearer " + g.token(t, nil)
	answers := make(chan *httptest.ResponseRecorder)
	begin := func(remote, query string, header ...string) {
		go func() { answers <- queryFrom(g, remote, query, header...) }()
		<-b.arrived
	}
	const large = `{ products(category: "Hardware", first: 100) { nodes { a: name b: name c: name d: name e: name f: name g: name h: name i: name j: name k: name l: name m: name n: name o: name p: name q: name r: name s: name t: name u: name v: name w: name x: name y: name z: name aa: name ab: name ac: name ad: name ae: name af: name ag: name ah: name ai: name aj: name ak: name al: name am: name an: name } } }`
	begin("203.0.113.1:1", large) // about 4,100 of the 8,000 points that are half
	if got := checkRefusal(t, queryFrom(g, "203.0.113.2:1", large), http.StatusServiceUnavailable, "OVERLOADED", asJSON); !strings.Contains(got.Errors[0].Message, "pool cost") {
		t.Errorf("a second expensive anonymous query: %+v, want a refusal by the pool cost", got)
	}
	begin("203.0.113.1:1", large, "Authorization", token)
	begin("203.0.113.2:1", catalogQuery)
	if got := checkRefusal(t, queryFrom(g, "203.0.113.3:1", catalogQuery), http.StatusServiceUnavailable, "OVERLOADED", asJSON); !strings.Contains(got.Errors[0].Message, "pool requests") {
		t.Errorf("a third: %+v", got)
	}
	begin("203.0.113.3:1", catalogQuery, "Authorization", token)
	close(b.release)
	for range 4 {
		if w := <-answers; w.Code != http.StatusOK {
			t.Errorf("status %d, %s", w.Code, w.Body)
		}
	}
	if w := queryFrom(g, "203.0.113.3:1", catalogQuery); w.Code != http.StatusOK {
		t.Errorf("after the expensive queries: status %d, %s", w.Code, w.Body)
	}
}

// liveWithAnonymous starts a live server that accepts sockets without a token.
func liveWithAnonymous(t *testing.T, opts server.Options) (*liveServer, *authenticatedServer) {
	t.Helper()
	db := embedded.New().Client()
	l := &liveServer{t: t, store: storetest.SampleStore(t, db)}
	l.feed = storetest.OpenFeed(t, db, l.store, feed.Options{})
	opts.Anonymous, opts.Graph.Feed = true, l.feed
	g := newAuthenticatedServer(t, l.store, opts, func(o *auth.Options) { o.Leeway = 0 })
	l.addr, l.log = listenTCP(t, g, opts), g.log
	return l, g
}

// A socket without a token can query the catalog. A socket with an invalid token is closed.
func TestSocketsWithoutAToken(t *testing.T) {
	l, g := liveWithAnonymous(t, server.Options{})
	for name, init := range map[string]string{
		"no payload": `{"type":"connection_init"}`, "an empty payload": `{"type":"connection_init","payload":{}}`, "null": `{"type":"connection_init","payload":{"Authorization":null}}`,
	} {
		w := l.dial()
		w.text(init)
		w.want("connection_ack", "")
		w.subscribe("a", catalogQuery)
		if got := string(w.want("next", "a").Payload); !strings.HasPrefix(got, catalogAnswer) {
			t.Errorf("%s: %s", name, got)
		}
		w.want("complete", "a")
	}
	w := l.open()
	w.subscribe("v", `{ viewer { role } }`)
	if got := string(w.want("next", "v").Payload); !strings.Contains(got, `"ANONYMOUS"`) {
		t.Errorf("the viewer: %s", got)
	}
	w.want("complete", "v")
	for name, query := range refusedWithoutToken {
		w.subscribe("x", query)
		if got := string(w.want("error", "x").Payload); !allUnauthenticated(got) {
			t.Errorf("%s: %s", name, got)
		}
	}
	g.clock.Advance(time.Hour) // there is no token to expire
	w.subscribe("a", catalogQuery)
	w.want("next", "a")
	w.want("complete", "a")
	for name, payload := range map[string]string{
		"empty": `{"Authorization":""}`, "nonsense": `{"Authorization":"Bearer nonsense"}`, "expired": `{"Authorization":"Bearer ` + g.token(t, authtest.Object{"exp": 1}) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := l.dial()
			w.send(frame{Type: "connection_init", Payload: json.RawMessage(payload)})
			w.closed(4403)
		})
	}
}

// Sockets without a token leave capacity for sockets with a token.
func TestSocketsOfOneAddress(t *testing.T) {
	l, g := liveWithAnonymous(t, server.Options{Admission: admission.New(admission.Sizes{admission.PoolConnections: 22})})
	open := l.openAll(`{"type":"connection_init"}`)
	if len(open) < 5 || len(open) > 8 {
		t.Errorf("one anonymous address could open %d of 16 sockets, want 5 to 8", len(open))
	}
	// The server may still be closing the connection that it refused last.
	for deadline := time.Now().Add(testTimeout); ; {
		w, _, err := l.tryDial([]string{"graphql-transport-ws"})
		if err == nil {
			w.text(fmt.Sprintf(`{"type":"connection_init","payload":{"Authorization":"Bearer %s"}}`, g.token(t, nil)))
			w.want("connection_ack", "")
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a socket with a token was refused: %v", err)
		}
	}
	_ = open[0].conn.CloseNow()
	for deadline := time.Now().Add(testTimeout); len(l.openAll(`{"type":"connection_init"}`)) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the capacity of the closed socket was not released")
		}
	}
}
