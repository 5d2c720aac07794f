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
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// another starts a second server on the same table, with the same clock. Its requests do not pass
// the wire.
func (s *shop) another(t testing.TB) *shop {
	t.Helper()
	store, err := dynamo.New(storetest.Undated(s.db), dynamo.Options{Table: s.table, Clock: s.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	c := *s
	c.store, c.api = store, serve(t, store)
	return &c
}

// Fifty concurrent adjustments of one level through two servers all succeed, and each is counted
// once.
func TestManyAdjustOneLevel(t *testing.T) {
	t.Parallel()
	people := longtest.Size(10, 50)
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db, smallBook(t))
		servers := []*shop{s, s.another(t)}
		quantities := make([]int, people)
		var group sync.WaitGroup
		for i := range people {
			group.Go(func() {
				got := servers[i%len(servers)].send(t, "adjustInventory", in{"sku": "mug", "warehouseId": "north", "delta": 1, "idempotencyKey": fmt.Sprint("key-", i)}, "quantity")
				var data struct {
					Payload struct {
						Value      struct{ Quantity int }
						UserErrors []userError
					}
				}
				if err := json.Unmarshal(got.Data, &data); err != nil || len(got.Errors) > 0 || len(data.Payload.UserErrors) > 0 {
					t.Errorf("the answer is %s, %+v, %v", got.Data, got.Errors, err)
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
func TestWhoLosesTwiceLooksAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		level := in{"sku": "mug", "warehouseId": "north", "delta": 1}
		for losses, want := range []string{"read write", "read write write", "read write write read write", "read write write read write read write"} {
			s := newShop(t, db, smallBook(t))
			others := s.another(t)
			var adjust func()
			left := losses
			adjust = func() {
				if left--; left >= 0 {
					others.do(t, "adjustInventory", level)
					s.wire.meanwhile(adjust)
				}
			}
			s.wire.meanwhile(adjust)
			s.wire.forget()
			got := s.do(t, "adjustInventory", level, "quantity")
			var steps []string
			for _, operation := range s.wire.seen() {
				step := "read"
				if operation == "TransactWriteItems" {
					step = "write"
				}
				steps = append(steps, step)
			}
			if have := strings.Join(steps, " "); have != want || string(got.Value) != fmt.Sprintf(`{"quantity":%d}`, 101+losses) {
				t.Errorf("after %d losses the requests are %q, want %q, and the level is %s", losses, have, want, got.Value)
			}
		}
	})
}

// Edits of a product or a customer succeed even if an order is placed between each read and its
// transaction. An order only changes counters, which do not restart the edit. No counter loses an
// order.
func TestEditsOfWhatOthersKeepOrdering(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		for _, c := range []struct {
			mutation string
			input    in
			record   string
			want     func(orders int) []string
		}{
			{"updateProduct", in{"sku": "mug", "name": "Beaker"}, "PRODUCT#mug #METADATA", func(orders int) []string {
				return []string{"name=Beaker", "version=2", fmt.Sprintf("available=%d ", 102-orders), "totalInventory=102"}
			}},
			{"updateProduct", in{"sku": "mug", "unitPrice": in{"amount": "8"}, "expectedVersion": 1}, "PRODUCT#mug #METADATA", func(orders int) []string {
				return []string{"unitPrice=8 ", "version=2", fmt.Sprintf("available=%d ", 102-orders)}
			}},
			{"updateCustomer", in{"id": "bob", "name": "Bobby"}, "CUSTOMER#bob #METADATA", func(orders int) []string {
				return []string{"name=Bobby", "version=2", fmt.Sprintf("orderCount=%d ", orders)}
			}},
			{"assignAccountRep", in{"customerId": "bob", "employeeId": "rita"}, "CUSTOMER#bob #METADATA", func(orders int) []string {
				return []string{"accountRepId=rita", "version=2", fmt.Sprintf("orderCount=%d ", orders)}
			}},
		} {
			t.Run(c.mutation, func(t *testing.T) {
				// This exceeds the attempts of any edit. An edit that waits for the orders to stop would reach
				// it.
				const most = 12
				s := newShop(t, db, smallBook(t))
				others, orders := s.another(t), 0
				var order func()
				order = func() {
					if orders++; orders <= most {
						others.place(t, "bob", "mug")
						s.wire.meanwhile(order)
					}
				}
				s.wire.meanwhile(order)
				s.do(t, c.mutation, c.input)
				s.wire.meanwhile(nil)
				if orders > most {
					t.Fatalf("the change was made when others stopped, after %d orders", most)
				}
				if orders < 2 {
					t.Errorf("%d orders came between: the test proves nothing", orders)
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
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db, smallBook(t))
		others := s.another(t)
		var group sync.WaitGroup
		for range buyers {
			group.Go(func() {
				for range each {
					if got := others.send(t, "placeOrder", in{"customerId": "bob", "items": lines("mug")}); !strings.Contains(string(got.Data), `"userErrors":[]`) {
						t.Errorf("placing an order returns %s, %+v", got.Data, got.Errors)
					}
				}
			})
		}
		group.Go(func() {
			for i := range 3 {
				if got := s.send(t, "updateProduct", in{"sku": "mug", "category": fmt.Sprint("Cups ", i)}); !strings.Contains(string(got.Data), `"userErrors":[]`) {
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
func TestWhatATransactionToldIsNotForgotten(t *testing.T) {
	address := in{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		for name, c := range map[string]struct {
			then func(s, others *shop)
			ask  func(s *shop, order in)
		}{
			"the stock goes": {
				then: func(_, others *shop) {
					others.do(t, "setInventoryLevel", in{"sku": "mug", "warehouseId": "north", "quantity": 0})
				},
				ask: func(s *shop, order in) {
					got := s.try(t, "shipOrder", order.with("warehouseId", "north").with("withoutAddress", true))
					if !slices.Equal(told(got), []string{"INSUFFICIENT_STOCK input.warehouseId"}) {
						t.Errorf("it is refused for %q", told(got))
					}
				},
			},
			"the product goes": {
				then: func(s, _ *shop) {
					_, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: storetest.ItemKey("PRODUCT#mug", "#METADATA")})
					if err != nil {
						t.Error(err)
					}
				},
				ask: func(s *shop, order in) { s.do(t, "cancelOrder", order) },
			},
		} {
			t.Run(name, func(t *testing.T) {
				s := newShop(t, db, smallBook(t))
				order := in{"orderId": s.place(t, "ann", "mug")}
				s.do(t, "confirmOrder", order)
				others := s.another(t)
				s.wire.meanwhile(func() {
					others.do(t, "updateShippingAddress", order.with("shippingAddress", address))
					s.wire.meanwhile(func() { c.then(s, others) })
				})
				c.ask(s, order)
			})
		}
	})
}
