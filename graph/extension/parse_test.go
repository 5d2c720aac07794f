package extension_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/extension"
)

const base = `
scalar Decimal scalar Date scalar DateTime
directive @access(permission: String) on FIELD_DEFINITION
directive @reads(pattern: String) repeatable on FIELD_DEFINITION
type Query { order: Order customers(first: Int, "The \"cursor\"." after: String, last: Int, before: String): CustomerConnection }
type CustomerConnection { nodes: [Customer] } type OrderConnection { nodes: [Order] }
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

// manyValues are 100 different values of an enum.
var manyValues = func() (values string) {
	for i := range 100 {
		values += fmt.Sprintf(" V%d", i)
	}
	return values
}()

// Each mistake is reported with its line and a correction.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"extend type Order { a: ":                                                                     "1: ",
		"type A { b: Int }":                                                                           "1: A is not an enum: declare only enums, and fields with `extend type`",
		"enum OrderStatus { A }":                                                                      "1: the name OrderStatus is already used: choose another name",
		"enum A { B }\nenum A { B }":                                                                  "2: the name A is already used: choose another name",
		"enum A { B B }":                                                                              "1: the enum A has the value B twice: remove one",
		"enum A @x { B }":                                                                             "1: the enum A has the directive @x: remove it",
		"enum A { true }":                                                                             "1: the enum A cannot have the value true: choose another name",
		"directive @x on OBJECT":                                                                      "1: the directive @x cannot be defined: use only the directives @field, @list and @unique",
		"schema { query: Query }":                                                                     "1: the schema itself cannot be changed: declare only enums and `extend type`",
		"extend type Query { a: Int @field }":                                                         "1: Query cannot have custom fields: extend one of the types Customer, Order, OrderItem, Product, Warehouse, Employee",
		"extend type Order @x { a: Int @field }":                                                      "1: an extension of Order can only declare fields: remove interfaces and directives",
		"extend type Order {\n a: Int }":                                                              "2: Order.a lacks the directive @field: declare the field as `a: Int @field`",
		"extend type Order { a: Int @field @field }":                                                  "1: Order.a has the directive @field twice: remove one",
		"extend type Order { a: Float @field }":                                                       "1: Order.a has the type Float: use String, ID, Int, Boolean, Decimal, Money, Date, DateTime, or an enum of this file",
		"extend type Order { a: enum @field }":                                                        "1: Order.a has the type enum: use String, ID, Int, Boolean, Decimal, Money, Date, DateTime, or an enum of this file",
		"extend type Order { a: [Int] @field }":                                                       "1: Order.a has the type [Int]: write [Int!]",
		"extend type Order { a(b: Int): Int @field }":                                                 "1: Order.a has arguments: remove them",
		"extend type Order { status: Int @field }":                                                    "1: Order.status has a name that is already used: choose another name",
		"extend type Order { pk: Int @field }":                                                        "1: Order.pk has a name that is already used: choose another name",
		"extend type Order { idempotencyKey: Int @field }":                                            "1: Order.idempotencyKey has a name that is already used: choose another name",
		"extend type Order { customFields: Int @field }":                                              "1: Order.customFields has a name that is already used: choose another name",
		"extend type Order { a_b: Int @field }":                                                       "1: Order.a_b has a name that a field cannot have: use up to 64 letters and digits",
		"extend type Order { a: Int @field }\nextend type Order { a: Int @field }":                    "2: Order.a is declared twice: remove one declaration",
		"extend type Order { a: Int! @field }":                                                        "1: Order.a is not null, so existing records need a value: add a default, such as @field(default: ...), or remove the !",
		"extend type Order { a: Int @field(default: \"x\") }":                                         "1: Order.a has a default that must be a number of at most 19 digits",
		"extend type Order { a: Int @field(default: null) }":                                          "1: Order.a has a default that is null: remove it",
		"extend type Order { a: Int @field(maxLength: 5) }":                                           "1: Order.a has the argument maxLength, which applies only to String and ID: remove it",
		"extend type Order { a: String @field(maxLength: 0) }":                                        "1: Order.a has an invalid maxLength: use a whole number from 1 to 1000",
		"extend type Order { a: Int @field(maxItems: 5) }":                                            "1: Order.a has the argument maxItems, which applies only to lists: remove it",
		"extend type Order { a: String @field(min: 5) }":                                              "1: Order.a has the argument min, which applies only to Int and Decimal and must be a number: correct or remove it",
		"extend type Order { a: Int @field(min: 5, max: 4) }":                                         "1: Order.a has a min that exceeds its max: exchange them",
		"extend type Order { a: Int @field(setBy: [BOSS]) }":                                          "1: Order.a has an invalid role in setBy: use CUSTOMER, STAFF, ADMIN or SERVICE",
		"extend type Order { a: Int @field(x: 1) }":                                                   "1: Order.a has the unknown argument x: use default, maxLength, maxItems, min, max, setBy or seenBy",
		"extend type Order { a: Int @field(min: 1, min: 2) }":                                         "1: Order.a has the argument min twice: remove one",
		"extend type Order { a: Int @field @key }":                                                    "1: Order.a has the directive @key: use only @field, @list and @unique",
		"extend type Order { a: Int @field @list }":                                                   "1: Order.a has the directive @list without a valid name: write @list(query: \"...\") with up to 64 letters and digits",
		"extend type Order { a: Int @field @unique(query: \"a b\") }":                                 "1: Order.a has the directive @unique without a valid name: write @unique(query: \"...\") with up to 64 letters and digits",
		"extend type Order { a: Int @list(query: \"b\") }":                                            "1: Order.a lacks the directive @field: declare the field as `a: Int @field`",
		"extend type Order { a: Int @field @list(query: \"order\") }":                                 "1: Order.a has a query with the name order, which is already used: choose another name",
		"extend type Order { a: Int @field @list(query: \"x\") b: Int @field @unique(query: \"x\") }": "1: Order.b has a query with the name x, which is already used: choose another name",
		"extend type Order { a: Int @field @list(query: \"x\") @unique(query: \"y\") }":               "1: Order.a has both @list and @unique: remove one, because at most one record can have a unique value",
		"extend type Order { a: [Int!] @field @list(query: \"x\") }":                                  "1: Order.a cannot have the directive @list, because its type is [Int!]: use a field with a single value that is not an amount of money",
		"extend type Order { a: Money @field @unique(query: \"x\") }":                                 "1: Order.a cannot have the directive @unique, because its type is Money: use a field with a single value that is not an amount of money",
		"extend type Order { a: Int @field(default: 1) @unique(query: \"x\") }":                       "1: Order.a has a default and @unique, but only one record can have the value: remove the default",
		"extend type Order { after: Int @field @list(query: \"x\") }":                                 "1: Order.after cannot have the directive @list, because lists have an argument with its name: choose another name",
		"extend type Order { a: ID @field(maxLength: 256) @list(query: \"x\") }":                      "1: Order.a has a maxLength of 256, but its values are in keys: use at most 255",
		"extend type OrderItem { a: Int @field @list(query: \"x\") }":                                 "1: OrderItem.a cannot have the directive @list, because line items are found through their orders: remove it",
		"extend type Order { a: Int @field @list(query: \"a\") b: Int @field @list(query: \"b\") c: Int @field @list(query: \"c\") d: Int @field @list(query: \"d\") }": "1: Order has 4 lists and 0 other queries: declare at most 10 queries for a type, and at most 3 lists of orders",
		"extend type Order { a: Int @a @b @c @d }":                                                                              "1: Order.a has 4 directives: use only @field, @list and @unique, each once",
		"extend type Order { a: Int @field(" + strings.Repeat("x: 1 ", 8) + ") }":                                               "1: Order.a has the directive @field with 8 arguments: use only default, maxLength, maxItems, min, max, setBy and seenBy, each once",
		"extend type Order { a: Int @field(setBy: [BOSS BOSS]) }":                                                               "1: Order.a has an invalid role in setBy: use CUSTOMER, STAFF, ADMIN or SERVICE",
		"extend type Order { a: [[Int!]!] @field }":                                                                             "1: Order.a has a list of lists as its type: write [Int!]",
		"extend type Order {" + strings.Repeat("\na: Int", 30) + "}\nextend type Order {" + strings.Repeat(" a: Int", 30) + "}": "32: Order has 60 custom fields: declare at most 50",
		"enum A { A" + manyValues + "}":                                                                                         "1: the enum A has 101 values: use 1 to 100",
		"extend type Order {\n\"a\\u0000b\" a: Int @field }":                                                                    "2: Order.a has the control character U+0000 in its description: remove it",
		"\"a\\u001fb\" enum A { B }":                                                                                            "1: the enum A has the control character U+001F in its description: remove it",
		"enum A { B\n \"\\b\" C }":                                                                                              "2: the value C has the control character U+0008 in its description: remove it",
		"extend type OrderItem { a: [String!] @field(maxLength: 1000) }":                                                        "1: the custom fields of OrderItem can have 10032 bytes in one record, but the limit is 4000: declare fewer fields, or a smaller maxLength or maxItems",
	} {
		_, err := parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), "shop.graphqls:"+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\nhas the error %v\nwant                     %s", text, err, want)
		}
	}
}

// The work for a file grows with its length, even if the file exceeds the limits. Each text is a
// repetition between a start and an end.
func TestParseIsLinear(t *testing.T) {
	for name, file := range map[string][3]string{
		"extensions":       {"", "extend type Order { a%d: [String!] @field }\n", ""},
		"fields":           {"extend type Order {", "a%d: [String!] @field\n", "}"},
		"enum values":      {"enum A {", "V%d\n", "}"},
		"fields of enums":  {"enum A {" + strings.Repeat(" B", 2000) + "}", "extend type Order { a%d: A @field }", ""},
		"directives":       {"extend type Order { a: Int", " @x%d", "}"},
		"arguments":        {"extend type Order { a: Int @field(", " x%d: 1", ")}"},
		"roles of a field": {"extend type Order { " + strings.Repeat("a", 5000) + ": Int @field(setBy: [", " X%d", "])}"},
		"lists of lists":   {"extend type Order { a: " + strings.Repeat("[", 5000) + "Int" + strings.Repeat("]", 5000), "# %d\n", "@field}"},
	} {
		work := func(n int) (allocations float64, bytes int) {
			var b strings.Builder
			b.WriteString(file[0])
			for i := range n {
				fmt.Fprintf(&b, file[1], i)
			}
			text := b.String() + file[2]
			return testing.AllocsPerRun(2, func() {
				_, err := parse(text)
				if err == nil {
					t.Errorf("%s: no mistake", name)
					return
				}
				bytes = len(err.Error())
			}), bytes
		}
		few, shortest := work(400)
		many, longest := work(1600)
		if many > 6*few || longest > 6*shortest {
			t.Errorf("%s: a file that is 4 times as long takes %.0f allocations instead of %.0f, and its mistakes %d bytes instead of %d", name, many, few, longest, shortest)
		}
		if most := 20_000; longest > most && name != "roles of a field" {
			t.Errorf("%s: the mistakes have %d bytes, want at most %d", name, longest, most)
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
			channel: Channel! @field(default: "WEB", seenBy: [STAFF, CUSTOMER]) @list(query: "ordersByChannel")
			deposits: [Money!] @field
			erpNumber: String @unique(query: "orderByErpNumber") @field
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
		{"Order", "channel", "Channel!"}, {"PlaceOrderInput", "channel", "Channel"}, {"Order", "deposits", "[Money!]"}, {"QuoteInput", "deposits", "[MoneyInput!]"}, {"Query", "ordersByChannel", "OrderConnection!"}, {"Query", "orderByErpNumber", "Order"},
	} {
		if got := schema.Types[want.typ].Fields.ForName(want.field).Type.String(); got != want.of {
			t.Errorf("%s.%s has the type %s, want %s", want.typ, want.field, got, want.of)
		}
	}
	list := schema.Query.Fields.ForName("ordersByChannel")
	if got := list.Description; got != fmt.Sprintf("The orders with this value of `channel`, newest first.\n\nCost: one DynamoDB Query per shard (access pattern AP%d). Access: staff, admin.", model.LastPattern+1) {
		t.Errorf("the description of ordersByChannel is %q", got)
	}
	if got := list.Arguments.ForName("after").Description; len(list.Arguments) != 5 || got != `The "cursor".` || list.Arguments.ForName("channel").Type.String() != "Channel!" {
		t.Errorf("ordersByChannel has the arguments %v", list.Arguments)
	}
	if got := schema.Types["SetCustomFieldsInput"].Fields.ForName("giftMessage").Description; got != `A message with """ in it. Custom field. Set by: customer, admin.` {
		t.Errorf("the description of giftMessage is %q", got)
	}
}

// Every file is rejected with a line, or extends the schema.
func FuzzParse(f *testing.F) {
	f.Add(`enum C { A B } extend type Order { a: [C!] @field(default: ["A"], maxItems: 2) b: Money @field(default: {amount: "1", currency: "USD"}) }`)
	f.Add(`extend type OrderItem { a: Decimal! @field(default: "1.5", min: 1, max: 2, setBy: [CUSTOMER]) }`)
	f.Add(`extend type Order { a: ID @field @unique(query: "orderByA") b: Boolean! @field(default: true) @list(query: "ordersByB") }`)
	f.Add("extend type Customer { \"\"\"x\\\"\"\" y\"\"\" a: DateTime @field }")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parse(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "shop.graphqls:") {
				t.Errorf("the error is %v", err)
			}
			return
		}
		if _, err := gqlparser.LoadSchema(&ast.Source{Input: base + "type ProductConnection { a__: Int } type WarehouseConnection { a__: Int } type EmployeeConnection { a__: Int } type Product { a__: Int } type Warehouse { a__: Int } type Employee { a__: Int } input CreateCustomerInput { a__: Int } input UpdateCustomerInput { a__: Int } input HireEmployeeInput { a__: Int } input UpdateEmployeeInput { a__: Int } input CreateProductInput { a__: Int } input UpdateProductInput { a__: Int } input CreateWarehouseInput { a__: Int } input UpdateWarehouseInput { a__: Int }"}, &ast.Source{Input: e.SDL()}); err != nil {
			t.Errorf("the schema is invalid: %v\n%s", err, e.SDL())
		}
	})
}
