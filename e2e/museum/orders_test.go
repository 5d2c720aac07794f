package museum_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

var orderRooms = []room{{
	name: "retried-while-running", sources: []string{"janavipandole/Cara#4929", "medusajs/medusa#1887"}, variants: []string{"key-is-replaced", "retry-is-rejected"},
	there: "A client repeats a request with the same key while the first one is running, and gets a conflict or an internal error.",
	here:  "Both requests get the same order, which is placed once.",
	test: func(s *shop) {
		for key, units := range []int{1, 3} { // the second order takes the last units
			in, first := order("c0", units), ""
			in["idempotencyKey"] = fmt.Sprint(key)
			during := s.during(func() { first = s.do("placeOrder", in) }, "placeOrder", in)
			later := s.send(s.url, "placeOrder", in)
			if during.Record().ID != first || later.Record().ID != first {
				s.Errorf("the next responses are %v and %v, want the order %s", during, later, first)
			}
		}
		s.wantStock(0)
	},
}, {
	name: "keys-of-two-callers", sources: []string{"janavipandole/Cara#4950"},
	there: "The keys of requests are unique for all customers together, so a customer cannot use a key of another customer.",
	here:  "Each caller has its own keys.",
	test: func(s *shop) {
		url, token := s.serveCustomers()
		for _, customer := range []string{"c0", "c1"} {
			document := fmt.Sprintf(`mutation { placeOrder(input: {customerId: %q, items: [{sku: "p0", quantity: 1}], idempotencyKey: "k"}) { order { status } userErrors { code } } }`, customer)
			if body := s.post(url, token(customer), document); body != `{"data":{"placeOrder":{"order":{"status":"PENDING"},"userErrors":[]}}}` {
				s.Errorf("the response to %s is %s", customer, body)
			}
		}
		s.wantStock(2)
	},
}, {
	name: "false-conflict", sources: []string{"medusajs/medusa#3206", "medusajs/medusa#3556"}, variants: []string{"loser-gets-a-reason"},
	there: "Several orders are placed at the same time, and some fail with a conflict, although there is enough stock.",
	here:  "All orders are placed, even by the same customer.",
	test: func(s *shop) {
		if a := s.during(func() { s.place("c0", 1) }, "placeOrder", order("c0", 1)); !a.Succeeded() {
			s.Errorf("the second order is rejected: %v", a)
		}
		s.want(`{ customer(id: "c0") { orderCount } }`, `{"customer":{"orderCount":2}}`)
	},
}, {
	name: "read-by-another-customer", sources: []string{"evershopcommerce/evershop#881", "dotnet/eShop#996"},
	there: "With the ID of an order, other customers or strangers can read it.",
	here:  "For them, the order does not exist.",
	test: func(s *shop) {
		url, token := s.serveCustomers()
		query := fmt.Sprintf(`{ order(id: %q) { status } }`, s.place("c0", 1))
		for customer, want := range map[string]string{"c0": `{"data":{"order":{"status":"PENDING"}}}`, "c1": `{"data":{"order":null}}`} {
			if body := s.post(url, token(customer), query); body != want {
				s.Errorf("%s reads %s, want %s", customer, body, want)
			}
		}
	},
}, {
	name: "cancelled-by-another-customer", sources: []string{"dotnet/eShop#996"},
	there: "With the ID of an order, every customer can cancel it.",
	here:  "Other customers get the user error `NOT_FOUND`.",
	test: func(s *shop) {
		url, token := s.serveCustomers()
		id := s.place("c0", 1)
		body := s.post(url, token("c1"), fmt.Sprintf(`mutation { cancelOrder(input: {orderId: %q}) { order { id } userErrors { code } } }`, id))
		if body != `{"data":{"cancelOrder":{"order":null,"userErrors":[{"code":"NOT_FOUND"}]}}}` {
			s.Errorf("the response to another customer is %s", body)
		}
		s.want(fmt.Sprintf(`{ order(id: %q) { status } }`, id), `{"order":{"status":"PENDING"}}`)
	},
}, {
	name: "update-before-creation", sources: []string{"Shopify/shopify-app-js#603"},
	there: "The update of an order is sent before its creation, if both happen within a second.",
	here:  "The events of an order are in order, even if the clock of the server that makes a change is behind.",
	test: func(s *shop) {
		id := s.place("c0", 1)
		clock := s.opts.Clock
		s.opts.Clock = func() time.Time { return clock().Add(-time.Hour) }
		behind := s.serve(storetest.WithoutResponseDate(s.engine.Client()))
		s.send(behind, "confirmOrder", input{"orderId": id})
		s.want(fmt.Sprintf(`{ order(id: %q) { timeline(first: 2) { nodes { type } } } }`, id), `{"order":{"timeline":{"nodes":[{"type":"PLACED"},{"type":"CONFIRMED"}]}}}`)
	},
}, {
	name: "outcome-unknown", sources: []string{"ned14/llfio#17", "containerd/containerd#10158"},
	there: "A sync of the disk fails. A program syncs again, and takes the success of the second sync as proof that its data is safe.",
	here:  "If the store does not confirm a commit, the error states that the outcome is unknown. The same request with the same key then returns the order that was placed.",
	test: func(s *shop) {
		lost := false
		url := s.serve(s.proxy(func(operation, body string, send func(string) string) string {
			response := send(body)
			if operation == "TransactWriteItems" && !lost {
				lost, response = true, "{"
			}
			return response
		}))
		const document = `mutation { placeOrder(input: {customerId: "c0", items: [{sku: "p0", quantity: 1}], idempotencyKey: "k"}) { order { status } userErrors { code } } }`
		if body := s.post(url, "", document); !strings.Contains(body, "it is unknown whether the change was made") {
			s.Errorf("the first response is %s", body)
		}
		if body := s.post(url, "", document); body != `{"data":{"placeOrder":{"order":{"status":"PENDING"},"userErrors":[]}}}` {
			s.Errorf("the second response is %s", body)
		}
		s.wantStock(3)
	},
}, {
	name: "stale-payload", sources: []string{"etcd-io/etcd#20418", "etcd-io/etcd#741"},
	there: "A client has written a value, but then reads an older one from a server that is behind.",
	here:  "The payload of a mutation shows the state after the mutation, although a replica of the table is behind.",
	test: func(s *shop) {
		behind := newShop(s.T, 1)
		url := s.serve(s.proxy(func(operation, body string, send func(string) string) string {
			if (operation == "GetItem" || operation == "BatchGetItem") && !strings.Contains(body, `"ConsistentRead":true`) {
				return engine{s.T, behind.engine}.send(operation, body)
			}
			return send(body)
		}))
		body := s.post(url, "", `mutation { placeOrder(input: {customerId: "c0", items: [{sku: "p0", quantity: 1}]}) { order { customer { orderCount } } } }`)
		if want := `{"data":{"placeOrder":{"order":{"customer":{"orderCount":1}}}}}`; body != want {
			s.Errorf("the response is %s, want %s", body, want)
		}
	},
}, {
	name: "literal-out-of-range", sources: []string{"Azure/data-api-builder#881", "youshido-php/GraphQL#142"},
	there: "An `Int` with more than 32 bits leads to an internal error. Or a mutation is executed before the validation finds an error in the document.",
	here:  "The error names the value, and no mutation of the document is executed.",
	test: func(s *shop) {
		body := s.post(s.url, "", `mutation {
			a: adjustInventory(input: {sku: "p0", warehouseId: "w0", delta: 1}) { inventoryLevel { quantity } }
			b: adjustInventory(input: {sku: "p0", warehouseId: "w0", delta: 2147483648}) { inventoryLevel { quantity } } }`)
		if strings.Contains(body, `"data"`) || !strings.Contains(body, "does not fit into an Int") {
			s.Errorf("the response is %s", body)
		}
		s.wantStock(4)
	},
}}

// payment returns the input of a payment of an order. The reference is unique for each payment.
func payment(order, kind, amount, reference string) input {
	return input{"orderId": order, "kind": kind, "amount": input{"amount": amount}, "provider": "bank", "reference": reference}
}

// wantMoney compares the total, the captured and the refunded amount of an order.
func (s *shop) wantMoney(order, total, captured, refunded string) {
	s.Helper()
	s.want(fmt.Sprintf(`{ order(id: %q) { total { amount } captured { amount } refunded { amount } } }`, order),
		fmt.Sprintf(`{"order":{"total":{"amount":%q},"captured":{"amount":%q},"refunded":{"amount":%q}}}`, total, captured, refunded))
}

var paymentRooms = []room{{
	name: "refunded-in-steps", sources: []string{"craftcms/commerce#1098", "saleor/saleor#19645"},
	there: "A single refund cannot exceed the payment, but several refunds together can.",
	here:  "All refunds of an order together cannot exceed its captures.",
	test: func(s *shop) {
		id := s.place("c0", 2)
		s.do("recordPayment", payment(id, "CAPTURE", "3.00", "1"))
		s.do("recordPayment", payment(id, "REFUND", "2.00", "2"))
		s.reject("INVALID", "recordPayment", payment(id, "REFUND", "1.01", "3"))
		s.wantMoney(id, "3.00", "3.00", "2.00")
	},
}, {
	name: "refunded-at-once", sources: []string{"saleor/saleor#19645"}, variants: []string{"cancelled-twice"},
	there: "Two refunds at the same time are compared with the same remaining amount.",
	here:  "The second refund is compared with the first.",
	test: func(s *shop) {
		id := s.place("c0", 2)
		s.do("recordPayment", payment(id, "CAPTURE", "3.00", "1"))
		s.wantCode("INVALID", s.during(func() { s.do("recordPayment", payment(id, "REFUND", "2.00", "2")) }, "recordPayment", payment(id, "REFUND", "2.00", "3")))
		s.wantMoney(id, "3.00", "3.00", "2.00")
	},
}, {
	name: "paid-twice", sources: []string{"vendurehq/vendure#3734"},
	there: "A shop and the webhook of a provider record the same payment at the same time, and one of them gets an error.",
	here:  "Both get the payment, which is recorded once.",
	test: func(s *shop) {
		id := s.place("c0", 2)
		pay := payment(id, "CAPTURE", "3.00", "1")
		first := ""
		if a := s.during(func() { first = s.do("recordPayment", pay) }, "recordPayment", pay); a.Record().ID != first {
			s.Errorf("the second response is %v, want the payment %s", a, first)
		}
		s.wantMoney(id, "3.00", "3.00", "0.00")
	},
}, {
	name: "total-after-cancelled-items", sources: []string{"vendurehq/vendure#1414"},
	there: "Units of an order are cancelled, but its total stays the same.",
	here:  "The total is the price of the remaining units.",
	test: func(s *shop) {
		id := s.place("c0", 3)
		s.do("confirmOrder", input{"orderId": id})
		s.do("cancelOrderItems", input{"orderId": id, "lines": []input{{"sku": "p0", "quantity": 1}}})
		s.wantMoney(id, "3.00", "0.00", "0.00")
		s.wantStock(2)
	},
}, {
	name: "cheaper-after-payment", sources: []string{"vendurehq/vendure#890", "vendurehq/vendure#4013"},
	there: "A paid order becomes cheaper, and then a wrong amount is refunded.",
	here:  "A total cannot fall below the paid amount. First, the difference is refunded.",
	test: func(s *shop) {
		id := s.place("c0", 2)
		s.do("recordPayment", payment(id, "CAPTURE", "3.00", "1"))
		s.reject("INVALID", "setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 1})
		s.do("recordPayment", payment(id, "REFUND", "1.50", "2"))
		s.do("setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 1})
		s.wantMoney(id, "1.50", "3.00", "1.50")
	},
}, {
	name: "discounted-twice", sources: []string{"saleor/saleor#13661", "saleor/saleor#18627"},
	there: "A discount is subtracted again each time the order is computed.",
	here:  "The total is always the price of the line items, plus all adjustments once.",
	test: func(s *shop) {
		id := s.place("c0", 2)
		discount := input{"kind": "DISCOUNT", "label": "Ten percent", "amount": "-0.30"}
		s.do("setAdjustments", input{"orderId": id, "adjustments": []input{discount}})
		s.do("setAdjustments", input{"orderId": id, "adjustments": []input{discount, {"kind": "SHIPPING", "label": "Post", "amount": "1.00"}}})
		s.wantMoney(id, "3.70", "0.00", "0.00")
		s.do("setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 3})
		s.wantMoney(id, "5.20", "0.00", "0.00")
	},
}, {
	name: "returned-twice", sources: []string{"episerver/Foundation#130", "odoo/odoo#164661"},
	there: "A customer returns the same units in several returns, more units than the customer has ordered.",
	here:  "All returns of an order together contain at most its units, even if they are requested at the same time.",
	test: func(s *shop) {
		id := s.place("c0", 2)
		s.do("confirmOrder", input{"orderId": id})
		s.do("shipOrder", input{"orderId": id, "warehouseId": "w0", "withoutAddress": true})
		returned := func(units int) input {
			return input{"orderId": id, "lines": []input{{"sku": "p0", "quantity": units, "reason": "broken"}}}
		}
		s.wantCode("INVALID", s.during(func() { s.do("requestReturn", returned(1)) }, "requestReturn", returned(2)))
		s.do("requestReturn", returned(1))
		s.reject("INVALID", "requestReturn", returned(1))
	},
}}
