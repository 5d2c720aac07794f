package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// Staff put an order on hold. Then it cannot be shipped, and its customer cannot cancel it, until
// staff release it. The customer sees that the order is on hold, but not why.
func TestOrdersOnHold(t *testing.T) {
	l, g := liveWithAuthentication(t)
	staff := g.token(t, authtest.Object{"role": "STAFF", "sub": "sid"})
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	const order = `version status availableTransitions`
	mutate := func(token, mutation, input string) string {
		t.Helper()
		return g.ask(t, token, fmt.Sprintf(`mutation { m: %s(input: {%s}) { order { %s } userErrors { code message field ... on InvalidTransition { from to allowed } } } }`, mutation, input, order))
	}
	want := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("the response is %s, want %s", got, part)
			}
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("the response is %s", got)
		}
	}
	held := func(token string, id commerce.OrderID) string {
		return g.ask(t, token, fmt.Sprintf(`{ order(id: %q) { hold { since } %s timeline { nodes { type note } } } }`, id, order))
	}
	id := l.place()
	byID := fmt.Sprintf("orderId: %q", id)
	ship := byID + `, warehouseId: "wh_pdx", withoutAddress: true`
	hold := byID + `, reason: "SECRET score"`
	w := l.as(customer)
	w.subscribe("a", fmt.Sprintf(`subscription { orderUpdated(id: %q, after: %q) { event { type note } order { hold { since } } } }`, id, l.last(id)))
	l.waitForSubscriptions(1)

	want(mutate(customer, "holdOrder", hold), `"code":"FORBIDDEN"`)
	want(mutate(customer, "releaseOrder", byID), `"code":"FORBIDDEN"`)
	want(mutate(staff, "holdOrder", hold), `"version":2`, `"userErrors":[]`)
	want(mutate(staff, "holdOrder", hold), `"version":2`, `"userErrors":[]`) // no change
	want(mutate(customer, "cancelOrder", byID), `"code":"INVALID_TRANSITION"`, `"from":"PENDING","to":"CANCELLED","allowed":["CONFIRMED"]`, "on hold")
	want(mutate(staff, "confirmOrder", byID), `"version":3`, `"availableTransitions":["CANCELLED"]`)
	want(mutate(customer, "cancelOrder", byID), `"from":"CONFIRMED","to":"CANCELLED","allowed":[]`)
	want(mutate(staff, "shipOrder", ship), `"code":"INVALID_TRANSITION"`, `"from":"CONFIRMED","to":"SHIPPED","allowed":["CANCELLED"]`, `"field":["input","orderId"]`)
	if got := held(customer, id); strings.Contains(got, "SECRET") || !strings.Contains(got, `{"type":"HELD","note":null}`) || strings.Contains(got, `"hold":null`) {
		t.Errorf("the customer reads %s", got)
	}
	want(held(staff, id), "SECRET score")
	for _, query := range []string{
		fmt.Sprintf(`{ order(id: %q) { hold { reason } } }`, id),
		`{ customer(id: "cust_01") { orders { nodes { hold { reason } } } } }`,
		fmt.Sprintf(`{ _entities(representations: [{__typename: "Order", id: %q}]) { ... on Order { hold { reason } } } }`, id),
		fmt.Sprintf(`mutation { addOrderNote(input: {%s, note: "n"}) { order { hold { reason } } } }`, byID),
	} {
		if got := g.ask(t, customer, query); strings.Contains(got, "SECRET") || !strings.Contains(got, `"code":"FORBIDDEN"`) {
			t.Errorf("%s: the customer reads %s", query, got)
		}
		if got := g.ask(t, staff, query); !strings.Contains(got, `"hold":{"reason":"SECRET score"}`) {
			t.Errorf("%s: staff read %s", query, got)
		}
	}
	want(mutate(staff, "holdOrder", byID+`, reason: "SECRET address"`), `"version":5`)
	want(mutate(staff, "releaseOrder", byID+`, note: "SECRET checked"`), `"version":6`, `"availableTransitions":["SHIPPED","CANCELLED"]`)
	want(mutate(staff, "releaseOrder", byID), `"version":6`, `"userErrors":[]`) // no change
	want(held(customer, id), `"hold":null`)
	want(mutate(staff, "shipOrder", ship), `"version":7`, `"userErrors":[]`)
	want(mutate(staff, "holdOrder", hold), `"from":"SHIPPED","to":"SHIPPED","allowed":["DELIVERED"]`)
	for _, event := range []string{"HELD", "CONFIRMED", "NOTE_ADDED", "HELD", "RELEASED", "SHIPPED"} {
		if got := string(w.receive().Payload); !strings.Contains(got, `"event":{"type":"`+event+`"`) || strings.Contains(got, "SECRET") {
			t.Errorf("the subscription receives %s, want %s", got, event)
		}
	}

	// Staff can cancel an order on hold, which ends the hold.
	cancelled := l.place()
	want(mutate(staff, "holdOrder", fmt.Sprintf(`orderId: %q, reason: "r"`, cancelled)), `"userErrors":[]`)
	want(mutate(staff, "cancelOrder", fmt.Sprintf(`orderId: %q`, cancelled)), `"status":"CANCELLED"`)
	want(held(staff, cancelled), `"hold":null`)
}
