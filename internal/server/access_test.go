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

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// listener keeps what is asked of DynamoDB, and how many records come back.
type listener struct {
	next dynamodb.HTTPClient

	mu       sync.Mutex
	requests []string
}

// Do sends a request on.
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
	// The order of a JSON object's members is the SDK's mood.
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

// heard are the requests since it was asked last, in an order that does not depend on which was
// quicker.
func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests := l.requests
	l.requests = nil
	slices.Sort(requests)
	return strings.Join(requests, "\n")
}

// guardedShop is a shop that asks who makes requests, with an ear on what is asked of DynamoDB.
type guardedShop struct {
	*shop
	listener *listener
	url      string
}

func newGuardedShop(t *testing.T, db *dynamodb.Client) guardedShop {
	t.Helper()
	l := &listener{next: db.Options().HTTPClient}
	s := newShop(t, dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = l
		o.Retryer = aws.NopRetryer{}
	}), smallBook(t))
	handler, err := server.New(server.Options{
		Graph: graph.Options{Store: s.store, Cursors: paging.NewCursors([]byte("a key for tests")), Authenticated: true},
		Log:   slog.New(slog.NewTextHandler(failing{t}, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.URL.Query()
		if role, ok := commerce.ParseRole(who.Get("role")); ok {
			r = r.WithContext(graph.WithPrincipal(r.Context(), commerce.Principal{ID: who.Get("as") + "/" + who.Get("customer"), Name: who.Get("as"), Role: role, Customer: commerce.CustomerID(who.Get("customer"))}))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return guardedShop{s, l, srv.URL + server.PathGraphQL}
}

// says is the answer to somebody, without explain, which a role may lack.
func (s guardedShop) says(t *testing.T, who, query string) string {
	t.Helper()
	status, text := api{s.url + "?" + who}.send(t, query, nil)
	return fmt.Sprintf("%d %s", status, text)
}

const (
	asAnn   = "role=CUSTOMER&as=ann&customer=ann"
	asStaff = "role=STAFF&as=sam"
)

// Whatever a customer tries with somebody else's ids, in whatever way, is answered as it is for ids
// that nobody has, by the same requests that find as little; nothing of it changes the table; and
// with the own ids it works.
func TestGuessedIDs(t *testing.T) {
	t.Parallel()
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newGuardedShop(t, db)
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
			ask := func(of ids) answer {
				a := answer{s.says(t, asAnn, in(of, query)), s.listener.heard()}
				out := strings.NewReplacer(of.order, "$O", fmt.Sprintf("%q", of.customer), `"$C"`, "CUSTOMER#"+of.customer+`"`, `CUSTOMER#$C"`, "k"+of.customer, "k$C", "no customer "+of.customer, "no customer $C")
				return answer{out.Replace(a.said), out.Replace(a.heard)}
			}
			guessed, unknown := ask(bob), ask(nobody)
			if guessed != unknown || strings.Contains(guessed.said, "errors") && !strings.Contains(guessed.said, "userErrors") {
				t.Errorf("%s\nof another's is answered %s\n%s\nof nobody's %s\n%s", query, guessed.said, guessed.heard, unknown.said, unknown.heard)
			}
			if difference := changes(before, s.records(t)); difference != "" {
				t.Errorf("%s changes\n%s", query, difference)
			}
			s.listener.heard()
			if mine := ask(ann); mine.said == guessed.said || strings.Contains(mine.said, "NOT_FOUND") || strings.Contains(mine.said, `"errors"`) || strings.Contains(mine.said, "explain") {
				t.Errorf("%s\nof the own records is answered %s", query, mine.said)
			}
		}
		// What ann did stands in her name, and staff may do the same for bob.
		if got := s.says(t, asStaff, fmt.Sprintf(`{order(id:%q){status timeline{nodes{actor type}}}}`, own)); !strings.Contains(got, `{"actor":"ann","type":"CANCELLED"}`) || !strings.Contains(got, "explain") {
			t.Errorf("staff are told %s", got)
		}
		if got := s.says(t, asStaff, fmt.Sprintf(`mutation{cancelOrder(input:{orderId:%q}){order{status} userErrors{code}}}`, others)); !strings.Contains(got, "CANCELLED") {
			t.Errorf("staff are told %s", got)
		}
	})
}

// Customers cannot change their e-mail address, so they cannot find out who has one, nor take one
// that is not theirs.
func TestCustomersDoNotChangeTheirAddress(t *testing.T) {
	s := newGuardedShop(t, storetest.Engines()[0].Client(t))
	before := s.records(t)
	for _, form := range []string{
		`mutation{updateCustomer(input:{id:"ann",email:%q}){customer{email} userErrors{code}}}`,
		`mutation{updateCustomer(input:{id:"ann",name:"Ann",email:%q,expectedVersion:77}){customer{email} userErrors{code}}}`,
		`mutation($i:UpdateCustomerInput!={id:"ann",email:%q}){updateCustomer(input:$i){customer{email} userErrors{code}}}`,
	} {
		s.listener.heard()
		var answers []string
		for _, email := range []string{"bob@example.com", "zoe@example.com", "ann@example.com"} { // another's, nobody's, the own
			got := s.says(t, asAnn, fmt.Sprintf(form, email))
			if heard := s.listener.heard(); !strings.Contains(got, errcode.Forbidden) || strings.Contains(got, `"data"`) || heard != "" {
				t.Errorf("%s for %s: %s\n%s", form, email, got, heard)
			}
			answers = append(answers, strings.ReplaceAll(got, email, "$E"))
		}
		if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
			t.Errorf("%s is answered %v: the answer depends on the address", form, answers)
		}
	}
	if difference := changes(before, s.records(t)); difference != "" {
		t.Errorf("what was refused changes\n%s", difference)
	}
	if got := s.says(t, asAnn, `mutation{updateCustomer(input:{id:"ann",name:"Ann B.",email:null,phoneNumbers:["+1"]}){customer{name} userErrors{code}}}`); !strings.Contains(got, `"Ann B."`) {
		t.Errorf("ann's name: %s", got)
	}
	if got := s.says(t, asStaff, `mutation{updateCustomer(input:{id:"ann",email:"new@example.com"}){customer{email} userErrors{code}}}`); !strings.Contains(got, `"new@example.com"`) {
		t.Errorf("staff are answered %s", got)
	}
}

// Every principal can query viewer. It has the record of a customer; for other roles nothing is
// read.
func TestViewer(t *testing.T) {
	t.Parallel()
	storetest.EachLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newGuardedShop(t, db)
		const query = `{viewer{role permissions customer{name orders{nodes{id}}}}}`
		own := `"permissions":["READ_VIEWER","READ_CATALOG","READ_CUSTOMER","READ_ORDER","READ_CONTACT","PLACE_ORDER","CHANGE_ORDER","CHANGE_CUSTOMER","RESOLVE_ENTITIES"]`
		s.listener.heard()
		if got, want := s.says(t, asAnn, query), `{"viewer":{"role":"CUSTOMER",`+own+`,"customer":{"name":"Ann","orders":{"nodes":[]}}}}`; !strings.Contains(got, want) {
			t.Errorf("ann is answered %s, want %s", got, want)
		}
		s.listener.heard()
		got := s.says(t, asStaff, query)
		if !strings.Contains(got, `{"viewer":{"role":"STAFF","permissions":["READ_VIEWER",`) || !strings.Contains(got, `"customer":null}}`) {
			t.Errorf("staff are answered %s", got)
		}
		if read := s.listener.heard(); read != "" {
			t.Errorf("for staff %s is read", read)
		}
		if got := s.says(t, "", query); !strings.Contains(got, "UNAUTHENTICATED") {
			t.Errorf("nobody is answered %s", got)
		}
	})
}

// A representation that contains a value that is not an entity is refused without the names of entities and keys, to
// callers who may not know of the schema.
func TestMessagesAboutRepresentations(t *testing.T) {
	s := newGuardedShop(t, storetest.Engines()[0].Client(t))
	for representation, told := range map[string]string{
		`{__typename:"Custom",id:"ann"}`:  "Warehouse",
		`{__typename:"Product"}`:          "sku",
		`{__typename:"Product",id:"mug"}`: "sku",
		`{__typename:"Employee"}`:         `\"id\"`,
		`{__typename:"Order",id:true}`:    `\"id\"`,
	} {
		query := `{_entities(representations:[` + representation + `,{__typename:"Customer",id:"ann"}]){... on Customer{name}}}`
		if got := s.says(t, asStaff, query); !strings.Contains(got, told) || !strings.Contains(got, `[null,{"name":`) {
			t.Errorf("%s: staff are told %s, want %s", representation, got, told)
		}
		got := s.says(t, asAnn, query)
		if !strings.Contains(got, `[null,{"name":`) || !strings.Contains(got, `contains a value that is not an entity`) || !strings.Contains(got, errcode.BadUserInput) {
			t.Errorf("%s: ann is told %s", representation, got)
		}
		for _, name := range []string{"Custom", "Employee", "Order", "Product", "Warehouse", "sku", "id"} {
			if strings.Contains(got, `\"`+name+`\"`) || strings.Contains(got, name+",") || strings.Contains(got, name+" and") {
				t.Errorf("%s: ann is told of %s: %s", representation, name, got)
			}
		}
	}
}

// Roles are refused by HTTP as a request with an error, and nothing is read.
func TestRefusedRoles(t *testing.T) {
	s := newGuardedShop(t, storetest.Engines()[0].Client(t))
	for _, c := range []struct{ who, query, code string }{
		{asAnn, `{orders{nodes{id}}}`, errcode.Forbidden},
		{asAnn, `{customerByEmail(email:"ann@example.com"){name}}`, errcode.Forbidden},
		{asAnn, `mutation{createProduct(input:{sku:"x",name:"X",category:"C",unitPrice:{amount:"1"}}){product{sku}}}`, errcode.Forbidden},
		{asAnn, `{__schema{queryType{name}}}`, errcode.Forbidden},
		{asStaff, `mutation{hireEmployee(input:{name:"X",jobTitle:"C",hireDate:"2026-01-01"}){employee{id}}}`, errcode.Forbidden},
		{asStaff, `{_service{sdl}}`, errcode.Forbidden},
		{"role=SERVICE&as=gateway", `mutation{updateCustomer(input:{id:"ann",name:"X"}){customer{id}}}`, errcode.Forbidden},
		{"", `{product(sku:"mug"){name}}`, errcode.Unauthenticated},
	} {
		s.listener.heard()
		got := s.says(t, c.who, c.query)
		if heard := s.listener.heard(); !strings.Contains(got, c.code) || strings.Contains(got, `"data"`) || heard != "" {
			t.Errorf("%s, %s: %s\n%s", c.who, c.query, got, heard)
		}
	}
}
