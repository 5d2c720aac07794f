package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// mutationsWithKey returns two different inputs for each mutation that takes an idempotency key.
func mutationsWithKey(s *fixture, t testing.TB) map[string][2]mutationInput {
	t.Helper()
	pending := mutationInput{"orderId": s.place(t, "ann", "mug")}
	confirmed := mutationInput{"orderId": s.place(t, "ann", "mug")}
	shipped := mutationInput{"orderId": s.place(t, "ann", "mug")}
	for _, order := range []mutationInput{confirmed, shipped} {
		s.mutate(t, "confirmOrder", order)
	}
	s.mutate(t, "shipOrder", shipped.with("warehouseId", "north").with("withoutAddress", true))
	cancelled := mutationInput{"orderId": s.place(t, "bob", "mug")}
	bowl := mutationInput{"sku": "bowl", "name": "Bowl", "category": "Kitchen", "unitPrice": mutationInput{"amount": "9.90"}}
	cleo := mutationInput{"name": "Cleo", "email": "cleo@example.com"}
	east := mutationInput{"name": "East"}
	tom := mutationInput{"name": "Tom", "jobTitle": "Packer", "hireDate": "2026-03-01"}
	more := mutationInput{"sku": "mug", "warehouseId": "north", "delta": 5}
	moved := mutationInput{"sku": "mug", "fromWarehouseId": "north", "toWarehouseId": "south", "quantity": 2}
	placed := mutationInput{"customerId": "ann", "items": lines("mug", "plate")}
	sent := mutationInput{"orderId": s.placeWithStatus(t, commerce.Shipped), "lines": []mutationInput{{"sku": "mug", "quantity": 1, "reason": "broken"}}}
	requested := func() mutationInput {
		var back struct{ ID string }
		if err := json.Unmarshal(s.mutate(t, "requestReturn", sent).Value, &back); err != nil {
			t.Fatal(err)
		}
		return mutationInput{"orderId": sent["orderId"], "returnId": back.ID}
	}
	approved, rejected, received := requested(), requested().with("reason", "used"), requested()
	sent["orderId"] = s.placeWithStatus(t, commerce.Shipped)
	s.mutate(t, "approveReturn", received)
	received = received.with("warehouseId", "north").with("lines", []mutationInput{{"sku": "mug", "restocked": 1}})
	parcel := mutationInput{"warehouseId": "north", "withoutAddress": true, "lines": []mutationInput{{"sku": "mug", "quantity": 1}}}
	fulfilled := func() mutationInput {
		order := s.placeWithStatus(t, commerce.Confirmed)
		return mutationInput{"orderId": order, "fulfillmentId": s.fulfil(t, parcel.with("orderId", order))}
	}
	parcel["orderId"] = s.placeWithStatus(t, commerce.Confirmed)
	delivered, takenBack := fulfilled(), fulfilled()
	fewer := mutationInput{"orderId": s.placeWithStatus(t, commerce.Confirmed), "lines": lines("mug")}
	webhook := s.addWebhook(t)
	return map[string][2]mutationInput{
		"createWebhook":       {hook(), hook().with("topics", []string{"PLACED"})},
		"rotateWebhookSecret": {webhook, webhook.with("webhookId", "other")},
		"replayWebhook":       {webhook.with("from", s.clock.Now()), webhook.with("from", s.clock.Now().Add(-time.Second))},
		"createFulfillment":   {parcel, parcel.with("warehouseId", "south")},
		"deliverFulfillment":  {delivered, delivered.with("fulfillmentId", parcel["orderId"])},
		"cancelFulfillment":   {takenBack, takenBack.with("fulfillmentId", parcel["orderId"])},
		"cancelOrderItems":    {fewer, fewer.with("lines", lines("plate"))},
		"requestReturn":       {sent, sent.with("lines", []mutationInput{{"sku": "mug", "quantity": 2, "reason": "broken"}})},
		"approveReturn":       {approved, approved.with("returnId", "other")},
		"rejectReturn":        {rejected, rejected.with("reason", "worn")},
		"receiveReturn":       {received, received.with("lines", []mutationInput{})},
		"createCustomer":      {cleo, cleo.with("name", "Cleopatra")},
		"placeOrder":          {placed, placed.with("items", lines("mug"))},
		"confirmOrder":        {pending, pending.with("note", "n")},
		"shipOrder":           {confirmed.with("warehouseId", "north").with("withoutAddress", true), confirmed.with("warehouseId", "south").with("withoutAddress", true)},
		"deliverOrder":        {shipped, shipped.with("note", "n")},
		"cancelOrder":         {cancelled, cancelled.with("note", "n")},
		"addOrderNote":        {cancelled.with("note", "n"), cancelled.with("note", "n").with("visibility", "CUSTOMER")},
		"createProduct":       {bowl, bowl.with("unitPrice", mutationInput{"amount": "9.91"})},
		"createWarehouse":     {east, east.with("name", "West")},
		"adjustInventory":     {more, more.with("delta", 6)},
		"transferInventory":   {moved, moved.with("quantity", 3)},
		"hireEmployee":        {tom, tom.with("jobTitle", "Foreman")},
	}
}

// A repeated request with the same key gets the same response and writes nothing, also after a
// restart. A different request with the key is refused, of the same mutation or of another one.
func TestOneKeyIsOneRequest(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		inputs := mutationsWithKey(s, t)
		names := slices.Sorted(maps.Keys(inputs))
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				s.restart(t)
				input, other := inputs[name][0].with("idempotencyKey", name), inputs[name][1].with("idempotencyKey", name)
				first := s.mutate(t, name, input)
				s.clock.pass(time.Hour)
				written := s.records(t)
				for _, again := range []string{"again", "after a restart"} {
					s.wire.reset()
					if got := s.mutate(t, name, input); string(got.Data) != string(first.Data) {
						t.Errorf("%s, the response is %s, the first response was %s", again, got.Data, first.Data)
					}
					if wrote := s.wire.committed(); len(wrote) > 0 {
						t.Errorf("%s it commits %+v", again, wrote)
					}
					s.restart(t)
				}
				if diff := changes(written, s.records(t)); diff != "" {
					t.Errorf("the repeated mutation wrote\n%s", diff)
				}
				if got := s.refuse(t, name, other, "IDEMPOTENCY_KEY_REUSED input.idempotencyKey"); string(got.Value) != "null" || got.UserErrors[0].Typename != "IdempotencyKeyReused" {
					t.Errorf("a different request with the same key returns %s, %+v", got.Value, got.UserErrors)
				}
				next := names[(i+1)%len(names)]
				s.refuse(t, next, inputs[next][0].with("idempotencyKey", name), "IDEMPOTENCY_KEY_REUSED input.idempotencyKey")
			})
		}
	})
}

// The list of mutations with an idempotency key is explicit, so that a new mutation is not
// forgotten.
func TestEveryMutationThatTakesAKeyIsTried(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	tried := mutationsWithKey(s, t)
	var schema struct {
		Schema struct {
			Types []struct {
				Name        string
				InputFields []struct{ Name string }
			}
		} `json:"__schema"`
	}
	s.read(t, &schema, `{ __schema { types { name inputFields { name } } } }`)
	for _, typ := range schema.Schema.Types {
		for _, f := range typ.InputFields {
			name := strings.ToLower(typ.Name[:1]) + strings.TrimSuffix(typ.Name[1:], "Input")
			if _, ok := tried[name]; f.Name == "idempotencyKey" && !ok {
				t.Errorf("%s has an idempotency key, but no test uses it", name)
			}
		}
	}
}

// Later changes of the record do not change the response.
func TestTheFirstAnswerStays(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		place := mutationInput{"customerId": "ann", "items": lines("mug", "plate"), "idempotencyKey": "k"}
		first := s.mutate(t, "placeOrder", place)
		var order struct{ ID string }
		if err := json.Unmarshal(first.Value, &order); err != nil {
			t.Fatal(err)
		}
		s.clock.pass(time.Minute)
		s.mutate(t, "setOrderItem", mutationInput{"orderId": order.ID, "sku": "mug", "quantity": 9})
		s.mutate(t, "confirmOrder", mutationInput{"orderId": order.ID, "expectedVersion": 2, "idempotencyKey": "c"})
		s.mutate(t, "cancelOrder", mutationInput{"orderId": order.ID})

		again := s.mutate(t, "placeOrder", place)
		if string(again.Data) != string(first.Data) || !strings.Contains(string(again.Value), `"status":"PENDING",`) || !strings.Contains(string(again.Value), `"version":1}`) {
			t.Errorf("the repeated placeOrder returns %s, the first returned %s", again.Data, first.Data)
		}
		confirmed := s.mutate(t, "confirmOrder", mutationInput{"orderId": order.ID, "expectedVersion": 2, "idempotencyKey": "c"})
		if !strings.Contains(string(confirmed.Value), `"status":"CONFIRMED",`) || !strings.Contains(string(confirmed.Value), `"version":3}`) {
			t.Errorf("the repeated confirmOrder returns %s", confirmed.Value)
		}
		if o := s.order(t, order.ID); o.Status != "CANCELLED" || o.Version != 4 || len(o.Timeline.Nodes) != 4 {
			t.Errorf("the order is %+v", o)
		}
	})
}

// Twenty concurrent requests with one key place one order, and all responses contain it.
func TestOneKeyAtOnce(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		const callers = 20
		got := make([]string, callers)
		variables, err := json.Marshal(mutationInput{"input": mutationInput{"customerId": "ann", "items": lines("mug", "plate"), "idempotencyKey": "k"}})
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				a := s.ask(t, mutation("placeOrder", workload.RecordSelection("Order")), variables)
				got[i] = fmt.Sprint(string(a.Data), a.Errors)
			})
		}
		group.Wait()
		for i, answer := range got {
			if answer != got[0] || !strings.Contains(answer, `"PENDING"`) {
				t.Errorf("caller %d gets %s, caller 0 gets %s", i, answer, got[0])
			}
		}
		if stock := s.stock(t, "mug"); stock != "101 of 102 available, 100 in north, 2 in south" {
			t.Errorf("of the mugs, %s", stock)
		}
		var data struct {
			Customer struct {
				OrderCount int
				Orders     struct{ Nodes []struct{ ID string } }
			}
		}
		s.read(t, &data, `{ customer(id: "ann") { orderCount orders { nodes { id } } } }`)
		if data.Customer.OrderCount != 1 || len(data.Customer.Orders.Nodes) != 1 {
			t.Errorf("the customer has the orders %+v, want one order", data.Customer)
		}
	})
}

// Callers do not see each other's keys.
func TestKeysAreTheirCallers(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		place := mutationInput{"customerId": "ann", "items": lines("mug"), "idempotencyKey": "k"}
		first := s.as("alice").mutate(t, "placeOrder", place, `id timeline { nodes { actor } }`)
		second := s.as("bert").mutate(t, "placeOrder", place, `id timeline { nodes { actor } }`)
		if string(first.Value) == string(second.Value) || !strings.Contains(string(first.Value), `"alice"`) || !strings.Contains(string(second.Value), `"bert"`) {
			t.Errorf("alice gets %s, bert gets %s, want an order for each", first.Value, second.Value)
		}
		s.as("bert").mutate(t, "createWarehouse", mutationInput{"name": "East", "idempotencyKey": "e"})
		s.as("alice").mutate(t, "adjustInventory", mutationInput{"sku": "mug", "warehouseId": "north", "delta": 1, "idempotencyKey": "e"})
		// A key that looks like a part of another caller's key is invalid, as is every key with '#'.
		s.refuse(t, "placeOrder", place.with("idempotencyKey", "bert#k"), "INVALID input.idempotencyKey")
	})
}

// A refusal is not stored. The same request with the same key succeeds once the cause has gone.
func TestRefusalsAreNotRemembered(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		tooMany := mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "none", "quantity": 3}}, "idempotencyKey": "k"}
		s.refuse(t, "placeOrder", tooMany, "INSUFFICIENT_STOCK input.items.0.quantity")
		s.mutate(t, "adjustInventory", mutationInput{"sku": "none", "warehouseId": "south", "delta": 3, "idempotencyKey": "stock"})
		s.mutate(t, "placeOrder", tooMany)

		bad := mutationInput{"name": "Cleo", "email": "cleo", "idempotencyKey": "c"}
		s.refuse(t, "createCustomer", bad, "INVALID input.email")
		s.mutate(t, "createCustomer", bad.with("email", "cleo@example.com"))

		taken := mutationInput{"name": "Dora", "email": "bob@example.com", "idempotencyKey": "d"}
		s.refuse(t, "createCustomer", taken, "EMAIL_TAKEN input.email")
		s.mutate(t, "updateCustomer", mutationInput{"id": "bob", "email": "robert@example.com"})
		s.mutate(t, "createCustomer", taken)

		order := s.place(t, "bob", "mug")
		ship := mutationInput{"orderId": order, "warehouseId": "north", "withoutAddress": true, "idempotencyKey": "s"}
		s.refuse(t, "shipOrder", ship, "INVALID_TRANSITION input.orderId")
		s.mutate(t, "confirmOrder", mutationInput{"orderId": order})
		s.mutate(t, "shipOrder", ship)
	})
}

// A key is stored for 24 hours. After that it is free, even if DynamoDB has not deleted its record.
func TestKeysAreFreeAfterADay(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		place := mutationInput{"customerId": "ann", "items": lines("mug"), "idempotencyKey": "k"}
		first := s.mutate(t, "placeOrder", place)
		confirm := mutationInput{"orderId": s.place(t, "bob", "mug"), "idempotencyKey": "c"}
		s.mutate(t, "confirmOrder", confirm)

		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: storetest.ItemKey("IDEMPOTENCY#anonymous#k", "#METADATA")})
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := out.Item["expiresAt"].(*types.AttributeValueMemberN); !ok || n.Value != fmt.Sprint(opening.Add(24*time.Hour).Unix()) {
			t.Errorf("expiresAt is %+v, want %d", out.Item["expiresAt"], opening.Add(24*time.Hour).Unix())
		}

		s.clock.pass(24*time.Hour - time.Second)
		if again := s.mutate(t, "placeOrder", place); string(again.Data) != string(first.Data) {
			t.Errorf("within 24 hours, the response is %s, the first response was %s", again.Data, first.Data)
		}
		s.refuse(t, "placeOrder", place.with("customerId", "bob"), "IDEMPOTENCY_KEY_REUSED input.idempotencyKey")
		s.clock.pass(time.Second)
		other := s.mutate(t, "placeOrder", place.with("customerId", "bob"))
		if string(other.Data) == string(first.Data) {
			t.Errorf("after 24 hours, the response is still %s", other.Data)
		}
		// The key now belongs to the new request.
		if again := s.mutate(t, "placeOrder", place.with("customerId", "bob")); string(again.Data) != string(other.Data) {
			t.Errorf("the repeated new request returns %s, the first returned %s", again.Data, other.Data)
		}
		// The key's first request confirmed the order a day ago, so the lifecycle rules refuse a second
		// time.
		s.refuse(t, "confirmOrder", confirm, "INVALID_TRANSITION input.orderId")
	})
}

// If the response to a transaction is lost, the transaction is not committed twice and the caller
// gets its result. The SDK sends the transaction again. DynamoDB recognises its token for ten
// minutes, and the order book recognises the caller's key for a day.
func TestLostAnswers(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, key := range []string{"", "k"} {
			t.Run("key "+key, func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				input := mutationInput{"customerId": "ann", "items": lines("mug")}
				if key != "" {
					input["idempotencyKey"] = key
				}
				s.wire.loseNextResponse()
				got := s.mutate(t, "placeOrder", input, `id status customer { orderCount orders { nodes { id } } }`)
				want := `{"id":"01KJM6JM000000000000000001","status":"PENDING","customer":{"orderCount":1,"orders":{"nodes":[{"id":"01KJM6JM000000000000000001"}]}}}`
				if string(got.Value) != want {
					t.Errorf("the answer is %s, want %s", got.Value, want)
				}
				if stock := s.stock(t, "mug"); !strings.HasPrefix(stock, "101 of 102") {
					t.Errorf("of the mugs, %s", stock)
				}
			})
		}
	})
}
