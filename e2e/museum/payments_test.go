package museum_test

import (
	"fmt"
	"testing"
)

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
	test: func(t *testing.T) {
		s := newShop(t)
		id := s.place("c0", 2)
		s.do("recordPayment", payment(id, "CAPTURE", "3.00", "1"))
		s.do("recordPayment", payment(id, "REFUND", "2.00", "2"))
		s.reject("INVALID", "recordPayment", payment(id, "REFUND", "1.01", "3"))
		s.wantMoney(id, "3.00", "3.00", "2.00")
	},
}, {
	name: "refunded-at-once", sources: []string{"saleor/saleor#19645"}, variant: "cancelled-twice",
	there: "Two refunds at the same time are compared with the same remaining amount.",
	here:  "The second refund is compared with the first.",
	test: func(t *testing.T) {
		s := newShop(t)
		id := s.place("c0", 2)
		s.do("recordPayment", payment(id, "CAPTURE", "3.00", "1"))
		s.wantCode("INVALID", s.during(func() { s.do("recordPayment", payment(id, "REFUND", "2.00", "2")) }, "recordPayment", payment(id, "REFUND", "2.00", "3")))
		s.wantMoney(id, "3.00", "3.00", "2.00")
	},
}, {
	name: "paid-twice", sources: []string{"vendurehq/vendure#3734"},
	there: "A shop and the webhook of a provider record the same payment at the same time, and one of them gets an error.",
	here:  "Both get the payment, which is recorded once.",
	test: func(t *testing.T) {
		s := newShop(t)
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
	test: func(t *testing.T) {
		s := newShop(t)
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
	test: func(t *testing.T) {
		s := newShop(t)
		id := s.place("c0", 2)
		s.do("recordPayment", payment(id, "CAPTURE", "3.00", "1"))
		s.reject("INVALID", "setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 1})
		s.do("recordPayment", payment(id, "REFUND", "1.50", "2"))
		s.do("setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 1})
		s.wantMoney(id, "1.50", "3.00", "1.50")
	},
}}
