package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A service records the events of a payment provider, some of them twice. The customer follows the payments of
// its own order, but can record none, and does not learn who recorded them.
func TestPayments(t *testing.T) {
	l, g := liveWithAuthentication(t)
	service := g.token(t, authtest.Object{"role": "SERVICE", "sub": "shop"})
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	other := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_001", "sub": "olga"})
	id := l.place()
	const order = `paymentState authorized { amount } captured { amount } refunded { amount } outstanding { amount }`
	record := func(token, kind, amount, reference string) string {
		t.Helper()
		got := g.ask(t, token, fmt.Sprintf(`mutation { recordPayment(input: {orderId: %q, kind: %s, amount: {amount: %q}, provider: "stripe", reference: %q}) {
			payment { id order { %s } } userErrors { __typename code message field } } }`, id, kind, amount, reference, order))
		if !json.Valid([]byte(got)) {
			t.Errorf("the response is %s", got)
		}
		return got
	}
	want := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("the response is %s, want %s", got, part)
			}
		}
	}
	var placed struct {
		Data struct {
			Order struct{ Total struct{ Amount string } }
		}
	}
	if err := json.Unmarshal([]byte(g.ask(t, service, fmt.Sprintf(`{ order(id: %q) { total { amount } } }`, id))), &placed); err != nil {
		t.Fatal(err)
	}
	total := placed.Data.Order.Total.Amount
	w := l.as(customer)
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { event { type note } order { paymentState } } }`, id, l.last(id)))
	l.waitForSubscriptions(1)
	list := func(state string) string {
		return g.ask(t, service, fmt.Sprintf(`{ ordersByPaymentState(paymentState: %s) { nodes { id } } }`, state))
	}

	want(record(customer, "CAPTURE", "1", "a"), `"code":"FORBIDDEN"`)
	want(record(service, "CAPTURE", "0", "a"), `"code":"INVALID"`, `"field":["input","amount","amount"]`)
	want(record(service, "CAPTURE", "1", "a#b"), `"code":"INVALID"`, `"field":["input","reference"]`)
	want(record(service, "REFUND", "1", "a"), `"code":"INVALID"`, `"field":["input","amount"]`, "only 0.00 was captured")
	want(list("AUTHORIZED"), `"nodes":[]`)
	first := record(service, "AUTHORIZATION", total, "au_1")
	want(first, `"paymentState":"AUTHORIZED"`, `"outstanding":{"amount":"`+total+`"}`)
	if again := record(service, "AUTHORIZATION", total, "au_1"); again != first {
		t.Errorf("the response to the same payment is %s, want %s", again, first)
	}
	want(list("AUTHORIZED"), string(id))
	want(record(service, "CAPTURE", total, "au_1"), `"__typename":"AlreadyExists"`, `"field":["input","reference"]`)
	want(record(service, "CAPTURE", "0.01", "ca_1"), `"paymentState":"PARTLY_PAID"`)
	want(list("AUTHORIZED"), `"nodes":[]`)
	want(list("PARTLY_PAID"), string(id))
	want(record(service, "CAPTURE", total, "ca_2"), `"paymentState":"PAID"`, `"outstanding":{"amount":"0.00"}`)
	want(list("PARTLY_PAID"), `"nodes":[]`)
	want(record(service, "CHARGEBACK", "0.01", "cb_1"), `"paymentState":"PARTLY_REFUNDED"`, `"refunded":{"amount":"0.01"}`)
	want(g.ask(t, service, fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q}) { order { paymentState } userErrors { code } } }`, id)), `"paymentState":"PARTLY_REFUNDED"`)
	want(record(service, "REFUND", total, "re_1"), `"paymentState":"REFUNDED"`)

	const payments = `payments(first: 2) { nodes { kind amount { amount } provider reference } pageInfo { hasNextPage } }`
	for _, query := range []string{
		fmt.Sprintf(`{ order(id: %q) { %s } }`, id, payments),
		fmt.Sprintf(`{ customer(id: "cust_01") { orders(first: 1) { nodes { %s } } } }`, payments),
		fmt.Sprintf(`{ _entities(representations: [{__typename: "Order", id: %q}]) { ... on Order { %s } } }`, id, payments),
	} {
		want(g.ask(t, customer, query), `{"kind":"AUTHORIZATION","amount":{"amount":"`+total+`"},"provider":"stripe","reference":"au_1"}`, `"hasNextPage":true`)
		if got := g.ask(t, other, query); strings.Contains(got, "stripe") {
			t.Errorf("%s: another customer reads %s", query, got)
		}
	}
	want(g.ask(t, customer, fmt.Sprintf(`{ order(id: %q) { payments { nodes { actor } } } }`, id)), `"code":"FORBIDDEN"`)
	want(g.ask(t, customer, `{ ordersByPaymentState(paymentState: PARTLY_PAID) { nodes { id } } }`), `"code":"FORBIDDEN"`)
	for _, event := range []string{"AUTHORIZATION: " + total, "CAPTURE: 0.01", "CAPTURE: " + total, "CHARGEBACK: 0.01"} {
		want(string(w.receive().Payload), `{"type":"PAYMENT_RECORDED","note":"`+event+` USD"}`)
	}
}

// A reference of a provider names one payment.
func TestReferencesOfPayments(t *testing.T) {
	t.Parallel()
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	payment := mutationInput{"orderId": s.place(t, "ann", "mug"), "kind": "CAPTURE", "amount": mutationInput{"amount": "1"}, "provider": "bank", "reference": "7"}
	s.mutate(t, "recordPayment", payment)
	s.refuse(t, "recordPayment", payment.with("amount", mutationInput{"amount": "2"}), "ALREADY_EXISTS input.reference")
	s.refuse(t, "recordPayment", payment.with("orderId", s.place(t, "bob", "mug")), "ALREADY_EXISTS input.reference")
	s.mutate(t, "recordPayment", payment.with("provider", "card"))
}
