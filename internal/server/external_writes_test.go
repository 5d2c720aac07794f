package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// externalFixture is a fixture with external records. They have no entity, version, embedded items,
// count or currency, and products have no counters. Every record has attributes of the other
// software, with different values on the two records of an order.
func externalFixture(t testing.TB, db *dynamodb.Client) (s *fixture, order string) {
	t.Helper()
	s = newFixture(t, db, commerce.Dataset{})
	f := externalWriter{db: db, table: s.table}
	order = "01HVNR4Q3R0000000000000002"
	mark := func(v string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"__edb_e__": storetest.Str(v), "__edb_v__": storetest.Str("1"), "flag": &types.AttributeValueMemberBOOL{Value: true},
			"texts": &types.AttributeValueMemberSS{Value: []string{v}},
		}
	}
	counted := map[string]types.AttributeValue{"quantity": number(40)}
	f.put(t, map[string]string{"pk": "CUSTOMER#cust_01", "sk": "#METADATA", "customerId": "cust_01", "name": "Alice Chen", "email": "Alice@example.com", "createdAt": "2024-04-01T09:00:00.000Z"}, mark("customer"))
	f.put(t, map[string]string{"pk": "CUSTOMER#cust_02", "sk": "#METADATA", "customerId": "cust_02", "name": "Bo", "email": "none given", "createdAt": "2024-04-01T09:00:00.000Z"}, mark("customer"))
	// One of the products has counters.
	counters := map[string]map[string]types.AttributeValue{"abc": {"totalInventory": number(40), "available": number(38)}}
	for _, sku := range []string{"abc", "def"} {
		f.put(t, map[string]string{"pk": "PRODUCT#" + sku, "sk": "#METADATA", "sku": sku, "name": "Product " + sku, "category": "Things"},
			map[string]types.AttributeValue{"unitPrice": &types.AttributeValueMemberN{Value: "29.9"}}, counters[sku], mark("product"))
		f.put(t, map[string]string{"pk": "PRODUCT#" + sku, "sk": "WAREHOUSE#hall", "sku": sku, "warehouseId": "hall"}, counted, mark("level"))
		f.put(t, map[string]string{"pk": "ORDER#" + order, "sk": "ITEM#" + sku, "gsi1pk": "PRODUCT#" + sku, "gsi1sk": "ORDER#" + order, "productId": sku, "name": "Product " + sku, "qty": "2", "price": "29.9"}, mark("item"))
	}
	f.put(t, map[string]string{"pk": "WAREHOUSE#hall", "sk": "#METADATA", "warehouseId": "hall", "name": "Hall"}, mark("warehouse"))
	f.put(t, map[string]string{"pk": "EMPLOYEE#eve", "sk": "#METADATA", "employeeId": "eve", "name": "Eve", "jobTitle": "Packer", "hireDate": "2020-01-01"}, mark("employee"))
	header := map[string]string{"orderId": order, "customerId": "cust_01", "status": "pending", "total": "119.6", "createdAt": "2024-04-17T10:02:52.920Z"}
	own := map[string]string{"pk": "ORDER#" + order, "sk": "#METADATA", "gsi1pk": "STATUS#pending", "gsi1sk": "ORDER#" + order}
	copied := map[string]string{"pk": "CUSTOMER#cust_01", "sk": "ORDER#" + order}
	for name, v := range header {
		own[name], copied[name] = v, v
	}
	f.put(t, own, mark("order"))
	f.put(t, copied, mark("orderOfCustomer"))
	return s, order
}

// checkUnknownAttributes fails t if a record has lost the attributes of the other software.
func (s *fixture) checkUnknownAttributes(t testing.TB, after string) {
	t.Helper()
	kinds := map[string]string{"WAREHOUSE#hall #METADATA": "warehouse", "EMPLOYEE#eve #METADATA": "employee", "CUSTOMER#cust_01 ORDER#01HVNR4Q3R0000000000000002": "orderOfCustomer", "ORDER#01HVNR4Q3R0000000000000002 #METADATA": "order",
		"CUSTOMER#cust_01 #METADATA": "customer", "CUSTOMER#cust_02 #METADATA": "customer",
		"PRODUCT#abc #METADATA": "product", "PRODUCT#abc WAREHOUSE#hall": "level", "ORDER#01HVNR4Q3R0000000000000002 ITEM#abc": "item"}
	records := s.records(t)
	for k, mark := range kinds {
		r := records[k]
		if !strings.Contains(r, "__edb_e__="+mark+" __edb_v__=1") || !strings.Contains(r, "flag=true") || !strings.Contains(r, "texts=&{Value:["+mark+"]") {
			t.Errorf("after %s, the record %s is %s, which lacks the external attributes of %s", after, k, r, mark)
		}
	}
}

// Every mutation can change external records, and keeps their unknown attributes.
func TestRecordsOfOtherSoftwareChange(t *testing.T) {
	address := mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s, id := externalFixture(t, db)
		order := mutationInput{"orderId": id}
		for i, step := range []struct {
			mutation string
			input    mutationInput
			fields   string
			want     string
		}{
			{"updateShippingAddress", order.with("shippingAddress", address).with("expectedVersion", 0), `version status itemCount`, `{"version":1,"status":"PENDING","itemCount":2}`},
			{"setInventoryLevel", mutationInput{"sku": "abc", "warehouseId": "hall", "quantity": 50, "expectedVersion": 0}, `quantity version product { totalInventory available }`, `{"quantity":50,"version":1,"product":{"totalInventory":50,"available":48}}`},
			{"adjustInventory", mutationInput{"sku": "abc", "warehouseId": "hall", "delta": 10}, `quantity product { totalInventory available }`, `{"quantity":60,"product":{"totalInventory":60,"available":58}}`},
			{"adjustInventory", mutationInput{"sku": "def", "warehouseId": "hall", "delta": 10}, `quantity version product { totalInventory available }`, `{"quantity":50,"version":1,"product":{"totalInventory":0,"available":0}}`},
			{"setOrderItem", order.with("sku", "abc").with("quantity", 5), `version itemCount total { amount } items { nodes { productId quantity unitPrice { amount } } }`, `{"version":2,"itemCount":2,"total":{"amount":"209.30"},"items":{"nodes":[{"productId":"abc","quantity":5,"unitPrice":{"amount":"29.90"}},{"productId":"def","quantity":2,"unitPrice":{"amount":"29.90"}}]}}`},
			{"confirmOrder", order, `status version total { amount }`, `{"status":"CONFIRMED","version":3,"total":{"amount":"209.30"}}`},
			{"shipOrder", order.with("warehouseId", "hall").with("withoutAddress", true), `status items { nodes { quantity product { totalInventory available } } }`, `{"status":"SHIPPED","items":{"nodes":[{"quantity":5,"product":{"totalInventory":55,"available":55}},{"quantity":2,"product":{"totalInventory":0,"available":0}}]}}`},
			{"deliverOrder", order, `status version`, `{"status":"DELIVERED","version":5}`},
			{"placeOrder", mutationInput{"customerId": "cust_01", "items": lines("abc")}, `version customer { orderCount }`, `{"version":1,"customer":{"orderCount":2}}`},
			{"updateProduct", mutationInput{"sku": "abc", "name": "ABC", "unitPrice": mutationInput{"amount": "30"}}, `name unitPrice { amount } version available`, `{"name":"ABC","unitPrice":{"amount":"30.00"},"version":1,"available":54}`},
			{"updateCustomer", mutationInput{"id": "cust_01", "email": "alice.chen@example.com"}, `email version orderCount`, `{"email":"alice.chen@example.com","version":1,"orderCount":2}`},
			{"updateCustomer", mutationInput{"id": "cust_02", "phoneNumbers": []string{"+1"}}, `email phoneNumbers version`, `{"email":"none given","phoneNumbers":["+1"],"version":1}`},
			{"updateCustomer", mutationInput{"id": "cust_02", "name": "Bo Li", "email": "bo@example.com"}, `name email version`, `{"name":"Bo Li","email":"bo@example.com","version":2}`},
			{"assignAccountRep", mutationInput{"customerId": "cust_01", "employeeId": "eve"}, `version accountRep { name customers { nodes { email } } }`, `{"version":2,"accountRep":{"name":"Eve","customers":{"nodes":[{"email":"alice.chen@example.com"}]}}}`},
			{"updateEmployee", mutationInput{"id": "eve", "jobTitle": "Foreman", "warehouseId": "hall"}, `version warehouse { employees { nodes { jobTitle } } }`, `{"version":1,"warehouse":{"employees":{"nodes":[{"jobTitle":"Foreman"}]}}}`},
		} {
			got := s.mutate(t, step.mutation, step.input, step.fields)
			if string(got.Value) != step.want {
				t.Errorf("%s gives %s, want %s", step.mutation, got.Value, step.want)
			}
			s.checkUnknownAttributes(t, fmt.Sprintf("%d. %s", i+1, step.mutation))
		}
	})
}

// An external order without embedded items can be cancelled. Its quantities return to the products
// with counters.
func TestCancellingAnOrderOfOtherSoftware(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s, id := externalFixture(t, db)
		s.mutate(t, "adjustInventory", mutationInput{"sku": "abc", "warehouseId": "hall", "delta": 10})
		before := s.records(t)
		got := s.mutate(t, "cancelOrder", mutationInput{"orderId": id}, `status items { nodes { quantity product { available } } } timeline { nodes { type from to } }`)
		if want := `{"status":"CANCELLED","items":{"nodes":[{"quantity":2,"product":{"available":50}},{"quantity":2,"product":{"available":0}}]},"timeline":{"nodes":[{"type":"CANCELLED","from":"PENDING","to":"CANCELLED"}]}}`; string(got.Value) != want {
			t.Errorf("the order is %s, want %s", got.Value, want)
		}
		product := before["PRODUCT#def #METADATA"]
		if revised := strings.Replace(product, " texts=", " stockRevision=1 texts=", 1); s.records(t)["PRODUCT#def #METADATA"] != revised {
			t.Errorf("the product without counters was changed to %s from %s", s.records(t)["PRODUCT#def #METADATA"], product)
		}
		s.checkUnknownAttributes(t, "cancelOrder")
	})
}

// Unknown parts of an order's address and times stay on both of its records, and stay equal on
// both.
func TestUnknownPartsOfAnOrderStay(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug", "plate")
		foreign := map[string]attribute{
			"createdAt": storetest.Str("2026-03-01T07:59:59.123Z"),
			"shippingAddress": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
				"recipient": storetest.Str("Ann"), "city": storetest.Str("Portland"), "countryCode": storetest.Str("US"), "phone": storetest.Str("+1-555-0001"),
			}},
			"items": &types.AttributeValueMemberL{Value: []types.AttributeValue{
				&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"productId": storetest.Str("mug"), "name": storetest.Str("Mug"), "qty": number(1), "price": number(5), "color": storetest.Str("red")}},
			}},
		}
		s.change(t, "ORDER#"+id, "#METADATA", foreign)
		s.change(t, "CUSTOMER#ann", "ORDER#"+id, foreign)
		s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
		for k, r := range s.records(t) {
			if k != "ORDER#"+id+" #METADATA" && k != "CUSTOMER#ann ORDER#"+id {
				continue
			}
			for _, kept := range []string{"createdAt=2026-03-01T07:59:59.123Z", "phone=+1-555-0001", "color=red", "status=confirmed"} {
				if !strings.Contains(r, kept) {
					t.Errorf("%s %s has no %s", k, r, kept)
				}
			}
		}
		s.checkCopy(t, id)
	})
}

// If the customer's copy of an order is missing, the next change writes it.
func TestALostCopyComesBack(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug")
		if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: storetest.ItemKey("CUSTOMER#ann", "ORDER#"+id)}); err != nil {
			t.Fatal(err)
		}
		s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
		s.checkCopy(t, id)
		want(t, "ann's orders", s.ids(t, `{ list: customer(id: %q) { orders { nodes { id } } } }`, "id", "ann"), id)
	})
}

// Only other software writes orders of 200 lines. They can be confirmed and delivered, and their
// address can change. A change of all lines exceeds the limit of a transaction.
func TestOrdersOfTwoHundredLines(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		shipped, cancelled := maxLines(patternOf(t, "shipOrder"))+1, maxLines(patternOf(t, "cancelOrder"))+3 // without an outstanding payment, sales by day and orders to ship
		for i, lines := range []int{commerce.MaxLines + 1, shipped, shipped + 1, 60, cancelled, cancelled + 1, 200} {
			if !storetest.RunsCase(t, 3, i+2) { // the second and the fifth
				continue
			}
			t.Run(fmt.Sprint(lines), func(t *testing.T) {
				s := newFixture(t, db, commerce.Dataset{Warehouses: []commerce.Warehouse{{ID: "hall", Name: "Hall"}}})
				f := externalWriter{db: db, table: s.table}
				id := "01HVNR4Q3R0000000000000002"
				header := map[string]string{"orderId": id, "customerId": "c", "status": "pending", "total": fmt.Sprint(lines), "createdAt": "2024-04-17T10:02:52.920Z"}
				f.put(t, header, map[string]types.AttributeValue{"pk": storetest.Str("ORDER#" + id), "sk": storetest.Str("#METADATA"), "gsi1pk": storetest.Str("STATUS#pending"), "gsi1sk": storetest.Str("ORDER#" + id)})
				f.put(t, header, storetest.ItemKey("CUSTOMER#c", "ORDER#"+id))
				for i := range lines {
					sku := fmt.Sprintf("s%03d", i)
					f.put(t, map[string]string{"pk": "ORDER#" + id, "sk": "ITEM#" + sku, "productId": sku, "name": sku, "qty": "1", "price": "1"})
					f.put(t, map[string]string{"pk": "PRODUCT#" + sku, "sk": "WAREHOUSE#hall", "sku": sku, "warehouseId": "hall"}, map[string]types.AttributeValue{"quantity": number(3)})
				}
				order := mutationInput{"orderId": id}
				if lines == 200 {
					s.refuse(t, "removeOrderItem", order.with("sku", "s000"), "TOO_MANY_LINES input.orderId")
				}
				s.mutate(t, "confirmOrder", order.with("idempotencyKey", "k"))
				try := func(mutation string, input mutationInput, succeeds bool) {
					t.Helper()
					if succeeds {
						s.mutate(t, mutation, input)
						return
					}
					e := s.refuse(t, mutation, input, "TOO_MANY_LINES input.orderId").UserErrors[0]
					if mutation == "shipOrder" && lines <= table.MaxTransactionActions {
						if e.Limit < commerce.MaxLines || e.Limit > shipped || !strings.Contains(e.Message, "ship the others with createFulfillment") {
							t.Errorf("shipOrder returns the user error %+v, want a limit from %d to %d and advice", e, commerce.MaxLines, shipped)
						}
						return
					}
					if e.Limit != commerce.MaxLines || !strings.Contains(e.Message, fmt.Sprintf("at most %d are allowed: split the order into several orders.", commerce.MaxLines)) {
						t.Errorf("%s returns the user error %+v, want the limit %d and advice", mutation, e, commerce.MaxLines)
					}
				}
				if lines <= shipped {
					try("shipOrder", order.with("warehouseId", "hall").with("withoutAddress", true).with("idempotencyKey", "s"), true)
					s.mutate(t, "deliverOrder", order)
					return
				}
				try("shipOrder", order.with("warehouseId", "hall").with("withoutAddress", true), false)
				var some []mutationInput
				for i := range 50 {
					some = append(some, mutationInput{"sku": fmt.Sprintf("s%03d", i), "quantity": 1})
				}
				if lines > len(some) && lines <= table.MaxTransactionActions {
					s.refuse(t, "cancelOrderItems", order.with("lines", some), "TOO_MANY_LINES input.lines")
				}
				if lines <= table.MaxTransactionActions { // some of the lines could be shipped
					s.refuse(t, "createFulfillment", order.with("warehouseId", "hall").with("withoutAddress", true), "TOO_MANY_LINES input.lines")
				}
				try("cancelOrder", order.with("idempotencyKey", "x"), lines <= cancelled)
				if lines > cancelled {
					s.mutate(t, "updateShippingAddress", order.with("shippingAddress", mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}))
				}
			})
		}
	})
}
