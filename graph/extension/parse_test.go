package extension_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph/extension"
)

const base = `
scalar Decimal scalar Date scalar DateTime
type Query { order: Order }
type Mutation { place(input: PlaceOrderInput): Order setCustomFields(input: SetCustomFieldsInput): Order quote(input: QuoteInput): Order
  line(input: OrderLineInput, set: SetOrderItemInput, fields: ItemFieldsInput): OrderItem }
enum OrderStatus { PENDING }
type Money { amount: Decimal } input MoneyInput { amount: Decimal }
type Order { id: ID! status: OrderStatus } type OrderItem { sku: ID! } type Customer { id: ID! }
input PlaceOrderInput { idempotencyKey: String } input QuoteInput { x: Int } input SetCustomFieldsInput { orderId: ID! }
input OrderLineInput { sku: ID! } input SetOrderItemInput { sku: ID! } input ItemFieldsInput { sku: ID! }
`

func parse(text string) (extension.Extension, error) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: base})
	return extension.Parse("shop.graphqls", text, schema, func(_, name string) bool { return name == "pk" })
}

// Each mistake is reported with its line and a correction.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"extend type Order { a: ":                                                  "1: ",
		"type A { b: Int }":                                                        "1: A is not an enum: declare only enums, and fields with `extend type`",
		"enum OrderStatus { A }":                                                   "1: the name OrderStatus is already used: choose another name",
		"enum A { B }\nenum A { B }":                                               "2: the name A is already used: choose another name",
		"enum A { B B }":                                                           "1: the enum A has the value B twice: remove one",
		"enum A @x { B }":                                                          "1: the enum A has the directive @x: remove it",
		"enum A { true }":                                                          "1: the enum A cannot have the value true: choose another name",
		"directive @x on OBJECT":                                                   "1: the directive @x cannot be defined: use only the directive @field",
		"schema { query: Query }":                                                  "1: the schema itself cannot be changed: declare only enums and `extend type`",
		"extend type Query { a: Int @field }":                                      "1: Query cannot have custom fields: extend one of the types Customer, Order, OrderItem, Product, Warehouse, Employee",
		"extend type Order @x { a: Int @field }":                                   "1: an extension of Order can only declare fields: remove interfaces and directives",
		"extend type Order {\n a: Int }":                                           "2: Order.a must have exactly one directive, @field: declare the field as `a: Int @field`",
		"extend type Order { a: Int @field @field }":                               "1: Order.a must have exactly one directive, @field: declare the field as `a: Int @field`",
		"extend type Order { a: Float @field }":                                    "1: Order.a has the type Float: use String, ID, Int, Boolean, Decimal, Money, Date, DateTime, or an enum of this file",
		"extend type Order { a: [Int] @field }":                                    "1: Order.a has the type [Int]: write [Int!]",
		"extend type Order { a(b: Int): Int @field }":                              "1: Order.a has arguments: remove them",
		"extend type Order { status: Int @field }":                                 "1: Order.status has a name that is already used: choose another name",
		"extend type Order { pk: Int @field }":                                     "1: Order.pk has a name that is already used: choose another name",
		"extend type Order { idempotencyKey: Int @field }":                         "1: Order.idempotencyKey has a name that is already used: choose another name",
		"extend type Order { customFields: Int @field }":                           "1: Order.customFields has a name that is already used: choose another name",
		"extend type Order { a_b: Int @field }":                                    "1: Order.a_b has a name that a field cannot have: use up to 64 letters and digits",
		"extend type Order { a: Int @field }\nextend type Order { a: Int @field }": "2: Order.a is declared twice: remove one declaration",
		"extend type Order { a: Int! @field }":                                     "1: Order.a is not null, so existing records need a value: add a default, such as @field(default: ...), or remove the !",
		"extend type Order { a: Int @field(default: \"x\") }":                      "1: Order.a has a default that must be a number of at most 19 digits",
		"extend type Order { a: Int @field(default: null) }":                       "1: Order.a has a default that is null: remove it",
		"extend type Order { a: Int @field(maxLength: 5) }":                        "1: Order.a has the argument maxLength, which applies only to String and ID: remove it",
		"extend type Order { a: String @field(maxLength: 0) }":                     "1: Order.a has an invalid maxLength: use a whole number from 1 to 1000",
		"extend type Order { a: Int @field(maxItems: 5) }":                         "1: Order.a has the argument maxItems, which applies only to lists: remove it",
		"extend type Order { a: String @field(min: 5) }":                           "1: Order.a has the argument min, which applies only to Int and Decimal and must be a number: correct or remove it",
		"extend type Order { a: Int @field(min: 5, max: 4) }":                      "1: Order.a has a min that exceeds its max: exchange them",
		"extend type Order { a: Int @field(setBy: [BOSS]) }":                       "1: Order.a has an invalid role in setBy: use CUSTOMER, STAFF, ADMIN or SERVICE",
		"extend type Order { a: Int @field(x: 1) }":                                "1: Order.a has the unknown argument x: use default, maxLength, maxItems, min, max, setBy or seenBy",
		"extend type Order { a: Int @field(min: 1, min: 2) }":                      "1: Order.a has the argument min twice: remove one",
		"extend type OrderItem { a: [String!] @field(maxLength: 1000) }":           "1: the custom fields of OrderItem can have 10032 bytes in one record, but the limit is 4000: declare fewer fields, or a smaller maxLength or maxItems",
	} {
		_, err := parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), "shop.graphqls:"+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\nhas the error %v\nwant                     %s", text, err, want)
		}
	}
}

// A file with several mistakes has one line for each, in the order of the file.
func TestSeveralMistakes(t *testing.T) {
	_, err := parse("extend type Order {\n a: Int\n}\nenum B { C C }\nextend type Nobody { a: Int }")
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "shop.graphqls:2:") || !strings.HasPrefix(lines[1], "shop.graphqls:4:") || !strings.HasPrefix(lines[2], "shop.graphqls:5:") {
		t.Errorf("the error is\n%v", err)
	}
}

func TestDeclarations(t *testing.T) {
	e, err := parse(`
		enum Channel { "The shop's web site." WEB APP }
		extend type Order {
			"A message with \"\"\" in it."
			giftMessage: String @field(maxLength: 20, setBy: CUSTOMER)
			channel: Channel! @field(default: "WEB", seenBy: [STAFF])
			deposits: [Money!] @field
		}`)
	if err != nil {
		t.Fatal(err)
	}
	f := e.Field("Order", "giftMessage")
	if f.MaxLength != 20 || !slices.Equal(f.SetBy, []access.Role{access.RoleCustomer, access.RoleAdmin}) || f.SeenBy != nil {
		t.Errorf("giftMessage is %+v", f)
	}
	if f := e.Field("Order", "channel"); f.Default != "WEB" || !f.Required || !slices.Equal(f.SetBy, []access.Role{access.RoleStaff, access.RoleAdmin}) {
		t.Errorf("channel is %+v", f)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: base}, &ast.Source{Input: e.SDL()})
	if err != nil {
		t.Fatalf("%v\n%s", err, e.SDL())
	}
	for _, want := range []struct{ typ, field, of string }{
		{"Order", "channel", "Channel!"}, {"PlaceOrderInput", "channel", "Channel"}, {"Order", "deposits", "[Money!]"}, {"QuoteInput", "deposits", "[MoneyInput!]"},
	} {
		if got := schema.Types[want.typ].Fields.ForName(want.field).Type.String(); got != want.of {
			t.Errorf("%s.%s has the type %s, want %s", want.typ, want.field, got, want.of)
		}
	}
	if got := schema.Types["SetCustomFieldsInput"].Fields.ForName("giftMessage").Description; got != `A message with """ in it. Custom field. Set by: customer, admin.` {
		t.Errorf("the description of giftMessage is %q", got)
	}
}

// Every file is rejected with a line, or extends the schema.
func FuzzParse(f *testing.F) {
	f.Add(`enum C { A B } extend type Order { a: [C!] @field(default: ["A"], maxItems: 2) b: Money @field(default: {amount: "1", currency: "USD"}) }`)
	f.Add(`extend type OrderItem { a: Decimal! @field(default: "1.5", min: 1, max: 2, setBy: [CUSTOMER]) }`)
	f.Add("extend type Customer { \"\"\"x\\\"\"\" y\"\"\" a: DateTime @field }")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "shop.graphqls:") {
				t.Errorf("the error is %v", err)
			}
			return
		}
		if _, err := gqlparser.LoadSchema(&ast.Source{Input: base + "type Product { a__: Int } type Warehouse { a__: Int } type Employee { a__: Int } input CreateCustomerInput { a__: Int } input UpdateCustomerInput { a__: Int } input HireEmployeeInput { a__: Int } input UpdateEmployeeInput { a__: Int } input CreateProductInput { a__: Int } input UpdateProductInput { a__: Int } input CreateWarehouseInput { a__: Int } input UpdateWarehouseInput { a__: Int }"}, &ast.Source{Input: e.SDL()}); err != nil {
			t.Errorf("the schema is invalid: %v\n%s", err, e.SDL())
		}
	})
}
