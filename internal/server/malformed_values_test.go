package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	checks "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A product with a price that Ordergraph would not write is not sold. Its category still lists the
// other products, and check names it.
func TestProductsWithMalformedPricesAreNotSold(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t)).withoutLog(t)
		pending := s.place(t, "ann", "mug", "plate")
		for _, c := range []struct {
			price    attribute
			currency string
		}{
			{&types.AttributeValueMemberN{Value: "-5"}, "USD"},
			{&types.AttributeValueMemberN{Value: "100.5"}, "JPY"},
			{&types.AttributeValueMemberN{Value: "1.2345"}, "KWD"},
			{&types.AttributeValueMemberN{Value: "9999999999999999999"}, "USD"},
			{&types.AttributeValueMemberN{Value: "12345678901234567890"}, "USD"},
			{storetest.Str("29.99"), "USD"},
			{&types.AttributeValueMemberBOOL{Value: true}, "USD"},
			{&types.AttributeValueMemberN{Value: "10"}, "usd"},
			{&types.AttributeValueMemberN{Value: "10"}, "XBT"},
			{&types.AttributeValueMemberN{Value: "10"}, "HRK"},
		} {
			what := fmt.Sprintf("%v %s", storetest.CanonicalNumber(c.price), c.currency)
			for _, sk := range []string{"#METADATA", "WITH_NAME", "WITH_CATEGORY"} {
				s.change(t, "PRODUCT#mug", sk, map[string]attribute{"unitPrice": c.price, "currency": storetest.Str(c.currency)})
			}
			before := s.records(t)
			for name, input := range map[string]mutationInput{
				"placeOrder":   {"customerId": "ann", "items": []mutationInput{{"sku": "mug", "quantity": 3}}},
				"setOrderItem": {"orderId": pending, "sku": "mug", "quantity": 50},
			} {
				got := s.send(t, name, input)
				if len(got.Errors) > 0 || !strings.Contains(string(got.Data), "InvalidInput") && !strings.Contains(string(got.Data), "INVALID") {
					t.Errorf("%s: %s returns %s, %+v", what, name, got.Data, got.Errors)
				}
			}
			quote := s.api.ask(t, `{ quote(input: {items: [{sku: "mug", quantity: 3}]}) { total { amount } lines { subtotal { amount } } userErrors { code } } }`, nil)
			if want := `{"quote":{"total":null,"lines":[],"userErrors":[{"code":"INVALID"}]}}`; string(quote.Data) != want || len(quote.Errors) > 0 {
				t.Errorf("%s: the quote is %s, %+v", what, quote.Data, quote.Errors)
			}
			if diff := changes(before, s.records(t)); diff != "" {
				t.Errorf("%s: the product was sold:\n%s", what, diff)
			}
			for _, list := range []string{`products(category: "Kitchen")`, `products(category: "Kitchen", namePrefix: "")`, `products`} {
				got := s.api.ask(t, `{ list: `+list+` { nodes { sku unitPrice { amount } } } }`, nil)
				if !strings.Contains(string(got.Data), "plate") {
					t.Errorf("%s: %s is %s", what, list, got.Data)
				}
				for _, e := range got.Errors {
					if e.Extensions["code"] != "MALFORMED_RECORD" {
						t.Errorf("%s: %s has the error %+v", what, list, e)
					}
				}
			}
			named := false
			if _, err := s.store.CheckRecords(t.Context(), checks.Options{IndexLag: checks.NoIndexLag, OnInconsistency: func(d checks.Inconsistency) {
				named = named || d.PK == "PRODUCT#mug" && (d.Kind == "invalid-value" || d.Kind == "unreadable") && strings.Contains(d.Detail, "unitPrice")
			}}); err != nil || !named {
				t.Errorf("%s: check does not name the product, %v", what, err)
			}
		}
	})
}

// An order is not shipped to an address that lacks a required field or has one that cannot be read.
func TestOrdersWithIncompleteAddressesAreNotShipped(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t)).withoutLog(t)
		complete := map[string]attribute{"recipient": storetest.Str("Ann"), "line1": storetest.Str("1 Road"), "city": storetest.Str("Doha"), "countryCode": storetest.Str("QA")}
		with := func(name string, v attribute) attribute {
			members := map[string]attribute{}
			for k, m := range complete {
				members[k] = m
			}
			if members[name] = v; v == nil {
				delete(members, name)
			}
			return &types.AttributeValueMemberM{Value: members}
		}
		for _, address := range []attribute{
			&types.AttributeValueMemberM{Value: map[string]attribute{}}, &types.AttributeValueMemberNULL{Value: true}, storetest.Str("1 Road, Doha"),
			with("recipient", nil), with("line1", storetest.Str("")), with("city", number(1)), with("countryCode", nil), with("postalCode", number(10115)),
		} {
			id := s.place(t, "ann", "mug")
			for _, k := range [][2]string{{"ORDER#" + id, "#METADATA"}, {"CUSTOMER#ann", "ORDER#" + id}} {
				s.change(t, k[0], k[1], map[string]attribute{"shippingAddress": address})
			}
			s.mutate(t, "confirmOrder", mutationInput{"orderId": id})
			s.refuse(t, "shipOrder", mutationInput{"orderId": id, "warehouseId": "north"}, "ADDRESS_MISSING input.orderId")
			s.mutate(t, "updateShippingAddress", mutationInput{"orderId": id, "shippingAddress": mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}})
			s.mutate(t, "shipOrder", mutationInput{"orderId": id, "warehouseId": "north"})
		}
	})
}
