package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// writeCost is a mutation and a variant of it, whose cost is measured.
type writeCost struct {
	mutation, variant string
	// usual reports whether the docs show the variant.
	usual bool
	input func(s *fixture, t testing.TB) mutationInput
	// lines is the number of line items whose records the mutation writes.
	lines int
	// sales reports whether the table has the sales by day, and waiting whether it lists orders to
	// ship.
	sales, waiting bool
	// lowStock is the reorder point of all products in a table with the list of low stock. If it is
	// 0, the table lacks the list.
	lowStock int
	// writesNothing reports that the mutation writes nothing.
	writesNothing bool
}

// unpreparedInput returns an input that needs no preparation.
func unpreparedInput(input mutationInput) func(*fixture, testing.TB) mutationInput {
	return func(*fixture, testing.TB) mutationInput { return input }
}

// preparedInput returns an input for an order with the given number of lines. The mutations in
// before have changed the order's status.
func preparedInput(lines int, more mutationInput, before ...string) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		id := s.place(t, "ann", skus(lines)...)
		for _, mutation := range before {
			s.mutate(t, mutation, moveInput(mutation, id))
		}
		input := mutationInput{"orderId": id}
		for name, v := range more {
			input[name] = v
		}
		return input
	}
}

// externalInput returns an input for an external order of commerce.MaxLines embedded lines.
func externalInput(more mutationInput, before ...string) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		input := preparedInput(commerce.MaxLines, more, before...)(s, t)
		var items []attribute
		for _, sku := range skus(commerce.MaxLines) {
			items = append(items, item(sku, 1))
		}
		s.change(t, fmt.Sprintf("ORDER#%s", input["orderId"]), "#METADATA", map[string]attribute{"items": itemsOf(items...)})
		return input
	}
}

// changesListed returns an input for a table with the list of all changes.
func changesListed(input mutationInput) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		s.listChanges(t)
		return input
	}
}

// webhookInput returns an input for a new webhook.
func webhookInput(more mutationInput) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		input := s.addWebhook(t)
		maps.Copy(input, more)
		return input
	}
}

// erasing returns an input for a deleted customer with one order that is not erased yet. The
// mutations in before have changed the order.
func erasing(lines, notes int, before ...string) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		s.mutate(t, "createCustomer", mutationInput{"id": "eve", "name": "Eve", "email": "eve@example.com"})
		id := s.place(t, "eve", skus(lines)...)
		for range notes {
			s.mutate(t, "addOrderNote", mutationInput{"orderId": id, "note": "Gift"})
		}
		for _, mutation := range before {
			s.mutate(t, mutation, moveInput(mutation, id))
		}
		s.mutate(t, "eraseCustomer", mutationInput{"customerId": "eve"})
		return mutationInput{"customerId": "eve"}
	}
}

// guestOrder returns an order of the guest with Ann's address.
func guestOrder(n int) mutationInput {
	return mutationInput{"guest": mutationInput{"email": "Ann@example.com"}, "items": lines(skus(n)...)}
}

// claiming returns an input for the only order of the guest with Ann's address, or for the first of
// two orders. The mutations in before have changed the order.
func claiming(orders, lines int, before ...string) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		id := s.placeWith(t, guestOrder(lines))
		for _, mutation := range before {
			s.mutate(t, mutation, moveInput(mutation, id))
		}
		if orders > 1 {
			s.placeWith(t, guestOrder(1))
		}
		return mutationInput{"customerId": "ann"}
	}
}

// returnInput returns an input for a requested return of one piece of each line of an order.
func returnInput(lines int, more mutationInput, outstanding bool, before ...string) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		steps := []string{"confirmOrder", "shipOrder"}
		if outstanding {
			steps = append(steps, "recordPayment")
		}
		input := preparedInput(lines, nil, steps...)(s, t)
		var requested struct{ ID string }
		if err := json.Unmarshal(s.mutate(t, "requestReturn", sendBack(lines).with("orderId", input["orderId"])).Value, &requested); err != nil {
			t.Fatal(err)
		}
		input["returnId"] = requested.ID
		for _, mutation := range before {
			s.mutate(t, mutation, input)
		}
		maps.Copy(input, more)
		return input
	}
}

// tags returns the maximum number of tags of an order.
func tags(prefix string) (all []string) {
	for i := range commerce.MaxTags {
		all = append(all, fmt.Sprintf("%s%02d", prefix, i))
	}
	return all
}

// sendBack returns the lines of a return with one piece of each of the first products.
func sendBack(lines int) mutationInput {
	var all []mutationInput
	for _, sku := range skus(lines) {
		all = append(all, mutationInput{"sku": sku, "quantity": 1, "reason": "broken"})
	}
	return mutationInput{"lines": all}
}

// restock returns the lines of a received return, which puts one piece of each of the first
// products into stock.
func restock(lines int) mutationInput {
	all := []mutationInput{}
	for _, sku := range skus(lines) {
		all = append(all, mutationInput{"sku": sku, "restocked": 1})
	}
	return mutationInput{"warehouseId": "north", "lines": all}
}

// fulfilledInput returns an input for the fulfillment of an order with this number of pieces. The
// fulfillment contains one piece of each product, but not the last piece, unless the order has only
// one.
func fulfilledInput(pieces int, more mutationInput, before ...string) func(*fixture, testing.TB) mutationInput {
	return func(s *fixture, t testing.TB) mutationInput {
		products := skus(min(pieces, commerce.MaxLines))
		input := preparedInput(len(products), mutationInput{})(s, t)
		parcel := mutationInput{"orderId": input["orderId"], "warehouseId": "north", "withoutAddress": true}
		if pieces > 1 {
			s.mutate(t, "setOrderItem", mutationInput{"orderId": input["orderId"], "sku": products[0], "quantity": 1 + pieces - len(products)})
			var parts []mutationInput
			for _, sku := range products[:min(len(products), pieces-1)] {
				parts = append(parts, mutationInput{"sku": sku, "quantity": 1})
			}
			parcel["lines"] = parts
		}
		for _, mutation := range append(before, "confirmOrder") {
			s.mutate(t, mutation, moveInput(mutation, fmt.Sprint(input["orderId"])))
		}
		id := s.fulfil(t, parcel)
		maps.Copy(input, more)
		return input.with("fulfillmentId", id)
	}
}

func costs() []writeCost {
	address := mutationInput{"recipient": "Ann", "line1": "1 Main St", "city": "Portland", "countryCode": "US"}
	order := func(customer string, lineCount int) mutationInput {
		return mutationInput{"customerId": customer, "items": lines(skus(lineCount)...)}
	}
	payment := func(kind, amount string) mutationInput {
		return mutationInput{"kind": kind, "amount": mutationInput{"amount": amount}, "provider": "stripe", "reference": "ch_1"}
	}
	due := func(lineCount int, input mutationInput, before ...string) func(*fixture, testing.TB) mutationInput {
		return preparedInput(lineCount, input, append(before, "recordPayment")...)
	}
	expiring := func(lineCount int, input mutationInput) func(*fixture, testing.TB) mutationInput {
		return func(s *fixture, t testing.TB) mutationInput {
			return input.with("orderId", s.placeWith(t, order("ann", lineCount).with("expiresAt", "2026-03-02T00:00:00Z")))
		}
	}
	unmatched := func(lineCount int, input mutationInput) func(*fixture, testing.TB) mutationInput {
		return func(s *fixture, t testing.TB) mutationInput {
			early := commerce.PaymentEvent{Kind: commerce.PaymentCapture, Amount: storetest.USD("1"), Provider: "stripe", Reference: "ch_1", OrderID: "unknown"}
			if err := s.store.ReceivePayment(t.Context(), change.Caller{Name: "stripe"}, early, false); !commerce.IsUserError(err) {
				t.Fatal(err)
			}
			if lineCount == 0 {
				return input
			}
			return expiring(lineCount, input)(s, t)
		}
	}
	north := mutationInput{"warehouseId": "north", "withoutAddress": true}
	adjusted := mutationInput{"adjustments": []mutationInput{{"kind": "SHIPPING", "label": "Post", "amount": "4.90"}, {"kind": "DISCOUNT", "label": "Sale", "amount": "-1", "line": "p00"}}}
	full := fmt.Sprintf("%d lines", commerce.MaxLines)
	return []writeCost{
		{mutation: "createCustomer", variant: "no account rep", input: unpreparedInput(mutationInput{"name": "Cleo", "email": "cleo@example.com"})},
		{mutation: "createCustomer", variant: "account rep", usual: true, input: unpreparedInput(mutationInput{"name": "Cleo", "email": "cleo@example.com", "accountRepId": "rita"})},
		{mutation: "createCustomer", variant: "id, account rep, idempotency key", input: unpreparedInput(mutationInput{"id": "cleo", "name": "Cleo", "email": "cleo@example.com", "accountRepId": "rita", "idempotencyKey": "k"})},
		{mutation: "createCustomer", variant: "id and e-mail address taken: refused", writesNothing: true, input: unpreparedInput(mutationInput{"id": "ann", "name": "Cleo", "email": "bob@example.com"})},
		{mutation: "updateCustomer", variant: "name, no account rep", input: unpreparedInput(mutationInput{"id": "bob", "name": "Bobby"})},
		{mutation: "updateCustomer", variant: "name, account rep", usual: true, input: unpreparedInput(mutationInput{"id": "ann", "name": "Anne"})},
		{mutation: "updateCustomer", variant: "e-mail address, account rep", input: unpreparedInput(mutationInput{"id": "ann", "email": "anne@example.com"})},
		{mutation: "updateCustomer", variant: "another version: refused", writesNothing: true, input: unpreparedInput(mutationInput{"id": "ann", "name": "Anne", "expectedVersion": 7})},
		{mutation: "updateCustomer", variant: "nothing new", writesNothing: true, input: unpreparedInput(mutationInput{"id": "ann", "name": "Ann"})},
		{mutation: "assignAccountRep", variant: "first rep", input: unpreparedInput(mutationInput{"customerId": "bob", "employeeId": "rita"})},
		{mutation: "assignAccountRep", variant: "another rep", usual: true, input: unpreparedInput(mutationInput{"customerId": "ann", "employeeId": "sam"})},
		{mutation: "assignAccountRep", variant: "no rep", input: unpreparedInput(mutationInput{"customerId": "ann", "employeeId": nil})},
		{mutation: "placeOrder", variant: "1 line", lines: 1, input: unpreparedInput(order("bob", 1))},
		{mutation: "placeOrder", variant: "1 line, account rep", usual: true, lines: 1, input: unpreparedInput(order("ann", 1))},
		{mutation: "placeOrder", variant: "1 line, guest", usual: true, lines: 1, input: unpreparedInput(guestOrder(1))},
		{mutation: "placeOrder", variant: "1 line, account rep, idempotency key", lines: 1, input: unpreparedInput(order("ann", 1).with("idempotencyKey", "k"))},
		{mutation: "placeOrder", variant: "1 line, account rep, 16 stock buckets", lines: 1, input: func(s *fixture, t testing.TB) mutationInput {
			s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "stockBuckets": 16})
			return mutationInput{"customerId": "ann", "items": lines("mug")}
		}},
		{mutation: "placeOrder", variant: "1 line, account rep, expires", lines: 1, input: unpreparedInput(order("ann", 1).with("expiresAt", "2026-03-02T00:00:00Z"))},
		{mutation: "placeOrder", variant: full + ", account rep, idempotency key, sales by day, expires: refused", writesNothing: true, sales: true, input: unpreparedInput(order("ann", commerce.MaxLines).with("idempotencyKey", "k").with("expiresAt", "2026-03-02T00:00:00Z"))},
		{mutation: "placeOrder", variant: "3 lines, account rep", lines: 3, input: unpreparedInput(order("ann", 3))},
		{mutation: "placeOrder", variant: full + ", account rep", usual: true, lines: commerce.MaxLines, input: unpreparedInput(order("ann", commerce.MaxLines))},
		{mutation: "placeOrder", variant: full + ", account rep, idempotency key", lines: commerce.MaxLines, input: unpreparedInput(order("ann", commerce.MaxLines).with("idempotencyKey", "k"))},
		{mutation: "placeOrder", variant: full + ", account rep, idempotency key, sales by day", lines: commerce.MaxLines, sales: true, input: unpreparedInput(order("ann", commerce.MaxLines).with("idempotencyKey", "k"))},
		{mutation: "placeOrder", variant: "sent again with its key: answered from memory", writesNothing: true, input: func(s *fixture, t testing.TB) mutationInput {
			input := order("ann", 3).with("idempotencyKey", "k")
			s.mutate(t, "placeOrder", input)
			return input
		}},
		{mutation: "placeOrder", variant: "unknown product: refused", writesNothing: true, input: unpreparedInput(mutationInput{"customerId": "ann", "items": lines("mug", "spoon")})},
		{mutation: "placeOrder", variant: "quantity 0: refused", writesNothing: true, input: unpreparedInput(mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "mug", "quantity": 0}}})},
		{mutation: "confirmOrder", variant: "1 line", usual: true, input: preparedInput(1, nil)},
		{mutation: "confirmOrder", variant: full, input: preparedInput(commerce.MaxLines, nil)},
		{mutation: "confirmOrder", variant: "1 line, of an order that expires", input: expiring(1, mutationInput{})},
		{mutation: "confirmOrder", variant: "1 line, idempotency key", input: preparedInput(1, mutationInput{"idempotencyKey": "k"})},
		{mutation: "confirmOrder", variant: "sent again with its key: answered from memory", writesNothing: true, input: func(s *fixture, t testing.TB) mutationInput {
			input := mutationInput{"orderId": s.place(t, "ann", "mug"), "idempotencyKey": "k"}
			s.mutate(t, "confirmOrder", input)
			return input
		}},
		{mutation: "confirmOrder", variant: "confirmed before: refused", writesNothing: true, input: preparedInput(1, nil, "confirmOrder")},
		{mutation: "confirmOrder", variant: "1 line, outstanding payment, idempotency key", input: due(1, mutationInput{"idempotencyKey": "k"})},
		{mutation: "confirmOrder", variant: "1 line, orders to ship", waiting: true, input: preparedInput(1, nil)},
		{mutation: "confirmOrder", variant: "1 line, outstanding payment, idempotency key, orders to ship", waiting: true, input: due(1, mutationInput{"idempotencyKey": "k"})},
		{mutation: "addOrderNote", variant: "a confirmed order, orders to ship", waiting: true, input: preparedInput(3, mutationInput{"note": "Gift"}, "confirmOrder")},
		{mutation: "shipOrder", variant: "1 line, orders to ship", lines: 1, waiting: true, input: preparedInput(1, north, "confirmOrder")},
		{mutation: "shipOrder", variant: full + ", outstanding payment, idempotency key, orders to ship", lines: commerce.MaxLines, waiting: true, input: due(commerce.MaxLines, north.with("idempotencyKey", "k"), "confirmOrder")},
		{mutation: "cancelOrder", variant: full + ", idempotency key, sales by day, outstanding payment, orders to ship", lines: commerce.MaxLines, sales: true, waiting: true, input: due(commerce.MaxLines, mutationInput{"idempotencyKey": "k"}, "confirmOrder")},
		{mutation: "createFulfillment", variant: full + ", outstanding payment, idempotency key, orders to ship", lines: commerce.MaxLines, waiting: true, input: due(commerce.MaxLines, north.with("idempotencyKey", "k"), "confirmOrder")},
		{mutation: "shipOrder", variant: full + ", outstanding payment, idempotency key", lines: commerce.MaxLines, input: due(commerce.MaxLines, north.with("idempotencyKey", "k"), "confirmOrder")},
		{mutation: "deliverOrder", variant: "1 line, outstanding payment, idempotency key", input: due(1, mutationInput{"idempotencyKey": "k"}, "confirmOrder", "shipOrder")},
		{mutation: "cancelOrder", variant: full + ", outstanding payment, idempotency key", lines: commerce.MaxLines, input: due(commerce.MaxLines, mutationInput{"idempotencyKey": "k"})},
		{mutation: "setOrderItem", variant: "outstanding payment", lines: 1, input: due(3, mutationInput{"sku": "p01", "quantity": 2})},
		{mutation: "setOrderItem", variant: "more of one of " + fmt.Sprint(commerce.MaxLines) + " products, all embedded by other software, outstanding payment", lines: commerce.MaxLines,
			input: externalInput(mutationInput{"sku": "p01", "quantity": 2, "expectedTotal": mutationInput{"amount": "222"}}, "recordPayment")},
		{mutation: "removeOrderItem", variant: "one of " + fmt.Sprint(commerce.MaxLines) + " products, all embedded by other software, outstanding payment", lines: commerce.MaxLines,
			input: externalInput(mutationInput{"sku": "p01"}, "recordPayment")},
		{mutation: "updateShippingAddress", variant: "outstanding payment", input: due(3, mutationInput{"shippingAddress": address})},
		{mutation: "addOrderNote", variant: "outstanding payment, idempotency key", input: due(3, mutationInput{"note": "Gift", "idempotencyKey": "k"})},
		{mutation: "holdOrder", variant: "outstanding payment", input: due(3, mutationInput{"reason": "Check the address"})},
		{mutation: "releaseOrder", variant: "outstanding payment", input: due(3, nil, "holdOrder")},
		{mutation: "shipOrder", variant: "1 line", usual: true, lines: 1, input: preparedInput(1, north, "confirmOrder")},
		{mutation: "shipOrder", variant: "3 lines", lines: 3, input: preparedInput(3, north, "confirmOrder")},
		{mutation: "shipOrder", variant: full, usual: true, lines: commerce.MaxLines, input: preparedInput(commerce.MaxLines, north, "confirmOrder")},
		{mutation: "shipOrder", variant: full + ", idempotency key", lines: commerce.MaxLines, input: preparedInput(commerce.MaxLines, north.with("idempotencyKey", "k"), "confirmOrder")},
		{mutation: "shipOrder", variant: "1 line, its stock becomes low", lines: 1, lowStock: 10, input: preparedInput(1, north, "confirmOrder")},
		{mutation: "shipOrder", variant: "30 lines, their stock becomes low", lines: 30, lowStock: 10, input: preparedInput(30, north, "confirmOrder")},
		{mutation: "shipOrder", variant: "1 line, its stock stays above the reorder point", lines: 1, lowStock: 5, input: preparedInput(1, north, "confirmOrder")},
		{mutation: "shipOrder", variant: full + ", their stock becomes low: refused", lowStock: 10, writesNothing: true, input: preparedInput(commerce.MaxLines, north, "confirmOrder")},
		{mutation: "shipOrder", variant: "3 lines, none of them in the warehouse: refused", writesNothing: true, input: preparedInput(3, mutationInput{"warehouseId": "south", "withoutAddress": true}, "confirmOrder")},
		{mutation: "deliverOrder", variant: "3 lines", usual: true, input: preparedInput(3, nil, "confirmOrder", "shipOrder")},
		{mutation: "deliverOrder", variant: "3 lines, idempotency key", input: preparedInput(3, mutationInput{"idempotencyKey": "k"}, "confirmOrder", "shipOrder")},
		{mutation: "cancelOrder", variant: "1 line", usual: true, lines: 1, input: preparedInput(1, nil)},
		{mutation: "cancelOrder", variant: "3 lines", lines: 3, input: preparedInput(3, nil, "confirmOrder")},
		{mutation: "cancelOrder", variant: full, lines: commerce.MaxLines, input: preparedInput(commerce.MaxLines, nil)},
		{mutation: "cancelOrder", variant: full + ", idempotency key", lines: commerce.MaxLines, input: preparedInput(commerce.MaxLines, mutationInput{"idempotencyKey": "k"})},
		{mutation: "cancelOrder", variant: full + ", idempotency key, sales by day, outstanding payment", lines: commerce.MaxLines, sales: true, input: due(commerce.MaxLines, mutationInput{"idempotencyKey": "k"})},
		{mutation: "setOrderItem", variant: "another quantity of one of 3 products", usual: true, lines: 1, input: preparedInput(3, mutationInput{"sku": "p01", "quantity": 2})},
		{mutation: "setOrderItem", variant: "a fourth product", lines: 1, input: preparedInput(3, mutationInput{"sku": "p03", "quantity": 2})},
		{mutation: "setOrderItem", variant: fmt.Sprintf("the last of %d products", commerce.MaxLines), lines: 1, input: preparedInput(commerce.MaxLines-1, mutationInput{"sku": skus(commerce.MaxLines)[commerce.MaxLines-1], "quantity": 2})},
		{mutation: "setOrderItem", variant: fmt.Sprintf("a %dth product, so that items are no longer embedded", commerce.MaxEmbeddedItems+1), usual: true, lines: commerce.MaxEmbeddedItems + 1,
			input: preparedInput(commerce.MaxEmbeddedItems, mutationInput{"sku": skus(commerce.MaxEmbeddedItems + 1)[commerce.MaxEmbeddedItems], "quantity": 2})},
		{mutation: "setOrderItem", variant: "more of one of " + fmt.Sprint(commerce.MaxLines) + " products, all embedded by other software", lines: commerce.MaxLines,
			input: externalInput(mutationInput{"sku": "p01", "quantity": 2, "expectedTotal": mutationInput{"amount": "222"}})},
		{mutation: "setOrderItem", variant: "more of one of " + fmt.Sprint(commerce.MaxLines) + " products, all embedded by other software, sales by day, outstanding payment", lines: commerce.MaxLines, sales: true,
			input: externalInput(mutationInput{"sku": "p01", "quantity": 2, "expectedTotal": mutationInput{"amount": "222"}}, "recordPayment")},
		{mutation: "removeOrderItem", variant: "one of 3 products", usual: true, lines: 1, input: preparedInput(3, mutationInput{"sku": "p01"})},
		{mutation: "removeOrderItem", variant: fmt.Sprintf("one of %d products", commerce.MaxLines), lines: 1, input: preparedInput(commerce.MaxLines, mutationInput{"sku": "p01"})},
		{mutation: "removeOrderItem", variant: "one of " + fmt.Sprint(commerce.MaxLines) + " products, all embedded by other software", lines: commerce.MaxLines,
			input: externalInput(mutationInput{"sku": "p01"})},
		{mutation: "removeOrderItem", variant: "one of " + fmt.Sprint(commerce.MaxLines) + " products, all embedded by other software, sales by day, outstanding payment", lines: commerce.MaxLines, sales: true,
			input: externalInput(mutationInput{"sku": "p01"}, "recordPayment")},
		{mutation: "updateShippingAddress", variant: "3 lines", usual: true, input: preparedInput(3, mutationInput{"shippingAddress": address})},
		{mutation: "updateOrder", variant: "3 lines", usual: true, input: preparedInput(3, mutationInput{"billingAddress": address})},
		{mutation: "setAdjustments", variant: "3 lines", usual: true, input: preparedInput(3, adjusted)},
		{mutation: "updateOrder", variant: "outstanding payment", input: due(3, mutationInput{"billingAddress": address})},
		{mutation: "setAdjustments", variant: "outstanding payment, sales by day", sales: true, input: due(3, adjusted)},
		{mutation: "setAdjustments", variant: full, input: preparedInput(commerce.MaxLines, adjusted)},
		{mutation: "addOrderNote", variant: "3 lines", usual: true, input: preparedInput(3, mutationInput{"note": "Gift"})},
		{mutation: "addOrderNote", variant: "idempotency key", input: preparedInput(3, mutationInput{"note": "Gift", "idempotencyKey": "k"})},
		{mutation: "holdOrder", variant: "3 lines", usual: true, input: preparedInput(3, mutationInput{"reason": "Check the address"})},
		{mutation: "releaseOrder", variant: "3 lines", usual: true, input: preparedInput(3, nil, "holdOrder")},
		{mutation: "tagOrder", variant: "a tag, 3 lines", usual: true, lines: 1, input: preparedInput(3, mutationInput{"add": []string{"vip"}})},
		{mutation: "tagOrder", variant: "a tag that the order has", writesNothing: true, input: preparedInput(3, mutationInput{"add": []string{"a00"}}, "tagOrder")},
		{mutation: "tagOrder", variant: "all of 20 tags, outstanding payment", lines: 2 * commerce.MaxTags, input: preparedInput(3, mutationInput{"add": tags("b"), "remove": tags("a")}, "recordPayment", "tagOrder")},
		{mutation: "confirmOrder", variant: "20 tags", input: preparedInput(3, nil, "tagOrder")},
		{mutation: "recordPayment", variant: "the whole total of 3 lines", usual: true, input: preparedInput(3, payment("CAPTURE", "22.5"))},
		{mutation: "recordPayment", variant: "a part of the total", input: preparedInput(3, payment("CAPTURE", "1"))},
		{mutation: "recordPayment", variant: "a part of the total of an order that expires", input: expiring(3, payment("CAPTURE", "1"))},
		{mutation: "recordPayment", variant: "a part of the total of an order that expires, unmatched before", input: unmatched(3, payment("CAPTURE", "1"))},
		{mutation: "dismissUnmatchedPayment", usual: true, input: unmatched(0, mutationInput{"provider": "stripe", "reference": "ch_1"})},
		{mutation: "dismissUnmatchedPayment", variant: "no such payment: refused", writesNothing: true, input: unpreparedInput(mutationInput{"provider": "stripe", "reference": "ch_1"})},
		{mutation: "createWebhook", variant: "", usual: true, input: changesListed(hook())},
		{mutation: "createWebhook", variant: "idempotency key", input: changesListed(hook().with("idempotencyKey", "k"))},
		{mutation: "pauseWebhook", variant: "", usual: true, input: webhookInput(nil)},
		{mutation: "resumeWebhook", variant: "", usual: true, input: webhookInput(nil)},
		{mutation: "rotateWebhookSecret", variant: "", usual: true, input: webhookInput(nil)},
		{mutation: "rotateWebhookSecret", variant: "idempotency key", input: webhookInput(mutationInput{"idempotencyKey": "k"})},
		{mutation: "replayWebhook", variant: "", usual: true, input: webhookInput(mutationInput{"from": opening})},
		{mutation: "replayWebhook", variant: "idempotency key", input: webhookInput(mutationInput{"from": opening, "idempotencyKey": "k"})},
		{mutation: "deleteWebhook", variant: "", usual: true, input: webhookInput(nil)},
		{mutation: "deleteWebhook", variant: fmt.Sprintf("%d orders set aside", commerce.MaxLines), lines: commerce.MaxLines, input: func(s *fixture, t testing.TB) mutationInput {
			input := s.addWebhook(t)
			id := commerce.WebhookID(input["webhookId"].(string))
			if err := s.store.SaveWebhookState(t.Context(), &commerce.WebhookState{WebhookID: id, Owner: "a", Sequence: 1}, 0); err != nil {
				t.Fatal(err)
			}
			for i := range commerce.MaxLines {
				f := &commerce.WebhookFailure{WebhookID: id, OrderID: commerce.OrderID(storetest.SmallOrderID(i)), EventID: "e", RetryAt: opening, Since: opening}
				if err := s.store.SaveWebhookFailure(t.Context(), f, "a"); err != nil {
					t.Fatal(err)
				}
			}
			return input
		}},
		{mutation: "recordPayment", variant: "recorded before: answered with the payment", writesNothing: true, input: func(s *fixture, t testing.TB) mutationInput {
			input := payment("CAPTURE", "1").with("orderId", s.place(t, "ann", "mug"))
			s.mutate(t, "recordPayment", input)
			return input
		}},
		{mutation: "recordPayment", variant: "a refund of more than was captured: refused", writesNothing: true, input: preparedInput(3, payment("REFUND", "1"))},
		{mutation: "eraseCustomer", variant: "deletes the customer", usual: true, input: unpreparedInput(mutationInput{"customerId": "ann"})},
		{mutation: "eraseCustomer", variant: "an order of 3 lines", usual: true, lines: 1, input: erasing(3, 0)},
		{mutation: "eraseCustomer", variant: "an order of 3 lines with 30 notes", lines: 31, input: erasing(3, 30)},
		{mutation: "eraseCustomer", variant: "outstanding payment", lines: 1, input: erasing(3, 0, "recordPayment")},
		{mutation: "claimOrders", variant: "3 lines, account rep", usual: true, lines: 3, input: claiming(2, 3)},
		{mutation: "claimOrders", variant: "3 lines, account rep, cancelled, last order", lines: 3, input: claiming(1, 3, "cancelOrder")},
		{mutation: "claimOrders", variant: full + ", account rep, outstanding payment, last order", lines: commerce.MaxLines, input: claiming(1, commerce.MaxLines, "recordPayment")},
		{mutation: "claimOrders", variant: "no order: refused", writesNothing: true, input: unpreparedInput(mutationInput{"customerId": "ann"})},
		{mutation: "recordPayment", variant: "a refund for a return, outstanding payment", input: returnInput(1, mutationInput{"kind": "REFUND", "amount": mutationInput{"amount": "0.2"}, "provider": "stripe", "reference": "re_1"}, true)},
		{mutation: "requestReturn", variant: "1 of 3 lines", usual: true, input: preparedInput(3, sendBack(1), "confirmOrder", "shipOrder")},
		{mutation: "requestReturn", variant: fmt.Sprintf("%d of %d lines, outstanding payment, idempotency key", commerce.MaxReturnLines, commerce.MaxLines), input: due(commerce.MaxLines, sendBack(commerce.MaxReturnLines).with("idempotencyKey", "k"), "confirmOrder", "shipOrder")},
		{mutation: "requestReturn", variant: "more pieces than the order has: refused", writesNothing: true, input: preparedInput(1, sendBack(2), "confirmOrder", "shipOrder")},
		{mutation: "approveReturn", variant: "1 line", usual: true, input: returnInput(1, nil, false)},
		{mutation: "approveReturn", variant: "outstanding payment, idempotency key", input: returnInput(1, mutationInput{"idempotencyKey": "k"}, true)},
		{mutation: "rejectReturn", variant: "1 line", usual: true, input: returnInput(1, mutationInput{"reason": "used"}, false)},
		{mutation: "rejectReturn", variant: "outstanding payment, idempotency key", input: returnInput(1, mutationInput{"reason": "used", "idempotencyKey": "k"}, true)},
		{mutation: "receiveReturn", variant: "1 line", usual: true, lines: 1, input: returnInput(1, restock(1), false, "approveReturn")},
		{mutation: "receiveReturn", variant: "1 line, written off", input: returnInput(1, restock(0), false, "approveReturn")},
		{mutation: "receiveReturn", variant: fmt.Sprintf("%d lines, another warehouse, outstanding payment, idempotency key", commerce.MaxReturnLines), lines: commerce.MaxReturnLines,
			input: returnInput(commerce.MaxReturnLines, restock(commerce.MaxReturnLines).with("warehouseId", "south").with("idempotencyKey", "k"), true, "approveReturn")},
		{mutation: "createFulfillment", variant: "1 of 1 line", usual: true, lines: 1, input: preparedInput(1, north, "confirmOrder")},
		{mutation: "createFulfillment", variant: "1 of " + full, usual: true, lines: 1, input: preparedInput(commerce.MaxLines, north.with("lines", []mutationInput{{"sku": "p01", "quantity": 1}}), "confirmOrder")},
		{mutation: "createFulfillment", variant: full, usual: true, lines: commerce.MaxLines, input: preparedInput(commerce.MaxLines, north, "confirmOrder")},
		{mutation: "createFulfillment", variant: full + ", outstanding payment, idempotency key", lines: commerce.MaxLines, input: due(commerce.MaxLines, north.with("idempotencyKey", "k"), "confirmOrder")},
		{mutation: "createFulfillment", variant: "more than is open: refused", writesNothing: true, input: preparedInput(1, north.with("lines", []mutationInput{{"sku": "p00", "quantity": 2}}), "confirmOrder")},
		{mutation: "updateTracking", variant: "1 line", usual: true, input: fulfilledInput(1, mutationInput{"trackingNumber": "1Z2"})},
		{mutation: "updateTracking", variant: "outstanding payment", input: fulfilledInput(1, mutationInput{"trackingNumber": "1Z2"}, "recordPayment")},
		{mutation: "deliverFulfillment", variant: "the last of an order with 1 line", usual: true, input: fulfilledInput(1, nil)},
		{mutation: "deliverFulfillment", variant: "the last of an order with 1 line, outstanding payment, idempotency key", input: fulfilledInput(1, mutationInput{"idempotencyKey": "k"}, "recordPayment")},
		{mutation: "cancelFulfillment", variant: "1 line", usual: true, lines: 1, input: fulfilledInput(2, nil)},
		{mutation: "cancelFulfillment", variant: full + ", outstanding payment, idempotency key", lines: commerce.MaxLines, input: fulfilledInput(commerce.MaxLines+1, mutationInput{"idempotencyKey": "k"}, "recordPayment")},
		{mutation: "cancelOrderItems", variant: "1 of 2 lines", usual: true, lines: 1, input: preparedInput(2, mutationInput{"lines": lines("p00")}, "confirmOrder")},
		{mutation: "cancelOrderItems", variant: "1 piece of " + full, usual: true, lines: 1, input: preparedInput(commerce.MaxLines, mutationInput{"lines": lines("p00")}, "confirmOrder")},
		{mutation: "cancelOrderItems", variant: "half of " + full + " after a parcel with the other half, outstanding payment, idempotency key, sales by day, orders to ship", lines: commerce.MaxLines, sales: true, waiting: true,
			input: func(s *fixture, t testing.TB) mutationInput {
				half := lines(skus(commerce.MaxLines)...)
				id := s.placeWith(t, mutationInput{"customerId": "ann", "items": slices.Concat(half, half)})
				for _, mutation := range []string{"recordPayment", "confirmOrder"} {
					s.mutate(t, mutation, moveInput(mutation, id))
				}
				s.fulfil(t, north.with("orderId", id).with("lines", half))
				return mutationInput{"orderId": id, "lines": half, "idempotencyKey": "k"}
			}},
		{mutation: "cancelOrderItems", variant: "all pieces: refused", writesNothing: true, input: preparedInput(1, mutationInput{"lines": lines("p00")}, "confirmOrder")},
		{mutation: "createProduct", variant: "", usual: true, input: unpreparedInput(mutationInput{"sku": "bowl", "name": "Bowl", "category": "Kitchen", "unitPrice": mutationInput{"amount": "9"}})},
		{mutation: "createProduct", variant: "idempotency key", input: unpreparedInput(mutationInput{"sku": "bowl", "name": "Bowl", "category": "Kitchen", "unitPrice": mutationInput{"amount": "9"}, "idempotencyKey": "k"})},
		{mutation: "updateProduct", variant: "price", usual: true, input: unpreparedInput(mutationInput{"sku": "mug", "unitPrice": mutationInput{"amount": "8"}})},
		{mutation: "updateProduct", variant: "category", input: unpreparedInput(mutationInput{"sku": "mug", "category": "Gifts"})},
		{mutation: "updateProduct", variant: "16 stock buckets instead of 1", usual: true, input: unpreparedInput(mutationInput{"sku": "mug", "stockBuckets": 16})},
		{mutation: "updateProduct", variant: "1 stock bucket instead of 16", input: func(s *fixture, t testing.TB) mutationInput {
			s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "stockBuckets": 16})
			return mutationInput{"sku": "mug", "stockBuckets": 1}
		}},
		{mutation: "updateProduct", variant: "price, 16 stock buckets", input: func(s *fixture, t testing.TB) mutationInput {
			s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "stockBuckets": 16})
			return mutationInput{"sku": "mug", "unitPrice": mutationInput{"amount": "8"}}
		}},
		{mutation: "createWarehouse", variant: "", usual: true, input: unpreparedInput(mutationInput{"id": "east", "name": "East"})},
		{mutation: "createWarehouse", variant: "idempotency key", input: unpreparedInput(mutationInput{"id": "east", "name": "East", "idempotencyKey": "k"})},
		{mutation: "updateWarehouse", variant: "", usual: true, input: unpreparedInput(mutationInput{"id": "north", "name": "North Hall"})},
		{mutation: "setInventoryLevel", variant: "", usual: true, input: unpreparedInput(mutationInput{"sku": "mug", "warehouseId": "north", "quantity": 90})},
		{mutation: "setInventoryLevel", variant: "the first of the product in the warehouse", input: unpreparedInput(mutationInput{"sku": "plate", "warehouseId": "south", "quantity": 9})},
		{mutation: "setInventoryLevel", variant: "none of the product in the warehouse, for the first time", input: unpreparedInput(mutationInput{"sku": "plate", "warehouseId": "south", "quantity": 0})},
		{mutation: "setInventoryLevel", variant: "the stock becomes low", lowStock: 5, input: unpreparedInput(mutationInput{"sku": "p00", "warehouseId": "north", "quantity": 3})},
		{mutation: "setInventoryLevel", variant: "reorder point", lowStock: 5, input: unpreparedInput(mutationInput{"sku": "p00", "warehouseId": "north", "reorderPoint": 11})},
		{mutation: "setInventoryLevel", variant: "16 stock buckets", input: func(s *fixture, t testing.TB) mutationInput {
			s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "stockBuckets": 16})
			return mutationInput{"sku": "mug", "warehouseId": "north", "quantity": 50}
		}},
		{mutation: "adjustInventory", variant: "", usual: true, input: unpreparedInput(mutationInput{"sku": "mug", "warehouseId": "north", "delta": -1})},
		{mutation: "adjustInventory", variant: "idempotency key", input: unpreparedInput(mutationInput{"sku": "mug", "warehouseId": "north", "delta": -1, "idempotencyKey": "k"})},
		{mutation: "transferInventory", variant: "", usual: true, input: unpreparedInput(mutationInput{"sku": "mug", "fromWarehouseId": "north", "toWarehouseId": "south", "quantity": 1})},
		{mutation: "transferInventory", variant: "the first of the product in the warehouse, idempotency key", input: unpreparedInput(mutationInput{"sku": "plate", "fromWarehouseId": "north", "toWarehouseId": "south", "quantity": 1, "idempotencyKey": "k"})},
		{mutation: "adjustInventory", variant: "the first of the product in the warehouse, idempotency key", input: unpreparedInput(mutationInput{"sku": "plate", "warehouseId": "south", "delta": 9, "idempotencyKey": "k"})},
		{mutation: "hireEmployee", variant: "no warehouse", input: unpreparedInput(mutationInput{"id": "tom", "name": "Tom", "jobTitle": "Packer", "hireDate": "2026-03-01"})},
		{mutation: "hireEmployee", variant: "warehouse", usual: true, input: unpreparedInput(mutationInput{"id": "tom", "name": "Tom", "jobTitle": "Packer", "hireDate": "2026-03-01", "warehouseId": "south"})},
		{mutation: "hireEmployee", variant: "warehouse, idempotency key", input: unpreparedInput(mutationInput{"id": "tom", "name": "Tom", "jobTitle": "Packer", "hireDate": "2026-03-01", "warehouseId": "south", "idempotencyKey": "k"})},
		{mutation: "updateEmployee", variant: "phone numbers", input: unpreparedInput(mutationInput{"id": "sam", "phoneNumbers": []string{"+1-555-0199"}})},
		{mutation: "updateEmployee", variant: "name", usual: true, input: unpreparedInput(mutationInput{"id": "sam", "name": "Sammy"})},
		{mutation: "updateEmployee", variant: "another warehouse", input: unpreparedInput(mutationInput{"id": "sam", "warehouseId": "south"})},
		{mutation: "updateEmployee", variant: "no warehouse any more", input: unpreparedInput(mutationInput{"id": "sam", "warehouseId": nil})},
	}
}

// On both engines, mutations have the costs in testdata/write-costs.golden. The docs show the usual
// variants with their bounds. Each transaction writes exactly the records that its pattern names.
func TestGoldenWriteCosts(t *testing.T) {
	t.Parallel()
	tight := mostExpensivePattern()
	if most := maxLines(tight); most < commerce.MaxLines {
		t.Fatalf("the transaction of %s (%d actions and %s for each line) can write only %d lines, but commerce.MaxLines is %d", tight.Mutation, tight.MaxActions(0),
			entities(slices.Concat(tight.WritesPerLine, tight.OptionalWritesPerLine)), most, commerce.MaxLines)
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		rows := [][]string{{"mutation", "variant", "requests", "round trips", "actions", "write units", "read units"}}
		usual := [][]string{{"mutation", "requests", "write units", "read units", "$ per million"}}
		most, seen := map[string]int{}, map[string]bool{}
		for i, c := range costs() {
			if !storetest.RunsCase(t, longtest.Size(8, 1), i) {
				continue
			}
			t.Run(strings.TrimSpace(c.mutation+" "+c.variant), func(t *testing.T) {
				s := newFixture(t, db, longDataset(t))
				for name, has := range map[string]bool{model.EntityDailySales.Name: c.sales, model.EntityOrderWaiting.Name: c.waiting} {
					if has {
						storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}, name)
					}
				}
				s.listLowStock(t, db, c.lowStock)
				input := c.input(s, t)
				s.clock.pass(time.Second)
				s.wire.reset()
				got := s.try(t, c.mutation, input, `__typename`)
				transactions := s.wire.committed()
				if c.writesNothing != (len(transactions) == 0) {
					t.Fatalf("%d transactions were committed, and the response is %s", len(transactions), got.Data)
				}
				if len(transactions) > 0 {
					s.checkReads(t, patternOf(t, c.mutation), c.lines, seen)
				}
				actions := 0
				for _, transaction := range transactions {
					actions = len(transaction.actions)
					if !strings.Contains(c.variant, "stock bucket") {
						most[c.mutation] = max(most[c.mutation], actions)
					}
					checkPattern(t, patternOf(t, c.mutation), transaction, c.lines)
				}
				totals := got.Extensions.Explain.Totals
				if made := len(s.wire.operationNames()); made != totals.Requests {
					t.Errorf("%d requests were made, but explain contains %d", made, totals.Requests)
				}
				if totals.RoundTrips != totals.Requests {
					t.Errorf("%d requests in %d round trips, want one request per round trip", totals.Requests, totals.RoundTrips)
				}
				most := dynamo.NewCostBounds(1).MutationBound(patternOf(t, c.mutation))
				if totals.Requests > most.Requests || totals.RoundTrips > most.RoundTrips || totals.ReadUnits > most.ReadUnits || totals.WriteUnits > most.WriteUnits/2 {
					t.Errorf("it took %+v, more than its bound %+v", totals, most)
				}
				rows = append(rows, []string{"`" + c.mutation + "`", c.variant, fmt.Sprint(totals.Requests), fmt.Sprint(totals.RoundTrips),
					fmt.Sprint(actions), fmt.Sprint(totals.WriteUnits), fmt.Sprint(totals.ReadUnits)})
				if c.usual {
					name := strings.TrimSuffix("`"+c.mutation+"`, "+c.variant, ", ")
					usual = append(usual, []string{name, usualToMaximum(totals.Requests, most.Requests), usualToMaximum(totals.WriteUnits, most.WriteUnits),
						usualToMaximum(totals.ReadUnits, most.ReadUnits), totals.DollarsPerMillion.String()})
				}
			})
		}
		if len(rows) > len(costs()) {
			checkMostActions(t, most)
			checkAllRead(t, seen)
			golden.CheckFile(t, "testdata/write-costs.golden", markdown.Table(rows))
			golden.CheckSection(t, requestCosts, "mutations", markdown.Table(usual))
		}
	})
}

// listLowStock adds the list of low stock to the table, and sets the reorder points of all parts.
// If the reorder point is 0, it does nothing.
func (s *fixture) listLowStock(t testing.TB, db *dynamodb.Client, reorderPoint int) {
	if reorderPoint == 0 {
		return
	}
	storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}, model.EntityLowStock.Name)
	for _, sku := range skus(commerce.MaxLines) {
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": sku, "warehouseId": "north", "reorderPoint": reorderPoint})
	}
}

// checkMostActions compares the maximum number of actions of each mutation with its pattern.
func checkMostActions(t *testing.T, most map[string]int) {
	t.Helper()
	for _, p := range measuredPatterns() {
		if p.ErasesOrders {
			continue // no transaction deletes the customer and erases an order
		}
		if declared := p.MaxActions(commerce.MaxLines); most[p.Mutation] != declared {
			t.Errorf("%s has up to %d actions, its pattern declares %d", p.Mutation, most[p.Mutation], declared)
		}
	}
}

// measuredPatterns returns the write patterns of all mutations that a server without custom fields
// has.
func measuredPatterns() []model.WritePattern {
	return slices.DeleteFunc(model.WritePatterns(), func(p model.WritePattern) bool { return p.ID == model.WriteSetCustomFields.ID })
}

// The docs state the maximum number of lines of an order: the pattern with the most actions per
// line decides.
func TestGoldenMostLines(t *testing.T) {
	tight := mostExpensivePattern()
	fixed := tight.MaxActions(0)
	golden.CheckSection(t, requestCosts, "lines", fmt.Sprintf("A DynamoDB transaction has at most %d actions. `%s` needs the most: %d actions, and %d more\n"+
		"for each line item. A transaction has space for %d line items, and Ordergraph allows %d per order.\n", table.MaxTransactionActions, tight.Mutation, fixed, tight.MaxActions(1)-fixed, maxLines(tight), commerce.MaxLines))
}

// mostExpensivePattern returns the pattern with the most actions for an order of commerce.MaxLines
// lines.
func mostExpensivePattern() model.WritePattern {
	return slices.MaxFunc(model.WritePatterns(), func(a, b model.WritePattern) int {
		return a.MaxActions(commerce.MaxLines) - b.MaxActions(commerce.MaxLines)
	})
}

// maxLines returns the maximum number of lines of a pattern's transaction.
func maxLines(p model.WritePattern) int {
	fixed := p.MaxActions(0)
	return (table.MaxTransactionActions - fixed) / (p.MaxActions(1) - fixed)
}

func entities(es []model.Entity) string {
	names := make([]string, len(es))
	for i, e := range es {
		names[i] = "`" + e.Name + "`"
	}
	return strings.Join(names, " ")
}

func patternOf(t testing.TB, mutation string) model.WritePattern {
	for _, p := range model.WritePatterns() {
		if p.Mutation == mutation {
			return p
		}
	}
	t.Fatalf("no write pattern serves %s", mutation)
	return model.WritePattern{}
}

// checkPattern compares the actions of a transaction with its pattern. The pattern writes each
// record once or for each line. A record that the pattern marks as maybe can be missing.
func checkPattern(t testing.TB, p model.WritePattern, transaction transaction, lines int) {
	t.Helper()
	found := map[string]int{}
	for _, a := range transaction.actions {
		found[entityOf(t, a)]++
	}
	if buckets := found[model.EntityStockBucket.Name]; p.Buckets && buckets < commerce.MaxStockBuckets {
		delete(found, model.EntityStockBucket.Name)
		if p.Mutation == "placeOrder" { // the order takes its units from buckets instead of the product's record
			found[model.EntityProduct.Name] += buckets
		}
	}
	if p.LowStock && found[model.EntityLowStock.Name] <= p.MaxLevels(lines) {
		delete(found, model.EntityLowStock.Name)
	}
	for _, e := range p.Writes {
		found[e.Name]--
	}
	for _, e := range slices.Concat(p.WritesPerLine, p.OptionalWritesPerLine) {
		found[e.Name] -= lines
	}
	for name, n := range found {
		if n < 0 {
			t.Errorf("%s declares %d more actions on records of kind %s than the mutation made", p.ID, -n, name)
		}
	}
	for _, e := range p.OptionalWrites {
		found[e.Name]--
	}
	for name, n := range found {
		if n > 0 {
			t.Errorf("%s declares %d fewer actions on records of kind %s than the mutation made", p.ID, n, name)
		}
	}
}

// checkReads compares the reads before a transaction with its pattern, and marks them as seen. If
// the pattern says so, one record is read per line. Another record is read at most once for each
// time that the pattern names it. A list is read only if the pattern names one.
func (s *fixture) checkReads(t testing.TB, p model.WritePattern, lines int, seen map[string]bool) {
	t.Helper()
	found := map[string]int{}
	note := func(read string) { seen[p.ID+" "+read] = true }
	for _, a := range s.wire.read() {
		name := entityOf(t, a)
		if p.Buckets && name == model.EntityStockBucket.Name {
			continue
		}
		found[name]++
		note(name)
	}
	if slices.Contains(s.wire.operationNames(), "Query") {
		if note(itemsQuery); !p.ReadsItems && len(p.Lists) == 0 {
			t.Errorf("%s queries a list, but does not declare this", p.ID)
		}
	}
	for _, e := range p.ReadsPerLine {
		if found[e.Name] -= lines; found[e.Name] < 0 {
			t.Errorf("%s declares %d more reads of records of kind %s than the mutation made", p.ID, -found[e.Name], e.Name)
		}
	}
	for _, e := range p.Reads {
		found[e.Name]--
	}
	for name, n := range found {
		if n > 0 && !(p.LowStock && name == model.EntityInventoryLevel.Name && n <= p.MaxLevels(lines)) {
			t.Errorf("%s declares %d fewer reads of records of kind %s than the mutation made", p.ID, n, name)
		}
	}
}

// itemsQuery is the name of the Query for the items of an order.
const itemsQuery = "items"

// checkAllRead fails t if a pattern names a read that no mutation was seen to make.
func checkAllRead(t *testing.T, seen map[string]bool) {
	t.Helper()
	for _, p := range measuredPatterns() {
		for _, e := range slices.Concat(p.Reads, p.ReadsPerLine) {
			if !seen[p.ID+" "+e.Name] {
				t.Errorf("%s declares reads of records of kind %s, but no mutation of this test reads them", p.ID, e.Name)
			}
		}
		if p.ReadsItems && !seen[p.ID+" "+itemsQuery] {
			t.Errorf("%s declares a query of the items of an order, but no mutation of this test makes it", p.ID)
		}
	}
}

// entityOf returns the entity of an action's record.
func entityOf(t testing.TB, a action) string {
	t.Helper()
	var names []string
	for _, e := range model.Entities() {
		_, pk := e.PK.Values(a.pk)
		_, sk := e.SK.Values(a.sk)
		if pk && sk {
			names = append(names, e.Name)
		}
	}
	if len(names) != 1 {
		t.Errorf("the record %s %s matches the kinds %q, want one", a.pk, a.sk, names)
		return ""
	}
	return names[0]
}
