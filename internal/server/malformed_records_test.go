package server_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// itemsOf returns the list of embedded items of an order's records.
func itemsOf(items ...attribute) attribute { return &types.AttributeValueMemberL{Value: items} }

// item returns one embedded item.
func item(sku string, quantity int) attribute {
	return &types.AttributeValueMemberM{Value: map[string]attribute{"productId": storetest.Str(sku), "name": storetest.Str("A " + sku), "qty": number(quantity), "price": number(5)}}
}

// remove deletes a record directly in the table.
func (s *fixture) remove(t testing.TB, pk, sk string) {
	t.Helper()
	if _, err := s.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: storetest.ItemKey(pk, sk)}); err != nil {
		t.Fatal(err)
	}
}

// withoutLog returns a fixture whose server does not log, for records that cannot be read.
func (s *fixture) withoutLog(t testing.TB) *fixture {
	t.Helper()
	c := *s
	c.api = serveLogging(t, s.store, io.Discard)
	return &c
}

// doFailing sends a mutation that must be refused because of a malformed record, and write nothing.
func (s *fixture) doFailing(t testing.TB, name string, input mutationInput) {
	t.Helper()
	before := s.records(t)
	got := s.withoutLog(t).send(t, name, input)
	if len(got.Errors) != 0 || !strings.Contains(string(got.Data), "is malformed") {
		t.Errorf("%s %v returns %s, %+v, want a user error about a malformed record", name, input, got.Data, got.Errors)
	}
	if diff := changes(before, s.records(t)); diff != "" {
		t.Errorf("%s %v failed, but wrote\n%s", name, input, diff)
	}
}

// A product without a category is in no list and can be changed. With a category it appears in the
// category's list.
func TestAProductWithoutACategoryCanBeChanged(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.change(t, "PRODUCT#mug", "#METADATA", map[string]attribute{"category": nil, "gsi1pk": nil, "gsi1sk": nil})
		kitchen := func() []string {
			return s.ids(t, `{ list: products(category: "Kitchen") { nodes { sku } } }`, "sku")
		}
		if got := s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "name": "Beaker"}, `name version`); string(got.Value) != `{"name":"Beaker","version":2}` {
			t.Errorf("after the change of the name, the product is %s", got.Value)
		}
		if r := s.records(t)["PRODUCT#mug #METADATA"]; strings.Contains(r, "gsi1") || strings.Contains(r, "category") {
			t.Errorf("the change of the name added index keys to the product: %s", r)
		}
		want(t, "Kitchen", kitchen(), "none", "plate")
		s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "category": "Kitchen"})
		want(t, "Kitchen", kitchen(), "mug", "none", "plate")
	})
}

// A value in a record that no key can contain can be replaced by a valid one.
func TestNamesThatNoKeyHoldsCanBeReplaced(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.change(t, "EMPLOYEE#sam", "#METADATA", map[string]attribute{"jobTitle": storetest.Str("Packer #2")})
		s.mutate(t, "updateEmployee", mutationInput{"id": "sam", "jobTitle": "Foreman"})
		s.change(t, "PRODUCT#mug", "#METADATA", map[string]attribute{"category": storetest.Str("A#B")})
		s.mutate(t, "updateProduct", mutationInput{"sku": "mug", "category": "Cups"})
		want(t, "Foremen", s.ids(t, `{ list: employeesByJobTitle(jobTitle: "Foreman") { nodes { id } } }`, "id"), "sam")
		want(t, "Cups", s.ids(t, `{ list: products(category: "Cups") { nodes { sku } } }`, "sku"), "mug")
		// If such a value stays, the mutation fails, because no index key could contain it.
		s.change(t, "EMPLOYEE#rita", "#METADATA", map[string]attribute{"jobTitle": storetest.Str("Rep #1")})
		s.doFailing(t, "updateEmployee", mutationInput{"id": "rita", "warehouseId": "north"})
	})
}

// If a record lacks one or both index keys, its next change writes both.
func TestMissingIndexKeysComeBack(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, missing := range map[string]map[string]attribute{
			"both": {"gsi1pk": nil, "gsi1sk": nil}, "the partition": {"gsi1pk": nil}, "the sort key": {"gsi1sk": nil}, "neither, they are another's": {"gsi1pk": storetest.Str("STATUS#lost"), "gsi1sk": storetest.Str("?")},
		} {
			t.Run(name, func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				id := s.place(t, "ann", "mug")
				for _, c := range []struct {
					pk, mutation string
					input        mutationInput
					keys         string
				}{
					{"ORDER#" + id, "confirmOrder", mutationInput{"orderId": id}, "gsi1pk=STATUS#confirmed gsi1sk=ORDER#" + id},
					{"ORDER#" + id, "updateShippingAddress", mutationInput{"orderId": id, "shippingAddress": mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}}, "gsi1pk=STATUS#confirmed gsi1sk=ORDER#" + id},
					{"PRODUCT#mug", "updateProduct", mutationInput{"sku": "mug", "name": "Beaker"}, "gsi1pk=CATEGORY#Kitchen gsi1sk=PRODUCT#mug"},
					{"CUSTOMER#bob", "updateCustomer", mutationInput{"id": "bob", "name": "Bobby"}, "gsi1pk=CUSTOMER gsi1sk=2026-02-28T08:00:00.000Z#bob"},
					{"EMPLOYEE#rita", "updateEmployee", mutationInput{"id": "rita", "phoneNumbers": []string{"+1"}}, "gsi1pk=EMPLOYEE gsi1sk=2020-01-01#rita"},
				} {
					s.change(t, c.pk, "#METADATA", missing)
					s.mutate(t, c.mutation, c.input)
					if r := s.records(t)[c.pk+" #METADATA"]; !strings.Contains(r, c.keys) {
						t.Errorf("after %s, the record is %s, want the index keys %s", c.mutation, r, c.keys)
					}
				}
				want(t, "confirmed orders", s.ids(t, `{ list: ordersByStatus(status: CONFIRMED) { nodes { id } } }`, "id"), id)
			})
		}
	})
}

// If the items of an order are only embedded, the 26th item writes all of them as records.
func TestItemsWithoutRecordsOutliveTheEmbeddedList(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		id := s.place(t, "ann", skus(25)...)
		for _, sku := range skus(25) {
			s.remove(t, "ORDER#"+id, "ITEM#"+sku)
		}
		s.mutate(t, "setOrderItem", mutationInput{"orderId": id, "sku": "p25", "quantity": 2})
		o := s.order(t, id)
		if len(o.Items.Nodes) != 26 || o.ItemCount != 26 || o.Total.Amount != "27.00" {
			t.Errorf("the order has %d items, itemCount %d and total %s: %s", len(o.Items.Nodes), o.ItemCount, o.Total.Amount, o.lines())
		}
		s.checkCopy(t, id)
		s.mutate(t, "cancelOrder", mutationInput{"orderId": id})
		for _, sku := range skus(26) {
			if got := s.stock(t, sku); got != "10 of 10 available, 10 in north" {
				t.Errorf("of %s, %s", sku, got)
			}
		}
	})
}

// A malformed counter stays unchanged and fails no order.
func TestCountersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug")
		damaged, kinds := map[string]map[string]attribute{}, map[string]bool{}
		for key := range s.records(t) {
			pk, sk, _ := strings.Cut(key, " ")
			switch {
			case pk == "ORDER_COUNTS":
				damaged[key] = map[string]attribute{"pending": storetest.Str("many"), "cancelled": &types.AttributeValueMemberNULL{Value: true}}
			case strings.HasPrefix(sk, "SPENDING#"):
				damaged[key] = map[string]attribute{"spent": storetest.Str("much")}
			default:
				continue
			}
			kinds[pk] = true
			s.change(t, pk, sk, damaged[key])
		}
		if !kinds["ORDER_COUNTS"] || !kinds["CUSTOMER#ann"] {
			t.Fatalf("the counters contain %v", kinds)
		}
		s.place(t, "ann", "mug")
		s.mutate(t, "setOrderItem", mutationInput{"orderId": id, "sku": "mug", "quantity": 3})
		s.mutate(t, "cancelOrder", mutationInput{"orderId": id})
		for key, r := range s.records(t) {
			if set, isDamaged := damaged[key]; isDamaged && (set["pending"] != nil && !strings.Contains(r, "pending=many") || set["spent"] != nil && !strings.Contains(r, "spent=much")) {
				t.Errorf("%s is %s", key, r)
			}
		}
	})
}

// Changes update the valid counters of a product, and leave missing or malformed ones unchanged.
// The stock revision always increases.
func TestProductsWithoutSomeCounters(t *testing.T) {
	t.Parallel()
	null := &types.AttributeValueMemberNULL{Value: true}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, counters := range map[string]map[string]attribute{
			"only what is available": {"totalInventory": nil}, "only what there is": {"available": nil}, "neither": {"totalInventory": nil, "available": nil},
			"null available": {"available": null}, "null and null": {"totalInventory": null, "available": null}, "a text for what is available": {"available": storetest.Str("12")}, "a text for what there is": {"totalInventory": storetest.Str("12")},
		} {
			t.Run(name, func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				shipped, cancelled := mutationInput{"orderId": s.place(t, "ann", "mug")}, mutationInput{"orderId": s.place(t, "ann", "mug")}
				s.mutate(t, "confirmOrder", shipped)
				s.change(t, "PRODUCT#mug", "#METADATA", counters)
				initial := s.records(t)["PRODUCT#mug #METADATA"]
				level := mutationInput{"sku": "mug", "warehouseId": "north"}
				for i, step := range []struct {
					mutation         string
					input            mutationInput
					total, available int
				}{
					{"adjustInventory", level.with("delta", 10), 112, 110},
					{"adjustInventory", level.with("delta", -5), 107, 105},
					{"setInventoryLevel", level.with("quantity", 104), 106, 104},
					{"shipOrder", shipped.with("warehouseId", "north").with("withoutAddress", true), 105, 104},
					{"cancelOrder", cancelled, 105, 105},
				} {
					s.mutate(t, step.mutation, step.input)
					want := strings.NewReplacer("totalInventory=102", fmt.Sprint("totalInventory=", step.total), "available=100", fmt.Sprint("available=", step.available), "stockRevision=2", fmt.Sprint("stockRevision=", 3+i)).Replace(initial)
					if got := s.records(t)["PRODUCT#mug #METADATA"]; got != want {
						t.Errorf("after %s %v the product is\n%s, want\n%s", step.mutation, step.input, got, want)
					}
				}
				if r := s.records(t)["PRODUCT#mug WAREHOUSE#north"]; !strings.Contains(r, "quantity=103 ") {
					t.Errorf("the inventory level is %s, want the quantity 103", r)
				}
			})
		}
	})
}

// A change removes attributes of the customer's copy that the order's own record does not have.
func TestExtraAttributesOfACopyAreRemoved(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for mutation, more := range map[string]mutationInput{
			"setOrderItem": {"sku": "p00", "quantity": 7}, "removeOrderItem": {"sku": "p00"}, "confirmOrder": {}, "cancelOrder": {},
			"updateShippingAddress": {"shippingAddress": mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}},
		} {
			t.Run(mutation, func(t *testing.T) {
				s := newFixture(t, db, longDataset(t))
				id := s.place(t, "bob", skus(30)...)
				s.change(t, "CUSTOMER#bob", "ORDER#"+id, map[string]attribute{
					"items": itemsOf(item("p00", 1), item("p01", 1)), "itemCount": number(2), "accountRepId": storetest.Str("rita"), "gsi1pk": storetest.Str("REP#rita"), "gsi1sk": storetest.Str("ORDER#" + id),
					"shippingAddress": &types.AttributeValueMemberM{Value: map[string]attribute{"recipient": storetest.Str("Eve"), "city": storetest.Str("Elsewhere"), "countryCode": storetest.Str("US")}},
				})
				input := mutationInput{"orderId": id}
				maps.Copy(input, more)
				s.mutate(t, mutation, input)
				s.checkCopy(t, id)
				if r := s.records(t)["CUSTOMER#bob ORDER#"+id]; strings.Contains(r, "gsi1") {
					t.Errorf("the copy still has the index keys of an account rep: %s", r)
				}
			})
		}
	})
}

// If an embedded list contains a product twice, shipping and cancelling use the sum.
func TestAProductInTwoItems(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, c := range []struct {
			mutation string
			input    mutationInput
			stock    string
		}{
			{"shipOrder", mutationInput{"warehouseId": "north", "withoutAddress": true}, "99 of 99 available, 97 in north, 2 in south"},
			{"cancelOrder", mutationInput{}, "102 of 102 available, 100 in north, 2 in south"},
		} {
			t.Run(c.mutation, func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				s.mutate(t, "placeOrder", mutationInput{"customerId": "ann", "items": []mutationInput{{"sku": "mug", "quantity": 3}}})
				id := s.ids(t, `{ list: customer(id: "ann") { orders { nodes { id } } } }`, "id")[0]
				s.change(t, "ORDER#"+id, "#METADATA", map[string]attribute{"items": itemsOf(item("mug", 1), item("mug", 2)), "itemCount": number(2)})
				s.doFailing(t, "setOrderItem", mutationInput{"orderId": id, "sku": "mug", "quantity": 9})
				s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
				s.mutate(t, c.mutation, c.input.with("orderId", id))
				if got := s.stock(t, "mug"); got != c.stock {
					t.Errorf("the stock of mugs is %s, want %s", got, c.stock)
				}
			})
		}
	})
}

// A change fails for an order with an item whose quantity is below one.
func TestItemsOfLessThanOnePiece(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, quantity := range []int{0, -500} {
			t.Run(fmt.Sprint(quantity), func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				pending := s.place(t, "ann", "mug", "plate")
				confirmed := s.placeWithStatus(t, commerce.Confirmed)
				for _, id := range []string{pending, confirmed} {
					s.change(t, "ORDER#"+id, "#METADATA", map[string]attribute{"items": itemsOf(item("mug", quantity), item("plate", 1))})
				}
				s.doFailing(t, "cancelOrder", mutationInput{"orderId": pending})
				s.doFailing(t, "setOrderItem", mutationInput{"orderId": pending, "sku": "plate", "quantity": 2})
				s.doFailing(t, "removeOrderItem", mutationInput{"orderId": pending, "sku": "mug"})
				s.doFailing(t, "cancelOrder", mutationInput{"orderId": confirmed})
				s.doFailing(t, "shipOrder", mutationInput{"orderId": confirmed, "warehouseId": "north", "withoutAddress": true})
			})
		}
	})
}

// An event at the maximum time does not push later events beyond it. They keep their own time and
// stay readable.
func TestMaximumTimes(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		id := s.place(t, "ann", "mug")
		end := map[string]attribute{"updatedAt": storetest.Str("9999-12-31T23:59:59.999Z")}
		s.change(t, "ORDER#"+id, "#METADATA", end)
		s.change(t, "CUSTOMER#bob", "#METADATA", end)
		for i, mutation := range []string{"confirmOrder", "cancelOrder"} {
			s.clock.pass(time.Hour)
			now := s.clock.Now()
			s.mutate(t, mutation, mutationInput{"orderId": id})
			s.mutate(t, "updateCustomer", mutationInput{"id": "bob", "name": fmt.Sprint("Bob ", i)})
			var bob struct{ Customer struct{ UpdatedAt time.Time } }
			s.read(t, &bob, `{ customer(id: "bob") { updatedAt } }`)
			if o := s.order(t, id); !o.UpdatedAt.Equal(now) || !bob.Customer.UpdatedAt.Equal(now) {
				t.Errorf("after %s at %v, the order was updated at %v and the customer at %v", mutation, now, o.UpdatedAt, bob.Customer.UpdatedAt)
			}
		}
		want(t, "ann's orders", s.ids(t, `{ list: customer(id: "ann") { orders { nodes { id } } } }`, "id"), id)
		s.checkCopy(t, id)
	})
}

// If the claim of a customer's address is missing, setting the address again writes it. Case does
// not matter. The claim may belong to another customer by then.
func TestAMissingClaimComesBack(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for _, email := range []string{"bob@example.com", "Bob@Example.com"} {
			t.Run(email, func(t *testing.T) {
				s := newFixture(t, db, smallDataset(t))
				s.remove(t, "EMAIL#bob@example.com", "#METADATA")
				s.mutate(t, "updateCustomer", mutationInput{"id": "bob", "name": "Bobby", "email": email})
				s.refuse(t, "createCustomer", mutationInput{"name": "B", "email": "bob@example.com"}, "EMAIL_TAKEN input.email")
				want(t, "claims", slices.DeleteFunc(slices.Collect(maps.Keys(s.records(t))), func(k string) bool { return !strings.HasPrefix(k, "EMAIL#") }),
					"EMAIL#ann@example.com #METADATA", "EMAIL#bob@example.com #METADATA")
				s.change(t, "EMAIL#bob@example.com", "#METADATA", map[string]attribute{"customerId": storetest.Str("ann")})
				s.refuse(t, "updateCustomer", mutationInput{"id": "bob", "name": "Rob", "email": strings.ToUpper(email)}, "EMAIL_TAKEN input.email")
			})
		}
	})
}

// A repeated request is answered from its idempotency record, even if no other record can be read. But only
// the customer's record contains personal data.
func TestIdempotencyRecordsSuffice(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		inputs := mutationsWithKey(s, t)
		first := map[string]outcome{}
		for name, input := range inputs {
			first[name] = s.mutate(t, name, input[0].with("idempotencyKey", name))
		}
		for k := range s.records(t) {
			if pk, sk, _ := strings.Cut(k, " "); !strings.HasPrefix(pk, "IDEMPOTENCY#") {
				changes := map[string]attribute{"version": storetest.Str("x"), "unitPrice": storetest.Str("x"), "status": number(1)}
				if !strings.HasPrefix(pk, "CUSTOMER#") {
					changes["name"] = number(1)
				}
				s.change(t, pk, sk, changes)
			}
		}
		for name, input := range inputs {
			if got := s.mutate(t, name, input[0].with("idempotencyKey", name)); string(got.Data) != string(first[name].Data) {
				t.Errorf("the second response to %s is %s, the first %s", name, got.Data, first[name].Data)
			}
		}
		s.doFailing(t, "placeOrder", inputs["placeOrder"][0].with("idempotencyKey", "another"))
	})
}
