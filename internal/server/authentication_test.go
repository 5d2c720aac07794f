package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// authenticatedServer is a server that requires tokens of an issuer that publishes its keys on this
// machine.
type authenticatedServer struct {
	http.Handler
	log *journal
	// key signs valid tokens.
	key authtest.Key
	// jwks is the published key set, and fetched the number of its downloads.
	jwks    atomic.Pointer[[]byte]
	fetched atomic.Int64
	clock   *authtest.Clock
}

func (g *authenticatedServer) now() time.Time { return g.clock.Now() }

func newAuthenticatedServer(t testing.TB, store *dynamo.Store, opts server.Options, changes ...func(*auth.Options)) *authenticatedServer {
	t.Helper()
	g := &authenticatedServer{key: authtest.NewKey(t, "the-key", "ES256"), clock: authtest.NewClock(time.Now())}
	g.publish(t, g.key)
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		g.fetched.Add(1)
		if jwks := g.jwks.Load(); jwks != nil {
			_, _ = w.Write(*jwks)
		} else {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(issuer.Close)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	against := auth.Options{
		JWKS: issuer.URL, Issuer: authtest.Issuer, Audience: authtest.Audience, Leeway: time.Minute, RoleClaim: "role", CustomerClaim: "customer_id",
		CustomerExists: store.CustomerExists,
		Log:            slog.New(slog.DiscardHandler), Now: g.clock.Now, AfterFunc: g.clock.AfterFunc,
	}
	for _, change := range changes {
		change(&against)
	}
	var err error
	if opts.Auth, err = auth.New(ctx, against); err != nil {
		t.Fatal(err)
	}
	g.Handler, g.log = newHandler(t, store, slog.LevelDebug, opts)
	return g
}

// publish makes the issuer publish keys.
func (g *authenticatedServer) publish(t testing.TB, keys ...authtest.Key) {
	t.Helper()
	var jwks []authtest.Object
	for _, k := range keys {
		jwks = append(jwks, k.JWK(t, nil))
	}
	text := authtest.JWKS(t, jwks...)
	g.jwks.Store(&text)
}

// token returns a valid token with other claims added.
func (g *authenticatedServer) token(t testing.TB, others authtest.Object) string {
	t.Helper()
	return g.key.Token(t, authtest.Claims(g.now(), others), nil)
}

// checkLog checks that the log contains no part of the secrets or of another client input.
func (g *authenticatedServer) checkLog(t testing.TB, secrets ...string) {
	t.Helper()
	g.log.mu.Lock()
	defer g.log.mu.Unlock()
	log := g.log.text.String()
	for _, s := range secrets {
		for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(". ,", r) }) {
			// Short parts can occur in any log by chance.
			for i := 0; i+12 <= len(part); i += 12 {
				if strings.Contains(log, part[i:i+12]) {
					t.Errorf("the log contains the part %q of a token: %.2000s", part[i:i+12], log)
					return
				}
			}
		}
	}
	for _, word := range []string{authtest.Issuer, authtest.Audience, "user-1", "cust_01", "eyJ"} {
		if strings.Contains(log, word) {
			t.Errorf("the log has %q: %.2000s", word, log)
		}
	}
}

// unreadableBody is a request body that fails the test if it is read.
type unreadableBody struct{ t testing.TB }

func (u unreadableBody) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.ErrUnexpectedEOF
}

// checkRefused checks the response to a request without valid credentials.
func checkRefused(t testing.TB, w *httptest.ResponseRecorder, name string, given bool) {
	t.Helper()
	contentType, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	checkRefusal(t, w, http.StatusUnauthorized, "UNAUTHENTICATED", contentType)
	want := "Bearer"
	if given {
		want = `Bearer error="invalid_token"`
	}
	if got := w.Header().Values("WWW-Authenticate"); len(got) != 1 || got[0] != want {
		t.Errorf("%s: WWW-Authenticate is %q, want %q", name, got, want)
	}
	if t.Failed() {
		t.Fatalf("%s", name)
	}
}

// Without a valid token neither the request body nor the table is read, and the response has the
// reason.
func TestMissingAndInvalidTokens(t *testing.T) {
	g := newAuthenticatedServer(t, sampleThrough(t, func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		t.Error("an unauthenticated request reads the table")
		return nil, io.ErrUnexpectedEOF
	}), server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequests: 1}), Origins: []string{origin}})
	hour := int64(3600)
	now := g.now().Unix()
	good := g.token(t, nil)
	parts := strings.Split(good, ".")
	stranger := authtest.NewKey(t, g.key.ID, g.key.Algorithm)
	var sent []string
	for _, c := range []struct {
		name   string
		header []string
		given  bool
	}{
		{"nothing", nil, false},
		{"an empty header", []string{""}, false},
		{"no token", []string{"Bearer"}, false},
		{"an empty token", []string{"Bearer "}, false},
		{"blanks for a token", []string{"Bearer    "}, false},
		{"a token without a scheme", []string{good}, false},
		{"Basic", []string{"Basic dXNlcjpwYXNzd29yZC1vZi10aGUtdXNlcg=="}, false},
		{"another scheme", []string{"Token " + good}, false},
		{"a scheme that runs on", []string{"Bearer:" + good}, false},
		{"a tab behind the scheme", []string{"Bearer\t" + good}, false},
		{"two headers", []string{"Bearer " + good, "Bearer " + good}, true},
		{"a good and an empty header", []string{"Bearer " + good, ""}, true},
		{"two in one header", []string{"Bearer " + good + ", Bearer " + good}, true},
		{"two tokens", []string{"Bearer " + good + " " + good}, true},
		{"more parameters", []string{"Bearer " + good + `, realm="x"`}, true},
		{"quotes", []string{`Bearer "` + good + `"`}, true},
		{"not a token", []string{"Bearer correct-horse-battery-staple"}, true},
		{"a token's first part", []string{"Bearer " + parts[0]}, true},
		{"unsigned", []string{"Bearer " + authtest.AssembleToken([]byte(`{"alg":"none","typ":"JWT"}`), []byte(`{"sub":"user-1","role":"ADMIN"}`), func([]byte) []byte { return nil })}, true},
		{"the signature taken away", []string{"Bearer " + parts[0] + "." + parts[1] + "."}, true},
		{"wrongly signed", []string{"Bearer " + stranger.Token(t, authtest.Claims(g.now(), nil), nil)}, true},
		{"of an unknown key", []string{"Bearer " + g.key.Token(t, authtest.Claims(g.now(), nil), authtest.Object{"kid": "../../etc/passwd"})}, true},
		{"expired", []string{"Bearer " + g.token(t, authtest.Object{"exp": now - 61})}, true},
		{"of the future", []string{"Bearer " + g.token(t, authtest.Object{"nbf": now + hour})}, true},
		{"issued in the future", []string{"Bearer " + g.token(t, authtest.Object{"iat": now + hour})}, true},
		{"without an end", []string{"Bearer " + g.token(t, authtest.Object{"exp": nil})}, true},
		{"of another issuer", []string{"Bearer " + g.token(t, authtest.Object{"iss": "https://evil.example/"})}, true},
		{"for another audience", []string{"Bearer " + g.token(t, authtest.Object{"aud": "https://other.example/"})}, true},
		{"for other audiences", []string{"Bearer " + g.token(t, authtest.Object{"aud": []string{"https://other.example/", "https://more.example/"}})}, true},
		{"huge", []string{"Bearer " + g.token(t, authtest.Object{"x": strings.Repeat("x", 8<<10)})}, true},
		{"without a role", []string{"Bearer " + g.token(t, authtest.Object{"role": nil})}, true},
		{"of an unknown role", []string{"Bearer " + g.token(t, authtest.Object{"role": "OWNER"})}, true},
		{"of two roles", []string{"Bearer " + g.token(t, authtest.Object{"role": []string{"STAFF", "ADMIN"}})}, true},
		{"of a customer without an id", []string{"Bearer " + g.token(t, authtest.Object{"role": "CUSTOMER"})}, true},
		{"of a customer with a malformed ID", []string{"Bearer " + g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01#"})}, true},
	} {
		sent = append(sent, c.header...)
		for accept := range answerTypes {
			for _, r := range []*http.Request{
				httptest.NewRequest(http.MethodPost, server.PathGraphQL, unreadableBody{t}),
				httptest.NewRequest(http.MethodGet, get(aliceQuery, "access_token", good, "token", good, "authorization", "Bearer "+good), http.NoBody),
			} {
				r.Header["Authorization"] = c.header
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", accept)
				r.Header.Set("Origin", origin)
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				checkRefused(t, w, c.name, c.given)
				if w.Header().Get("Access-Control-Allow-Origin") != origin {
					t.Errorf("%s: a page of an allowed origin cannot read the refusal: %v", c.name, w.Header())
				}
			}
		}
	}
	g.checkLog(t, append(sent, good)...)
	refusals := 0
	for _, line := range g.log.entries(t) {
		if line["level"] != "DEBUG" || line["requestId"] == nil {
			t.Errorf("the log has %v", line)
		}
		if line["msg"] == "a token was refused" {
			refusals++
		}
	}
	if refusals == 0 {
		t.Error("the log does not report refused tokens")
	}
}

// A valid token is accepted with any spelling of the scheme. Public paths need no token.
func TestValidTokens(t *testing.T) {
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{Origins: []string{origin}})
	for _, role := range access.RolesAllowedInTokens() {
		token := g.token(t, authtest.Object{"role": role.String(), "customer_id": "cust_01"})
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "Bearer   "} {
			for _, w := range []*httptest.ResponseRecorder{
				ask(g, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Authorization", scheme+token),
				ask(g, http.MethodGet, get(aliceQuery), "", "Authorization", scheme+token),
			} {
				if w.Code != http.StatusOK || w.Body.String() != aliceAnswer || w.Header().Get("WWW-Authenticate") != "" {
					t.Errorf("%s, %s: status %d, body %s", role, scheme, w.Code, w.Body)
				}
			}
		}
		g.checkLog(t, token)
	}
	for _, path := range []string{server.PathHealth, server.PathReady, "/"} {
		if w := ask(g, http.MethodGet, path, ""); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
	// A preflight request has no token.
	preflight := ask(g, http.MethodOptions, server.PathGraphQL, "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
	if preflight.Code > 299 || preflight.Header().Get("Access-Control-Allow-Origin") != origin || !strings.Contains(strings.ToLower(preflight.Header().Get("Access-Control-Allow-Headers")), "authorization") {
		t.Errorf("preflight: status %d, %v", preflight.Code, preflight.Header())
	}
	if w := ask(g, http.MethodOptions, server.PathGraphQL, ""); w.Code != http.StatusNoContent {
		t.Errorf("OPTIONS: status %d", w.Code)
	}
}

// An event names the token's subject as the actor. Idempotency keys of different subjects are
// independent.
func TestSubjectsAreActors(t *testing.T) {
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{})
	const place = `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}], idempotencyKey: "one"}) { order { id timeline(first: 1) { nodes { actor } } } userErrors { message } } }`
	ids := map[string]bool{}
	for subject, want := range map[string]string{"auth0|me": `"actor":"auth0|me"`, "a#b": `"actor":"sha256:`} {
		for range 2 {
			w := ask(g, http.MethodPost, server.PathGraphQL, post(place), "Authorization", "Bearer "+g.token(t, authtest.Object{"sub": subject}))
			_, id, found := strings.Cut(w.Body.String(), `"order":{"id":"`)
			if w.Code != http.StatusOK || !found || !strings.Contains(w.Body.String(), want) {
				t.Fatalf("%s: status %d, body %s, want %s", subject, w.Code, w.Body, want)
			}
			ids[id[:26]] = true
		}
	}
	if len(ids) != 2 {
		t.Errorf("two subjects with the same idempotency key placed the orders %v, want two orders", ids)
	}
}

// While all slots are in use, a request without a token still gets 401. A valid token does not get
// a slot that is in use.
func TestUnauthenticatedRequestsUseNoSlot(t *testing.T) {
	b := newBlocked()
	g := newAuthenticatedServer(t, sampleThrough(t, b.pass), server.Options{Admission: admission.New(admission.Sizes{admission.PoolRequests: 1})})
	token := g.token(t, nil)
	first := make(chan *httptest.ResponseRecorder)
	go func() {
		first <- ask(g, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Authorization", "Bearer "+token)
	}()
	<-b.arrived
	checkRefused(t, ask(g, http.MethodPost, server.PathGraphQL, post(aliceQuery)), "a stranger", false)
	checkRefusal(t, ask(g, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Authorization", "Bearer "+token), http.StatusServiceUnavailable, "OVERLOADED", "application/json")
	close(b.release)
	if w := <-first; w.Code != http.StatusOK || w.Body.String() != aliceAnswer {
		t.Errorf("status %d, body %s", w.Code, w.Body)
	}
}

// After the issuer rotates its keys, tokens of the new key are valid at once. Tokens of the old key
// are valid until the server reads the keys again. While the issuer is down, tokens of known keys
// are valid.
func TestTheIssuerChangesItsKeys(t *testing.T) {
	g := newAuthenticatedServer(t, sampleThrough(t, forward), server.Options{})
	status := func(token string) int {
		return ask(g, http.MethodPost, server.PathGraphQL, post(aliceQuery), "Authorization", "Bearer "+token).Code
	}
	next := authtest.NewKey(t, "the-next-key", "EdDSA")
	expect := func(when string, old, renewed int) {
		t.Helper()
		claims := authtest.Claims(g.now(), nil)
		if got := status(g.key.Token(t, claims, nil)); got != old {
			t.Errorf("%s: a token signed with the old key gets status %d, want %d", when, got, old)
		}
		if got := status(next.Token(t, claims, nil)); got != renewed {
			t.Errorf("%s: a token signed with the new key gets status %d, want %d", when, got, renewed)
		}
	}
	expect("at first", 200, 401)
	g.publish(t, next)
	expect("as the keys were read a moment ago", 200, 401)
	g.clock.Advance(11 * time.Second)
	expect("as a new key is asked for after the old one was", 200, 200)
	expect("as the keys were read", 401, 200)
	g.jwks.Store(nil)
	g.clock.Advance(11 * time.Second)
	before := g.fetched.Load()
	for range 50 {
		expect("while the issuer is down", 401, 200)
	}
	if fetches := g.fetched.Load() - before; fetches != 1 {
		t.Errorf("while the issuer was down, it got %d requests, want one", fetches)
	}
}

// Only an admin erases a customer, whose tokens are then refused.
func TestTokensOfErasedCustomers(t *testing.T) {
	g := newAuthenticatedServer(t, storetest.SampleStore(t, storetest.Engines()[0].Client(t)), server.Options{})
	request := func(query string, claims authtest.Object) *httptest.ResponseRecorder {
		return ask(g, http.MethodPost, server.PathGraphQL, post(query), "Authorization", "Bearer "+g.token(t, claims))
	}
	const erase = `mutation { eraseCustomer(input: {customerId: "cust_01"}) { deletedCustomer { erased } userErrors { code } } }`
	alice := authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01"}
	for _, claims := range []authtest.Object{alice, {"role": "STAFF"}, {"role": "SERVICE"}} {
		if w := request(erase, claims); !strings.Contains(w.Body.String(), `"FORBIDDEN"`) {
			t.Errorf("%v: status %d, body %s", claims, w.Code, w.Body)
		}
	}
	if w := request(`{ customer(id: "cust_01") { name } }`, alice); w.Code != http.StatusOK {
		t.Errorf("before: status %d, body %s", w.Code, w.Body)
	}
	for i := 0; !strings.Contains(request(erase, authtest.Object{"role": "ADMIN"}).Body.String(), `"erased":true`); i++ {
		if i > 20 {
			t.Fatal("the erasure does not end")
		}
	}
	g.clock.Advance(30 * time.Second)
	checkRefused(t, request(`{ __typename }`, alice), "half a minute later", true)
}

// A customer's token becomes invalid within half a minute after the customer was deleted. While the
// table cannot be read, the response is a server error.
func TestTokensOfDeletedCustomers(t *testing.T) {
	var fails atomic.Bool
	var lookUps atomic.Int64
	client := embedded.New().Client(func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.RetryMaxAttempts = 1
		o.HTTPClient = httpClient(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetItem") {
				lookUps.Add(1)
			}
			if fails.Load() {
				return failure(500, "InternalServerError", "secret")(r, next)
			}
			return next.Do(r)
		})
	})
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	table := storetest.TableName()
	store := storetest.NewTable(t, client, dynamo.Options{Table: table})
	storetest.LoadDataset(t, store, dataset)
	g := newAuthenticatedServer(t, store, server.Options{})
	token := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01"})
	request := func() *httptest.ResponseRecorder {
		return ask(g, http.MethodPost, server.PathGraphQL, post(`{ __typename }`), "Authorization", "Bearer "+token)
	}
	fails.Store(true)
	checkRefusal(t, request(), http.StatusServiceUnavailable, "UNAVAILABLE", "application/json")
	if log := g.log.entries(t); len(log) != 1 || log[0]["level"] != "ERROR" || log[0]["requestId"] == nil {
		t.Errorf("the log is %v", log)
	}
	fails.Store(false)
	lookUps.Store(0)
	for range 10 {
		if w := request(); w.Code != http.StatusOK {
			t.Fatalf("status %d, body %s", w.Code, w.Body)
		}
	}
	if n := lookUps.Load(); n != 1 {
		t.Errorf("the customer is looked up %d times, want once", n)
	}
	if _, err := client.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "CUSTOMER#cust_01"}, "sk": &types.AttributeValueMemberS{Value: "#METADATA"},
	}}); err != nil {
		t.Fatal(err)
	}
	if w := request(); w.Code != http.StatusOK {
		t.Errorf("immediately after the deletion of the customer: status %d, body %s", w.Code, w.Body)
	}
	g.clock.Advance(30 * time.Second)
	checkRefused(t, request(), "half a minute later", true)
	// A repair completes the deletion. A later repair does not undo it, even if an old export brings the
	// record back. The orders remain, and another customer can use the email address.
	for _, restored := range []bool{false, true} {
		if restored {
			storetest.LoadDataset(t, store, commerce.Dataset{Customers: dataset.Customers[:1]})
			g.clock.Advance(time.Hour)
			checkRefused(t, request(), "after an import of the old record", true)
		}
		summary, err := store.CheckRecords(context.Background(), check.Options{Repair: true, IndexLag: check.NoIndexLag})
		if err != nil || summary.UnrepairedCount() > 0 || len(summary.Repaired) == 0 {
			t.Errorf("the repair returned %+v, %v", summary, err)
		}
		g.clock.Advance(30 * time.Second)
		checkRefused(t, request(), "after the repair", true)
	}
	staff := func(query string) string {
		return ask(g, http.MethodPost, server.PathGraphQL, post(query), "Authorization", "Bearer "+g.token(t, authtest.Object{"role": "STAFF"})).Body.String()
	}
	for _, c := range []struct{ query, want string }{
		{`{ customer(id: "cust_01") { id } customerByEmail(email: "alice@example.com") { id } customers(namePrefix: "Alice") { nodes { id } } }`, `"customer":null,"customerByEmail":null,"customers":{"nodes":[]}`},
		{`mutation { createCustomer(input: {id: "alice", name: "Alice", email: "alice@example.com"}) { userErrors { message } } }`, `"userErrors":[]`},
		{`mutation { createCustomer(input: {id: "cust_01", name: "Bob", email: "bob@example.net"}) { customer { id } userErrors { code field } } }`, `{"customer":null,"userErrors":[{"code":"ALREADY_EXISTS","field":["input","id"]}]}`},
		{`{ customerByEmail(email: "alice@example.com") { id } order(id: "01HVMK3P2Q0000000000000001") { status customer { id } } }`, `"customerByEmail":{"id":"alice"},"order":{"status":"DELIVERED","customer":null}`},
	} {
		if got := staff(c.query); !strings.Contains(got, c.want) {
			t.Errorf("%s returned %s, want %s", c.query, got, c.want)
		}
	}
	// Tokens of other customers do not depend on it.
	if w := ask(g, http.MethodPost, server.PathGraphQL, post(`{ __typename }`), "Authorization", "Bearer "+g.token(t, authtest.Object{"role": "STAFF", "customer_id": "cust_01"})); w.Code != http.StatusOK {
		t.Errorf("a token of staff: status %d, body %s", w.Code, w.Body)
	}
}
