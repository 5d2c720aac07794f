package museum_test

var stockRooms = []room{{
	name: "last-unit", sources: []string{"vendurehq/vendure#3508", "simplcommerce/SimplCommerce#1111", "cubecart/v6#4224", "openfoodfoundation/openfoodnetwork#4018"},
	there: "Two customers buy the last unit at the same time. Both orders pass the check of the stock, which becomes negative.",
	here:  "One order is placed, and the other customer gets the user error `INSUFFICIENT_STOCK`.",
	test: func(s *shop) {
		s.place("c0", 3)
		s.wantCode("INSUFFICIENT_STOCK", s.during(func() { s.place("c1", 1) }, "placeOrder", order("c2", 1)))
		s.want(`{ product(sku: "p0") { available orderCount } }`, `{"product":{"available":0,"orderCount":2}}`)
	},
}, {
	name: "loser-gets-a-reason", sources: []string{"solidusio/solidus#3020"},
	there: "The customer who is a moment too late for the last unit gets an internal error.",
	here:  "The customer gets a user error, which names the product and the units that are left.",
	test: func(s *shop) {
		other := func() { s.place("c1", 3) }
		s.interruption.Store(&other)
		body := s.post(s.interrupted, "", `mutation { placeOrder(input: {customerId: "c2", items: [{sku: "p0", quantity: 2}]}) {
			order { id } userErrors { ... on InsufficientStock { code sku available } } } }`)
		if want := `{"data":{"placeOrder":{"order":null,"userErrors":[{"code":"INSUFFICIENT_STOCK","sku":"p0","available":1}]}}}`; body != want {
			s.Errorf("the response is %s, want %s", body, want)
		}
	},
}, {
	name: "same-product-twice", sources: []string{"vendurehq/vendure#2702"},
	there: "An order contains a product in two lines. Each line is compared with the stock separately, so more units are sold than exist.",
	here:  "The units of all lines of a product are added up before they are compared.",
	test: func(s *shop) {
		three := input{"sku": "p0", "quantity": 3}
		s.reject("INSUFFICIENT_STOCK", "placeOrder", input{"customerId": "c0", "items": []input{three, three}})
		s.wantStock(4)
	},
}, {
	name: "reserved-when-placed", sources: []string{"FOSSBilling/FOSSBilling#4130", "vendurehq/vendure#1738"},
	there: "Units are only taken from the stock when an order is paid or activated. Until then, they are sold again.",
	here:  "A placed order reserves its units at once.",
	test: func(s *shop) {
		s.place("c0", 4)
		s.wantStock(0)
		s.reject("INSUFFICIENT_STOCK", "placeOrder", order("c1", 1))
	},
}, {
	name: "cancelled-twice", sources: []string{"woocommerce/woocommerce#22489"},
	there: "The cancellation of an order puts its units back into stock twice.",
	here:  "If two requests cancel an order, the second one gets the user error `INVALID_TRANSITION`, and the units return once.",
	test: func(s *shop) {
		cancel := input{"orderId": s.place("c0", 3)}
		s.wantCode("INVALID_TRANSITION", s.during(func() { s.do("cancelOrder", cancel) }, "cancelOrder", cancel))
		s.wantStock(4)
	},
}, {
	name: "cancelled-beside-shipment", sources: []string{"spree/spree#5203"}, variants: []string{"cancelled-twice"},
	there: "An order is cancelled while the warehouse ships it, so a cancelled order is on its way.",
	here:  "The first of both changes wins, and the other gets a user error.",
	test: func(s *shop) {
		id := s.place("c0", 2)
		s.do("confirmOrder", input{"orderId": id})
		a := s.during(func() { s.do("cancelOrder", input{"orderId": id}) }, "shipOrder", input{"orderId": id, "warehouseId": "w0", "withoutAddress": true})
		s.wantCode("INVALID_TRANSITION", a)
		s.want(`{ inventoryLevel(sku: "p0", warehouseId: "w0") { quantity } }`, `{"inventoryLevel":{"quantity":2}}`)
		s.wantStock(4)
	},
}, {
	name: "edited-after-cancellation", sources: []string{"openfoodfoundation/openfoodnetwork#7166", "openfoodfoundation/openfoodnetwork#7279", "woocommerce/woocommerce#28585"},
	there: "The line items and adjustments of a cancelled order can be changed. So units return to the stock twice, or the total changes.",
	here:  "A cancelled order cannot be edited.",
	test: func(s *shop) {
		id := s.place("c0", 3)
		s.do("cancelOrder", input{"orderId": id})
		s.reject("INVALID_TRANSITION", "setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 1})
		s.reject("INVALID_TRANSITION", "removeOrderItem", input{"orderId": id, "sku": "p0"})
		s.reject("INVALID_TRANSITION", "setAdjustments", input{"orderId": id, "adjustments": []input{}})
		s.wantStock(4)
	},
}, {
	name: "own-reservation", sources: []string{"saleor/saleor#577", "opencart/opencart#3811", "opencart/opencart#8869"},
	there: "An order that has reserved the last units cannot be edited, because no further units are available.",
	here:  "The units that an order has reserved are available to it.",
	test: func(s *shop) {
		id := s.place("c0", 3)
		s.do("setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 4})
		s.do("setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 2})
		s.reject("INSUFFICIENT_STOCK", "setOrderItem", input{"orderId": id, "sku": "p0", "quantity": 5})
		s.wantStock(2)
	},
}, {
	name: "removed-item", sources: []string{"woocommerce/woocommerce#28756"},
	there: "A line item is removed from an order, but its units do not return to the stock.",
	here:  "The units are available again in the same transaction.",
	test: func(s *shop) {
		id := s.do("placeOrder", input{"customerId": "c0", "items": []input{{"sku": "p0", "quantity": 3}, {"sku": "p1", "quantity": 1}}})
		s.wantStock(1)
		s.do("removeOrderItem", input{"orderId": id, "sku": "p0"})
		s.wantStock(4)
	},
}, {
	name: "lost-update", sources: []string{"nopSolutions/nopCommerce#8085", "vendurehq/vendure#4930"},
	there: "Two changes of a stock read the same quantity, and the last one overwrites the other.",
	here:  "Both changes count.",
	test: func(s *shop) {
		adjust := func(delta int) input { return input{"sku": "p0", "warehouseId": "w0", "delta": delta} }
		s.during(func() { s.do("adjustInventory", adjust(3)) }, "adjustInventory", adjust(2))
		s.want(`{ inventoryLevel(sku: "p0", warehouseId: "w0") { quantity } }`, `{"inventoryLevel":{"quantity":7}}`)
		s.wantStock(9)
	},
}}
