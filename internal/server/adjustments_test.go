package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A customer cannot set or change a discount, and cannot keep the discount of an order whose line items
// the customer removes. Services, staff and admins set adjustments, which the customer reads.
func TestCustomersCannotSetAdjustments(t *testing.T) {
	l, g := liveWithAuthentication(t)
	customer := g.token(t, authtest.Object{"role": "CUSTOMER", "customer_id": "cust_01", "sub": "cora"})
	const discount = `adjustments: [{kind: DISCOUNT, label: "Mine", amount: "-1"}]`
	place := func(token, more string) string {
		return g.ask(t, token, `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 2}, {sku: "prod_101", quantity: 1}], `+more+`}) { order { id subtotal { amount } total { amount } } userErrors { code field } } }`)
	}
	own := l.place()
	for _, operation := range []string{
		`{ quote(input: {items: [{sku: "prod_100", quantity: 1}], ` + discount + `}) { total { amount } } }`,
		fmt.Sprintf(`mutation { setAdjustments(input: {orderId: %q, %s}) { userErrors { code } } }`, own, discount),
		fmt.Sprintf(`mutation { setAdjustments(input: {orderId: %q, adjustments: []}) { userErrors { code } } }`, own),
		fmt.Sprintf(`mutation { updateOrder(input: {orderId: %q, %s}) { userErrors { code } } }`, own, discount),
	} {
		if got := g.ask(t, customer, operation); strings.Contains(got, `"data"`) || !strings.Contains(got, "FORBIDDEN") && !strings.Contains(got, "BAD_USER_INPUT") {
			t.Errorf("%s returns %s", operation, got)
		}
	}
	if got := place(customer, discount); !strings.Contains(got, "FORBIDDEN") {
		t.Errorf("a customer who sets a discount gets %s", got)
	}
	for _, role := range []string{"SERVICE", "STAFF", "ADMIN"} {
		if got := place(g.token(t, authtest.Object{"role": role, "sub": "sid"}), discount); !strings.Contains(got, `"userErrors":[]`) {
			t.Errorf("%s: %s", role, got)
		}
	}

	id := strings.Split(place(g.token(t, authtest.Object{"role": "SERVICE", "sub": "shop"}), `adjustments: [{kind: SHIPPING, label: "Post", amount: "5"}, {kind: DISCOUNT, label: "Sale", amount: "-20"}]`), `"`)[9]
	if got := g.ask(t, customer, fmt.Sprintf(`{ order(id: %q) { adjustments { kind amount { amount } } } }`, id)); !strings.Contains(got, `[{"kind":"SHIPPING","amount":{"amount":"5.00"}},{"kind":"DISCOUNT","amount":{"amount":"-20.00"}}]`) {
		t.Errorf("the customer reads %s", got)
	}
	for _, mutation := range []string{"setOrderItem(input: {quantity: 1", "removeOrderItem(input: {"} {
		got := g.ask(t, customer, fmt.Sprintf(`mutation { %s, orderId: %q, sku: "prod_100"}) { userErrors { code message field } } }`, mutation, id))
		if !strings.Contains(got, `"code":"INVALID"`) || !strings.Contains(got, "ask the shop") {
			t.Errorf("the customer's %s returns %s", mutation, got)
		}
	}
	if got := g.ask(t, customer, fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q}) { order { status } } }`, id)); !strings.Contains(got, "CANCELLED") {
		t.Errorf("the customer's cancellation returns %s", got)
	}
}

// The total follows line items and adjustments through all changes, and is never negative.
func TestAdjustmentsChangeTheTotal(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		adjustment := func(kind, amount, line string) mutationInput {
			a := mutationInput{"kind": kind, "label": "L", "amount": amount}
			if line != "" {
				a["line"] = line
			}
			return a
		}
		adjustments := []mutationInput{adjustment("SHIPPING", "4.9", ""), adjustment("DISCOUNT", "-2", "plate"), adjustment("TAX", "3", "").with("included", true)}
		input := mutationInput{"customerId": "ann", "items": lines("mug", "plate"), "adjustments": adjustments}
		const money = `id version subtotal { amount } total { amount } adjustments { kind line }`
		want := func(got outcome, subtotal, total string, kinds ...string) {
			t.Helper()
			parts := []string{`"subtotal":{"amount":"` + subtotal + `"}`, `"total":{"amount":"` + total + `"}`}
			for _, kind := range kinds {
				parts = append(parts, `{"kind":"`+kind+`"`)
			}
			for _, part := range parts {
				if !strings.Contains(string(got.Value), part) || strings.Count(string(got.Value), `"kind"`) != len(kinds) {
					t.Errorf("the order is %s, want %s", got.Value, part)
				}
			}
		}
		spent := func(amount string) {
			t.Helper()
			if got := fmt.Sprint(s.spending(t, "ann")); !strings.Contains(got, amount) {
				t.Errorf("the customer has spent %s, want %s", got, amount)
			}
		}
		s.refuse(t, "placeOrder", input.with("expectedTotal", mutationInput{"amount": "19.50"}), "PRICE_CHANGED input.expectedTotal")
		s.refuse(t, "placeOrder", input.with("adjustments", []mutationInput{adjustment("DISCOUNT", "-19.51", "")}), "INVALID input.adjustments")
		s.refuse(t, "placeOrder", input.with("adjustments", []mutationInput{adjustment("FEE", "1", "yen"), adjustment("FEE", "1.234", "")}), "INVALID input.adjustments.0.line", "INVALID input.adjustments.1.amount")
		s.refuse(t, "placeOrder", mutationInput{"customerId": "ann", "items": lines("yen"), "adjustments": []mutationInput{adjustment("FEE", "1.5", "")}}, "INVALID input.adjustments.0.amount")
		placed := s.mutate(t, "placeOrder", input.with("expectedTotal", mutationInput{"amount": "22.40"}), money)
		want(placed, "19.50", "22.40", "SHIPPING", "DISCOUNT", "TAX")
		spent("22.40")
		var order struct{ ID string }
		if err := json.Unmarshal(placed.Value, &order); err != nil {
			t.Fatal(err)
		}

		byID := mutationInput{"orderId": order.ID}
		want(s.mutate(t, "setOrderItem", byID.with("sku", "mug").with("quantity", 3), money), "34.50", "37.40", "SHIPPING", "DISCOUNT", "TAX")
		want(s.mutate(t, "removeOrderItem", byID.with("sku", "plate"), money), "22.50", "27.40", "SHIPPING", "TAX")
		spent("27.40")
		s.refuse(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("DISCOUNT", "-1", "plate")}), "INVALID input.adjustments.0.line")
		s.refuse(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("DISCOUNT", "-22.51", "")}), "INVALID input.adjustments")
		want(s.mutate(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("DISCOUNT", "-22.50", "mug")}), money), "22.50", "0.00", "DISCOUNT")
		spent("0.00")
		s.refuse(t, "setOrderItem", byID.with("sku", "mug").with("quantity", 2), "INVALID input.quantity")
		want(s.mutate(t, "setAdjustments", byID.with("adjustments", []mutationInput{}), money), "22.50", "22.50")
		spent("22.50")

		// The line items of a large order are not in its record.
		large := s.place(t, "ann", skus(commerce.MaxLines)...)
		byID = mutationInput{"orderId": large}
		want(s.mutate(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("FEE", "1", skus(40)[39])}), money), "45.00", "46.00", "FEE")
		s.refuse(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("FEE", "1", "mug")}), "INVALID input.adjustments.0.line")
		want(s.mutate(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("FEE", "2", "")}), money), "45.00", "47.00", "FEE")
		want(s.mutate(t, "removeOrderItem", byID.with("sku", skus(1)[0]), money), "44.00", "46.00", "FEE")
		storetest.AssertConsistent(t, db, s.table, 1)

		// Other software has written more line items than a mutation reads.
		f := externalWriter{db: db, table: s.table}
		header := map[string]string{"orderId": "01HVNR4Q3R0000000000000002", "customerId": "ann", "status": "pending", "total": "101", "createdAt": "2024-04-17T10:02:52.920Z"}
		f.put(t, header, storetest.ItemKey("ORDER#"+header["orderId"], "#METADATA"))
		f.put(t, header, storetest.ItemKey("CUSTOMER#ann", "ORDER#"+header["orderId"]))
		for i := range 101 {
			sku := fmt.Sprintf("s%03d", i)
			f.put(t, map[string]string{"pk": "ORDER#" + header["orderId"], "sk": "ITEM#" + sku, "productId": sku, "name": sku, "qty": "1", "price": "1"})
		}
		byID = mutationInput{"orderId": header["orderId"]}
		s.refuse(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("FEE", "1", "s000")}), "TOO_MANY_LINES input.orderId")
		s.refuse(t, "requestReturn", byID.with("lines", []mutationInput{{"sku": "s000", "quantity": 1, "reason": "broken"}}), "TOO_MANY_LINES input.orderId")
		want(s.mutate(t, "setAdjustments", byID.with("adjustments", []mutationInput{adjustment("FEE", "1", "")}), money), "101.00", "102.00", "FEE")
	})
}
