package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// Input errors are user errors with a code, the path of the field and a message, all of them at
// once. Nothing is written. If the input alone is invalid, nothing is read. A failed look-up reads
// once.
func TestBadMutationInput(t *testing.T) {
	t.Parallel()
	const unknown = "01HVMK3P2Q0000000000000001"
	long := strings.Repeat("x", 100_000)
	line := func(sku string, quantity int) []mutationInput {
		return []mutationInput{{"sku": sku, "quantity": quantity}}
	}
	order := mutationInput{"customerId": "ann", "items": lines("mug")}
	customer := mutationInput{"name": "Cleo", "email": "cleo@example.com"}
	product := mutationInput{"sku": "bowl", "name": "Bowl", "category": "Kitchen", "unitPrice": mutationInput{"amount": "9.90"}}
	employee := mutationInput{"name": "Tom", "jobTitle": "Packer", "hireDate": "2026-03-01"}
	address := mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}
	many := func(n int) []string {
		numbers := make([]string, n)
		for i := range numbers {
			numbers[i] = "+1"
		}
		return numbers
	}
	cases := []struct {
		name, mutation string
		input          mutationInput
		requests       int
		reasons        []string
	}{
		{"unknown SKU", "placeOrder", order.with("items", lines("mug", "spoon", "fork")), 1, []string{"NOT_FOUND input.items.1.sku", "NOT_FOUND input.items.2.sku"}},
		{"unknown customer", "placeOrder", order.with("customerId", "nobody"), 1, []string{"NOT_FOUND input.customerId"}},
		{"unknown customer and SKU", "placeOrder", mutationInput{"customerId": "nobody", "items": lines("spoon")}, 1, []string{"NOT_FOUND input.customerId", "NOT_FOUND input.items.0.sku"}},
		{"guest and customer", "placeOrder", order.with("guest", mutationInput{"email": "g@example.com"}), 0, []string{"INVALID input.guest"}},
		{"neither guest nor customer", "placeOrder", mutationInput{"items": lines("mug")}, 0, []string{"INVALID input.customerId"}},
		{"guest and contact", "placeOrder", mutationInput{"items": lines("mug"), "guest": mutationInput{"email": "g@example.com"}, "contact": mutationInput{"name": "G"}}, 0, []string{"INVALID input.contact"}},
		{"guest without an address", "placeOrder", mutationInput{"items": lines("mug"), "guest": mutationInput{"name": "G"}}, 0, []string{"INVALID input.guest.email"}},
		{"guest with invalid values", "placeOrder", mutationInput{"items": lines("mug"), "guest": mutationInput{"email": "g", "name": ""}}, 0, []string{"INVALID input.guest.email", "INVALID input.guest.name"}},
		{"ID of a guest", "placeOrder", order.with("customerId", "guest:a"), 0, []string{"INVALID input.customerId"}},
		{"claim: unknown customer", "claimOrders", mutationInput{"customerId": "nobody"}, 1, []string{"NOT_FOUND input.customerId"}},
		{"claim: ID of a guest", "claimOrders", mutationInput{"customerId": "guest:a"}, 0, []string{"INVALID input.customerId"}},
		{"claim: no order", "claimOrders", mutationInput{"customerId": "ann"}, 3, []string{"NOT_FOUND "}},
		{"quantity 0", "placeOrder", order.with("items", line("mug", 0)), 0, []string{"INVALID input.items.0.quantity"}},
		{"negative quantity", "placeOrder", order.with("items", line("mug", -1)), 0, []string{"INVALID input.items.0.quantity"}},
		{"huge quantity", "placeOrder", order.with("items", line("mug", 1_000_001)), 0, []string{"INVALID input.items.0.quantity"}},
		{"the largest Int", "placeOrder", order.with("items", line("mug", 1<<31-1)), 0, []string{"INVALID input.items.0.quantity"}},
		{"more than there is", "placeOrder", order.with("items", line("mug", 1_000_000)), 1, []string{"INSUFFICIENT_STOCK input.items.0.quantity"}},
		{"lines that sum up to too many", "placeOrder", order.with("items", append(line("mug", 1_000_000), line("mug", 1)...)), 0, []string{"INVALID input.items.1.quantity"}},
		{"lines that sum up to more than there is", "placeOrder", order.with("items", append(line("mug", 100), line("mug", 3)...)), 1, []string{"INSUFFICIENT_STOCK input.items.0.quantity"}},
		{"currencies mixed", "placeOrder", order.with("items", lines("mug", "yen")), 1, []string{"INVALID input.items.1.sku"}},
		{"no items", "placeOrder", order.with("items", []mutationInput{}), 0, []string{"INVALID input.items"}},
		{"one line too many", "placeOrder", order.with("items", lines(skus(commerce.MaxLines+1)...)), 0, []string{"TOO_MANY_LINES input.items"}},
		{"3,000 lines", "placeOrder", order.with("items", slices.Repeat(lines("a"), 3000)), 0, []string{"TOO_MANY_LINES input.items"}},
		{"all of a line", "placeOrder", mutationInput{"customerId": "a#b", "items": line("", 0), "idempotencyKey": "a#b", "shippingAddress": mutationInput{"recipient": " ", "line1": long, "city": "\x01", "countryCode": "XX"}}, 0,
			[]string{"INVALID input.customerId", "INVALID input.items.0.sku", "INVALID input.items.0.quantity", "INVALID input.shippingAddress.recipient", "INVALID input.shippingAddress.line1", "INVALID input.shippingAddress.city", "INVALID input.shippingAddress.countryCode", "INVALID input.idempotencyKey"}},
		{"empty key", "placeOrder", order.with("idempotencyKey", ""), 0, []string{"INVALID input.idempotencyKey"}},
		{"key of 129 bytes", "placeOrder", order.with("idempotencyKey", strings.Repeat("k", 129)), 0, []string{"INVALID input.idempotencyKey"}},

		{"empty name", "createCustomer", customer.with("name", ""), 0, []string{"INVALID input.name"}},
		{"blank name", "createCustomer", customer.with("name", " \t "), 0, []string{"INVALID input.name"}},
		{"name of 100 kB", "createCustomer", customer.with("name", long), 0, []string{"INVALID input.name"}},
		{"name of 201 bytes", "createCustomer", customer.with("name", strings.Repeat("é", 100)+"x"), 0, []string{"INVALID input.name"}},
		{"control characters", "createCustomer", customer.with("name", "a\x00b"), 0, []string{"INVALID input.name"}},
		{"no e-mail address", "createCustomer", customer.with("email", "cleo"), 0, []string{"INVALID input.email"}},
		{"two at signs", "createCustomer", customer.with("email", "a@b@c"), 0, []string{"INVALID input.email"}},
		{"e-mail address with #", "createCustomer", customer.with("email", "a#b@example.com"), 0, []string{"INVALID input.email"}},
		{"e-mail address with a space", "createCustomer", customer.with("email", "a b@example.com"), 0, []string{"INVALID input.email"}},
		{"empty e-mail address", "createCustomer", customer.with("email", ""), 0, []string{"INVALID input.email"}},
		{"e-mail address of 100 kB", "createCustomer", customer.with("email", long+"@example.com"), 0, []string{"INVALID input.email"}},
		{"id with #", "createCustomer", customer.with("id", "a#METADATA"), 0, []string{"INVALID input.id"}},
		{"empty id", "createCustomer", customer.with("id", ""), 0, []string{"INVALID input.id"}},
		{"id of 65 characters", "createCustomer", customer.with("id", strings.Repeat("x", 65)), 0, []string{"INVALID input.id"}},
		{"11 phone numbers", "createCustomer", customer.with("phoneNumbers", many(11)), 0, []string{"INVALID input.phoneNumbers"}},
		{"an empty phone number", "createCustomer", customer.with("phoneNumbers", []string{"+1", ""}), 0, []string{"INVALID input.phoneNumbers.1"}},
		{"unknown rep", "createCustomer", customer.with("accountRepId", "nobody"), 2, []string{"NOT_FOUND input.accountRepId"}},
		{"all of a customer", "createCustomer", mutationInput{"id": "#", "name": "", "email": "", "accountRepId": "#", "phoneNumbers": []string{long}, "idempotencyKey": "\n"}, 0,
			[]string{"INVALID input.id", "INVALID input.name", "INVALID input.email", "INVALID input.phoneNumbers.0", "INVALID input.accountRepId", "INVALID input.idempotencyKey"}},
		{"update: unknown customer", "updateCustomer", mutationInput{"id": "nobody", "name": "N"}, 1, []string{"NOT_FOUND input.id"}},
		{"update: empty name", "updateCustomer", mutationInput{"id": "ann", "name": ""}, 0, []string{"INVALID input.name"}},
		{"update: no e-mail address", "updateCustomer", mutationInput{"id": "ann", "email": "@"}, 0, []string{"INVALID input.email"}},
		{"rep: id with #", "assignAccountRep", mutationInput{"customerId": "ann", "employeeId": "a#b"}, 0, []string{"INVALID input.employeeId"}},

		{"unknown order", "confirmOrder", mutationInput{"orderId": unknown}, 1, []string{"NOT_FOUND input.orderId"}},
		{"ship: unknown order", "shipOrder", mutationInput{"orderId": unknown, "warehouseId": "north"}, 1, []string{"NOT_FOUND input.orderId"}},
		{"deliver: unknown order", "deliverOrder", mutationInput{"orderId": unknown}, 1, []string{"NOT_FOUND input.orderId"}},
		{"cancel: unknown order", "cancelOrder", mutationInput{"orderId": unknown}, 1, []string{"NOT_FOUND input.orderId"}},
		{"set item: unknown order", "setOrderItem", mutationInput{"orderId": unknown, "sku": "mug", "quantity": 1}, 1, []string{"NOT_FOUND input.orderId"}},
		{"remove item: unknown order", "removeOrderItem", mutationInput{"orderId": unknown, "sku": "mug"}, 1, []string{"NOT_FOUND input.orderId"}},
		{"address: unknown order", "updateShippingAddress", mutationInput{"orderId": unknown, "shippingAddress": address}, 1, []string{"NOT_FOUND input.orderId"}},
		{"billing address: blank city", "updateOrder", mutationInput{"orderId": unknown, "billingAddress": address.with("city", "  ")}, 0, []string{"INVALID input.billingAddress.city"}},
		{"contact: empty", "updateOrder", mutationInput{"orderId": unknown, "contact": mutationInput{}}, 0, []string{"INVALID input.contact"}},
		{"contact: invalid values", "updateOrder", mutationInput{"orderId": unknown, "contact": mutationInput{"email": "x", "phone": strings.Repeat("5", 41), "name": ""}}, 0,
			[]string{"INVALID input.contact.email", "INVALID input.contact.phone", "INVALID input.contact.name"}},
		{"update: unknown order", "updateOrder", mutationInput{"orderId": unknown}, 1, []string{"NOT_FOUND input.orderId"}},
		{"adjustments: unknown order", "setAdjustments", mutationInput{"orderId": unknown, "adjustments": []mutationInput{}}, 1, []string{"NOT_FOUND input.orderId"}},
		{"adjustments: signs, label and included", "setAdjustments", mutationInput{"orderId": unknown, "adjustments": []mutationInput{
			{"kind": "DISCOUNT", "label": "l", "amount": "1"}, {"kind": "SHIPPING", "label": "l", "amount": "-1"}, {"kind": "FEE", "label": strings.Repeat("l", 101), "amount": "1"}, {"kind": "FEE", "label": "l", "amount": "1", "included": true, "line": "a#b"},
		}}, 0, []string{"INVALID input.adjustments.0", "INVALID input.adjustments.1", "INVALID input.adjustments.2.label", "INVALID input.adjustments.3.line", "INVALID input.adjustments.3"}},
		{"adjustments: 21", "setAdjustments", mutationInput{"orderId": unknown, "adjustments": slices.Repeat([]mutationInput{{"kind": "TAX", "label": "l", "amount": "1"}}, 21)}, 0, []string{"INVALID input.adjustments"}},
		{"note: unknown order", "addOrderNote", mutationInput{"orderId": unknown, "note": "n"}, 1, []string{"NOT_FOUND input.orderId"}},
		{"note: blank", "addOrderNote", mutationInput{"orderId": unknown, "note": " "}, 0, []string{"INVALID input.note"}},
		{"note: 1,001 bytes", "addOrderNote", mutationInput{"orderId": unknown, "note": strings.Repeat("n", 1001)}, 0, []string{"INVALID input.note"}},
		{"hold: unknown order", "holdOrder", mutationInput{"orderId": unknown, "reason": "r"}, 1, []string{"NOT_FOUND input.orderId"}},
		{"hold: no reason", "holdOrder", mutationInput{"orderId": unknown, "reason": ""}, 0, []string{"INVALID input.reason"}},
		{"erase: customer with #", "eraseCustomer", mutationInput{"customerId": "a#b"}, 0, []string{"INVALID input.customerId"}},
		{"erase: unknown customer", "eraseCustomer", mutationInput{"customerId": "nobody"}, 1, []string{"NOT_FOUND input.customerId"}},
		{"payment: invalid values", "recordPayment", mutationInput{"orderId": "42", "kind": "VOID", "amount": mutationInput{"amount": "0"}, "provider": "Stripe", "reference": "a#b"}, 0,
			[]string{"INVALID input.orderId", "INVALID input.amount.amount", "INVALID input.provider", "INVALID input.reference"}},
		{"payment: unknown return", "recordPayment", mutationInput{"orderId": unknown, "kind": "VOID", "amount": mutationInput{"amount": "1"}, "provider": "stripe", "reference": "a", "returnId": "r"}, 0, []string{"INVALID input.returnId"}},
		{"payment: reason without a return", "recordPayment", mutationInput{"orderId": unknown, "kind": "REFUND", "amount": mutationInput{"amount": "1"}, "provider": "stripe", "reference": "a", "reason": "r"}, 0, []string{"INVALID input.reason"}},
		{"return: invalid values", "requestReturn", mutationInput{"orderId": "42", "lines": []mutationInput{{"sku": "a#b", "quantity": 0, "reason": ""}, {"sku": "mug", "quantity": 1, "reason": "r"}, {"sku": "mug", "quantity": 1, "reason": "r"}}}, 0,
			[]string{"INVALID input.orderId", "INVALID input.lines.0.sku", "INVALID input.lines.0.quantity", "INVALID input.lines.0.reason", "INVALID input.lines.2.sku"}},
		{"return: no lines", "requestReturn", mutationInput{"orderId": unknown, "lines": []mutationInput{}}, 0, []string{"INVALID input.lines"}},
		{"return: unknown order", "requestReturn", mutationInput{"orderId": unknown, "lines": []mutationInput{{"sku": "mug", "quantity": 1, "reason": "r"}}}, 1, []string{"NOT_FOUND input.orderId"}},
		{"approved return: invalid values", "approveReturn", mutationInput{"orderId": "42", "returnId": "a#b"}, 0, []string{"INVALID input.orderId", "INVALID input.returnId"}},
		{"rejected return: invalid values", "rejectReturn", mutationInput{"orderId": "42", "returnId": "a#b", "reason": ""}, 0, []string{"INVALID input.orderId", "INVALID input.returnId", "INVALID input.reason"}},
		{"received return: invalid values", "receiveReturn", mutationInput{"orderId": "42", "returnId": "a#b", "warehouseId": "", "lines": []mutationInput{{"sku": "", "restocked": 0}}}, 0,
			[]string{"INVALID input.orderId", "INVALID input.returnId", "INVALID input.warehouseId", "INVALID input.lines.0.sku", "INVALID input.lines.0.restocked"}},
		{"received return: unknown order", "receiveReturn", mutationInput{"orderId": unknown, "returnId": "r", "warehouseId": "north", "lines": []mutationInput{}}, 1, []string{"NOT_FOUND input.orderId"}},
		{"unmatched payment: invalid values", "dismissUnmatchedPayment", mutationInput{"provider": "Stripe", "reference": "a#b"}, 0, []string{"INVALID input.provider", "INVALID input.reference"}},
		{"unmatched payment: none", "dismissUnmatchedPayment", mutationInput{"provider": "stripe", "reference": "a"}, 1, []string{"NOT_FOUND input.reference"}},
		{"webhook: invalid values", "createWebhook", mutationInput{"url": "http://example.com", "documentId": "d"}, 0, []string{"INVALID input.url", "INVALID input.documentId"}},
		{"webhook: pause an unknown one", "pauseWebhook", mutationInput{"webhookId": "w"}, 1, []string{"NOT_FOUND input.webhookId"}},
		{"webhook: resume an unknown one", "resumeWebhook", mutationInput{"webhookId": "w"}, 1, []string{"NOT_FOUND input.webhookId"}},
		{"webhook: rotate the secret of an unknown one", "rotateWebhookSecret", mutationInput{"webhookId": "w"}, 1, []string{"NOT_FOUND input.webhookId"}},
		{"webhook: replay an unknown one", "replayWebhook", mutationInput{"webhookId": "w", "from": "2026-01-01T00:00:00Z"}, 1, []string{"NOT_FOUND input.webhookId"}},
		{"webhook: malformed ID", "deleteWebhook", mutationInput{"webhookId": "a#b"}, 0, []string{"INVALID input.webhookId"}},
		{"webhook: malformed ID, pause", "pauseWebhook", mutationInput{"webhookId": "a#b"}, 0, []string{"INVALID input.webhookId"}},
		{"webhook: malformed ID, resume", "resumeWebhook", mutationInput{"webhookId": "a#b"}, 0, []string{"INVALID input.webhookId"}},
		{"webhook: malformed ID, rotate", "rotateWebhookSecret", mutationInput{"webhookId": "a#b"}, 0, []string{"INVALID input.webhookId"}},
		{"payment: unknown order", "recordPayment", mutationInput{"orderId": unknown, "kind": "VOID", "amount": mutationInput{"amount": "1"}, "provider": "stripe", "reference": "a"}, 1, []string{"NOT_FOUND input.orderId"}},
		{"fulfillment: invalid values", "createFulfillment", mutationInput{"orderId": "42", "warehouseId": "#", "lines": []mutationInput{{"sku": "#", "quantity": 0}}, "trackingNumber": "a#b", "trackingUrl": "javascript:alert(1)"}, 0,
			[]string{"INVALID input.orderId", "INVALID input.warehouseId", "INVALID input.lines.0.sku", "INVALID input.lines.0.quantity", "INVALID input.trackingNumber", "INVALID input.trackingUrl"}},
		{"fulfillment: no lines", "createFulfillment", mutationInput{"orderId": unknown, "warehouseId": "north", "lines": []mutationInput{}}, 0, []string{"INVALID input.lines"}},
		{"fulfillment: unknown order", "createFulfillment", mutationInput{"orderId": unknown, "warehouseId": "north"}, 1, []string{"NOT_FOUND input.orderId"}},
		{"tracking: invalid values", "updateTracking", mutationInput{"orderId": unknown, "fulfillmentId": unknown, "trackingUrl": "ftp://example.com"}, 0, []string{"INVALID input.trackingUrl"}},
		{"tracking: unknown order", "updateTracking", mutationInput{"orderId": unknown, "fulfillmentId": unknown}, 1, []string{"NOT_FOUND input.orderId"}},
		{"delivery: malformed ID", "deliverFulfillment", mutationInput{"orderId": unknown, "fulfillmentId": "42"}, 0, []string{"INVALID input.fulfillmentId"}},
		{"cancelled fulfillment: unknown order", "cancelFulfillment", mutationInput{"orderId": unknown, "fulfillmentId": unknown}, 1, []string{"NOT_FOUND input.orderId"}},
		{"cancelled items: no lines", "cancelOrderItems", mutationInput{"orderId": "42", "lines": []mutationInput{}}, 0, []string{"INVALID input.orderId", "INVALID input.lines"}},
		{"cancelled items: invalid values", "cancelOrderItems", mutationInput{"orderId": unknown, "lines": []mutationInput{{"sku": "#", "quantity": -1}}}, 0, []string{"INVALID input.lines.0.sku", "INVALID input.lines.0.quantity"}},
		{"cancelled items: unknown order", "cancelOrderItems", mutationInput{"orderId": unknown, "lines": []mutationInput{{"sku": "mug", "quantity": 1}}}, 1, []string{"NOT_FOUND input.orderId"}},
		{"tags: unknown order", "tagOrder", mutationInput{"orderId": unknown, "add": []string{"vip"}}, 1, []string{"NOT_FOUND input.orderId"}},
		{"tags: empty, with a separator, too long", "tagOrder", mutationInput{"orderId": unknown, "add": []string{" ", "a#b"}, "remove": []string{"fine", strings.Repeat("t", 65)}}, 0, []string{"INVALID input.add.0", "INVALID input.add.1", "INVALID input.remove.1"}},
		{"tags: 21", "tagOrder", mutationInput{"orderId": unknown, "add": append(tags("a"), "b")}, 0, []string{"INVALID input.add"}},
		{"release: malformed order ID", "releaseOrder", mutationInput{"orderId": "42"}, 0, []string{"INVALID input.orderId"}},
		{"release: unknown order", "releaseOrder", mutationInput{"orderId": unknown}, 1, []string{"NOT_FOUND input.orderId"}},
		{"malformed order ID", "confirmOrder", mutationInput{"orderId": "42"}, 0, []string{"INVALID input.orderId"}},
		{"deliver: malformed order ID", "deliverOrder", mutationInput{"orderId": "42"}, 0, []string{"INVALID input.orderId"}},
		{"order id with U", "shipOrder", mutationInput{"orderId": "01HVMK3P2Q000000000000000U", "warehouseId": "#"}, 0, []string{"INVALID input.orderId", "INVALID input.warehouseId"}},
		{"shipment: control character and 201 bytes", "shipOrder", mutationInput{"orderId": unknown, "warehouseId": "north", "trackingNumber": "1\x00", "carrier": strings.Repeat("c", 201)}, 0,
			[]string{"INVALID input.trackingNumber", "INVALID input.carrier"}},
		{"note with a control character", "confirmOrder", mutationInput{"orderId": unknown, "note": "a\x07"}, 0, []string{"INVALID input.note"}},
		{"note of 100 kB", "cancelOrder", mutationInput{"orderId": unknown, "note": long}, 0, []string{"INVALID input.note"}},
		{"set item: quantity 0", "setOrderItem", mutationInput{"orderId": unknown, "sku": "mug", "quantity": 0}, 0, []string{"INVALID input.quantity"}},
		{"set item: SKU with #", "setOrderItem", mutationInput{"orderId": unknown, "sku": "#", "quantity": 1}, 0, []string{"INVALID input.sku"}},
		{"address: lower-case country", "updateShippingAddress", mutationInput{"orderId": unknown, "shippingAddress": address.with("countryCode", "gb")}, 0, []string{"INVALID input.shippingAddress.countryCode"}},
		{"address: blank city", "updateShippingAddress", mutationInput{"orderId": unknown, "shippingAddress": address.with("city", "  ")}, 0, []string{"INVALID input.shippingAddress.city"}},

		{"negative price", "createProduct", product.with("unitPrice", mutationInput{"amount": "-0.01"}), 0, []string{"INVALID input.unitPrice.amount"}},
		{"price with three digits", "createProduct", product.with("unitPrice", mutationInput{"amount": "9.999"}), 0, []string{"INVALID input.unitPrice.amount"}},
		{"price in yen with digits", "createProduct", product.with("unitPrice", mutationInput{"amount": "9.5", "currencyCode": "JPY"}), 0, []string{"INVALID input.unitPrice.amount"}},
		{"price of 16 digits", "createProduct", product.with("unitPrice", mutationInput{"amount": "12345678901234.00"}), 0, []string{"INVALID input.unitPrice.amount"}},
		{"category with #", "createProduct", product.with("category", "a#b"), 0, []string{"INVALID input.category"}},
		{"SKU with a space", "createProduct", product.with("sku", "a b"), 0, []string{"INVALID input.sku"}},
		{"update: blank category", "updateProduct", mutationInput{"sku": "mug", "category": " "}, 0, []string{"INVALID input.category"}},
		{"warehouse without a name", "createWarehouse", mutationInput{"name": ""}, 0, []string{"INVALID input.name"}},
		{"negative level", "setInventoryLevel", mutationInput{"sku": "mug", "warehouseId": "north", "quantity": -1}, 0, []string{"INVALID input.quantity"}},
		{"level of more than a billion", "setInventoryLevel", mutationInput{"sku": "mug", "warehouseId": "north", "quantity": 1_000_000_001}, 0, []string{"INVALID input.quantity"}},
		{"delta 0", "adjustInventory", mutationInput{"sku": "mug", "warehouseId": "north", "delta": 0}, 0, []string{"INVALID input.delta"}},
		{"transfer: no pieces", "transferInventory", mutationInput{"sku": "mug", "fromWarehouseId": "north", "toWarehouseId": "south", "quantity": 0}, 0, []string{"INVALID input.quantity"}},
		{"transfer: one warehouse", "transferInventory", mutationInput{"sku": "mug", "fromWarehouseId": "north", "toWarehouseId": "north", "quantity": 1}, 0, []string{"INVALID input.toWarehouseId"}},
		{"transfer: unknown warehouse", "transferInventory", mutationInput{"sku": "mug", "fromWarehouseId": "north", "toWarehouseId": "nowhere", "quantity": 1}, 1, []string{"NOT_FOUND input.toWarehouseId"}},
		{"the smallest Int", "adjustInventory", mutationInput{"sku": "mug", "warehouseId": "north", "delta": -1 << 31}, 0, []string{"INVALID input.delta"}},
		{"employee's name with #", "hireEmployee", employee.with("name", "a#b"), 0, []string{"INVALID input.name"}},
		{"employee's title with #", "hireEmployee", employee.with("jobTitle", "a#b"), 0, []string{"INVALID input.jobTitle"}},
		{"unknown warehouse", "hireEmployee", employee.with("warehouseId", "nowhere"), 2, []string{"NOT_FOUND input.warehouseId"}},
		{"update: unknown warehouse", "updateWarehouse", mutationInput{"id": "nowhere", "name": "N"}, 1, []string{"NOT_FOUND input.id"}},
		{"update: blank warehouse name", "updateWarehouse", mutationInput{"id": "north", "name": " "}, 0, []string{"INVALID input.name"}},
		{"update: blank title", "updateEmployee", mutationInput{"id": "sam", "jobTitle": "\u3000"}, 0, []string{"INVALID input.jobTitle"}},
	}
	tried := map[string]bool{}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		for _, c := range cases {
			tried[c.mutation] = true
			t.Run(c.mutation+" "+c.name, func(t *testing.T) {
				s.wire.reset()
				s.refuse(t, c.mutation, c.input, c.reasons...)
				if made := s.wire.operationNames(); len(made) != c.requests {
					t.Errorf("requests are %q, want %d", made, c.requests)
				}
			})
		}
	})
	for mutation := range workload.PayloadRecordFields {
		if !tried[mutation] {
			t.Errorf("this test has no invalid input for %s", mutation)
		}
	}
}

// An input of the wrong type is an error of the request.
func TestInputOfTheWrongType(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		before := s.records(t)
		for _, c := range []struct{ mutation, variables string }{
			{"placeOrder", `{"input": {"customerId": "ann", "items": [{"sku": "mug", "quantity": 2147483648}]}}`},
			{"placeOrder", `{"input": {"customerId": "ann", "items": [{"sku": "mug", "quantity": -99999999999999999999}]}}`},
			{"placeOrder", `{"input": {"customerId": "ann", "items": [{"sku": "mug", "quantity": 1.5}]}}`},
			{"placeOrder", `{"input": {"customerId": "ann", "items": [{"sku": "mug"}]}}`},
			{"placeOrder", `{"input": {"customerId": "ann", "items": null}}`},
			{"placeOrder", `{"input": {"customerId": "ann", "items": [null]}}`},
			{"placeOrder", `{"input": {"customerId": "ann", "items": [], "total": 5}}`},
			{"placeOrder", `{}`},
			{"hireEmployee", `{"input": {"name": "T", "jobTitle": "P", "hireDate": "2026-02-30"}}`},
			{"updateCustomer", `{"input": {"id": "ann", "expectedVersion": 3000000000}}`},
			{"updateProduct", `{"input": {"sku": "mug", "unitPrice": {"amount": "much"}}}`},
			{"updateProduct", `{"input": {"sku": "mug", "unitPrice": {"amount": "1e400"}}}`},
			{"updateProduct", `{"input": {"sku": "mug", "unitPrice": {"amount": true}}}`},
			{"updateProduct", `{"input": {"sku": "mug", "unitPrice": {"amount": "` + strings.Repeat("8", 10_000) + `"}}}`},
			{"updateProduct", `{"input": {"sku": "mug", "unitPrice": {"amount": "1", "currencyCode": "EURO"}}}`},
			{"updateProduct", `{"input": {"sku": "mug", "unitPrice": {"amount": "1", "currencyCode": 840}}}`},
			{"placeOrder", `{"input": {"customerId": "ann", "items": [{"sku": "mug", "quantity": 1}], "expectedTotal": {"amount": "19,50"}}}`},
		} {
			s.wire.reset()
			got := s.ask(t, mutation(c.mutation, "__typename"), json.RawMessage(c.variables))
			if len(got.Errors) == 0 || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" || len(got.Errors[0].Message) > 300 || got.Status >= 500 || got.Data != nil || len(s.wire.operationNames()) > 0 {
				t.Errorf("%s %s: status %d, data %s, errors %+v, requests %q", c.mutation, c.variables, got.Status, got.Data, got.Errors, s.wire.operationNames())
			}
		}
		// A body over the size limit is an error of the request, too.
		body := mutationInput{"input": mutationInput{"customerId": "ann", "items": slices.Repeat(lines("mug"), 10_000)}}
		variables, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.ask(t, mutation("placeOrder", "__typename"), variables); got.Status != http.StatusRequestEntityTooLarge || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "BODY_TOO_LARGE" {
			t.Errorf("an order with 10,000 lines gets status %d, %+v", got.Status, got.Errors)
		}
		if diff := changes(before, s.records(t)); diff != "" {
			t.Errorf("a malformed request wrote\n%s", diff)
		}
	})
}

// Lines of one product are merged into one line, and their sum reduces the stock.
func TestLinesOfOneProductAreAddedUp(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		got := s.mutate(t, "placeOrder", mutationInput{"customerId": "ann", "items": []mutationInput{
			{"sku": "mug", "quantity": 2}, {"sku": "plate", "quantity": 1}, {"sku": "mug", "quantity": 3},
		}}, `itemCount total { amount } items { nodes { productId quantity } }`)
		if want := `{"itemCount":2,"total":{"amount":"49.50"},"items":{"nodes":[{"productId":"mug","quantity":5},{"productId":"plate","quantity":1}]}}`; string(got.Value) != want {
			t.Errorf("the order is %s, want %s", got.Value, want)
		}
		if got := s.stock(t, "mug"); !strings.HasPrefix(got, "97 of 102 available") {
			t.Errorf("of the mugs, %s", got)
		}
	})
}

// Values at the limits are accepted, and returned unchanged.
func TestValuesAtTheLimit(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		name := strings.Repeat("é", 100)
		note := strings.Repeat("🙂", 250)
		id := strings.Repeat("A-z_0.", 10) + "1234"
		for _, c := range []struct {
			mutation string
			input    mutationInput
			fields   string
			want     string
		}{
			{"createCustomer", mutationInput{"id": id, "name": name, "email": strings.Repeat("x", 242) + "@example.com"}, "id name", fmt.Sprintf(`{"id":%q,"name":%q}`, id, name)},
			{"createProduct", mutationInput{"sku": "max", "name": "<b>'\"\\", "category": "Möbel & Co", "unitPrice": mutationInput{"amount": "9999999999999.99"}}, "name category unitPrice { amount }", ""},
			{"createProduct", mutationInput{"sku": "free", "name": "Free", "category": "Gifts", "unitPrice": mutationInput{"amount": "0"}}, "unitPrice { amount currencyCode }", `{"unitPrice":{"amount":"0.00","currencyCode":"USD"}}`},
			{"setInventoryLevel", mutationInput{"sku": "none", "warehouseId": "north", "quantity": 1_000_000_000}, "quantity", `{"quantity":1000000000}`},
			{"placeOrder", mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "none", "quantity": 1_000_000}}, "idempotencyKey": strings.Repeat("k", 128)}, "total { amount }", `{"total":{"amount":"1000000.00"}}`},
			{"confirmOrder", mutationInput{"orderId": s.place(t, "bob", "mug"), "note": note}, "timeline(last: 1) { nodes { note } }", fmt.Sprintf(`{"timeline":{"nodes":[{"note":%q}]}}`, note)},
			{"confirmOrder", mutationInput{"orderId": strings.ToLower(s.place(t, "bob", "mug")), "note": ""}, "timeline(last: 1) { nodes { note } }", `{"timeline":{"nodes":[{"note":null}]}}`},
		} {
			got := s.mutate(t, c.mutation, c.input, c.fields)
			if c.want != "" && string(got.Value) != c.want {
				t.Errorf("%s returns %s, want %s", c.mutation, got.Value, c.want)
			}
			if c.want == "" && !strings.Contains(string(got.Value), `"amount":"9999999999999.99"`) {
				t.Errorf("%s gives %s", c.mutation, got.Value)
			}
		}
		// The total inventory of a product is a 32-bit integer in the schema.
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "none", "warehouseId": "south", "quantity": 1_000_000_000}, "product { totalInventory }")
		s.mutate(t, "createWarehouse", mutationInput{"id": "east", "name": "East"})
		s.refuse(t, "setInventoryLevel", mutationInput{"sku": "none", "warehouseId": "east", "quantity": 1}, "INVALID input.quantity")
		s.refuse(t, "adjustInventory", mutationInput{"sku": "none", "warehouseId": "east", "delta": 1}, "INVALID input.delta")
		// Two items at the maximum price exceed the maximum amount.
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "max", "warehouseId": "north", "quantity": 1000})
		s.refuse(t, "placeOrder", mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "max", "quantity": 2}}}, "INVALID input.items")
		s.refuse(t, "placeOrder", mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "max", "quantity": 1000}}}, "INVALID input.items")
		order := s.place(t, "ann", "max")
		s.refuse(t, "setOrderItem", mutationInput{"orderId": order, "sku": "max", "quantity": 3}, "INVALID input.quantity")
		s.mutate(t, "cancelOrder", mutationInput{"orderId": order})
	})
}
