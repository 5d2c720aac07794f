package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// A customer can neither place an order as a guest, nor claim or read orders of a guest, even with the guest's
// address in the input. A service places and claims them. Then the customer reads the order, the notes to
// the guest, and changes it.
func TestCustomersAndGuestOrders(t *testing.T) {
	_, g := liveWithAuthentication(t)
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	service := g.token(t, authtest.Object{"role": "SERVICE", "sub": "shop"})
	address := strings.Split(g.ask(t, customer, `{ viewer { customer { email } } }`), `"`)[9]
	guest := fmt.Sprintf(`guest: {email: %q}, items: [{sku: "prod_100", quantity: 1}]`, strings.ToUpper(address))
	const claim = `mutation { claimOrders(input: {customerId: "cust_01"}) { order { id customer { id } } userErrors { code field } } }`
	const payload = `{ order { id } userErrors { code field } }`
	got := g.ask(t, service, `mutation { placeOrder(input: {`+guest+`}) `+payload+` }`)
	if !strings.Contains(got, `"userErrors":[]`) {
		t.Fatalf("the service gets %s", got)
	}
	id := strings.Split(got, `"`)[9]
	g.ask(t, service, fmt.Sprintf(`mutation { addOrderNote(input: {orderId: %q, note: "Coming soon", visibility: CUSTOMER}) { userErrors { code } } }`, id))
	g.ask(t, service, fmt.Sprintf(`mutation { addOrderNote(input: {orderId: %q, note: "fraud score"}) { userErrors { code } } }`, id))
	read := fmt.Sprintf(`{ order(id: %q) { customer { id } timeline { nodes { type note } } } }`, id)
	for operation, want := range map[string]string{
		`mutation { placeOrder(input: {` + guest + `}) ` + payload + ` }`:                            "FORBIDDEN",
		`mutation { placeOrder(input: {customerId: "cust_01", ` + guest + `}) ` + payload + ` }`:     "FORBIDDEN",
		`mutation($i: PlaceOrderInput! = {` + guest + `}) { placeOrder(input: $i) ` + payload + ` }`: "FORBIDDEN",
		claim: "FORBIDDEN",
		read:  `"order":null`,
		fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q}) %s }`, id, payload):                                            "NOT_FOUND",
		fmt.Sprintf(`{ _entities(representations: [{__typename: "Order", id: %q}]) { ... on Order { total { amount } } } }`, id): `[null]`,
		`{ viewer { customer { orders(first: 100) { nodes { contact { email } } } } } }`:                                         `"contact":null`,
	} {
		if got := g.ask(t, customer, operation); !strings.Contains(got, want) || strings.Contains(got, strings.ToUpper(address)) {
			t.Errorf("%s returns %s, want %s", operation, got, want)
		}
	}
	if got := g.ask(t, service, claim); !strings.Contains(got, id) || !strings.Contains(got, `"customer":{"id":"cust_01"}`) {
		t.Errorf("the claim returns %s", got)
	}
	if got := g.ask(t, service, claim); !strings.Contains(got, `"order":null,"userErrors":[{"code":"NOT_FOUND"`) {
		t.Errorf("the second claim returns %s", got)
	}
	got = g.ask(t, customer, read)
	if !strings.Contains(got, `{"type":"NOTE_ADDED","note":"Coming soon"}`) || !strings.Contains(got, `{"type":"CLAIMED","note":null}`) || strings.Contains(got, "fraud") {
		t.Errorf("the customer reads %s", got)
	}
	if got := g.ask(t, customer, fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q}) { order { status } } }`, id)); !strings.Contains(got, "CANCELLED") {
		t.Errorf("the customer's cancellation returns %s", got)
	}
}
