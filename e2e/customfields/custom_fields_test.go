// Package customfields_test runs servers with a schema extension. It is a package of its own, because
// custom fields apply to the whole process.
package customfields_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/extension"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

const file = `
enum Channel { WEB APP STORE }
extend type Order {
  giftMessage: String @field(maxLength: 200, setBy: [CUSTOMER, STAFF])
  channel: Channel! @field(default: "WEB") @list(query: "ordersByChannel")
  erpNumber: String @field(setBy: SERVICE, seenBy: [STAFF, SERVICE]) @unique(query: "orderByErpNumber")
}
extend type OrderItem {
  engraving: String @field(setBy: [CUSTOMER, STAFF])
  deposit: Money @field
}
extend type Product {
  brand: String @field @list(query: "productsByBrand")
  weightGrams: Int @field(min: 0) @list(query: "productsByWeight")
  ratio: Decimal @field
  deposit: Money @field
  tags: [String!] @field(maxItems: 3)
  sizes: [Int!] @field
  launch: Date @field
  stocked: DateTime @field
  fragile: Boolean @field
  code: ID @field @unique(query: "productByCode")
}
extend type Customer { marketingConsent: Boolean! @field(default: false, setBy: [CUSTOMER]) @list(query: "customersByConsent") }
extend type Warehouse { dock: String @field @list(query: "warehousesByDock") }
extend type Employee { desk: String @field @unique(query: "employeeByDesk") }
`

// declared is the extension that all servers of the tests have.
var declared extension.Extension

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(20, 40)
	var err error
	if declared, err = graph.ParseExtension("shop.graphqls", file); err != nil {
		panic(err)
	}
	declared.Declare()
	os.Exit(dynamolocal.Main(m))
}

// shop is a server with the sample data.
type shop struct {
	storetest.RawTable
	executor *graph.Executor
	caller   access.Principal
}

func newShop(t testing.TB, db *dynamodb.Client) *shop {
	dataset, _ := storetest.SampleDataset(t)
	raw := storetest.NewRawTable(t, db, dataset, dynamo.Options{})
	return &shop{raw, newExecutor(t, raw.Store, declared), access.AnonymousAdmin()}
}

func newExecutor(t testing.TB, store *dynamo.Store, e extension.Extension) *graph.Executor {
	return graph.NewExecutor(graph.Options{
		Store: store, Extension: e, Authenticated: true, Cursors: paging.NewCursorSigner([]byte("a key for tests")),
		Report: func(_ context.Context, err error) { t.Log(err) },
	})
}

// try executes a document and returns its data and the messages of its errors and user errors.
func (s *shop) try(document string, variables map[string]any) (data map[string]any, problems []string) {
	s.T.Helper()
	result := s.executor.Execute(graph.WithPrincipal(s.T.Context(), s.caller), graph.Request{Query: document, Variables: variables})
	for _, err := range result.Errors {
		problems = append(problems, fmt.Sprint(err.Extensions["code"], " ", err.Message))
	}
	if len(result.Data) > 0 {
		if err := json.Unmarshal(result.Data, &data); err != nil {
			s.T.Fatal(err)
		}
	}
	for _, payload := range data {
		if payload, ok := payload.(map[string]any); ok && payload["userErrors"] != nil {
			for _, err := range payload["userErrors"].([]any) {
				problems = append(problems, err.(map[string]any)["message"].(string))
			}
		}
	}
	return data, problems
}

// run executes a document that must succeed, and returns its data in JSON.
func (s *shop) run(document string, variables map[string]any) string {
	s.T.Helper()
	data, problems := s.try(document, variables)
	if len(problems) > 0 {
		s.T.Fatalf("%s: %v", document, problems)
	}
	text, _ := json.Marshal(data)
	return string(text)
}

func (s *shop) expect(document, want string) {
	s.T.Helper()
	if got := s.run(document, nil); got != want {
		s.T.Errorf("%s returns\n%s\nwant\n%s", document, got, want)
	}
}

const customer = "cust_001"

// place places an order of customer and returns its ID.
func (s *shop) place(fields, itemFields string) string {
	s.T.Helper()
	data, problems := s.try(fmt.Sprintf(`mutation { placeOrder(input: {customerId: %q, %s items: [{sku: "prod_100", quantity: 1 %s}, {sku: "prod_101", quantity: 1}]}) {
		order { id } userErrors { message } } }`, customer, fields, itemFields), nil)
	if len(problems) > 0 {
		s.T.Fatal(problems)
	}
	return data["placeOrder"].(map[string]any)["order"].(map[string]any)["id"].(string)
}

func text(item storetest.Item, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Each custom field is an attribute of its own name in the record and its copies. Records that lack a
// field have its default value.
func TestValuesAreStoredInRecordsAndCopies(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		s.expect(`{ customer(id: "cust_001") { marketingConsent } product(sku: "prod_100") { brand tags } orders(first: 1) { nodes { channel giftMessage items(first: 1) { nodes { engraving } } } } }`,
			`{"customer":{"marketingConsent":false},"orders":{"nodes":[{"channel":"WEB","giftMessage":null,"items":{"nodes":[{"engraving":null}]}}]},"product":{"brand":null,"tags":null}}`)

		id := s.place(`giftMessage: "Happy\nbirthday", channel: APP,`, `engraving: "Ann", deposit: {amount: "1.5", currencyCode: "USD"}`)
		for _, sk := range []model.Keys{{PK: "ORDER#" + id, SK: "#METADATA"}, {PK: "CUSTOMER#" + customer, SK: "ORDER#" + id}} {
			record := s.Get(sk.PK, sk.SK)
			if text(record, "giftMessage") != "Happy\nbirthday" || text(record, "channel") != "APP" || record["erpNumber"] != nil {
				t.Errorf("the record %v contains %v", sk, record)
			}
		}
		if item := s.Get("ORDER#"+id, "ITEM#prod_100"); text(item, "engraving") != "Ann" || storetest.FormatValue(item["deposit"]) != "{amount=1.5 currency=USD}" {
			t.Errorf("the line item contains %v", item)
		}
		s.expect(fmt.Sprintf(`{ order(id: %q) { channel items { nodes { engraving deposit { amount currencyCode } } } customer { orders(first: 1) { nodes { giftMessage } } } } product(sku: "prod_100") { orderItems(first: 1) { nodes { engraving } } } }`, id),
			`{"order":{"channel":"APP","customer":{"orders":{"nodes":[{"giftMessage":"Happy\nbirthday"}]}},"items":{"nodes":[{"deposit":{"amount":"1.50","currencyCode":"USD"},"engraving":"Ann"},{"deposit":null,"engraving":null}]}},"product":{"orderItems":{"nodes":[{"engraving":"Ann"}]}}}`)

		s.expect(fmt.Sprintf(`mutation { setCustomFields(input: {orderId: %q, giftMessage: null, erpNumber: "7", items: [{sku: "prod_101", engraving: "Bob"}]}) {
			order { version giftMessage erpNumber channel items { nodes { engraving } } timeline { nodes { type } } } userErrors { message } } }`, id),
			`{"setCustomFields":{"order":{"channel":"APP","erpNumber":"7","giftMessage":null,"items":{"nodes":[{"engraving":"Ann"},{"engraving":"Bob"}]},"timeline":{"nodes":[{"type":"PLACED"},{"type":"CUSTOM_FIELDS_CHANGED"}]},"version":2},"userErrors":[]}}`)
		if record := s.Get("CUSTOMER#"+customer, "ORDER#"+id); record["giftMessage"] != nil || text(record, "erpNumber") != "7" {
			t.Errorf("the copy of the changed order contains %v", record)
		}
		s.expect(fmt.Sprintf(`mutation { setCustomFields(input: {orderId: %q, erpNumber: "7", items: [{sku: "prod_101", engraving: "Bob"}]}) { order { version } userErrors { message } } }`, id),
			`{"setCustomFields":{"order":{"version":2},"userErrors":[]}}`) // nothing changes
		s.expect(fmt.Sprintf(`mutation { setOrderItem(input: {orderId: %q, sku: "prod_101", quantity: 2, engraving: "Eve"}) { order { version items { nodes { engraving quantity } } } userErrors { message } } }`, id),
			`{"setOrderItem":{"order":{"items":{"nodes":[{"engraving":"Ann","quantity":1},{"engraving":"Eve","quantity":2}]},"version":3},"userErrors":[]}}`)
		s.expect(`mutation { updateProduct(input: {sku: "prod_100", brand: "Acme", tags: ["a", "b"], fragile: true}) { product { brand tags fragile } userErrors { message } } }`,
			`{"updateProduct":{"product":{"brand":"Acme","fragile":true,"tags":["a","b"]},"userErrors":[]}}`)
		s.expect(`{ products(namePrefix: "", first: 1) { nodes { brand } } }`, s.run(`{ products(namePrefix: "", first: 1) { nodes { brand } } }`, nil))
		s.expect(`mutation { updateWarehouse(input: {id: "wh_pdx", dock: "D4"}) { warehouse { dock } userErrors { message } } }`, `{"updateWarehouse":{"userErrors":[],"warehouse":{"dock":"D4"}}}`)
		s.expect(`mutation { updateEmployee(input: {id: "rep_001", desk: "12"}) { employee { desk } userErrors { message } } }`, `{"updateEmployee":{"employee":{"desk":"12"},"userErrors":[]}}`)
		s.expect(`mutation { updateCustomer(input: {id: "cust_001", marketingConsent: true}) { customer { marketingConsent } userErrors { message } } }`, `{"updateCustomer":{"customer":{"marketingConsent":true},"userErrors":[]}}`)
		s.CheckClean()
		storetest.AssertConsistent(t, db, s.Name, 1)
	})
}

// Invalid values are user errors with the path of the field, also in a quote.
func TestInvalidValues(t *testing.T) {
	s := newShop(t, embedded.New().Client())
	for input, want := range map[string]string{
		`weightGrams: -1`:                           "weightGrams is -1: use at least 0.",
		`tags: ["a", "b", "c", "d"]`:                "tags has 4 values: use at most 3.",
		`tags: ["a", ""]`:                           "tags.1 is empty: use 1 to 255 bytes.",
		`brand: "` + strings.Repeat("x", 300) + `"`: "brand has 300 bytes: use at most 255.",
		`deposit: {amount: "1"}`:                    "deposit must be an amount of money, such as {amount: \"29.99\", currencyCode: \"USD\"}.",
		`ratio: "12345678901234567890.5"`:           "",
	} {
		_, problems := s.try(fmt.Sprintf(`mutation { updateProduct(input: {sku: "prod_100", %s}) { userErrors { message } } }`, input), nil)
		if len(problems) != 1 || want != "" && problems[0] != want {
			t.Errorf("%s: %q, want %q", input, problems, want)
		}
	}
	_, problems := s.try(`{ quote(input: {channel: null, items: [{sku: "prod_100", quantity: 1, engraving: " "}, {sku: "prod_100", quantity: 1}]}) { userErrors { message } } }`, nil)
	if want := []string{"items.0.engraving is empty: use 1 to 255 bytes.", "channel is null: set a value."}; !slices.Equal(problems, want) {
		t.Errorf("a quote has the user errors %q, want %q", problems, want)
	}
	_, problems = s.try(`mutation { placeOrder(input: {customerId: "cust_001", items: [{sku: "prod_100", quantity: 1, engraving: "A"}, {sku: "prod_100", quantity: 1, engraving: "B"}]}) { userErrors { message } } }`, nil)
	if want := []string{"items.1.engraving differs from the value in an earlier line of product prod_100: use the same value."}; !slices.Equal(problems, want) {
		t.Errorf("lines with different values: %q, want %q", problems, want)
	}
	if _, problems = s.try(`mutation { updateProduct(input: {sku: "prod_100", customFields: {brand: "x"}}) { userErrors { message } } }`, nil); len(problems) != 1 || !strings.Contains(problems[0], "is not defined") {
		t.Errorf("the internal field can be set: %q", problems)
	}
}

// Each role can set and read exactly the fields that the file allows.
func TestRolesOfFields(t *testing.T) {
	s := newShop(t, embedded.New().Client())
	id := s.place("", "")
	set := func(input string) string {
		return fmt.Sprintf(`mutation { setCustomFields(input: {orderId: %q, %s}) { userErrors { message } } }`, id, input)
	}
	documents := map[string][]access.Role{
		set(`giftMessage: "x"`):                                      {access.RoleCustomer, access.RoleStaff, access.RoleAdmin},
		set(`channel: APP`):                                          {access.RoleStaff, access.RoleAdmin},
		set(`erpNumber: "1"`):                                        {access.RoleService, access.RoleAdmin},
		set(`items: [{sku: "prod_100", engraving: "x"}]`):            {access.RoleCustomer, access.RoleStaff, access.RoleAdmin},
		fmt.Sprintf(`{ order(id: %q) { channel giftMessage } }`, id): {access.RoleCustomer, access.RoleStaff, access.RoleAdmin, access.RoleService},
		fmt.Sprintf(`{ order(id: %q) { erpNumber } }`, id):           {access.RoleStaff, access.RoleAdmin, access.RoleService},
		`mutation { updateCustomer(input: {id: "cust_001", marketingConsent: true}) { userErrors { message } } }`: {access.RoleCustomer, access.RoleAdmin},
		`mutation { updateProduct(input: {sku: "prod_100", brand: "x"}) { userErrors { message } } }`:             {access.RoleStaff, access.RoleAdmin},
		`{ product(sku: "prod_100") { brand } }`:                                                                  access.Roles(),
	}
	for document, allowed := range documents {
		for _, role := range access.Roles() {
			s.caller = access.Principal{ID: role.String(), Name: "x", Role: role}
			if role == access.RoleCustomer {
				s.caller.Customer = customer
			}
			_, problems := s.try(document, nil)
			forbidden := len(problems) == 1 && (strings.HasPrefix(problems[0], "FORBIDDEN") || strings.HasPrefix(problems[0], "UNAUTHENTICATED"))
			if got := slices.Contains(allowed, role); got == forbidden || !forbidden && len(problems) > 0 {
				t.Errorf("%s as %s: %v, want allowed: %v", document, role, problems, got)
			}
		}
	}
	s.caller = access.Principal{ID: "other", Role: access.RoleCustomer, Customer: "cust_002"}
	if data, problems := s.try(set(`giftMessage: "x"`), nil); len(problems) != 1 || !strings.Contains(problems[0], "does not exist") {
		t.Errorf("another customer sets a field: %v, %v", data, problems)
	}
	variables := map[string]any{"i": map[string]any{"orderId": id, "erpNumber": "1"}}
	if _, problems := s.try(`mutation ($i: SetCustomFieldsInput!) { setCustomFields(input: $i) { userErrors { message } } }`, variables); len(problems) != 1 || !strings.HasPrefix(problems[0], "FORBIDDEN") {
		t.Errorf("a customer sets erpNumber with a variable: %v", problems)
	}
}

// `check` reports a value that does not match its declaration. Repairs and mutations keep it, and clients
// see an error only for this field.
func TestValuesThatNoLongerFit(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		id := s.place("", "")
		s.SetWithEdges("PRODUCT#prod_100", "#METADATA", storetest.Item{"weightGrams": storetest.Str("heavy"), "fragile": storetest.Str("no")})
		for _, keys := range []model.Keys{{PK: "ORDER#" + id, SK: "#METADATA"}, {PK: "CUSTOMER#" + customer, SK: "ORDER#" + id}} {
			s.Set(keys.PK, keys.SK, storetest.Item{"channel": storetest.Str("FAX")})
		}
		data, problems := s.try(fmt.Sprintf(`{ product(sku: "prod_100") { name brand weightGrams } order(id: %q) { channel } }`, id), nil)
		if text := fmt.Sprint(data); len(problems) != 2 || !strings.HasPrefix(problems[0], "MALFORMED_RECORD") || !strings.Contains(text, "order:<nil>") || !strings.Contains(text, "weightGrams:<nil>") {
			t.Errorf("the response is %v, %v", data, problems)
		}
		found, _ := s.Check(check.Options{Repair: true})
		seen := map[string]bool{}
		for _, f := range found {
			for _, name := range []string{"weightGrams", "fragile", "channel"} {
				seen[name] = seen[name] || strings.Contains(fmt.Sprint(f), name)
			}
		}
		if len(seen) != 3 || !seen["weightGrams"] || !seen["fragile"] || !seen["channel"] {
			t.Errorf("the check found %v", found)
		}
		s.run(`mutation { updateProduct(input: {sku: "prod_100", name: "Other", brand: "Acme"}) { userErrors { message } } }`, nil)
		s.run(fmt.Sprintf(`mutation { confirmOrder(input: {orderId: %q}) { userErrors { message } } }`, id), nil)
		if product := s.Get("PRODUCT#prod_100", "#METADATA"); text(product, "weightGrams") != "heavy" || text(product, "brand") != "Acme" || text(product, "name") != "Other" {
			t.Errorf("after a repair and a mutation, the product contains %v", product)
		}
		if order := s.Get("ORDER#"+id, "#METADATA"); text(order, "channel") != "FAX" {
			t.Errorf("after a repair and a mutation, the order contains %v", order)
		}
	})
}

// A check compares custom fields of copies and embedded line items, also if they are false or 0.
func TestCheckComparesCustomFields(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		s.run(`mutation { updateProduct(input: {sku: "prod_100", fragile: false, weightGrams: 0}) { userErrors { message } } }`, nil)
		id := s.place("", `engraving: "Ann"`)
		items := []model.Keys{{PK: "ORDER#" + id, SK: "ITEM#prod_100"}, {PK: "ORDER#" + id, SK: "ITEM#prod_101"}}
		edge := s.Get("PRODUCT#prod_100", "WITH_NAME")
		delete(edge, "fragile")
		delete(edge, "weightGrams")
		s.Put(edge)
		first := s.Get(items[0].PK, items[0].SK)
		delete(first, "engraving")
		s.Put(first)
		s.Set(items[1].PK, items[1].SK, storetest.Item{"engraving": storetest.Str("Eve")})
		found, _ := s.Check(check.Options{Repair: true})
		for _, want := range []string{"fragile is missing, should be false", "weightGrams is missing, should be 0", "items is ["} {
			if !strings.Contains(fmt.Sprint(found), want) {
				t.Errorf("the check found %v, want %q", found, want)
			}
		}
		s.CheckClean()
		const lines = `{ items { nodes { engraving } } }`
		s.expect(fmt.Sprintf(`{ order(id: %q) %s customer(id: %q) { orders(first: 1) { nodes %[2]s } } }`, id, lines, customer),
			`{"customer":{"orders":{"nodes":[{"items":{"nodes":[{"engraving":null},{"engraving":"Eve"}]}}]}},"order":{"items":{"nodes":[{"engraving":null},{"engraving":"Eve"}]}}}`)
	})
}

// An export contains the custom fields, and an import restores them.
func TestExportAndImport(t *testing.T) {
	s := newShop(t, embedded.New().Client())
	s.place(`channel: STORE, giftMessage: "x",`, `engraving: "Ann"`)
	s.run(`mutation { updateProduct(input: {sku: "prod_100", brand: "Acme", sizes: [1, 2], deposit: {amount: "2", currencyCode: "EUR"}}) { userErrors { message } } }`, nil)
	lines := storetest.Export(t, s.Store, 2)
	target := storetest.NewTable(t, embedded.New().Client(), dynamo.Options{})
	storetest.Import(t, target, strings.Join(lines, ""), bulk.ImportOptions{})
	if again := storetest.Export(t, target, 1); !slices.Equal(again, lines) {
		t.Error("an import of an export has other records")
	}
}

// If a field has no default any more, an import leaves out the edges under the default.
func TestImportWithAnotherDefault(t *testing.T) {
	s := newShop(t, embedded.New().Client())
	s.run(`mutation { updateCustomer(input: {id: "cust_001", marketingConsent: true}) { userErrors { message } } }`, nil)
	lines := strings.Join(storetest.Export(t, s.Store, 1), "")
	other, err := graph.ParseExtension("shop.graphqls", strings.Replace(file, "Boolean! @field(default: false, ", "Boolean @field(", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Declare()()
	target := storetest.NewRawTable(t, embedded.New().Client(), commerce.Dataset{}, dynamo.Options{})
	storetest.Import(t, target.Store, lines, bulk.ImportOptions{})
	target.CheckClean()
	s = &shop{target, newExecutor(t, target.Store, other), s.caller}
	s.expect(`{ yes: customersByConsent(marketingConsent: true) { nodes { id } } no: customersByConsent(marketingConsent: false) { nodes { id } } }`, `{"no":{"nodes":[]},"yes":{"nodes":[{"id":"cust_001"}]}}`)
}

// A seed file can contain custom fields. Invalid ones are reported with their location.
func TestSeedFile(t *testing.T) {
	const seed = `{"employees": [{"id": "e", "name": "Eve", "jobTitle": "Clerk", "hireDate": "2026-01-01", "customFields": {"desk": "5"}}],
		"warehouses": [{"id": "w", "name": "North", "customFields": {"dock": "D"}}],
		"products": [{"sku": "mug", "name": "Mug", "category": "C", "unitPrice": "1", "currency": "USD", "inventory": {"w": 9}, "customFields": {"deposit": {"amount": "2", "currencyCode": "USD"}, "sizes": [1]}}],
		"customers": [{"id": "ann", "name": "Ann", "email": "ann@example.com", "createdAt": "2026-01-01T00:00:00Z", "customFields": {"marketingConsent": true}}],
		"orders": [{"id": "01KNVV2HR00000000000000101", "customerId": "ann", "status": "pending", "currency": "USD", "placedAt": "2026-04-10T14:00:00Z", "customFields": {"channel": "APP"},
			"items": [{"sku": "mug", "name": "Mug", "quantity": 1, "unitPrice": "1", "customFields": {"engraving": "A"}}]}]}`
	dataset, err := sampledata.Read(strings.NewReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	raw := storetest.NewRawTable(t, embedded.New().Client(), dataset, dynamo.Options{})
	s := &shop{raw, newExecutor(t, raw.Store, declared), access.AnonymousAdmin()}
	s.expect(`{ employee(id: "e") { desk } warehouse(id: "w") { dock } customer(id: "ann") { marketingConsent orders { nodes { channel items { nodes { engraving product { deposit { amount } sizes } } } } } } }`,
		`{"customer":{"marketingConsent":true,"orders":{"nodes":[{"channel":"APP","items":{"nodes":[{"engraving":"A","product":{"deposit":{"amount":"2.00"},"sizes":[1]}}]}}]}},"employee":{"desk":"5"},"warehouse":{"dock":"D"}}`)
	s.CheckClean()
	if _, err := sampledata.Read(strings.NewReader(strings.Replace(seed, `"APP"`, `"FAX"`, 1))); err == nil || !strings.Contains(err.Error(), `orders[0].customFields.channel: is "FAX": use WEB, APP, STORE`) {
		t.Errorf("an invalid value has the error %v", err)
	}
	shared := strings.Replace(seed, `"products": [`, `"products": [{"sku": "cup", "name": "Cup", "category": "C", "unitPrice": "1", "currency": "USD", "customFields": {"code": "7"}}, `, 1)
	if _, err := sampledata.Read(strings.NewReader(strings.Replace(shared, `"sizes"`, `"code": "7", "sizes"`, 1))); err == nil || !strings.HasSuffix(err.Error(), "product cup and mug: have the code 7, but it must be unique") {
		t.Errorf("two records with one unique value have the error %v", err)
	}
}

// A server without the file keeps custom fields of the records that it changes, because servers with and
// without it run side by side while the file is introduced.
func TestServersWithoutTheFile(t *testing.T) {
	plain := withoutQueries(t)
	defer plain.Declare()()
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		s.executor = newExecutor(t, s.Store, plain)
		id := s.place(`channel: APP, giftMessage: "x",`, `engraving: "Ann"`)
		s.run(`mutation { updateProduct(input: {sku: "prod_100", brand: "Acme"}) { userErrors { message } } }`, nil)
		s.run(`mutation { updateCustomer(input: {id: "cust_001", marketingConsent: true}) { userErrors { message } } }`, nil)
		document := fmt.Sprintf(`{ order(id: %q) { channel giftMessage items { nodes { sku engraving } } customer { marketingConsent orders(first: 1) { nodes { channel } } } } product(sku: "prod_100") { brand orderItems(first: 1) { nodes { engraving } } } }`, id)
		before := s.run(document, nil)

		withFile := s.executor
		restore := extension.Extension{}.Declare()
		s.executor = newExecutor(t, s.Store, extension.Extension{})
		s.run(fmt.Sprintf(`mutation { setOrderItem(input: {orderId: %q, sku: "prod_101", quantity: 2}) { userErrors { message } } }`, id), nil)
		s.run(fmt.Sprintf(`mutation { confirmOrder(input: {orderId: %q}) { userErrors { message } } }`, id), nil)
		s.run(`mutation { updateProduct(input: {sku: "prod_100", name: "Other", category: "New"}) { userErrors { message } } }`, nil)
		s.run(`mutation { updateCustomer(input: {id: "cust_001", name: "Other"}) { userErrors { message } } }`, nil)
		if _, problems := s.try(document, nil); len(problems) == 0 {
			t.Error("a server without the file knows the fields")
		}
		found, _ := s.Check(check.Options{Repair: true})
		restore()
		s.executor = withFile
		if len(found) > 0 {
			t.Errorf("a check without the file finds %v", found)
		}
		if after := s.run(document, nil); after != before {
			t.Errorf("after changes of a server without the file, the fields are\n%s\nwant\n%s", after, before)
		}
		s.CheckClean()
	})
}

// Every valid value is returned as it was set, in its normal form.
func TestRandomValues(t *testing.T) {
	s := newShop(t, embedded.New().Client())
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.StringMatching(`[a-zé0-9]+( [a-zé0-9]+){0,3}(\n *[a-zé0-9]+){0,3}`)
		word := rapid.StringMatching(`[a-z]{1,9}`)
		values := map[string]any{
			"brand": letters.Draw(rt, "brand"), "weightGrams": rapid.Int32Min(0).Draw(rt, "weightGrams"),
			"tags": rapid.SliceOfN(word, 0, 3).Draw(rt, "tags"), "sizes": rapid.SliceOfN(rapid.Int32(), 0, 10).Draw(rt, "sizes"),
			"fragile": rapid.Bool().Draw(rt, "fragile"), "code": word.Draw(rt, "code"),
			"ratio":   rapid.StringMatching(`-?[1-9][0-9]{0,7}\.[0-9]{0,6}[1-9]`).Draw(rt, "ratio"),
			"launch":  rapid.SampledFrom([]string{"2026-02-28", "1999-12-31"}).Draw(rt, "launch"),
			"stocked": rapid.SampledFrom([]string{"2026-02-01T09:30:00.000Z", "1999-12-31T23:59:59.999Z"}).Draw(rt, "stocked"),
			"deposit": map[string]any{"amount": rapid.StringMatching(`[1-9][0-9]{0,5}\.[0-9]{2}`).Draw(rt, "deposit"), "currencyCode": "USD"},
		}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"brand", "tags", "ratio", "launch", "deposit"}), rapid.ID).Draw(rt, "null") {
			values[name] = nil
		}
		input := map[string]any{"sku": "prod_100"}
		for name, v := range values {
			input[name] = v
		}
		encoded, _ := json.Marshal(input)
		decoder := json.NewDecoder(strings.NewReader(string(encoded)))
		decoder.UseNumber()
		var variable map[string]any
		if err := decoder.Decode(&variable); err != nil {
			rt.Fatal(err)
		}
		data, problems := s.try(`mutation ($i: UpdateProductInput!) { updateProduct(input: $i) { product { brand weightGrams tags sizes fragile code ratio launch stocked deposit { amount currencyCode } } userErrors { message } } }`, map[string]any{"i": variable})
		if len(problems) > 0 {
			rt.Fatalf("%v: %v", input, problems)
		}
		wantText, _ := json.Marshal(values)
		var want map[string]any
		_ = json.Unmarshal(wantText, &want)
		if got := data["updateProduct"].(map[string]any)["product"]; !reflect.DeepEqual(got, any(want)) {
			rt.Fatalf("the product has\n%v\nwant\n%v", got, want)
		}
		again, _ := s.try(`{ product(sku: "prod_100") { brand weightGrams tags sizes fragile code ratio launch stocked deposit { amount currencyCode } } }`, nil)
		if !reflect.DeepEqual(again["product"], any(want)) {
			rt.Fatalf("the stored product has\n%v\nwant\n%v", again["product"], want)
		}
	})
	s.CheckClean()
}

// setCustomFields makes the transaction that its write pattern declares, within its maximum cost.
func TestWritePattern(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShop(t, db)
		id := s.place("", "")
		result := s.executor.Execute(graph.WithExplain(graph.WithPrincipal(t.Context(), s.caller)), graph.Request{Query: fmt.Sprintf(
			`mutation { setCustomFields(input: {orderId: %q, giftMessage: "x", items: [{sku: "prod_100", engraving: "a"}, {sku: "prod_101", engraving: "b"}]}) { __typename } }`, id)})
		text, _ := json.Marshal(result.Extensions["explain"])
		var explained struct {
			Totals struct {
				Requests              int
				ReadUnits, WriteUnits float64
			}
		}
		if err := json.Unmarshal(text, &explained); err != nil {
			t.Fatal(err)
		}
		most := dynamo.NewCostBounds(1).MutationBound(model.WriteSetCustomFields)
		if got := explained.Totals; got.Requests != 2 || got.WriteUnits > most.WriteUnits || got.ReadUnits > most.ReadUnits {
			t.Errorf("the mutation needs %+v, its maximum is %+v: %s", got, most, text)
		}
	})
}

// Without custom fields of orders, the mutation setCustomFields does not exist.
func TestSchemaWithoutOrderFields(t *testing.T) {
	for text, want := range map[string]bool{"": false, "extend type Product { x: Int @field }": false, "extend type OrderItem { x: Int @field }": true} {
		e, err := graph.ParseExtension("f", text)
		if err != nil {
			t.Fatal(err)
		}
		result := newExecutor(t, nil, e).Execute(graph.WithPrincipal(t.Context(), access.AnonymousAdmin()), graph.Request{Query: `{ __schema { mutationType { fields { name } } } _service { sdl } }`})
		for _, name := range []string{`{"name":"setCustomFields"}`, "SetCustomFieldsPayload"} {
			if strings.Contains(string(result.Data), name) != want {
				t.Errorf("%q: the schema contains %s: %v, want %v", text, name, !want, want)
			}
		}
		if strings.Contains(string(result.Data), "customFields:") {
			t.Errorf("%q: the schema contains the internal field customFields", text)
		}
	}
}
