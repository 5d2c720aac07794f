package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// secondServer starts a second server on the same table, with the same clock. Its requests do not
// pass the wire.
func (s *fixture) secondServer(t testing.TB) *fixture {
	t.Helper()
	store, err := dynamo.New(storetest.WithoutResponseDate(s.db), dynamo.Options{Table: s.table, Clock: s.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	c := *s
	c.store, c.api = store, serve(t, store)
	return &c
}

// Concurrent adjustments of one level through two servers all succeed, and each is counted
// once.
func TestManyAdjustOneLevel(t *testing.T) {
	t.Parallel()
	people := longtest.Size(10, 25)
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		servers := []*fixture{s, s.secondServer(t)}
		quantities := make([]int, people)
		var group sync.WaitGroup
		for i := range people {
			group.Go(func() {
				got := servers[i%len(servers)].send(t, "adjustInventory", mutationInput{"sku": "mug", "warehouseId": "north", "delta": 1, "idempotencyKey": fmt.Sprint("key-", i)}, "quantity")
				var data struct {
					Payload struct {
						Value      struct{ Quantity int }
						UserErrors []userError
					}
				}
				if err := json.Unmarshal(got.Data, &data); err != nil || len(got.Errors) > 0 || len(data.Payload.UserErrors) > 0 {
					t.Errorf("the response is %s, errors %+v, %v", got.Data, got.Errors, err)
				}
				quantities[i] = data.Payload.Value.Quantity
			})
		}
		group.Wait()
		if got := s.stock(t, "mug"); got != fmt.Sprintf("%d of %[1]d available, %d in north, 2 in south", 102+people, 100+people) {
			t.Errorf("of the mugs, %s", got)
		}
		told := map[int]bool{}
		for _, q := range quantities {
			told[q] = true
		}
		if len(told) != people {
			t.Errorf("%d changes returned %d different quantities: %v", people, len(told), quantities)
		}
	})
}

// After the first failed condition, a mutation retries with the record that DynamoDB returned.
// After the second one, it has waited, so the record is stale and it reads the record again.
func TestMutationsReadAgainAfterTwoConflicts(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		level := mutationInput{"sku": "mug", "warehouseId": "north", "delta": 1}
		for losses, want := range []string{"read write", "read write write", "read write write read write", "read write write read write read write"} {
			s := newFixture(t, db, smallDataset(t))
			others := s.secondServer(t)
			var adjust func()
			left := losses
			adjust = func() {
				if left--; left >= 0 {
					others.mutate(t, "adjustInventory", level)
					s.wire.beforeNextTransaction(adjust)
				}
			}
			s.wire.beforeNextTransaction(adjust)
			s.wire.reset()
			got := s.mutate(t, "adjustInventory", level, "quantity")
			var steps []string
			for _, operation := range s.wire.operationNames() {
				step := "read"
				if operation == "TransactWriteItems" {
					step = "write"
				}
				steps = append(steps, step)
			}
			if have := strings.Join(steps, " "); have != want || string(got.Value) != fmt.Sprintf(`{"quantity":%d}`, 101+losses) {
				t.Errorf("after %d conflicts, the requests are %q, want %q, and the inventory level is %s", losses, have, want, got.Value)
			}
		}
	})
}

// Edits of a product or a customer succeed even if an order is placed between each read and its
// transaction. An order only changes counters, which do not restart the edit. No counter loses an
// order.
func TestEditsDuringContinuousOrders(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, c := range []struct {
			mutation string
			input    mutationInput
			record   string
			want     func(orders int) []string
		}{
			{"updateProduct", mutationInput{"sku": "mug", "name": "Beaker"}, "PRODUCT#mug #METADATA", func(orders int) []string {
				return []string{"name=Beaker", "version=2", fmt.Sprintf("available=%d ", 102-orders), "totalInventory=102"}
			}},
			{"updateProduct", mutationInput{"sku": "mug", "unitPrice": mutationInput{"amount": "8"}, "expectedVersion": 1}, "PRODUCT#mug #METADATA", func(orders int) []string {
				return []string{"unitPrice=8 ", "version=2", fmt.Sprintf("available=%d ", 102-orders)}
			}},
			{"updateCustomer", mutationInput{"id": "bob", "name": "Bobby"}, "CUSTOMER#bob #METADATA", func(orders int) []string {
				return []string{"name=Bobby", "version=2", fmt.Sprintf("orderCount=%d ", orders)}
			}},
			{"assignAccountRep", mutationInput{"customerId": "bob", "employeeId": "rita"}, "CUSTOMER#bob #METADATA", func(orders int) []string {
				return []string{"accountRepId=rita", "version=2", fmt.Sprintf("orderCount=%d ", orders)}
			}},
		} {
			t.Run(c.mutation, func(t *testing.T) {
				// This exceeds the attempts of any edit. An edit that waits for the orders to stop would reach
				// it.
				const most = 12
				s := newFixture(t, db, smallDataset(t))
				others, orders := s.secondServer(t), 0
				var order func()
				order = func() {
					if orders++; orders <= most {
						others.place(t, "bob", "mug")
						s.wire.beforeNextTransaction(order)
					}
				}
				s.wire.beforeNextTransaction(order)
				s.mutate(t, c.mutation, c.input)
				s.wire.beforeNextTransaction(nil)
				if orders > most {
					t.Fatalf("the mutation succeeded only after %d concurrent orders had stopped", most)
				}
				if orders < 2 {
					t.Errorf("only %d orders were placed before the mutation succeeded: the test proves nothing", orders)
				}
				r := s.records(t)[c.record]
				for _, part := range c.want(orders) {
					if !strings.Contains(r+" ", part) {
						t.Errorf("after %d orders the record is %s, want %s", orders, r, part)
					}
				}
			})
		}
	})
}

// Concurrent purchases of a product and an edit of the product all succeed.
func TestBuyersAndAnEditAtOnce(t *testing.T) {
	const buyers, each = 6, 5
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		others := s.secondServer(t)
		var group sync.WaitGroup
		for range buyers {
			group.Go(func() {
				for range each {
					if got := others.send(t, "placeOrder", mutationInput{"customerId": "bob", "items": lines("mug")}); !strings.Contains(string(got.Data), `"userErrors":[]`) {
						t.Errorf("placing an order returns %s, %+v", got.Data, got.Errors)
					}
				}
			})
		}
		group.Go(func() {
			for i := range 3 {
				if got := s.send(t, "updateProduct", mutationInput{"sku": "mug", "category": fmt.Sprint("Cups ", i)}); !strings.Contains(string(got.Data), `"userErrors":[]`) {
					t.Errorf("the edit returns %s, %+v", got.Data, got.Errors)
				}
			}
		})
		group.Wait()
		if got := s.stock(t, "mug"); got != "72 of 102 available, 100 in north, 2 in south" {
			t.Errorf("of the mugs, %s", got)
		}
		want(t, "the last category", s.ids(t, `{ list: products(category: "Cups 2") { nodes { sku } } }`, "sku"), "mug")
	})
}

// Shipping and cancelling do not read stock before the transaction. A failed transaction returns
// the stock. The mutation keeps it even if another condition failed before.
func TestStockFromAFailedTransactionIsKept(t *testing.T) {
	address := mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, c := range map[string]struct {
			then func(s, others *fixture)
			ask  func(s *fixture, order mutationInput)
		}{
			"the stock goes": {
				then: func(_, others *fixture) {
					others.mutate(t, "setInventoryLevel", mutationInput{"sku": "mug", "warehouseId": "north", "quantity": 0})
				},
				ask: func(s *fixture, order mutationInput) {
					got := s.try(t, "shipOrder", order.with("warehouseId", "north").with("withoutAddress", true))
					if !slices.Equal(reasonsOf(got), []string{"INSUFFICIENT_STOCK input.warehouseId"}) {
						t.Errorf("the mutation is refused for %q", reasonsOf(got))
					}
				},
			},
			"the product goes": {
				then: func(s, _ *fixture) {
					_, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: storetest.ItemKey("PRODUCT#mug", "#METADATA")})
					if err != nil {
						t.Error(err)
					}
				},
				ask: func(s *fixture, order mutationInput) { s.mutate(t, "cancelOrder", order) },
			},
		} {
			t.Run(name, func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				order := mutationInput{"orderId": s.place(t, "ann", "mug")}
				s.mutate(t, "confirmOrder", order)
				others := s.secondServer(t)
				s.wire.beforeNextTransaction(func() {
					others.mutate(t, "updateShippingAddress", order.with("shippingAddress", address))
					s.wire.beforeNextTransaction(func() { c.then(s, others) })
				})
				c.ask(s, order)
			})
		}
	})
}
