package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// listener records the requests to DynamoDB, and counts the records in the responses.
type listener struct {
	next dynamodb.HTTPClient

	mu       sync.Mutex
	requests []string
}

// Do forwards a request.
func (l *listener) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := l.next.Do(r)
	if err != nil {
		return nil, err
	}
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(reply))
	// The SDK encodes the members of a JSON object in no fixed order.
	var members any
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	sorted, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, fmt.Sprintf("%s %s: %d records", operation, sorted, bytes.Count(reply, []byte(`"entity":`))))
	return response, nil
}

// heard returns and forgets the requests, sorted, as their order depends on timing.
func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests := l.requests
	l.requests = nil
	slices.Sort(requests)
	return strings.Join(requests, "\n")
}

// authenticatedFixture is a fixture with authentication that records the requests to DynamoDB.
type authenticatedFixture struct {
	*fixture
	listener *listener
	url      string
}

func newAuthenticatedFixture(t *testing.T, db *dynamodb.Client) authenticatedFixture {
	t.Helper()
	l := &listener{next: db.Options().HTTPClient}
	s := newFixture(t, dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = l
		o.Retryer = aws.NopRetryer{}
	}), smallDataset(t))
	return authenticatedFixture{s, l, s.serveRoles(t)}
}

// serveRoles starts a server whose requests have the caller in the query of the URL. It returns the
// URL without this query.
func (s *fixture) serveRoles(t *testing.T) string {
	t.Helper()
	handler, err := server.New(server.Options{
		Graph: graph.Options{Store: s.store, Cursors: paging.NewCursorSigner([]byte("a key for tests")), Authenticated: true},
		Log:   slog.New(slog.NewTextHandler(failOnWrite{t}, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if role, ok := access.ParseRole(query.Get("role")); ok {
			r = r.WithContext(graph.WithPrincipal(r.Context(), access.Principal{ID: query.Get("as") + "/" + query.Get("customer"), Name: query.Get("as"), Role: role, Customer: commerce.CustomerID(query.Get("customer"))}))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + server.PathGraphQL
}

// query returns the response to a caller. It does not ask for explain, which some roles may not
// use.
func (s authenticatedFixture) query(t *testing.T, caller, query string) string {
	t.Helper()
	status, text := api{s.url + "?" + caller}.send(t, query, nil)
	return fmt.Sprintf("%d %s", status, text)
}

const (
	annToken = "role=CUSTOMER&as=ann&customer=ann"
	asStaff  = "role=STAFF&as=sam"
)

// A customer who guesses another customer's IDs gets the same response as for IDs that do not
// exist, after the same DynamoDB requests and with as few records. Nothing is written. With the
// customer's own IDs, the same operations succeed.
func TestGuessedIDs(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newAuthenticatedFixture(t, db)
		own, others := s.place(t, "ann", "mug", "plate"), s.place(t, "bob", "mug", "plate")
		type ids struct{ customer, order string }
		ann, bob, nobody := ids{"ann", own}, ids{"bob", others}, ids{"zoe", "01KJM1XZR0ZZZZZZZZZZZZZZZZ"}
		in := func(i ids, query string) string {
			return strings.NewReplacer("$C", i.customer, "$O", i.order).Replace(query)
		}
		const address = `shippingAddress:{recipient:"A",line1:"B",city:"C",countryCode:"US"}`
		for _, query := range []string{
			`{customer(id:"$C"){id name email orderCount orders{nodes{id}} accountRep{name}}}`,
			`{customer(id:"$C"){order(id:"$O"){status timeline{nodes{at}}}}}`,
			`{order(id:"$O"){id status customer{name} items{nodes{name product{name}}} item(productId:"mug"){quantity}}}`,
			`{order(id:"$O"){status timeline{nodes{at type}} accountRep{name}}}`,
			`{orderItem(orderId:"$O",productId:"mug"){quantity product{name} order{status timeline{nodes{at}}}}}`,
			`{_entities(representations:[{__typename:"Order",id:"$O"},{__typename:"Customer",id:"$C"}]){...on Order{status timeline{nodes{at}}} ...on Customer{name}}}`,
			`mutation{updateCustomer(input:{id:"$C",phoneNumbers:["+1-555-9999"]}){customer{name phoneNumbers} userErrors{code field message}}}`,
			`mutation{placeOrder(input:{customerId:"$C",items:[{sku:"mug",quantity:1}]}){order{status} userErrors{code field message}}}`,
			`mutation{placeOrder(input:{customerId:"$C",items:[{sku:"mug",quantity:1}],idempotencyKey:"k$C"}){order{status} userErrors{code field message}}}`,
			`mutation{updateShippingAddress(input:{orderId:"$O",` + address + `}){order{status} userErrors{code field message}}}`,
			`mutation{updateShippingAddress(input:{orderId:"$O",expectedVersion:77,` + address + `}){order{status} userErrors{code field message}}}`,
			`mutation{setOrderItem(input:{orderId:"$O",sku:"mug",quantity:2}){order{status items{nodes{quantity}}} userErrors{code field message}}}`,
			`mutation{removeOrderItem(input:{orderId:"$O",sku:"plate"}){order{status} userErrors{code field message}}}`,
			`mutation{cancelOrder(input:{orderId:"$O",note:"n"}){order{status timeline{nodes{type}}} userErrors{code field message}}}`,
		} {
			before := s.records(t)
			s.listener.heard()
			type answer struct{ said, heard string }
			ask := func(targets ids) answer {
				a := answer{s.query(t, annToken, in(targets, query)), s.listener.heard()}
				out := strings.NewReplacer(targets.order, "$O", fmt.Sprintf("%q", targets.customer), `"$C"`, "CUSTOMER#"+targets.customer+`"`, `CUSTOMER#$C"`, "k"+targets.customer, "k$C", "customer "+targets.customer+" does not exist", "customer $C does not exist")
				return answer{out.Replace(a.said), out.Replace(a.heard)}
			}
			guessed, unknown := ask(bob), ask(nobody)
			if guessed != unknown || strings.Contains(guessed.said, "errors") && !strings.Contains(guessed.said, "userErrors") {
				t.Errorf("%s\nreturns for the records of another customer %s\n%s\nand for missing records %s\n%s\nwant the same response", query, guessed.said, guessed.heard, unknown.said, unknown.heard)
			}
			if difference := changes(before, s.records(t)); difference != "" {
				t.Errorf("%s changes\n%s", query, difference)
			}
			s.listener.heard()
			if mine := ask(ann); mine.said == guessed.said || strings.Contains(mine.said, "NOT_FOUND") || strings.Contains(mine.said, `"errors"`) || strings.Contains(mine.said, "explain") {
				t.Errorf("%s\nfor the caller's own records returns %s", query, mine.said)
			}
		}
		// The event of ann's mutation names her as the actor. Staff may use the same mutation on bob's
		// orders.
		if got := s.query(t, asStaff, fmt.Sprintf(`{order(id:%q){status timeline{nodes{actor type}}}}`, own)); !strings.Contains(got, `{"actor":"ann","type":"CANCELLED"}`) || !strings.Contains(got, "explain") {
			t.Errorf("staff get %s", got)
		}
		if got := s.query(t, asStaff, fmt.Sprintf(`mutation{cancelOrder(input:{orderId:%q}){order{status} userErrors{code}}}`, others)); !strings.Contains(got, "CANCELLED") {
			t.Errorf("staff get %s", got)
		}
	})
}

// Customers cannot change their e-mail address. So they cannot find out which addresses exist, and
// cannot claim an address that is not theirs.
func TestCustomersDoNotChangeTheirAddress(t *testing.T) {
	s := newAuthenticatedFixture(t, storetest.Engines()[0].Client(t))
	before := s.records(t)
	for _, form := range []string{
		`mutation{updateCustomer(input:{id:"ann",email:%q}){customer{email} userErrors{code}}}`,
		`mutation{updateCustomer(input:{id:"ann",name:"Ann",email:%q,expectedVersion:77}){customer{email} userErrors{code}}}`,
		`mutation($i:UpdateCustomerInput!={id:"ann",email:%q}){updateCustomer(input:$i){customer{email} userErrors{code}}}`,
	} {
		s.listener.heard()
		var answers []string
		for _, email := range []string{"bob@example.com", "zoe@example.com", "ann@example.com"} { // another customer's address, an unused one, and the caller's own
			got := s.query(t, annToken, fmt.Sprintf(form, email))
			if requests := s.listener.heard(); !strings.Contains(got, errcode.Forbidden) || strings.Contains(got, `"data"`) || requests != "" {
				t.Errorf("%s for %s: %s\n%s", form, email, got, requests)
			}
			answers = append(answers, strings.ReplaceAll(got, email, "$E"))
		}
		if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
			t.Errorf("the responses to %s are %v: they must not depend on the email address", form, answers)
		}
	}
	if difference := changes(before, s.records(t)); difference != "" {
		t.Errorf("refused mutations changed the table:\n%s", difference)
	}
	if got := s.query(t, annToken, `mutation{updateCustomer(input:{id:"ann",name:"Ann B.",email:null,phoneNumbers:["+1"]}){customer{name} userErrors{code}}}`); !strings.Contains(got, `"Ann B."`) {
		t.Errorf("ann's name: %s", got)
	}
	if got := s.query(t, "role=SERVICE&as=gateway", `mutation{updateCustomer(input:{id:"ann",name:"Ann C."}){customer{name} userErrors{code}}}`); !strings.Contains(got, `"Ann C."`) {
		t.Errorf("a service cannot update a customer: %s", got)
	}
	if got := s.query(t, asStaff, `mutation{updateCustomer(input:{id:"ann",email:"new@example.com"}){customer{email} userErrors{code}}}`); !strings.Contains(got, `"new@example.com"`) {
		t.Errorf("staff get %s", got)
	}
}

// Every principal can query viewer. A customer gets its record. For other roles nothing is read.
func TestViewer(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newAuthenticatedFixture(t, db)
		const query = `{viewer{role permissions customer{name orders{nodes{id}}}}}`
		own := `"permissions":["READ_VIEWER","READ_CATALOG","READ_CUSTOMER","READ_ORDER","READ_NOTE","READ_CONTACT","PLACE_ORDER","CHANGE_ORDER","CHANGE_CUSTOMER","RESOLVE_ENTITIES"]`
		s.listener.heard()
		if got, want := s.query(t, annToken, query), `{"viewer":{"role":"CUSTOMER",`+own+`,"customer":{"name":"Ann","orders":{"nodes":[]}}}}`; !strings.Contains(got, want) {
			t.Errorf("ann gets %s, want %s", got, want)
		}
		s.listener.heard()
		got := s.query(t, asStaff, query)
		if !strings.Contains(got, `{"viewer":{"role":"STAFF","permissions":["READ_VIEWER",`) || !strings.Contains(got, `"customer":null}}`) {
			t.Errorf("staff get %s", got)
		}
		if read := s.listener.heard(); read != "" {
			t.Errorf("the query of staff reads %s, want no reads", read)
		}
		if got := s.query(t, "", query); !strings.Contains(got, "UNAUTHENTICATED") {
			t.Errorf("a request without a token gets %s, want UNAUTHENTICATED", got)
		}
	})
}

// A representation that names no entity is rejected. Callers that may not read the schema get a
// message without the names of entities and keys.
func TestMessagesAboutRepresentations(t *testing.T) {
	s := newAuthenticatedFixture(t, storetest.Engines()[0].Client(t))
	for representation, message := range map[string]string{
		`{__typename:"Custom",id:"ann"}`:  "Warehouse",
		`{__typename:"Product"}`:          "sku",
		`{__typename:"Product",id:"mug"}`: "sku",
		`{__typename:"Employee"}`:         `\"id\"`,
		`{__typename:"Order",id:true}`:    `\"id\"`,
	} {
		query := `{_entities(representations:[` + representation + `,{__typename:"Customer",id:"ann"}]){... on Customer{name}}}`
		if got := s.query(t, asStaff, query); !strings.Contains(got, message) || !strings.Contains(got, `[null,{"name":`) {
			t.Errorf("%s: staff get %s, want %s", representation, got, message)
		}
		got := s.query(t, annToken, query)
		if !strings.Contains(got, `[null,{"name":`) || !strings.Contains(got, `contains a value that is not an entity`) || !strings.Contains(got, errcode.BadUserInput) {
			t.Errorf("%s: ann gets %s", representation, got)
		}
		for _, name := range []string{"Custom", "Employee", "Order", "Product", "Warehouse", "sku", "id"} {
			if strings.Contains(got, `\"`+name+`\"`) || strings.Contains(got, name+",") || strings.Contains(got, name+" and") {
				t.Errorf("%s: the message to a customer contains the schema name %s: %s", representation, name, got)
			}
		}
	}
}

// A role that may not use an operation gets an HTTP response with an error, and nothing is read.
func TestRefusedRoles(t *testing.T) {
	s := newAuthenticatedFixture(t, storetest.Engines()[0].Client(t))
	for _, c := range []struct{ who, query, code string }{
		{annToken, `{orders{nodes{id}}}`, errcode.Forbidden},
		{annToken, `{customerByEmail(email:"ann@example.com"){name}}`, errcode.Forbidden},
		{annToken, `mutation{createProduct(input:{sku:"x",name:"X",category:"C",unitPrice:{amount:"1"}}){product{sku}}}`, errcode.Forbidden},
		{annToken, `{__schema{queryType{name}}}`, errcode.Forbidden},
		{asStaff, `mutation{hireEmployee(input:{name:"X",jobTitle:"C",hireDate:"2026-01-01"}){employee{id}}}`, errcode.Forbidden},
		{asStaff, `{_service{sdl}}`, errcode.Forbidden},
		{"role=SERVICE&as=gateway", `mutation{updateCustomer(input:{id:"ann",email:"x@example.com"}){customer{id}}}`, errcode.Forbidden},
		{"", `{product(sku:"mug"){name}}`, errcode.Unauthenticated},
	} {
		s.listener.heard()
		got := s.query(t, c.who, c.query)
		if requests := s.listener.heard(); !strings.Contains(got, c.code) || strings.Contains(got, `"data"`) || requests != "" {
			t.Errorf("%s, %s: %s\n%s", c.who, c.query, got, requests)
		}
	}
}
