package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A customer sends two of three pieces back. One of them is put back into stock, and a part of the price is
// refunded. Other customers can neither request nor read returns of the order.
func TestReturns(t *testing.T) {
	_, g := liveWithAuthentication(t)
	staff := g.token(t, authtest.Object{"role": "STAFF", "sub": "sam"})
	service := g.token(t, authtest.Object{"role": "SERVICE", "sub": "shop"})
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	other := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_001", "sub": "olga"})
	want := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("the response is %s, want %s", got, part)
			}
		}
	}
	mutate := func(token, mutation, input string) string {
		t.Helper()
		name, _, _ := strings.Cut(mutation, " ")
		return g.ask(t, token, fmt.Sprintf(`mutation { %s(input: {%s}) { %s userErrors { __typename code message field } } }`, name, input, strings.TrimPrefix(mutation, name)))
	}
	var placed struct {
		Data struct {
			PlaceOrder struct{ Order struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(mutate(service, `placeOrder order { id }`, `customerId: "cust_01", items: [{sku: "prod_100", quantity: 3}]`)), &placed); err != nil {
		t.Fatal(err)
	}
	id := placed.Data.PlaceOrder.Order.ID
	order := fmt.Sprintf("orderId: %q", id)
	request := func(token string, quantity int) string {
		t.Helper()
		return mutate(token, `requestReturn return { id status amount { amount } order { items { nodes { returned } } } }`, fmt.Sprintf(`%s, lines: [{sku: "prod_100", quantity: %d, reason: "broken"}], idempotencyKey: "r%d"`, order, quantity, quantity))
	}

	want(request(customer, 1), `"__typename":"InvalidTransition"`, "only pieces of an order that is SHIPPED or DELIVERED")
	mutate(staff, "confirmOrder", order)
	want(mutate(staff, "shipOrder order { status }", order+`, warehouseId: "wh_sea", withoutAddress: true`), `"status":"SHIPPED"`)
	stock := func() string {
		return g.ask(t, staff, `{ inventoryLevel(sku: "prod_100", warehouseId: "wh_sea") { quantity product { totalInventory available } } }`)
	}
	before := stock()
	want(request(other, 1), `"__typename":"NotFound"`, `"field":["input","orderId"]`)
	want(request(customer, 4), `"code":"INVALID"`, `"field":["input","lines","0","quantity"]`, "only 3 pieces")
	first := request(customer, 2)
	want(first, `"status":"REQUESTED"`)
	if again := request(customer, 2); again != first {
		t.Errorf("the response to the same request is %s, want %s", again, first)
	}
	var requested struct {
		Data struct {
			RequestReturn struct {
				Return struct {
					ID     string
					Amount struct{ Amount string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(first), &requested); err != nil {
		t.Fatal(err)
	}
	r := requested.Data.RequestReturn.Return
	back := fmt.Sprintf("%s, returnId: %q", order, r.ID)
	want(mutate(staff, "requestReturn return { id }", order+`, lines: [{sku: "prod_100", quantity: 2, reason: "late"}]`), "only 1 piece of")
	want(g.ask(t, staff, `{ returns(status: REQUESTED) { nodes { id } } }`), r.ID)

	for _, mutation := range []string{"approveReturn", "rejectReturn", "receiveReturn"} {
		input := back
		switch mutation {
		case "rejectReturn":
			input += `, reason: "used"`
		case "receiveReturn":
			input += `, warehouseId: "wh_sea", lines: []`
		}
		want(mutate(customer, mutation, input), `"code":"FORBIDDEN"`)
	}
	want(mutate(staff, "receiveReturn", back+`, warehouseId: "wh_sea", lines: []`), `"__typename":"InvalidTransition"`, "The return is REQUESTED and cannot become RECEIVED")
	want(mutate(staff, "approveReturn return { status }", back), `"status":"APPROVED"`)
	want(mutate(staff, "approveReturn", back), `"__typename":"InvalidTransition"`)
	want(mutate(staff, "receiveReturn", back+`, warehouseId: "wh_sea", lines: [{sku: "prod_100", restocked: 3}]`), `"field":["input","lines","0","restocked"]`)
	want(mutate(staff, "receiveReturn", back+`, warehouseId: "nowhere", lines: []`), `"__typename":"NotFound"`, `"field":["input","warehouseId"]`)
	want(mutate(staff, "receiveReturn return { status lines { restocked } }", back+`, warehouseId: "wh_sea", lines: [{sku: "prod_100", restocked: 1}]`), `"status":"RECEIVED"`, `"restocked":1`)
	want(mutate(staff, "receiveReturn", back+`, warehouseId: "wh_sea", lines: []`), `"__typename":"InvalidTransition"`)
	want(mutate(staff, "rejectReturn", back+`, reason: "used"`), `"__typename":"InvalidTransition"`)
	if after := stock(); after == before {
		t.Errorf("the stock is still %s", after)
	}
	want(g.ask(t, staff, `{ returns(status: REQUESTED) { nodes { id } } }`), `"nodes":[]`)

	pay := func(token, kind, amount, more string) string {
		t.Helper()
		return mutate(token, "recordPayment payment { returnId order { refunded { amount } } }", fmt.Sprintf(`%s, kind: %s, amount: {amount: %q}, provider: "stripe", reference: "%s %s"%s`, order, kind, amount, kind, amount, more))
	}
	pay(service, "CAPTURE", "100000", "")
	refund := fmt.Sprintf(", returnId: %q", r.ID)
	want(pay(service, "REFUND", "1.50", refund), `"returnId":"`+r.ID+`"`, `"refunded":{"amount":"1.50"}`)
	want(pay(service, "REFUND", r.Amount.Amount, refund), `"field":["input","amount"]`, "only "+r.Amount.Amount+" was paid for its pieces")
	want(pay(service, "REFUND", r.Amount.Amount, refund+`, reason: "sorry"`), `"code":"FORBIDDEN"`)
	want(pay(service, "REFUND", "1.25", `, returnId: "none"`), `"__typename":"NotFound"`)
	want(pay(staff, "REFUND", r.Amount.Amount, refund+`, reason: "sorry"`), `"returnId"`)

	const returns = `returns { nodes { id status lines { sku quantity restocked } refunded { amount } } } items { nodes { returned } }`
	for _, query := range []string{
		fmt.Sprintf(`{ order(id: %q) { %s } }`, id, returns),
		fmt.Sprintf(`{ customer(id: "cust_01") { orders(first: 1) { nodes { %s } } } }`, returns),
		fmt.Sprintf(`{ orderItem(orderId: %q, productId: "prod_100") { returned order { %s } } }`, id, returns),
		fmt.Sprintf(`{ _entities(representations: [{__typename: "Order", id: %q}]) { ... on Order { %s } } }`, id, returns),
	} {
		want(g.ask(t, customer, query), r.ID, `"status":"RECEIVED"`, `"restocked":1`, `"returned":2`)
		if got := g.ask(t, other, query); strings.Contains(got, "RECEIVED") || strings.Contains(got, `"returned":2`) {
			t.Errorf("%s: another customer reads %s", query, got)
		}
	}
	want(g.ask(t, customer, `{ returns(status: RECEIVED) { nodes { id } } }`), `"code":"FORBIDDEN"`)
	want(g.ask(t, customer, fmt.Sprintf(`{ order(id: %q) { returns { nodes { actor } } } }`, id)), `"code":"FORBIDDEN"`)
	want(g.ask(t, customer, fmt.Sprintf(`{ order(id: %q) { payments { nodes { reason } } } }`, id)), `"code":"FORBIDDEN"`)
}

// Returns change only in the order of their statuses.
func TestRefusedReturns(t *testing.T) {
	t.Parallel()
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	pending := mutationInput{"orderId": s.placeWithStatus(t, commerce.Pending), "lines": []mutationInput{{"sku": "mug", "quantity": 1, "reason": "broken"}}}
	s.refuse(t, "requestReturn", pending, "INVALID_TRANSITION input.orderId")
	var requested struct{ ID string }
	sent := pending.with("orderId", s.placeWithStatus(t, commerce.Shipped))
	if err := json.Unmarshal(s.mutate(t, "requestReturn", sent).Value, &requested); err != nil {
		t.Fatal(err)
	}
	reason, house := mutationInput{"reason": "used"}, mutationInput{"warehouseId": "north", "lines": []mutationInput{}}
	for mutation, more := range map[string]mutationInput{"approveReturn": {}, "rejectReturn": reason, "receiveReturn": house} {
		s.refuse(t, mutation, more.with("orderId", sent["orderId"]).with("returnId", "none"), "NOT_FOUND input.returnId")
	}
	back := mutationInput{"orderId": sent["orderId"], "returnId": requested.ID}
	received := house.with("orderId", sent["orderId"]).with("returnId", requested.ID)
	s.refuse(t, "receiveReturn", received, "INVALID_TRANSITION input.returnId")
	s.mutate(t, "approveReturn", back)
	s.refuse(t, "approveReturn", back, "INVALID_TRANSITION input.returnId")
	s.mutate(t, "rejectReturn", back.with("reason", "used"))
	s.refuse(t, "rejectReturn", back.with("reason", "used"), "INVALID_TRANSITION input.returnId")
	s.refuse(t, "receiveReturn", received, "INVALID_TRANSITION input.returnId")
}

// The pieces of a return are not refunded twice: a return with a refund cannot be rejected, and then its pieces
// cannot be in another return.
func TestRefundedReturnsAreNotRejected(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	order := mutationInput{"orderId": s.placeWithStatus(t, commerce.Shipped)}
	payment := order.with("kind", "CAPTURE").with("amount", mutationInput{"amount": "20"}).with("provider", "stripe").with("reference", "1")
	s.mutate(t, "recordPayment", payment)
	pieces := order.with("lines", []mutationInput{{"sku": "plate", "quantity": 1, "reason": "broken"}})
	var back struct{ ID string }
	if err := json.Unmarshal(s.mutate(t, "requestReturn", pieces).Value, &back); err != nil {
		t.Fatal(err)
	}
	s.mutate(t, "approveReturn", order.with("returnId", back.ID))
	s.mutate(t, "recordPayment", payment.with("kind", "REFUND").with("amount", mutationInput{"amount": "1"}).with("reference", "2").with("returnId", back.ID))
	s.refuse(t, "rejectReturn", order.with("returnId", back.ID).with("reason", "used"), "INVALID input.returnId")
	s.refuse(t, "requestReturn", pieces, "INVALID input.lines.0.quantity")
	s.mutate(t, "receiveReturn", order.with("returnId", back.ID).with("warehouseId", "north").with("lines", []mutationInput{}))
	storetest.AssertConsistent(t, s.db, s.table, 1)
}
