package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// amount has the fields of a Money.
type amount struct{ Amount, CurrencyCode string }

// quoteView has the fields of a quote.
type quoteView struct {
	Lines      json.RawMessage
	Total      *amount
	UserErrors []userError
}

// quote queries the price of items. It writes nothing.
func (s *fixture) quote(t testing.TB, items any) quoteView {
	t.Helper()
	variables, err := json.Marshal(mutationInput{"input": mutationInput{"items": items}})
	if err != nil {
		t.Fatal(err)
	}
	before := s.records(t)
	got := s.ask(t, `query($input: QuoteInput!) { quote(input: $input) {
		lines { sku name quantity unitPrice { amount } subtotal { amount } available inStock } total { amount currencyCode } `+userErrors+` } }`, variables)
	var data struct{ Quote *quoteView }
	if err := json.Unmarshal(got.Data, &data); err != nil || len(got.Errors) > 0 || data.Quote == nil {
		t.Fatalf("the quote is %s, %+v, %v", got.Data, got.Errors, err)
	}
	if diff := changes(before, s.records(t)); diff != "" {
		t.Errorf("a quote writes\n%s", diff)
	}
	return *data.Quote
}

// A quote has the same user errors, lines and total as an order of the same items a moment later.
func TestQuotesMatchPlacedOrders(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, longDataset(t))
		s.mutate(t, "createProduct", mutationInput{"sku": "max", "name": "Max", "category": "Kitchen", "unitPrice": mutationInput{"amount": "9999999999999.99"}})
		s.mutate(t, "setInventoryLevel", mutationInput{"sku": "max", "warehouseId": "north", "quantity": 10})
		line := func(sku string, quantity int) mutationInput { return mutationInput{"sku": sku, "quantity": quantity} }
		for _, c := range []struct {
			name     string
			items    []mutationInput
			total    string
			requests int
		}{
			{"two lines of one product", []mutationInput{line("mug", 2), line("plate", 1), line("mug", 3)}, "49.50 USD", 1},
			{"yen", lines("yen"), "500 JPY", 1},
			{"the maximum number of lines", lines(skus(commerce.MaxLines)...), fmt.Sprintf("%d.00 USD", commerce.MaxLines), 1},
			{"too few pieces", []mutationInput{line("mug", 103), line("none", 1), line("plate", 50)}, "1373.50 USD", 1},
			{"too few pieces in two lines", []mutationInput{line("mug", 100), line("mug", 3)}, "772.50 USD", 1},
			{"unknown products", lines("mug", "spoon", "fork"), "", 1},
			{"two currencies", lines("mug", "yen", "plate"), "", 1},
			{"two currencies, and too few pieces", []mutationInput{line("none", 1), line("yen", 11)}, "", 1},
			{"too large a total", []mutationInput{line("max", 2)}, "", 1},
			{"too many lines", lines(skus(commerce.MaxLines + 1)...), "", 0},
			{"far too many lines", slices.Repeat(lines("mug"), 1000), "", 0},
			{"too many pieces in two lines", []mutationInput{line("mug", 1_000_000), line("mug", 1)}, "", 0},
			{"no items", []mutationInput{}, "", 0},
			{"bad SKU and quantity", []mutationInput{line("a#b", 0)}, "", 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				s.wire.reset()
				quote := s.quote(t, c.items)
				if made := s.wire.operationNames(); len(made) != c.requests || c.requests == 1 && made[0] != "BatchGetItem" && made[0] != "GetItem" {
					t.Errorf("requests are %q, want %d", made, c.requests)
				}
				total := ""
				if quote.Total != nil {
					total = quote.Total.Amount + " " + quote.Total.CurrencyCode
				}
				if total != c.total {
					t.Errorf("the total is %q, want %q", total, c.total)
				}
				// A total is never -1, so the order is refused. The refusal contains the total and the lines.
				placed := s.try(t, "placeOrder", mutationInput{"customerId": "ann", "items": c.items, "expectedTotal": mutationInput{"amount": "-1"}})
				reasons := placed.UserErrors
				if i := slices.IndexFunc(reasons, func(e userError) bool { return e.Code == "PRICE_CHANGED" }); i >= 0 {
					if string(reasons[i].Lines) != string(quote.Lines) || *quote.Total != reasons[i].CurrentTotal {
						t.Errorf("the quote has the total %+v and the lines\n%s\nplaceOrder has the total %+v and the lines\n%s", quote.Total, quote.Lines, reasons[i].CurrentTotal, reasons[i].Lines)
					}
					reasons = slices.Delete(reasons, i, i+1)
				} else if quote.Total != nil {
					t.Errorf("the quote has a total, but the user errors of placeOrder contain no PRICE_CHANGED: %+v", reasons)
				}
				if fmt.Sprint(quote.UserErrors) != fmt.Sprint(reasons) {
					t.Errorf("the quote has the user errors\n%+v\nplaceOrder has\n%+v", quote.UserErrors, reasons)
				}
				if quote.Total == nil || len(quote.UserErrors) > 0 {
					return
				}
				s.mutate(t, "placeOrder", mutationInput{"customerId": "ann", "items": c.items, "expectedTotal": mutationInput{"amount": quote.Total.Amount, "currencyCode": quote.Total.CurrencyCode}})
			})
		}
	})
}
