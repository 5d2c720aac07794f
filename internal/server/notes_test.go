package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// ask returns the response to a GraphQL operation of the caller with this token.
func (g *authenticatedServer) ask(t testing.TB, token, query string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+server.PathGraphQL, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Body.String()
}

// Staff, admins and services add notes to two orders of a customer, and the customer adds a note.
// With none of its operations does the customer read a note that it did not write.
func TestCustomersReadOnlyTheirOwnNotes(t *testing.T) {
	l, g := liveWithAuthentication(t)
	as := func(role string) string { return g.token(t, authtest.Object{"role": role, "sub": role}) }
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	mutate := func(token, mutation, input string) string {
		t.Helper()
		got := g.ask(t, token, fmt.Sprintf(`mutation { %s(input: {%s}) { order { status timeline { nodes { type note } edges { node { note } } } } userErrors { code message field } } }`, mutation, input))
		if !strings.Contains(got, `"userErrors":[]`) {
			t.Fatalf("%s: %s", mutation, got)
		}
		return got
	}
	wantOwn := func(what, got string) {
		t.Helper()
		if strings.Contains(got, "SECRET") || strings.Contains(got, "errors\":[{") {
			t.Errorf("%s: the customer reads %s", what, got)
		}
	}
	first, second, third := l.place(), l.place(), l.place()
	before := l.last(third)
	const fields = `{ event { type note } order { timeline(first: 100) { nodes { note } edges { node { note } } } } }`
	w := l.as(customer)
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) %s }`, first, l.last(first), fields))
	w.subscribe("b", fmt.Sprintf(`subscription { customerOrders(customerId: "cust_01", after: %q) %s }`, before, fields))
	l.waitForSubscriptions(2)

	mutate(as("STAFF"), "confirmOrder", fmt.Sprintf(`orderId: %q, note: "SECRET 1"`, first))
	mutate(as("ADMIN"), "shipOrder", fmt.Sprintf(`orderId: %q, warehouseId: "wh_pdx", withoutAddress: true, note: "SECRET 2"`, first))
	mutate(as("SERVICE"), "deliverOrder", fmt.Sprintf(`orderId: %q, note: "SECRET 3"`, first))
	mutate(as("STAFF"), "confirmOrder", fmt.Sprintf(`orderId: %q, note: "SECRET 4"`, second))
	cancel := fmt.Sprintf(`orderId: %q, note: "my own note", idempotencyKey: "k"`, second)
	for _, attempt := range []string{"the mutation", "its repetition"} {
		got := mutate(customer, "cancelOrder", cancel)
		wantOwn(attempt, got)
		if !strings.Contains(got, `{"type":"CANCELLED","note":"my own note"}`) {
			t.Errorf("%s: the customer reads %s, want the own note", attempt, got)
		}
	}
	mutate(as("STAFF"), "cancelOrder", fmt.Sprintf(`orderId: %q, note: "SECRET 5"`, third))
	// Older versions store no author. The actor's name is no proof, because several issuers can use it.
	old := l.place()
	if _, err := l.store.ChangeOrderStatus(t.Context(), change.Caller{Name: "cora"}, commerce.OrderStatusChange{OrderID: old, To: commerce.Confirmed, Note: "SECRET 6"}); err != nil {
		t.Fatal(err)
	}
	edited := l.place()
	mutate(as("STAFF"), "setOrderItem", fmt.Sprintf(`orderId: %q, sku: "prod_100", quantity: 2`, edited))

	// The order first has 3 more events. Of the customer's orders, the same 3, and 7 of the others.
	for range 3 + 10 {
		got := w.receive()
		wantOwn("a subscription", string(got.Payload))
		if got.Type != "next" || !strings.Contains(string(got.Payload), `"event":{"type":`) {
			t.Errorf("the subscription receives %s %s", got.Type, got.Payload)
		}
	}
	resumed := l.as(customer)
	resumed.subscribe("a", fmt.Sprintf(`subscription { customerOrders(customerId: "cust_01", after: %q) %s }`, before, fields))
	for range 10 {
		wantOwn("a resumed subscription", string(resumed.want("next", "a").Payload))
	}

	const timeline = `timeline { nodes { type note } edges { node { note } } }`
	for _, query := range []string{
		fmt.Sprintf(`{ order(id: %q) { %s } }`, first, timeline),
		fmt.Sprintf(`{ order(id: %q) { id timeline(last: 2) { nodes { ... on OrderEvent { n: note } } } } }`, first),
		fmt.Sprintf(`{ ordersById(ids: [%q, %q]) { %s } }`, first, old, timeline),
		fmt.Sprintf(`{ orderItem(orderId: %q, productId: "prod_100") { order { %s } } }`, first, timeline),
		fmt.Sprintf(`{ customer(id: "cust_01") { order(id: %q) { %s } orders { nodes { %s } } } }`, first, timeline, timeline),
		fmt.Sprintf(`{ viewer { customer { orders(first: 5) { nodes { items(first: 1) { nodes { order { %s } } } } } } } }`, timeline),
		fmt.Sprintf(`{ _entities(representations: [{__typename: "Order", id: %q}, {__typename: "Customer", id: "cust_01"}]) { ... on Order { %s } ... on Customer { orders { nodes { %s } } } } }`, first, timeline, timeline),
	} {
		got := g.ask(t, customer, query)
		wantOwn(query, got)
		if !strings.Contains(got, `note":null`) && !strings.Contains(got, `"n":null`) {
			t.Errorf("%s: the customer reads %s, want notes that are null", query, got)
		}
		// Staff read these notes.
		if got := g.ask(t, as("STAFF"), query); strings.Contains(query, "viewer") != !strings.Contains(got, "SECRET 3") {
			t.Errorf("%s: staff read %s", query, got)
		}
	}
	if got := g.ask(t, as("SERVICE"), fmt.Sprintf(`{ order(id: %q) { %s } }`, second, timeline)); !strings.Contains(got, "my own note") || !strings.Contains(got, "SECRET 4") {
		t.Errorf("a service reads %s, want all notes", got)
	}
	if got := g.ask(t, customer, fmt.Sprintf(`{ order(id: %q) { %s } }`, edited, timeline)); !strings.Contains(got, "prod_100: 2, before: 1") {
		t.Errorf("the customer reads %s, want the note of the server", got)
	}
}

// A customer adds a note to an order that other software then moves to another customer. The other
// customer cannot read the note.
func TestTheNoteOfAFormerCustomerIsHidden(t *testing.T) {
	g := newMovedOrders(t)
	id := g.place()
	got := g.guarded.ask(t, g.guarded.token(t, customerClaims("cust_01")), fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q, note: "PRIVATE"}) { order { timeline { nodes { note } } } } }`, id))
	if !strings.Contains(got, "PRIVATE") {
		t.Errorf("the customer reads %s, want the own note", got)
	}
	g.move(id, "cust_01", "cust_001", false)
	got = g.guarded.ask(t, g.guarded.token(t, customerClaims("cust_001")), fmt.Sprintf(`{ order(id: %q) { timeline { nodes { type note } } } }`, id))
	if strings.Contains(got, "PRIVATE") || !strings.Contains(got, `{"type":"CANCELLED","note":null}`) {
		t.Errorf("the other customer reads %s, want no note", got)
	}
}

// Staff add notes for themselves and for the customer, who reads only the latter. The customer adds a note,
// too.
func TestNotesThatStaffAddToAnOrder(t *testing.T) {
	l, g := liveWithAuthentication(t)
	staff := g.token(t, authtest.Object{"role": "STAFF", "sub": "sid"})
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	other := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_001", "sub": "olga"})
	id := l.place()
	const nodes = `timeline { nodes { type note noteVisibility } }`
	add := func(token, input string) string {
		t.Helper()
		return g.ask(t, token, fmt.Sprintf(`mutation { addOrderNote(input: {orderId: %q, %s}) { order { %s } userErrors { code field } } }`, id, input, nodes))
	}
	w := l.as(customer)
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { event { type note noteVisibility } order { %s } } }`, id, l.last(id), nodes))
	w.subscribe("b", fmt.Sprintf(`subscription { customerOrders(customerId: "cust_01", after: %q) { event { type note noteVisibility } order { %s } } }`, l.last(id), nodes))
	l.waitForSubscriptions(2)

	const event = `{"type":"NOTE_ADDED","note":%s,"noteVisibility":%s}`
	hidden, shown, own := fmt.Sprintf(event, "null", "null"), fmt.Sprintf(event, `"for you"`, `"CUSTOMER"`), fmt.Sprintf(event, `"my own"`, `"CUSTOMER"`)
	for _, input := range []string{`note: "SECRET 1", idempotencyKey: "k"`, `note: "SECRET 1", idempotencyKey: "k"`, `note: "SECRET 2", visibility: STAFF`} {
		if got := add(staff, input); !strings.Contains(got, fmt.Sprintf(event, `"SECRET 1"`, `"STAFF"`)) || !strings.Contains(got, `"userErrors":[]`) {
			t.Errorf("%s: staff read %s", input, got)
		}
	}
	if got := add(staff, `note: "for you", visibility: CUSTOMER`); !strings.Contains(got, shown) {
		t.Errorf("staff read %s, want %s", got, shown)
	}
	if got := add(customer, `note: "my own", visibility: STAFF`); !strings.Contains(got, `{"code":"INVALID","field":["input","visibility"]}`) {
		t.Errorf("a customer's note for staff only: %s", got)
	}
	if got := add(other, `note: "not mine"`); !strings.Contains(got, `{"code":"NOT_FOUND","field":["input","orderId"]}`) {
		t.Errorf("a note on another customer's order: %s", got)
	}
	want := strings.Join([]string{hidden, hidden, shown, own}, ",") + "]"
	if got := add(customer, `note: "my own"`); !strings.Contains(got, want) {
		t.Errorf("the payload contains %s, want %s", got, want)
	}
	for range 2 * 4 {
		got := string(w.receive().Payload)
		if strings.Contains(got, "SECRET") || !strings.Contains(got, `"event":{"type":"NOTE_ADDED"`) || !strings.Contains(got, hidden) {
			t.Errorf("a subscription receives %s", got)
		}
	}
	for _, query := range []string{
		fmt.Sprintf(`{ order(id: %q) { %s } }`, id, nodes),
		fmt.Sprintf(`{ customer(id: "cust_01") { orders { nodes { %s } } } }`, nodes),
		fmt.Sprintf(`{ _entities(representations: [{__typename: "Order", id: %q}]) { ... on Order { %s } } }`, id, nodes),
	} {
		if got := g.ask(t, customer, query); !strings.Contains(got, want) || strings.Contains(got, "SECRET") {
			t.Errorf("%s: the customer reads %s, want %s", query, got, want)
		}
		if got := g.ask(t, staff, query); !strings.Contains(got, "SECRET 1") || !strings.Contains(got, "SECRET 2") || !strings.Contains(got, own) {
			t.Errorf("%s: staff read %s", query, got)
		}
	}
}
