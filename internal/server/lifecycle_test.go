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
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// statusMutations maps the mutations that change an order's status to the new status.
var statusMutations = map[string]commerce.Status{
	"confirmOrder": commerce.Confirmed, "shipOrder": commerce.Shipped, "deliverOrder": commerce.Delivered, "cancelOrder": commerce.Cancelled,
}

// placeWithStatus places an order of three mugs and a plate, and changes it to a status.
func (s *fixture) placeWithStatus(t testing.TB, to commerce.Status) string {
	t.Helper()
	id := s.place(t, "ann", "mug", "mug", "plate", "mug")
	path := map[commerce.Status][]string{
		commerce.Confirmed: {"confirmOrder"}, commerce.Shipped: {"confirmOrder", "shipOrder"},
		commerce.Delivered: {"confirmOrder", "shipOrder", "deliverOrder"}, commerce.Cancelled: {"cancelOrder"},
	}
	for _, mutation := range path[to] {
		s.clock.pass(time.Second)
		s.mutate(t, mutation, moveInput(mutation, id))
	}
	s.clock.pass(time.Second)
	return id
}

// moveInput returns the input of a mutation for an order that may have no shipping address.
func moveInput(mutation, id string) mutationInput {
	input := mutationInput{"orderId": id}
	if mutation == "shipOrder" {
		input["warehouseId"], input["withoutAddress"] = "north", true
	}
	if mutation == "holdOrder" {
		input["reason"] = "Check the address"
	}
	if mutation == "tagOrder" {
		input["add"] = tags("a")
	}
	if mutation == "recordPayment" {
		maps.Copy(input, mutationInput{"kind": "CAPTURE", "amount": mutationInput{"amount": "0.5"}, "provider": "stripe", "reference": id})
	}
	if mutation == "requestReturn" {
		input["lines"] = []mutationInput{{"sku": "p00", "quantity": 1, "reason": "broken"}}
	}
	return input
}

// TestEveryStatusChange tries every status change from every status. A change in the order's
// lifecycle succeeds, updates the stock and writes an event. Every other change is refused with the
// status and the allowed changes.
func TestEveryStatusChange(t *testing.T) {
	t.Parallel()
	stock := map[commerce.Status]string{
		commerce.Pending:   "99 of 102 available, 100 in north, 2 in south",
		commerce.Confirmed: "99 of 102 available, 100 in north, 2 in south",
		commerce.Shipped:   "99 of 99 available, 97 in north, 2 in south",
		commerce.Delivered: "99 of 99 available, 97 in north, 2 in south",
		commerce.Cancelled: "102 of 102 available, 100 in north, 2 in south",
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for i, from := range commerce.Statuses() {
			for j, mutation := range slices.Sorted(maps.Keys(statusMutations)) {
				if !storetest.RunsCase(t, 4, i+j) {
					continue
				}
				to := statusMutations[mutation]
				t.Run(fmt.Sprintf("%s %s", from, mutation), func(t *testing.T) {
					s := newFixture(t, db, smallDataset(t))
					id := s.placeWithStatus(t, from)
					was := s.order(t, id)
					if got := s.stock(t, "mug"); got != stock[from] {
						t.Errorf("while the order is %s, the stock is %s, want %s", from, got, stock[from])
					}
					if !slices.Contains(from.Transitions(), to) {
						e := s.refuse(t, mutation, moveInput(mutation, id), "INVALID_TRANSITION input.orderId").UserErrors[0]
						if e.Typename != "InvalidTransition" || e.From != strings.ToUpper(from.String()) || e.To != strings.ToUpper(to.String()) || len(e.Allowed) != len(from.Transitions()) {
							t.Errorf("the user errors are %+v", e)
						}
						return
					}
					s.as("worker").mutate(t, mutation, moveInput(mutation, id).with("note", "as wished"))
					order := s.order(t, id)
					if order.Status != strings.ToUpper(to.String()) || order.Version != was.Version+1 || order.lines() != was.lines() || order.Total != was.Total {
						t.Errorf("the mutation changed the order to %+v from %+v", order, was)
					}
					if got := s.stock(t, "mug"); got != stock[to] {
						t.Errorf("after the mutation, the stock is %s, want %s", got, stock[to])
					}
					e := order.Timeline.Nodes[len(order.Timeline.Nodes)-1]
					if len(order.Timeline.Nodes) != len(was.Timeline.Nodes)+1 || e.Type != order.Status || *e.From != was.Status || *e.To != order.Status || e.Actor != "worker" || *e.Note != "as wished" {
						t.Errorf("the timeline ends with %+v", e)
					}
					increasing(t, order)
					s.checkListedOnce(t, id, to)
				})
			}
		}
	})
}

// checkListedOnce fails t if an order is not only in the list of its status, or differs in its
// customer's list.
func (s *fixture) checkListedOnce(t testing.TB, id string, in commerce.Status) {
	t.Helper()
	for _, status := range commerce.Statuses() {
		var data struct {
			OrdersByStatus struct{ Nodes []struct{ ID string } }
		}
		s.read(t, &data, `{ ordersByStatus(status: %s) { nodes { id } } }`, strings.ToUpper(status.String()))
		found := slices.ContainsFunc(data.OrdersByStatus.Nodes, func(o struct{ ID string }) bool { return o.ID == id })
		if found != (status == in) {
			t.Errorf("the order is in the list of the status %s: %v", status, found)
		}
	}
	s.checkCopy(t, id)
}

// checkCopy fails t if the two records of an order differ in more than their keys and kind.
func (s *fixture) checkCopy(t testing.TB, id string) {
	t.Helper()
	var own, customerCopy string
	for k, r := range s.records(t) {
		r = withoutKeys(r)
		switch {
		case k == "ORDER#"+id+" #METADATA":
			own = r
		case strings.HasPrefix(k, "CUSTOMER#") && strings.HasSuffix(k, " ORDER#"+id):
			customerCopy = r
		}
	}
	if own == "" || own != customerCopy {
		t.Errorf("the order record is\n%s\nthe copy in the customer's partition is\n%s", own, customerCopy)
	}
}

// withoutKeys returns a record as text without its kind and the keys of the index.
func withoutKeys(r string) string {
	var kept []string
	for word := range strings.FieldsSeq(r) {
		if !strings.HasPrefix(strings.TrimPrefix(word, "{"), "gsi1") && !strings.HasPrefix(strings.TrimPrefix(word, "{"), "entity=") {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// An order shows its shipment in every list and after every later change. A missing tracking number
// or carrier is null.
func TestAnOrderShowsItsShipment(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		const none, ups = `{"trackingNumber":null,"carrier":null}`, `{"trackingNumber":"1Z999","carrier":"UPS"}`
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug")
		order := mutationInput{"orderId": id}
		move := func(mutation string, input mutationInput, want string) {
			t.Helper()
			for range 2 {
				if got := s.mutate(t, mutation, input.with("idempotencyKey", mutation), `trackingNumber carrier`); string(got.Value) != want {
					t.Errorf("%s returns %s, want %s", mutation, got.Value, want)
				}
			}
			s.checkCopy(t, id)
		}
		move("confirmOrder", order, none)
		ship := order.with("warehouseId", "north").with("withoutAddress", true).with("trackingNumber", "1Z999").with("carrier", "UPS")
		move("shipOrder", ship, ups)
		s.refuse(t, "shipOrder", ship.with("idempotencyKey", "shipOrder").with("trackingNumber", "1Z998"), "IDEMPOTENCY_KEY_REUSED input.idempotencyKey")
		move("deliverOrder", order, ups)
		var data struct {
			Customer struct {
				Orders struct{ Nodes []json.RawMessage }
			}
		}
		s.read(t, &data, `{ customer(id: "ann") { orders { nodes { trackingNumber carrier } } } }`)
		if got := data.Customer.Orders.Nodes; len(got) != 1 || string(got[0]) != ups {
			t.Errorf("the customer's orders are %s", got)
		}

		without := mutationInput{"orderId": s.placeWithStatus(t, commerce.Confirmed), "warehouseId": "north", "withoutAddress": true, "carrier": ""}
		if got := s.mutate(t, "shipOrder", without, `trackingNumber carrier`); string(got.Value) != none {
			t.Errorf("without a tracking number and a carrier, the order has %s", got.Value)
		}
	})
}

// An order without a shipping address is shipped only if the input allows that. Once the order has
// an address, the refused request succeeds.
func TestShippingWithoutAnAddress(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		for _, addressed := range []bool{true, false} {
			id := s.placeWithStatus(t, commerce.Confirmed)
			ship := mutationInput{"orderId": id, "warehouseId": "north", "idempotencyKey": id}
			for _, input := range []mutationInput{ship, ship.with("withoutAddress", false)} {
				e := s.refuse(t, "shipOrder", input, "ADDRESS_MISSING input.orderId").UserErrors[0]
				if e.Typename != "AddressMissing" || !strings.Contains(e.Message, "updateShippingAddress") || !strings.Contains(e.Message, "withoutAddress: true") {
					t.Errorf("the user errors are %+v", e)
				}
			}
			if addressed {
				s.mutate(t, "updateShippingAddress", mutationInput{"orderId": id, "shippingAddress": mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}})
			} else {
				ship["withoutAddress"] = true
			}
			s.mutate(t, "shipOrder", ship)
			s.checkListedOnce(t, id, commerce.Shipped)
		}
	})
}

// Only the event of shipping has a warehouse. One request reads the warehouses of all events on a
// page of orders.
func TestTheEventOfShippingHasTheWarehouse(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		for _, warehouse := range []string{"north", "south"} {
			order := mutationInput{"orderId": s.place(t, "ann", "mug")}
			s.mutate(t, "confirmOrder", order)
			s.mutate(t, "shipOrder", order.with("warehouseId", warehouse).with("withoutAddress", true))
		}
		s.wire.reset()
		var data json.RawMessage
		s.read(t, &data, `{ customer(id: "ann") { orders { nodes { timeline { nodes { type warehouse { name } } } } } } }`)
		timeline := `{"timeline":{"nodes":[{"type":"PLACED","warehouse":null},{"type":"CONFIRMED","warehouse":null},{"type":"SHIPPED","warehouse":{"name":%q}}]}}`
		if want := fmt.Sprintf(`{"customer":{"orders":{"nodes":[`+timeline+`,`+timeline+`]}}}`, "South", "North"); string(data) != want {
			t.Errorf("the orders are\n%s, want\n%s", data, want)
		}
		made := s.wire.operationNames()
		slices.Sort(made)
		if want := []string{"BatchGetItem", "GetItem", "Query", "Query", "Query"}; !slices.Equal(made, want) {
			t.Errorf("requests are %q, want %q", made, want)
		}
	})
}

// If a warehouse lacks products of the order, the user errors name each product and the quantity in
// the warehouse.
func TestShippingFromAWarehouseWithTooLittle(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.placeWithStatus(t, commerce.Confirmed)
		ship := mutationInput{"orderId": id, "withoutAddress": true}
		got := s.refuse(t, "shipOrder", ship.with("warehouseId", "south"), "INSUFFICIENT_STOCK input.warehouseId", "INSUFFICIENT_STOCK input.warehouseId")
		if mug, plate := got.UserErrors[0], got.UserErrors[1]; mug.SKU != "mug" || mug.Available != 2 || plate.SKU != "plate" || plate.Available != 0 {
			t.Errorf("the user errors are %+v", got.UserErrors)
		}
		s.refuse(t, "shipOrder", ship.with("warehouseId", "nowhere"), "NOT_FOUND input.warehouseId")
		// An empty warehouse lacks everything.
		s.mutate(t, "createWarehouse", mutationInput{"id": "east", "name": "East"})
		s.refuse(t, "shipOrder", ship.with("warehouseId", "east"), "INSUFFICIENT_STOCK input.warehouseId", "INSUFFICIENT_STOCK input.warehouseId")
		// Stock that arrives there later can be shipped.
		s.mutate(t, "adjustInventory", mutationInput{"sku": "mug", "warehouseId": "east", "delta": 3})
		s.mutate(t, "adjustInventory", mutationInput{"sku": "plate", "warehouseId": "east", "delta": 1})
		s.mutate(t, "shipOrder", ship.with("warehouseId", "east"))
		if got := s.stock(t, "mug"); got != "102 of 102 available, 0 in east, 100 in north, 2 in south" {
			t.Errorf("of the mugs, %s", got)
		}
	})
}

// Stock cannot decrease below what orders have reserved or below zero in a warehouse. It cannot be
// added to a missing product or warehouse.
func TestStockLimits(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "placeOrder", mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "plate", "quantity": 48}}})
		north := mutationInput{"sku": "plate", "warehouseId": "north"}
		if got := s.refuse(t, "setInventoryLevel", north.with("quantity", 47), "INSUFFICIENT_STOCK input.quantity"); got.UserErrors[0].Available != 2 {
			t.Errorf("the user errors are %+v", got.UserErrors)
		}
		s.refuse(t, "adjustInventory", north.with("delta", -3), "INSUFFICIENT_STOCK input.delta")
		s.refuse(t, "adjustInventory", north.with("delta", -51), "INSUFFICIENT_STOCK input.delta")
		s.refuse(t, "adjustInventory", mutationInput{"sku": "plate", "warehouseId": "south", "delta": -1}, "INSUFFICIENT_STOCK input.delta")
		s.refuse(t, "adjustInventory", north.with("delta", 1_000_000_000), "INVALID input.delta")
		s.refuse(t, "adjustInventory", mutationInput{"sku": "spoon", "warehouseId": "nowhere", "delta": 1}, "NOT_FOUND input.sku", "NOT_FOUND input.warehouseId")
		s.refuse(t, "setInventoryLevel", mutationInput{"sku": "plate", "warehouseId": "nowhere", "quantity": 1}, "NOT_FOUND input.warehouseId")
		s.mutate(t, "setInventoryLevel", north.with("quantity", 48))
		// Reserved pieces can move to another warehouse, but not more pieces than there are.
		transfer := mutationInput{"sku": "plate", "fromWarehouseId": "north", "toWarehouseId": "south", "quantity": 48}
		back := mutationInput{"sku": "plate", "fromWarehouseId": "south", "toWarehouseId": "north", "quantity": 48}
		if got := s.refuse(t, "transferInventory", transfer.with("quantity", 49), "INSUFFICIENT_STOCK input.quantity"); got.UserErrors[0].Available != 48 {
			t.Errorf("the user errors are %+v", got.UserErrors)
		}
		s.refuse(t, "transferInventory", back, "INSUFFICIENT_STOCK input.quantity")
		s.refuse(t, "transferInventory", back.with("fromWarehouseId", "nowhere"), "NOT_FOUND input.fromWarehouseId")
		s.mutate(t, "transferInventory", transfer)
		if got := s.stock(t, "plate"); got != "0 of 48 available, 0 in north, 48 in south" {
			t.Errorf("of the plates, %s", got)
		}
		s.mutate(t, "transferInventory", back)
		if got := s.stock(t, "plate"); got != "0 of 48 available, 48 in north, 0 in south" {
			t.Errorf("of the plates, %s", got)
		}
		s.refuse(t, "placeOrder", mutationInput{"customerId": "bob", "items": lines("plate")}, "INSUFFICIENT_STOCK input.items.0.quantity")
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "plate", "warehouseId": "south", "quantity": 0})
		if got := s.stock(t, "plate"); got != "0 of 48 available, 48 in north, 0 in south" {
			t.Errorf("of the plates, %s", got)
		}
	})
}

// The items of a pending order can be added, changed and removed.
func TestItemsOfAPendingOrder(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug", "plate")
		set := func(sku string, quantity int) mutationInput {
			return mutationInput{"orderId": id, "sku": sku, "quantity": quantity}
		}
		s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "unitPrice": mutationInput{"amount": "9.00"}, "name": "Mug, large"})
		for _, step := range []struct {
			mutation     string
			input        mutationInput
			lines, total string
			mugs, note   string
		}{
			{"setOrderItem", set("mug", 10).with("expectedTotal", mutationInput{"amount": "102"}), "10 mug at 9.00, 1 plate at 12.00", "102.00", "92 of 102 available", "mug: 10, before: 1"},
			{"setOrderItem", set("mug", 4), "4 mug at 9.00, 1 plate at 12.00", "48.00", "98 of 102 available", "mug: 4, before: 10"},
			{"setOrderItem", set("mug", 102), "102 mug at 9.00, 1 plate at 12.00", "930.00", "0 of 102 available", "mug: 102, before: 4"},
			{"removeOrderItem", mutationInput{"orderId": id, "sku": "mug"}, "1 plate at 12.00", "12.00", "102 of 102 available", "mug: 0, before: 102"},
			{"setOrderItem", set("mug", 2), "2 mug at 9.00, 1 plate at 12.00", "30.00", "100 of 102 available", "mug: 2, before: 0"},
			{"removeOrderItem", mutationInput{"orderId": id, "sku": "plate"}, "2 mug at 9.00", "18.00", "100 of 102 available", "plate: 0, before: 1"},
		} {
			before := s.order(t, id)
			s.mutate(t, step.mutation, step.input)
			o := s.order(t, id)
			if o.lines() != step.lines || o.Total.Amount != step.total || o.Version != before.Version+1 || o.ItemCount != len(o.Items.Nodes) {
				t.Errorf("%s: the order has %s, total %s, version %d, count %d", step.note, o.lines(), o.Total.Amount, o.Version, o.ItemCount)
			}
			if stock := s.stock(t, "mug"); !strings.HasPrefix(stock, step.mugs+",") {
				t.Errorf("%s: the stock of mugs is %s, want %s", step.note, stock, step.mugs)
			}
			e := o.Timeline.Nodes[len(o.Timeline.Nodes)-1]
			if want := map[string]string{"setOrderItem": "ITEM_SET", "removeOrderItem": "ITEM_REMOVED"}[step.mutation]; e.Type != want || e.From != nil || e.To != nil || *e.Note != step.note {
				t.Errorf("%s: the timeline ends with %+v", step.note, e)
			}
			increasing(t, o)
			s.checkCopy(t, id)
		}
		s.refuse(t, "removeOrderItem", mutationInput{"orderId": id, "sku": "mug"}, "INVALID input.sku")
		s.refuse(t, "removeOrderItem", mutationInput{"orderId": id, "sku": "plate"}, "NOT_FOUND input.sku")
		s.refuse(t, "setOrderItem", set("spoon", 1), "NOT_FOUND input.sku")
		s.refuse(t, "setOrderItem", set("yen", 1), "INVALID input.sku")
		if got := s.refuse(t, "setOrderItem", set("mug", 103), "INSUFFICIENT_STOCK input.quantity"); got.UserErrors[0].Available != 100 {
			t.Errorf("ordering 101 more mugs returns the user errors %+v", got.UserErrors)
		}
		s.refuse(t, "setOrderItem", set("none", 1), "INSUFFICIENT_STOCK input.quantity")
		// A mutation that changes nothing writes nothing.
		before, version := s.records(t), s.order(t, id).Version
		if got := s.mutate(t, "setOrderItem", set("mug", 2)); versionOf(t, got.Value) != version || changes(before, s.records(t)) != "" {
			t.Errorf("setting the current quantity returns %s and writes %s", got.Value, changes(before, s.records(t)))
		}
	})
}

// The items of an order can change while it is pending, and its address until it is shipped.
func TestWhatCanChangeInWhichStatus(t *testing.T) {
	address := mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, status := range commerce.Statuses() {
			t.Run(status.String(), func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				id := s.placeWithStatus(t, status)
				// An edit that comes too late is refused with the order's status.
				refuseLateEdit := func(mutation string, input mutationInput) {
					t.Helper()
					e := s.refuse(t, mutation, input, "INVALID_TRANSITION input.orderId").UserErrors[0]
					name := strings.ToUpper(status.String())
					if e.Typename != "InvalidTransition" || e.From != name || e.To != name || len(e.Allowed) != len(status.Transitions()) || !strings.Contains(e.Message, name) {
						t.Errorf("%s: %+v", mutation, e)
					}
				}
				move := mutationInput{"orderId": id, "shippingAddress": address}
				if status.ReservesStock() {
					s.mutate(t, "updateShippingAddress", move)
					o := s.order(t, id)
					e := o.Timeline.Nodes[len(o.Timeline.Nodes)-1]
					if o.ShippingAddress == nil || o.ShippingAddress.City != "Leeds" || e.Type != "SHIPPING_ADDRESS_CHANGED" || e.From != nil || o.Status != strings.ToUpper(status.String()) {
						t.Errorf("the order is %+v", o)
					}
					increasing(t, o)
					s.checkListedOnce(t, id, status)
					if got := s.mutate(t, "updateShippingAddress", move); versionOf(t, got.Value) != o.Version {
						t.Errorf("setting the current address returns %s, want version %d", got.Value, o.Version)
					}
				} else {
					refuseLateEdit("updateShippingAddress", move)
					refuseLateEdit("holdOrder", moveInput("holdOrder", id))
					refuseLateEdit("setAdjustments", mutationInput{"orderId": id, "adjustments": []mutationInput{}})
					refuseLateEdit("updateOrder", mutationInput{"orderId": id})
				}
				if status != commerce.Pending {
					refuseLateEdit("setOrderItem", mutationInput{"orderId": id, "sku": "mug", "quantity": 1})
					refuseLateEdit("removeOrderItem", mutationInput{"orderId": id, "sku": "mug"})
				}
			})
		}
	})
}

// Up to 25 items are embedded in both records of an order. The 26th item removes them, and its
// removal embeds them again.
func TestEmbeddedItemsComeAndGo(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		id := s.place(t, "ann", skus(25)...)
		embedded := func(want bool) {
			t.Helper()
			for k, r := range s.records(t) {
				if (k == "ORDER#"+id+" #METADATA" || k == "CUSTOMER#ann ORDER#"+id) && strings.Contains(r, " items=[{") != want {
					t.Errorf("the record %s is %s; want embedded items: %v", k, r, want)
				}
			}
			s.checkCopy(t, id)
		}
		embedded(true)
		s.mutate(t, "setOrderItem", mutationInput{"orderId": id, "sku": "p25", "quantity": 2})
		embedded(false)
		if o := s.order(t, id); o.ItemCount != 26 || len(o.Items.Nodes) != 26 || o.Total.Amount != "27.00" {
			t.Errorf("the order has %d items, %d of them listed, total %s", o.ItemCount, len(o.Items.Nodes), o.Total.Amount)
		}
		s.mutate(t, "removeOrderItem", mutationInput{"orderId": id, "sku": "p00"})
		embedded(true)
		if o := s.order(t, id); o.ItemCount != 25 || len(o.Items.Nodes) != 25 || o.Total.Amount != "26.00" {
			t.Errorf("the order has %d items, %d of them listed, total %s", o.ItemCount, len(o.Items.Nodes), o.Total.Amount)
		}
	})
}

// An order has at most commerce.MaxLines lines, and no mutation adds more.
func TestMaxLines(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		most := skus(commerce.MaxLines)
		last := most[len(most)-1]
		got := s.refuse(t, "placeOrder", mutationInput{"customerId": "ann", "items": lines(skus(commerce.MaxLines + 1)...), "idempotencyKey": "k"}, "TOO_MANY_LINES input.items")
		if got.UserErrors[0].Limit != commerce.MaxLines {
			t.Errorf("the user errors are %+v", got.UserErrors)
		}
		// Two lines of one product are merged.
		first := s.mutate(t, "placeOrder", mutationInput{"customerId": "ann", "items": append(lines(most...), lines("p00")...), "idempotencyKey": "k"})
		if !strings.Contains(string(first.Value), fmt.Sprintf(`"itemCount":%d`, commerce.MaxLines)) {
			t.Errorf("the order is %s", first.Value)
		}
		id := s.place(t, "ann", most...)
		got = s.refuse(t, "setOrderItem", mutationInput{"orderId": id, "sku": skus(commerce.MaxLines + 1)[commerce.MaxLines], "quantity": 1}, "TOO_MANY_LINES input.sku")
		if got.UserErrors[0].Limit != commerce.MaxLines {
			t.Errorf("the user errors are %+v", got.UserErrors)
		}
		s.mutate(t, "setOrderItem", mutationInput{"orderId": id, "sku": last, "quantity": 3})
		s.mutate(t, "confirmOrder", mutationInput{"orderId": id, "idempotencyKey": "c"})
		s.mutate(t, "shipOrder", mutationInput{"orderId": id, "warehouseId": "north", "withoutAddress": true, "idempotencyKey": "s"})
		if got := s.stock(t, last); got != "6 of 7 available, 7 in north" {
			t.Errorf("of %s, %s", last, got)
		}
		if got := s.stock(t, "p00"); got != "7 of 9 available, 9 in north" {
			t.Errorf("of p00, %s", got)
		}
		another := s.place(t, "bob", most...)
		s.mutate(t, "cancelOrder", mutationInput{"orderId": another, "idempotencyKey": "x"})
		if got := s.stock(t, last); got != "6 of 7 available, 7 in north" {
			t.Errorf("of %s, %s", last, got)
		}
	})
}

// IDs and times of an order's events increase, even if the clock stops or goes backwards.
func TestTimelinesRise(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug", "plate")
		for i := range 6 {
			s.mutate(t, "setOrderItem", mutationInput{"orderId": id, "sku": "mug", "quantity": i + 2})
			if i == 2 {
				s.clock.pass(-time.Hour)
			}
		}
		s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
		s.clock.pass(3 * time.Hour)
		s.mutate(t, "shipOrder", mutationInput{"orderId": id, "warehouseId": "north", "withoutAddress": true})
		o := s.order(t, id)
		if len(o.Timeline.Nodes) != 9 {
			t.Errorf("the timeline has %d events, want 9", len(o.Timeline.Nodes))
		}
		increasing(t, o)
		if last := o.Timeline.Nodes[8]; !last.At.Equal(s.clock.Now()) {
			t.Errorf("the order was shipped at %s, the clock shows %s", last.At, s.clock.Now())
		}
		s.checkCopy(t, id)
	})
}

// If concurrent orders exceed the stock, they get all of it and no more.
func TestTheLastPieces(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "none", "warehouseId": "south", "quantity": 5})
		results := make(chan string, 12)
		for i := range 12 {
			go func() {
				customer := []string{"ann", "bob"}[i%2]
				a := s.ask(t, `mutation { placeOrder(input: {customerId: "`+customer+`", items: [{sku: "none", quantity: 1}]}) { userErrors { code } } }`, nil)
				results <- string(a.Data) + fmt.Sprint(a.Errors)
			}()
		}
		placed := 0
		for range 12 {
			switch r := <-results; r {
			case `{"placeOrder":{"userErrors":[]}}[]`:
				placed++
			case `{"placeOrder":{"userErrors":[{"code":"INSUFFICIENT_STOCK"}]}}[]`:
			default:
				t.Errorf("one gets %s", r)
			}
		}
		if got := s.stock(t, "none"); placed != 5 || got != "0 of 5 available, 5 in south" {
			t.Errorf("%d orders were placed, and the stock is %s; want 5 orders", placed, got)
		}
	})
}

// An order can be cancelled and shipped even if a product is missing or has no counters.
func TestProductsThatAreGone(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		cancelled, shipped := s.place(t, "ann", "mug", "plate"), s.place(t, "ann", "mug", "plate")
		if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: storetest.ItemKey("PRODUCT#mug", "#METADATA")}); err != nil {
			t.Fatal(err)
		}
		s.mutate(t, "cancelOrder", mutationInput{"orderId": cancelled})
		s.mutate(t, "confirmOrder", mutationInput{"orderId": shipped})
		s.mutate(t, "shipOrder", mutationInput{"orderId": shipped, "warehouseId": "north", "withoutAddress": true})
		if got := s.stock(t, "plate"); got != "49 of 49 available, 49 in north" {
			t.Errorf("of the plates, %s", got)
		}
		for k := range s.records(t) {
			if k == "PRODUCT#mug #METADATA" {
				t.Error("the deleted product exists again")
			}
		}
	})
}

// In a table of several shards, an order changes its status within its shard.
func TestShardedListsFollow(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShardedFixture(t, db, smallDataset(t), 3)
		for range 4 {
			id := s.placeWithStatus(t, commerce.Pending)
			s.checkListedOnce(t, id, commerce.Pending)
			for _, mutation := range []string{"confirmOrder", "shipOrder", "deliverOrder"} {
				s.mutate(t, mutation, moveInput(mutation, id))
				s.checkListedOnce(t, id, statusMutations[mutation])
			}
		}
		s.mutate(t, "createCustomer", mutationInput{"id": "cleo", "name": "Cleo", "email": "cleo@example.com"})
		s.mutate(t, "updateCustomer", mutationInput{"id": "ann", "name": "Anne"})
		s.mutate(t, "hireEmployee", mutationInput{"id": "tom", "name": "Tom", "jobTitle": "Packer", "hireDate": "2026-03-01"})
		s.mutate(t, "updateEmployee", mutationInput{"id": "sam", "name": "Samuel"})
		var data struct {
			Customers, Employees struct{ Nodes []struct{ Name string } }
		}
		s.read(t, &data, `{ customers { nodes { name } } employees { nodes { name } } }`)
		if got := fmt.Sprint(data); got != "{{[{Anne} {Bob} {Cleo}]} {[{Rita} {Samuel} {Tom}]}}" {
			t.Errorf("the lists are %s", got)
		}
	})
}
