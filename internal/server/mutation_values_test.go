package server_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A missing account rep keeps the current one. Null removes it.
func TestTheRepGoesWithNullOnly(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		got := s.refuse(t, "assignAccountRep", mutationInput{"customerId": "ann"}, "INVALID input.employeeId")
		if m := got.UserErrors[0].Message; !strings.Contains(m, "missing") || !strings.Contains(m, "null") {
			t.Errorf("it gets %q", m)
		}
		// A missing variable also keeps the current rep.
		query := `mutation($rep: ID) { assignAccountRep(input: {customerId: "ann", employeeId: $rep}) { customer { accountRep { id } } userErrors { code } } }`
		if got := s.ask(t, query, json.RawMessage(`{}`)); string(got.Data) != `{"assignAccountRep":{"customer":null,"userErrors":[{"code":"INVALID"}]}}` {
			t.Errorf("with a missing variable, the response is %s, %+v", got.Data, got.Errors)
		}
		if got := s.mutate(t, "assignAccountRep", mutationInput{"customerId": "ann", "employeeId": nil}, `accountRep { id } version`); string(got.Value) != `{"accountRep":null,"version":2}` {
			t.Errorf("with the value null, the customer is %s", got.Value)
		}
	})
}

// E-mail addresses are compared in a normal form of Unicode, and cannot contain invisible
// characters.
func TestAddressesThatLookTheSameAreTheSame(t *testing.T) {
	const composed, apart = "Zo\u00eb@example.com", "ZOE\u0308@example.com"
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		for _, pair := range [][2]string{{composed, apart}, {apart, composed}} {
			var made struct{ ID string }
			if err := json.Unmarshal(s.mutate(t, "createCustomer", mutationInput{"name": "Zo\u00eb", "email": pair[0]}).Value, &made); err != nil {
				t.Fatal(err)
			}
			s.refuse(t, "createCustomer", mutationInput{"name": "Zoe", "email": pair[1]}, "EMAIL_TAKEN input.email")
			var found struct{ Customer struct{ ID string } }
			s.read(t, &found, `{ customer: customerByEmail(email: %q) { id } }`, pair[1])
			if found.Customer.ID != made.ID {
				t.Errorf("the email %q finds the customer %q, want %q", pair[1], found.Customer.ID, made.ID)
			}
			// The same address in the other form is unchanged, so no claim is released or acquired.
			s.mutate(t, "updateCustomer", mutationInput{"id": made.ID, "email": pair[1]})
			s.refuse(t, "updateCustomer", mutationInput{"id": "bob", "email": pair[0]}, "EMAIL_TAKEN input.email")
			s.mutate(t, "updateCustomer", mutationInput{"id": made.ID, "email": made.ID + "@example.com"})
		}
	})
}

// Invisible characters are rejected in addresses and in names. A name can contain spaces, but not
// consist of them.
func TestInvisibleCharacters(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	for i, unseen := range []string{"\u200b", "\u200d", "\u00ad", "\u00a0", "\u202e", "\u2060", "\ufeff", "\u3000", "\u3164", "\u115f", "\uffa0", "\u034f", "\u2800", "\ufe0f", "\U000e0041", "\ue000"} {
		if i%longtest.Size(3, 1) > 0 {
			continue
		}
		t.Run(fmt.Sprintf("%+q", unseen), func(t *testing.T) {
			for _, email := range []string{unseen + "bob@example.com", "bo" + unseen + "b@example.com", "bob@example.com" + unseen} {
				s.refuse(t, "createCustomer", mutationInput{"name": "Bob", "email": email}, "INVALID input.email")
				s.refuse(t, "updateCustomer", mutationInput{"id": "ann", "email": email}, "INVALID input.email")
			}
			for _, name := range []string{unseen, unseen + " " + unseen} {
				s.refuse(t, "createCustomer", mutationInput{"name": name, "email": "cleo@example.com"}, "INVALID input.name")
				s.refuse(t, "hireEmployee", mutationInput{"name": name, "jobTitle": name, "hireDate": "2026-03-01"}, "INVALID input.name", "INVALID input.jobTitle")
			}
			name := "A" + unseen + "B"
			if !slices.Contains([]string{"\u00a0", "\u3000", "\u2800", "\ue000"}, unseen) { // a space or a symbol
				s.refuse(t, "updateCustomer", mutationInput{"id": "bob", "name": name}, "INVALID input.name")
				return
			}
			if got := s.mutate(t, "updateCustomer", mutationInput{"id": "bob", "name": name}, `name`); !strings.Contains(string(got.Value), unseen) {
				t.Errorf("the name %+q is returned as %s", name, got.Value)
			}
		})
	}
}

// Trailing zeros do not change an amount.
func TestOneAmountInSeveralSpellings(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		bowl := mutationInput{"sku": "bowl", "name": "Bowl", "category": "Kitchen", "idempotencyKey": "k"}
		first := s.mutate(t, "createProduct", bowl.with("unitPrice", mutationInput{"amount": "9.9"}))
		for _, spelling := range []string{"9.90", "9.900", "09.9"} {
			if got := s.mutate(t, "createProduct", bowl.with("unitPrice", mutationInput{"amount": spelling})); string(got.Data) != string(first.Data) {
				t.Errorf("with the amount %s, the response is %s, the first response was %s", spelling, got.Data, first.Data)
			}
		}
		s.refuse(t, "createProduct", bowl.with("unitPrice", mutationInput{"amount": "9.91"}), "IDEMPOTENCY_KEY_REUSED input.idempotencyKey")
		before := s.records(t)
		for sku, spellings := range map[string][]string{"bowl": {"9.9", "9.90", "9.900"}, "mug": {"7.5", "7.50", "7.5000"}, "plate": {"12", "12.0", "12.00"}, "yen": {"500", "500.0"}} {
			for _, spelling := range spellings {
				if got := s.mutate(t, "updateProduct", mutationInput{"sku": sku, "unitPrice": mutationInput{"amount": spelling}}, `version`); string(got.Value) != `{"version":1}` {
					t.Errorf("after setting the same price, %s with the amount %s is %s, want version 1", sku, spelling, got.Value)
				}
			}
		}
		if diff := changes(before, s.records(t)); diff != "" {
			t.Errorf("setting the same prices wrote\n%s", diff)
		}
	})
}

// A price without a currency has the product's currency and its number of digits. The currency
// changes only if the input names another one.
func TestAPriceStaysInItsCurrency(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		s.mutate(t, "createProduct", mutationInput{"sku": "euro", "name": "E", "category": "Import", "unitPrice": mutationInput{"amount": "1.50", "currencyCode": "EUR"}})
		costs := func(sku, amount string, currency any, want string) {
			t.Helper()
			price := mutationInput{"amount": amount}
			if currency != nil {
				price["currencyCode"] = currency
			}
			if got := s.mutate(t, "updateProduct", mutationInput{"sku": sku, "unitPrice": price}, `unitPrice { amount currencyCode }`); string(got.Value) != `{"unitPrice":`+want+`}` {
				t.Errorf("%s with the price %s %v is %s, want %s", sku, amount, currency, got.Value, want)
			}
		}
		costs("euro", "2.25", nil, `{"amount":"2.25","currencyCode":"EUR"}`)
		costs("yen", "750", nil, `{"amount":"750","currencyCode":"JPY"}`)
		s.refuse(t, "updateProduct", mutationInput{"sku": "yen", "unitPrice": mutationInput{"amount": "1.5"}}, "INVALID input.unitPrice.amount")
		s.refuse(t, "updateProduct", mutationInput{"sku": "yen", "unitPrice": mutationInput{"amount": "-1"}}, "INVALID input.unitPrice.amount")
		s.refuse(t, "updateProduct", mutationInput{"sku": "euro", "unitPrice": mutationInput{"amount": "1.505"}}, "INVALID input.unitPrice.amount")
		s.refuse(t, "updateProduct", mutationInput{"sku": "euro", "unitPrice": mutationInput{"amount": "1.5", "currencyCode": "JPY"}}, "INVALID input.unitPrice.amount")
		costs("yen", "1.5", "USD", `{"amount":"1.50","currencyCode":"USD"}`)
		costs("yen", "1.75", nil, `{"amount":"1.75","currencyCode":"USD"}`)
	})
}

// A response with many errors stays short: the number of errors and the repeated input are limited.
func TestRefusalsStayShort(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		bad := make([]mutationInput, 10*commerce.MaxLines)
		var reasons []string
		for i := range bad {
			bad[i] = mutationInput{"sku": fmt.Sprint("#", i), "quantity": -i}
			reasons = append(reasons, fmt.Sprintf("INVALID input.items.%d.sku", i), fmt.Sprintf("INVALID input.items.%d.quantity", i))
		}
		s.refuse(t, "placeOrder", mutationInput{"customerId": "ann", "items": bad}, reasons[:50]...)

		long := strings.Repeat("8", 10_000)
		for _, value := range []string{long, strings.Repeat("é", 5_000), "1" + strings.Repeat("é", 5_000), "-" + long, "1." + long} {
			for _, c := range []struct {
				mutation string
				input    mutationInput
				reasons  []string
			}{
				{"createProduct", mutationInput{"sku": value, "name": value, "category": value, "unitPrice": mutationInput{"amount": "-1"}, "idempotencyKey": value},
					[]string{"sku", "name", "category", "unitPrice.amount", "idempotencyKey"}},
				{"createCustomer", mutationInput{"id": value, "name": value, "email": value + "@" + value, "phoneNumbers": []string{value}, "accountRepId": value}, []string{"id", "name", "email", "phoneNumbers.0", "accountRepId"}},
				{"updateShippingAddress", mutationInput{"orderId": value, "shippingAddress": mutationInput{"recipient": value, "line1": value, "city": value, "countryCode": value}},
					[]string{"orderId", "shippingAddress.recipient", "shippingAddress.line1", "shippingAddress.city", "shippingAddress.countryCode"}},
			} {
				for i, path := range c.reasons {
					c.reasons[i] = "INVALID input." + path
				}
				for _, e := range s.refuse(t, c.mutation, c.input, c.reasons...).UserErrors {
					for _, part := range []string{"8", "é"} {
						// All 40 bytes can be the same character.
						if n := strings.Count(e.Message, part) * len(part); n > 40 {
							t.Errorf("%s repeats %d bytes of the value: %s", e, n, e.Message)
						}
					}
					if strings.ContainsRune(e.Message, '\ufffd') {
						t.Errorf("%s repeats a part of a character: %q", e, e.Message)
					}
				}
			}
		}
	})
}

// The message about a variable names the field of the variable.
func TestMessagesNameTheFieldOfAVariable(t *testing.T) {
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	for _, c := range []struct{ mutation, variables, message string }{
		{"placeOrder", `{"input": {"customerId": "ann"}}`, `variable "input": items must be defined`},
		{"placeOrder", `{"input": {"customerId": "ann", "items": [{"sku": "mug", "quantity": 1}, {"sku": "mug"}]}}`, `variable "input": items.1.quantity must be defined`},
		{"createProduct", `{"input": {"sku": "a", "name": "b", "category": "c", "unitPrice": {}}}`, `variable "input": unitPrice.amount must be defined`},
		{"placeOrder", `{}`, `variable "input": must be defined`},
	} {
		got := s.ask(t, mutation(c.mutation, "__typename"), json.RawMessage(c.variables))
		if len(got.Errors) != 1 || got.Errors[0].Message != c.message || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" {
			t.Errorf("%s %s returns %+v, want %s", c.mutation, c.variables, got.Errors, c.message)
		}
	}
}

// If any request to the store fails, the log contains neither e-mail addresses nor idempotency
// keys.
func TestTheLogKeepsAddressesAndKeysToItself(t *testing.T) {
	var fails atomic.Value // the operation that fails
	fails.Store("")
	var met atomic.Int64
	client := embedded.New().Client(func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = httpClient(func(r *http.Request) (*http.Response, error) {
			if _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation != fails.Load() {
				return next.Do(r)
			}
			met.Add(1)
			return failure(400, "AccessDeniedException", "not today")(r, next)
		})
	})
	store := storetest.NewTable(t, client, dynamo.Options{})
	dataset := smallDataset(t)
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, dataset)
	operations := []string{"GetItem", "BatchGetItem", "TransactGetItems", "TransactWriteItems"}
	seen := map[string]bool{}
	for _, query := range []string{
		`{ customerByEmail(email: "Ann@Example.com") { id } }`,
		`{ a: customerByEmail(email: "ann@example.com") { id } b: customerByEmail(email: "bob@example.com") { id orders { nodes { id } } } }`,
		`mutation { createCustomer(input: {name: "Cleo", email: "cleo@example.com", idempotencyKey: "k-secret"}) { userErrors { code } } }`,
		`mutation { createCustomer(input: {name: "Cleo", email: "ann@example.com", idempotencyKey: "k-secret"}) { userErrors { code } } }`,
		`mutation { updateCustomer(input: {id: "bob", email: "bob.new@example.com"}) { userErrors { code } } }`,
		`mutation { confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002", idempotencyKey: "k-secret"}) { userErrors { code } } }`,
		`mutation { placeOrder(input: {customerId: "ann", items: [{sku: "mug", quantity: 1}], idempotencyKey: "k-secret"}) { userErrors { code } } }`,
		`mutation { adjustInventory(input: {sku: "mug", warehouseId: "north", delta: 1, idempotencyKey: "k-secret"}) { userErrors { code } } }`,
	} {
		for _, operation := range operations {
			h, j := handler(t, store, slog.LevelInfo)
			met.Store(0)
			fails.Store(operation)
			ask(h, http.MethodPost, server.PathGraphQL, post(query))
			fails.Store("")
			if met.Load() == 0 {
				continue
			}
			seen[operation] = true
			log := j.entries(t)
			if len(log) == 0 {
				t.Errorf("%s with a failing %s logs nothing", query, operation)
			}
			for _, secret := range []string{"@", "example.com", "secret"} {
				if strings.Contains(strings.ToLower(fmt.Sprint(log)), secret) {
					t.Errorf("%s with a failing %s logs %s: %v", query, operation, secret, log)
				}
			}
		}
	}
	for _, operation := range operations {
		if !seen[operation] {
			t.Errorf("no request of this test makes a %s", operation)
		}
	}
}
