package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// An order is placed if its total equals the expected total, in any spelling of the amount.
func TestExpectedTotal(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		order := mutationInput{"customerId": "ann", "items": lines("mug", "plate")}
		yen := mutationInput{"customerId": "ann", "items": lines("yen")}
		for _, c := range []struct {
			name  string
			input mutationInput
			total mutationInput
		}{
			{"the same digits", order, mutationInput{"amount": "19.50", "currencyCode": "USD"}},
			{"fewer digits", order, mutationInput{"amount": "19.5", "currencyCode": "USD"}},
			{"more digits", order, mutationInput{"amount": "19.5000", "currencyCode": "USD"}},
			{"the shop's currency", order, mutationInput{"amount": "19.50"}},
			{"another currency", yen, mutationInput{"amount": "500.00", "currencyCode": "JPY"}},
			{"any total", order, nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				input := c.input
				if c.total != nil {
					input = input.with("expectedTotal", c.total)
				}
				s.mutate(t, "placeOrder", input)
			})
		}
		const changed = "PRICE_CHANGED input.expectedTotal"
		for _, c := range []struct {
			name    string
			input   mutationInput
			total   mutationInput
			current string
			reasons []string
		}{
			{"less", order, mutationInput{"amount": "19.49"}, "19.50 USD", []string{changed}},
			{"more", order, mutationInput{"amount": "19.501"}, "19.50 USD", []string{changed}},
			{"negative", order, mutationInput{"amount": "-19.50"}, "19.50 USD", []string{changed}},
			{"the amount in another currency", order, mutationInput{"amount": "19.50", "currencyCode": "EUR"}, "19.50 USD", []string{changed}},
			{"the shop's currency for yen", yen, mutationInput{"amount": "500"}, "500 JPY", []string{changed}},
			{"unknown customer", order.with("customerId", "nobody"), mutationInput{"amount": "1"}, "19.50 USD", []string{"NOT_FOUND input.customerId", changed}},
			{"too few pieces", mutationInput{"customerId": "ann", "items": lines("mug", "none")}, mutationInput{"amount": "1"}, "8.50 USD", []string{"INSUFFICIENT_STOCK input.items.1.quantity", changed}},
			{"unknown product: no total", order.with("items", lines("mug", "spoon")), mutationInput{"amount": "1"}, " ", []string{"NOT_FOUND input.items.1.sku"}},
			{"two currencies: no total", order.with("items", lines("mug", "yen")), mutationInput{"amount": "1"}, " ", []string{"INVALID input.items.1.sku"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				got := s.refuse(t, "placeOrder", c.input.with("expectedTotal", c.total), c.reasons...)
				last := got.UserErrors[len(got.UserErrors)-1]
				if total := last.CurrentTotal.Amount + " " + last.CurrentTotal.CurrencyCode; total != c.current {
					t.Errorf("the total is %q, want %q", total, c.current)
				}
				if last.Code == "PRICE_CHANGED" && (last.Typename != "PriceChanged" || !strings.Contains(last.Message, "now "+c.current) || !strings.Contains(last.Message, "send the mutation again")) {
					t.Errorf("the user error is %+v", last)
				}
			})
		}
	})
}

// A price that other software wrote has more digits than its currency. The product is not sold.
func TestExpectedTotalOfManyDigits(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	s.change(t, "PRODUCT#mug", "#METADATA", map[string]attribute{"unitPrice": &types.AttributeValueMemberN{Value: "0.125"}})
	for _, total := range []string{"0.13", "0.125"} {
		s.refuse(t, "placeOrder", mutationInput{"customerId": "ann", "items": lines("mug"), "expectedTotal": mutationInput{"amount": total}}, "INVALID input.items.0.sku")
	}
}

// If the price changes before the order is written, the mutation is refused and the customer
// decides again.
func TestPriceChangesBeforeTheOrderIsPlaced(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		others := s.secondServer(t)
		order := mutationInput{"customerId": "ann", "items": lines("mug", "plate"), "expectedTotal": mutationInput{"amount": "19.50"}, "idempotencyKey": "k"}
		reprice := func(amount string) func() {
			return func() {
				others.mutate(t, "updateProduct", mutationInput{"sku": "mug", "unitPrice": mutationInput{"amount": amount}})
			}
		}
		changed := func(total, price string) {
			t.Helper()
			before := s.orders(t)
			got := s.try(t, "placeOrder", order)
			if !slices.Equal(reasonsOf(got), []string{"PRICE_CHANGED input.expectedTotal"}) || string(got.Value) != "null" {
				t.Fatalf("placing gives %s, %+v", got.Value, got.UserErrors)
			}
			want := `[{"sku":"mug","name":"Mug","quantity":1,"unitPrice":{"amount":"` + price + `"},"subtotal":{"amount":"` + price + `"},"available":102,"inStock":true},` +
				`{"sku":"plate","name":"Plate","quantity":1,"unitPrice":{"amount":"12.00"},"subtotal":{"amount":"12.00"},"available":50,"inStock":true}]`
			if e := got.UserErrors[0]; e.CurrentTotal.Amount != total || string(e.Lines) != want {
				t.Errorf("the total is %s, the lines are\n%s, want %s,\n%s", e.CurrentTotal.Amount, e.Lines, total, want)
			}
			if after := s.orders(t); after != before {
				t.Errorf("the refused mutation changed the orders to %s from %s", after, before)
			}
		}
		s.wire.beforeNextTransaction(reprice("8.00")) // between the read and the transaction
		changed("20.00", "8.00")
		reprice("9.00")()
		changed("21.00", "9.00")

		// A refusal is not stored under the key, so the key can place the order at the new total.
		order = order.with("expectedTotal", mutationInput{"amount": "21.00"})
		first := s.mutate(t, "placeOrder", order)
		reprice("10.00")()
		for _, same := range []mutationInput{order, order.with("expectedTotal", mutationInput{"amount": "21"})} {
			if again := s.mutate(t, "placeOrder", same); string(again.Data) != string(first.Data) {
				t.Errorf("the repeated mutation returns %s, the first returned %s", again.Data, first.Data)
			}
		}
		s.refuse(t, "placeOrder", order.with("expectedTotal", mutationInput{"amount": "22.00"}), "IDEMPOTENCY_KEY_REUSED input.idempotencyKey")
	})
}

// Units that are added to a line item have the current price, and so have the units before them. So
// the customer must agree to the new total. An order of one unit does not lock the price.
func TestUnitsAreAddedAtTheCurrentPrice(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		others := s.secondServer(t)
		id := s.place(t, "ann", "mug", "plate") // 7.50 and 12.00
		set := func(quantity int, total string) mutationInput {
			input := mutationInput{"orderId": id, "sku": "mug", "quantity": quantity}
			if total != "" {
				input = input.with("expectedTotal", mutationInput{"amount": total})
			}
			return input
		}
		reprice := func(amount string) {
			others.mutate(t, "updateProduct", mutationInput{"sku": "mug", "unitPrice": mutationInput{"amount": amount}})
		}
		accept := func(input mutationInput, lines, total string) {
			t.Helper()
			s.mutate(t, "setOrderItem", input)
			if o := s.order(t, id); o.lines() != lines || o.Total.Amount != total {
				t.Errorf("the order has %s, total %s, want %s, total %s", o.lines(), o.Total.Amount, lines, total)
			}
			s.checkCopy(t, id)
		}
		refuse := func(input mutationInput, total string) {
			t.Helper()
			before := s.orders(t)
			e := s.refuse(t, "setOrderItem", input, "PRICE_CHANGED input.expectedTotal").UserErrors[0]
			if e.Typename != "PriceChanged" || e.CurrentTotal.Amount != total || !strings.Contains(e.Message, total) {
				t.Errorf("the user error is %+v, want the total %s", e, total)
			}
			if after := s.orders(t); after != before {
				t.Errorf("the refused mutation changed the orders to %s from %s", after, before)
			}
		}
		accept(set(2, ""), "2 mug at 7.50, 1 plate at 12.00", "27.00")
		reprice("9.00")
		refuse(set(100, ""), "912.00")
		refuse(set(100, "762.00"), "912.00") // the total at the old price
		accept(set(1, ""), "1 mug at 7.50, 1 plate at 12.00", "19.50")
		refuse(set(1, "21.00"), "19.50")
		accept(set(3, "39"), "3 mug at 9.00, 1 plate at 12.00", "39.00")
		accept(set(4, ""), "4 mug at 9.00, 1 plate at 12.00", "48.00")
		reprice("1.00")
		accept(set(5, "17.00"), "5 mug at 1.00, 1 plate at 12.00", "17.00")
		// The price changes between the read and the transaction.
		s.wire.beforeNextTransaction(func() { reprice("2.00") })
		got := s.try(t, "setOrderItem", set(6, "18.00"))
		if !slices.Equal(reasonsOf(got), []string{"PRICE_CHANGED input.expectedTotal"}) || got.UserErrors[0].CurrentTotal.Amount != "24.00" {
			t.Errorf("the mutation returns %+v, want the total 24.00", got.UserErrors)
		}
		// The product now has another currency.
		others.mutate(t, "updateProduct", mutationInput{"sku": "mug", "unitPrice": mutationInput{"amount": "5", "currencyCode": "EUR"}})
		s.refuse(t, "setOrderItem", set(6, "18.00"), "INVALID input.sku")
		accept(set(2, ""), "2 mug at 1.00, 1 plate at 12.00", "14.00")
	})
}

// orders returns the records of orders.
func (s *fixture) orders(t testing.TB) string {
	t.Helper()
	records := s.records(t)
	for k := range records {
		if !strings.Contains(k, "ORDER#") {
			delete(records, k)
		}
	}
	text, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
