package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/scalar"
	"github.com/ordergraph/ordergraph/internal/test/golden"
)

// own returns the types that this schema defines, sorted by name.
func own(t testing.TB) []*ast.Definition {
	t.Helper()
	var types []*ast.Definition
	for name, d := range parsedSchema.Types {
		if !d.BuiltIn && !strings.HasPrefix(name, "__") {
			types = append(types, d)
		}
	}
	slices.SortFunc(types, func(a, b *ast.Definition) int { return strings.Compare(a.Name, b.Name) })
	return types
}

func TestEveryElementIsDescribed(t *testing.T) {
	for _, d := range own(t) {
		if d.Description == "" {
			t.Errorf("%s has no description", d.Name)
		}
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			if f.Description == "" {
				t.Errorf("%s.%s has no description", d.Name, f.Name)
			}
			for _, a := range f.Arguments {
				if a.Description == "" {
					t.Errorf("%s.%s(%s) has no description", d.Name, f.Name, a.Name)
				}
			}
		}
		for _, v := range d.EnumValues {
			if v.Description == "" {
				t.Errorf("%s.%s has no description", d.Name, v.Name)
			}
		}
	}
}

// References to other records are nullable. Lists and scalars are not, except optional attributes
// of a record.
func TestNullability(t *testing.T) {
	isRecord := func(name string) bool {
		d := parsedSchema.Types[name]
		return d != nil && (d.Directives.ForName("key") != nil || parsedSchema.Types[name+"Connection"] != nil)
	}
	optional := []string{
		"Order.shippingAddress", "Order.billingAddress", "Order.contact", "OrderAdjustment.line", "OrderContact.email", "OrderContact.phone", "OrderContact.name", "Order.hold", "Order.expiresAt", "Order.waitingSince", "Order.trackingNumber", "Order.carrier", "OrderEvent.from", "OrderEvent.to", "OrderEvent.version", "OrderEvent.note", "OrderEvent.noteVisibility", "Address.line2", "Address.region",
		"Payment.returnId", "Fulfillment.carrier", "Fulfillment.trackingNumber", "Fulfillment.trackingUrl", "Payment.reason", "Return.rejectionReason", "Return.warehouseId", "ReturnLine.restocked",
		"PageInfo.startCursor", "PageInfo.endCursor", "OrderUpdate.id", "Query.orderCounts", "Query.sales", "Customer.spending", "Product.orderCount", "Warehouse.productCount", "Employee.orderCount", "Query.quote", "Quote.subtotal", "Quote.total", "EraseCustomerPayload.deletedCustomer", "UnmatchedPayment.orderId", "Webhook.documentId", "Webhook.secret", "Webhook.lastError", "Webhook.lastErrorAt", "Webhook.lastSuccessAt",
	}
	for _, d := range own(t) {
		if d.Kind != ast.Object {
			continue
		}
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			name := d.Name + "." + f.Name
			want := !slices.Contains(optional, name)
			if isRecord(f.Type.NamedType) && f.Name != "node" {
				want = false
			}
			// A failing mutation must not remove the responses of earlier mutations, which have been
			// executed.
			if d.Name == "Mutation" || slices.Contains(d.Interfaces, "UserError") && f.Name == "field" {
				want = false
			}
			if f.Type.NonNull != want {
				t.Errorf("%s is of type %s: NonNull should be %t, or add the field to this test's list of optional fields", name, f.Type, want)
			}
			// A record that is looked up by a key may be missing.
			if f.Type.Elem != nil && !f.Type.Elem.NonNull && operation.BatchArgument(f) == nil {
				t.Errorf("%s is of type %s: its elements may be null", name, f.Type)
			}
		}
	}
}

// Every list of records is a connection with the four page arguments. Exceptions are look-ups by a
// list of keys, and lists with few elements, such as statuses, days, months and lines of an order.
func TestListsOfRecordsAreConnections(t *testing.T) {
	for _, d := range own(t) {
		for _, f := range d.Fields {
			if strings.HasSuffix(f.Type.Name(), "Connection") {
				for _, a := range []string{"first", "after", "last", "before"} {
					if f.Arguments.ForName(a) == nil {
						t.Errorf("%s.%s has no argument %q", d.Name, f.Name, a)
					}
				}
				continue
			}
			element := parsedSchema.Types[f.Type.Name()]
			if f.Type.Elem != nil && element.Kind == ast.Object && element.Name != "OrderStatusCount" && element.Name != "Spending" && element.Name != "DailySales" && element.Name != "QuotedLine" && element.Name != "OrderAdjustment" && element.Name != "ReturnLine" && element.Name != "FulfillmentLine" && operation.BatchArgument(f) == nil && !strings.HasSuffix(d.Name, "Connection") && !strings.HasPrefix(f.Name, "__") {
				t.Errorf("%s.%s is a list of %s, not a connection", d.Name, f.Name, element.Name)
			}
		}
	}
}

// A field that looks up records by a list of keys documents the maximum number of keys. One
// BatchGetItem reads them.
func TestBatchesFitOneRequest(t *testing.T) {
	if operation.MaxBatchKeys > dynamo.MaxBatchGetKeys {
		t.Errorf("a batch can have %d keys, but a BatchGetItem can read only %d", operation.MaxBatchKeys, dynamo.MaxBatchGetKeys)
	}
	batches := 0
	for _, f := range parsedSchema.Query.Fields {
		a := operation.BatchArgument(f)
		if a == nil || f.Name == operation.EntitiesField {
			continue
		}
		batches++
		if !strings.Contains(a.Description, fmt.Sprint("at most ", operation.MaxBatchKeys)) {
			t.Errorf("Query.%s(%s): %q does not document the maximum of %d", f.Name, a.Name, a.Description, operation.MaxBatchKeys)
		}
	}
	if batches == 0 {
		t.Error("there are no batches")
	}
}

// The schema documents the maximum number of lines of an order.
func TestMaxLinesIsDocumented(t *testing.T) {
	want := fmt.Sprintf("an order of 1 to %d products", commerce.MaxLines)
	if text := parsedSchema.Mutation.Fields.ForName("placeOrder").Description; !strings.Contains(text, want) {
		t.Errorf("the description of placeOrder is %q, which does not contain %q: run go generate ./...", text, want)
	}
}

// Every mutation has a write pattern, and its description names the pattern.
func TestMutationDescriptionsNameWritePatterns(t *testing.T) {
	patterns := model.WritePatterns()
	mutations := parsedSchema.Mutation.Fields
	if len(mutations) != len(patterns) {
		t.Errorf("%d mutations, %d write patterns", len(mutations), len(patterns))
	}
	last := 0
	for _, p := range patterns {
		number, err := strconv.Atoi(strings.TrimPrefix(p.ID, "WP"))
		if err != nil || number <= last {
			t.Errorf("write pattern WP%d is followed by %s, want a higher number", last, p.ID)
		}
		last = number
		f := mutations.ForName(p.Mutation)
		if f == nil {
			t.Errorf("%s: there is no mutation %s", p.ID, p.Mutation)
			continue
		}
		if !strings.Contains(f.Description, "\n\nCost: one DynamoDB transaction (write pattern "+p.ID+"). ") {
			t.Errorf("the last line of the description of %s does not name %s: %q", p.Mutation, p.ID, f.Description)
		}
	}
}

// The schema for clients contains nothing that serves only composition tools or the generator.
func TestMachineryIsNotPromised(t *testing.T) {
	served := Schema()
	for _, name := range []string{"defer", "link", "key", "shareable", "access", "reads", "userErrors"} {
		if parsedSchema.Directives[name] == nil {
			t.Errorf("@%s is not defined: newSchema does not need to remove it", name)
		}
	}
	for name := range served.Directives {
		if !slices.Contains([]string{"skip", "include", "deprecated", "specifiedBy", "oneOf"}, name) {
			t.Errorf("the schema has @%s, which no client can use", name)
		}
	}
	reached := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		d := served.Types[name]
		if d == nil {
			t.Fatalf("the schema refers to the type %s, which is not defined", name)
		}
		for _, f := range d.Fields {
			reach(f.Type.Name())
			for _, a := range f.Arguments {
				reach(a.Type.Name())
			}
		}
		for _, possible := range served.GetPossibleTypes(d) {
			reach(possible.Name)
		}
	}
	for _, root := range []string{"Query", "Mutation", "Subscription"} {
		reach(root)
	}
	for name := range served.Types {
		if !reached[name] && !strings.HasPrefix(name, "__") {
			t.Errorf("the schema defines the type %s, but no operation can reach it", name)
		}
	}
}

// The SDL for composition contains the directives that composition tools need, and omits the
// definitions that they provide.
func TestGoldenSubgraph(t *testing.T) {
	sdl := Subgraph{}.SDL()
	document, err := parser.ParseSchema(&ast.Source{Input: sdl})
	if err != nil {
		t.Fatal(err)
	}
	// Composition tools know the directives of federation, but not the directives of this project.
	var ours []string
	for _, d := range document.Directives {
		ours = append(ours, d.Name)
	}
	if !slices.Equal(ours, []string{"access", "userErrors", "reads"}) || strings.Contains(sdl, "_Any") || strings.Contains(sdl, "_service") {
		t.Errorf("the subgraph schema defines the directives %q, want only the project's, and no federation types", ours)
	}
	var entities []string
	for _, d := range document.Definitions {
		keys := d.Directives.ForNames("key")
		if len(keys) == 0 {
			continue
		}
		entities = append(entities, d.Name)
		if d.Fields.ForName(keys[0].Arguments.ForName("fields").Value.Raw) == nil || len(keys) > 1 {
			t.Errorf("%s has the keys %v", d.Name, keys)
		}
	}
	slices.Sort(entities)
	if members := parsedSchema.Types["_Entity"].Types; !slices.Equal(entities, members) {
		t.Errorf("entities are %v, _Entity is one of %v", entities, members)
	}

	golden.CheckFile(t, "../deploy/subgraph.graphqls", sdl)
}

// Each custom scalar has a coercion, so invalid values are rejected before execution. _Any accepts
// all values.
func TestScalarsHaveCoercions(t *testing.T) {
	coercions := scalar.Coercions()
	for name, d := range Schema().Types {
		if d.Kind == ast.Scalar && !d.BuiltIn && name != "_Any" && coercions[name] == nil {
			t.Errorf("scalar.Coercions has no function for %s", name)
		}
	}
}
