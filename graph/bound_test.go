package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/explain"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// unlimited are limits that no document of a test reaches.
var unlimited = document.Limits{Tokens: 1 << 20, Depth: 100, Aliases: 1 << 20, RootFields: 1 << 20, Directives: 1 << 20, IntrospectionDepth: 100, Cost: 1 << 40}

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(10, 100)
	os.Exit(dynamolocal.Main(m))
}

// drawing draws random documents with nested pages of any size, aliases, fragments, directives and
// variables.
type drawing struct {
	*rapid.T
	values    map[string][]string
	fragments []string
	variables map[string]any
	declared  map[string]string
	// depth is the depth of the root. Only pages at this depth can be large.
	depth int
}

func (d *drawing) set(typ *ast.Definition, depth int) string {
	var b strings.Builder
	b.WriteString("{ __typename")
	for i := range rapid.IntRange(1, 4).Draw(d.T, "fields") {
		f := rapid.SampledFrom(typ.Fields).Draw(d.T, "field")
		of := parsedSchema.Types[f.Type.Name()]
		paging := strings.HasSuffix(typ.Name, "Connection") || strings.HasSuffix(typ.Name, "Edge")
		if strings.HasPrefix(f.Name, "_") || depth == 0 && of.Kind == ast.Object && !paging || of.Kind == ast.Interface {
			continue
		}
		fmt.Fprintf(&b, " %s%s%d_%d: %s%s%s", typ.Name, rapid.SampledFrom([]string{"A", "B"}).Draw(d.T, "alias"), len(d.fragments), i, f.Name, d.arguments(f, depth == d.depth), d.directive())
		if of.Kind != ast.Object {
			continue
		}
		next := depth - 1
		if paging {
			next = depth // connections do not count as a level
		}
		set := d.set(of, next)
		switch rapid.IntRange(0, 3).Draw(d.T, "fragment") {
		case 0:
			set = "{ ... on " + of.Name + " " + set + " }"
		case 1:
			name := fmt.Sprint("F", len(d.fragments))
			d.fragments = append(d.fragments, "fragment "+name+" on "+of.Name+" "+set)
			set = "{ ..." + name + " ..." + name + " }"
		}
		b.WriteString(" " + set)
	}
	b.WriteString(" }")
	return b.String()
}

func (d *drawing) directive() string {
	switch rapid.IntRange(0, 20).Draw(d.T, "directive") {
	case 19:
		return " @include(if: false)"
	case 20:
		return d.variable(" @skip(if: ", "Boolean!", "", rapid.Bool().Draw(d.T, "skip")) + ")"
	}
	return ""
}

// variable declares a variable with a value and returns a text followed by the variable.
func (d *drawing) variable(before, typ, preset string, value any) string {
	name := fmt.Sprint("v", len(d.declared))
	d.declared[name] = typ + preset
	if value != nil {
		d.variables[name] = value
	}
	return before + "$" + name
}

func (d *drawing) arguments(f *ast.FieldDefinition, wide bool) string {
	var given []string
	for _, a := range f.Arguments {
		switch {
		case a.Name == "first":
			sizes := []int{1, 2, 3, 5}
			if wide {
				sizes = append(sizes, 20, 50, 100)
			}
			size := rapid.SampledFrom(sizes).Draw(d.T, "size")
			switch rapid.IntRange(0, 9).Draw(d.T, "how") {
			case 0:
			case 2:
				given = append(given, d.variable("first: ", "Int", "", size))
			case 3:
				given = append(given, d.variable("first: ", "Int", fmt.Sprint(" = ", size), nil))
			case 4:
				given = append(given, d.variable("last: ", "Int", " = 1", size))
			case 5:
				given = append(given, fmt.Sprint("last: ", size))
			default:
				given = append(given, fmt.Sprint("first: ", size))
			}
		case operation.BatchArgument(f) == a:
			keys := rapid.SliceOfN(rapid.SampledFrom(d.values[strings.TrimSuffix(a.Name, "s")]), 0, 8).Draw(d.T, a.Name)
			given = append(given, a.Name+": ["+strings.Join(keys, ", ")+"]")
		case a.Type.Name() == "QuoteInput":
			given = append(given, a.Name+": {items: "+d.quoteItems()+"}")
		case a.Name != "last" && (d.values[a.Name] == nil || a.Name == "placed" || a.Type.Name() == "ReturnStatus") && a.Type.NonNull:
			given = append(given, a.Name+": "+anyValue(a.Type))
		case a.Name == "last" || d.values[a.Name] == nil:
		case a.Type.NonNull || rapid.IntRange(0, 2).Draw(d.T, "given") == 0:
			given = append(given, a.Name+": "+rapid.SampledFrom(d.values[a.Name]).Draw(d.T, a.Name))
		}
	}
	if len(given) == 0 {
		return ""
	}
	return "(" + strings.Join(given, ", ") + ")"
}

// quoteItems draws the items of a quote, in the document or in a variable.
func (d *drawing) quoteItems() string {
	var texts []string
	values := []any{}
	for _, sku := range rapid.SliceOfN(rapid.SampledFrom(d.values["sku"]), 0, 60).Draw(d.T, "items") {
		texts = append(texts, "{sku: "+sku+", quantity: 1}")
		values = append(values, map[string]any{"sku": strings.Trim(sku, `"`), "quantity": 1})
	}
	if rapid.Bool().Draw(d.T, "variable") {
		return d.variable("", "[OrderLineInput!]!", "", values)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// query draws a document.
func (d *drawing) query(depth int) string {
	return d.operation("query", depth, func() string {
		set := d.set(parsedSchema.Query, depth)
		if rapid.IntRange(0, 3).Draw(d.T, "gateway") == 0 {
			set = strings.TrimSuffix(set, "}") + d.entities(depth-1) + " }"
		}
		return set
	})
}

// entities draws the representations of a gateway.
func (d *drawing) entities(depth int) string {
	types := parsedSchema.Types["_Entity"].Types
	var literal []string
	given := []any{}
	for range rapid.IntRange(1, 8).Draw(d.T, "representations") {
		typ, key := rapid.SampledFrom(types).Draw(d.T, "type"), "id"
		if typ == "Product" {
			key = "sku"
		}
		id := rapid.SampledFrom(d.values[key]).Draw(d.T, key)
		literal = append(literal, fmt.Sprintf("{__typename: %q, %s: %s}", typ, key, id))
		given = append(given, map[string]any{"__typename": typ, key: strings.Trim(id, `"`)})
	}
	field := " _entities(representations: [" + strings.Join(literal, ", ") + "])"
	if rapid.Bool().Draw(d.T, "variable") {
		field = " " + d.variable("_entities(representations: ", "[_Any!]!", "", given) + ")"
	}
	field += " { __typename"
	for _, typ := range types {
		if rapid.Bool().Draw(d.T, typ) {
			field += " ... on " + typ + " " + d.set(parsedSchema.Types[typ], depth)
		}
	}
	return field + " }"
}

// operation returns a document with a selection.
func (d *drawing) operation(kind string, depth int, draw func() string) string {
	d.declared, d.variables = map[string]string{}, map[string]any{}
	d.depth = depth
	set, head := draw(), kind
	for i, name := range slices.Sorted(maps.Keys(d.declared)) {
		head += map[bool]string{true: "(", false: ", "}[i == 0] + "$" + name + ": " + d.declared[name]
	}
	if len(d.declared) > 0 {
		head += ")"
	}
	return head + " " + set + "\n" + strings.Join(d.fragments, "\n")
}

// failer is implemented by *testing.T and *rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// anyVariables prepares an operation for any variables.
func anyVariables(o *ast.OperationDefinition) *operation.Prepared {
	return operation.NewPreparer(parsedSchema, operation.AccessChecker{}, operation.NewCostCalculator(parsedSchema, document.Limits{}, dynamo.NewCostBounds(1).WriteUnits), objectTypeOf, newExecutionContext(&graphql.OperationContext{}, newExecutableSchema(), nil)).PrepareForAllVariables(o)
}

// newExecutableSchema returns a schema without resolvers.
func newExecutableSchema() *executableSchema {
	return NewExecutableSchema(Config{Resolvers: &Resolver{}}).(*executableSchema)
}

func bounded(t failer, document string, shards int) bound.Bound {
	t.Helper()
	parsed, err := gqlparser.LoadQueryWithRules(parsedSchema, document, rules.NewDefaultRules())
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return bound.Compute(parsedSchema, anyVariables(parsed.Operations[0]), dynamo.NewCostBounds(shards))
}

// exceeded describes where an explain output exceeds a bound. It returns "" if the output does not
// exceed the bound.
func exceeded(e explain.Explanation, most bound.Bound) string {
	var excess []string
	if e.Totals.Requests > most.Requests {
		excess = append(excess, fmt.Sprintf("%d requests, the bound is %d", e.Totals.Requests, most.Requests))
	}
	if e.Totals.RoundTrips > most.RoundTrips {
		excess = append(excess, fmt.Sprintf("%d round trips, the bound is %d", e.Totals.RoundTrips, most.RoundTrips))
	}
	if e.Totals.WriteUnits > most.WriteUnits {
		excess = append(excess, fmt.Sprintf("%v write units, the bound is %v", e.Totals.WriteUnits, most.WriteUnits))
	}
	if e.Totals.ReadUnits > most.ReadUnits {
		excess = append(excess, fmt.Sprintf("%v read units, the bound is %v", e.Totals.ReadUnits, most.ReadUnits))
	}
	for _, r := range e.Requests {
		if r.Path == "" {
			excess = append(excess, r.AccessPattern+" was not planned")
		}
		i := slices.IndexFunc(most.Patterns, func(p bound.PatternBound) bool { return p.AccessPattern == r.AccessPattern })
		if i < 0 {
			excess = append(excess, r.AccessPattern+" is not in the bound")
			continue
		}
		if most.Patterns[i].Requests--; most.Patterns[i].Requests < 0 {
			excess = append(excess, r.AccessPattern+" takes more requests than the bound")
		}
		if most.Patterns[i].ReadUnits -= r.ReadUnits; most.Patterns[i].ReadUnits < 0 {
			excess = append(excess, r.AccessPattern+" takes more read units than the bound")
		}
	}
	return strings.Join(excess, "; ")
}

func executed(t failer, e *Executor, document string, variables map[string]any) reply {
	t.Helper()
	body, err := json.Marshal(e.Execute(WithExplain(context.Background()), Request{Query: document, Variables: variables}).Response)
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%s: %v: %s", document, err, body)
	}
	return r
}

// No query on any table exceeds its bound.
func TestQueriesKeepToTheirBounds(t *testing.T) {
	t.Parallel()
	for _, w := range fixtures() {
		t.Run(w.name, func(t *testing.T) {
			executor := w.executor(t, storetest.Engines()[0].Client(t))
			largest := 0
			rapid.Check(t, func(rt *rapid.T) {
				d := &drawing{T: rt, values: w.values}
				document := d.query(3)
				most := bounded(rt, document, w.shards)
				got := executed(rt, executor, document, d.variables)
				largest = max(largest, got.Extensions.Explain.Totals.Requests)
				if excess := exceeded(got.Extensions.Explain, most); excess != "" {
					rt.Fatalf("%s\n%s %v\n%v", excess, document, d.variables, requestsOf(got.Extensions.Explain))
				}
			})
			if largest < 2 && longtest.Enabled() {
				t.Errorf("the random queries took at most %d requests: they are too simple for this test", largest)
			}
		})
	}
}

// No mutation with any payload exceeds its bound, whether the mutation succeeds, fails or changes
// nothing.
func TestNoMutationExceedsItsBound(t *testing.T) {
	w := newHardFixture("one shard", 1, 20)
	executor := w.executor(t, storetest.Engines()[0].Client(t))
	customer, gone, sku, house := w.values["id"][0], w.values["id"][3], w.values["sku"][1], w.values["warehouseId"][1]
	var inputs []string
	for n := range 10 {
		order := hardOrder(n)
		inputs = append(inputs, fmt.Sprintf(`confirmOrder(input: {orderId: %q})`, order), fmt.Sprintf(`cancelOrder(input: {orderId: %q})`, order),
			fmt.Sprintf(`shipOrder(input: {orderId: %q, warehouseId: %s, idempotencyKey: "%d"})`, order, house, n),
			fmt.Sprintf(`setOrderItem(input: {orderId: %q, sku: %s, quantity: %d})`, order, sku, n+1),
			fmt.Sprintf(`setAdjustments(input: {orderId: %q, adjustments: [{kind: FEE, label: "%d", amount: "1"}]})`, order, n),
			fmt.Sprintf(`updateOrder(input: {orderId: %q, contact: {name: "%d"}})`, order, n),
			fmt.Sprintf(`updateShippingAddress(input: {orderId: %q, shippingAddress: {recipient: "%d", line1: "x", city: "x", countryCode: "US"}})`, order, n))
	}
	inputs = append(inputs, `updateCustomer(input: {id: `+customer+`, name: "New"})`, `updateCustomer(input: {id: `+gone+`, name: "New"})`,
		`assignAccountRep(input: {customerId: `+customer+`, employeeId: null})`, `createCustomer(input: {name: "New", email: "new@example.com", accountRepId: "gone"})`,
		`placeOrder(input: {customerId: `+customer+`, items: [{sku: `+sku+`, quantity: 1}], idempotencyKey: "again"})`,
		`setInventoryLevel(input: {sku: `+sku+`, warehouseId: `+house+`, quantity: 7})`, `adjustInventory(input: {sku: `+sku+`, warehouseId: `+house+`, delta: -1})`, `transferInventory(input: {sku: `+sku+`, fromWarehouseId: `+house+`, toWarehouseId: "none", quantity: 1})`,
		`createProduct(input: {sku: `+sku+`, name: "x", category: "x", unitPrice: {amount: "1"}})`)
	largest := 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &drawing{T: rt, values: w.values}
		document := d.operation("mutation", 3, func() string {
			set := "{"
			for i := range rapid.IntRange(1, 2).Draw(rt, "mutations") {
				input := rapid.SampledFrom(inputs).Draw(rt, "input")
				name, _, _ := strings.Cut(input, "(")
				set += fmt.Sprintf(" m%d: %s %s", i, input, d.set(parsedSchema.Types[parsedSchema.Mutation.Fields.ForName(name).Type.Name()], 3))
			}
			return set + " }"
		})
		most := bounded(rt, document, w.shards)
		if most.Requests > 400 {
			return
		}
		got := executed(rt, executor, document, d.variables)
		largest = max(largest, got.Extensions.Explain.Totals.Requests)
		if excess := exceeded(got.Extensions.Explain, most); excess != "" {
			rt.Fatalf("%s\n%s %v\n%v", excess, document, d.variables, requestsOf(got.Extensions.Explain))
		}
	})
	if largest < 2 && longtest.Enabled() {
		t.Errorf("the random mutations took at most %d requests: they are too simple for this test", largest)
	}
}

func requestsOf(e explain.Explanation) string {
	var b strings.Builder
	for _, r := range e.Requests {
		fmt.Fprintf(&b, "%d %s %s %s: %s: %d items, %v units\n", r.RoundTrip, r.AccessPattern, r.Operation, r.Key, r.Path, r.Items, r.ReadUnits)
	}
	return b.String()
}

// Queries that revealed gaps in earlier bounds, on the fixture with the largest records.
func TestHardQueriesKeepToTheirBounds(t *testing.T) {
	t.Parallel()
	const page, timeline = `inventory(first: 3) { nodes { warehouse { name } product { name } } }`, `timeline(first: 50) { nodes { note warehouse { name } } }`
	w := newHardFixture("one shard", 1, 20)
	order, external, other := hardOrder(3), hardOrder(5), hardOrder(7)
	sku, house := w.values["sku"][0], w.values["warehouseId"][0]
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		executor := w.executor(t, db)
		for _, c := range []struct {
			query string
			// tight reports whether the query takes exactly the requests and round trips of its bound.
			tight bool
		}{
			{fmt.Sprintf(`{ order(id: %q) { %s items { nodes { name } } } }`, order, timeline), false},
			{fmt.Sprintf(`{ order(id: %q) { itemCount items(first: 100) { nodes { product { name } } } } }`, other), true},
			{fmt.Sprintf(`{ order(id: %q) { count: itemCount items { nodes { product { name } } } } }`, external), true},
			{fmt.Sprintf(`{ order(id: %q) { timeline(last: 3) { nodes { note } } } orders(first: 100) { nodes { %s } } }`, order, timeline), false},
			// There are three groups of timelines: read with their order, read separately, and read
			// separately after they were too large to be read with their order.
			{fmt.Sprintf(`{ a: order(id: %[1]q) { timeline { nodes { type } } } b: order(id: %[2]q) { timeline { nodes { type } } }
				orders(placed: {from: "2026-01-01T00:00:00.003Z", to: "2026-01-01T00:00:00.008Z"}) { nodes { timeline(first: 1) { nodes { warehouse { name } } } } } }`, order, other), false},
			{fmt.Sprintf(`{ product(sku: %s) { %s } inventoryLevel(sku: %s, warehouseId: %s) { product { %s } } }`, sku, page, sku, house, page), false},
			{fmt.Sprintf(`query($no: Boolean = false) { order(id: %q) { status %s } }`, order, strings.Replace(timeline, " {", " @include(if: $no) {", 1)), false},
			{`{ orders(first: 50) { nodes { items { nodes { name } } itemCount } } }`, false},
			{`{ ordersByStatus(status: PENDING, first: 100) { nodes { item(productId: ` + sku + `) { name } } pageInfo { hasNextPage } } }`, false},
			{`{ customers(first: 100) { nodes { orderCount accountRep { customers(first: 100) { nodes { orderCount } } } } } }`, false},
			{`{ customer(id: ` + w.values["id"][0] + `) { orderCount } }`, false},
			{`{ customerByEmail(email: "customer0@example.com") { orderCount orders(first: 100) { nodes { customer { name } } } } }`, false},
			{`{ employeesByName(name: ` + w.values["name"][0] + `) { nodes { warehouse { employees { nodes { customers { nodes { accountRep { name } } } } } } } } }`, false},
			{`{ a: customer(id: ` + w.values["id"][0] + `) { name } b: customer(id: "x") { name } c: customerByEmail(email: "x@example.com") { name } }`, false},
		} {
			most := bounded(t, c.query, w.shards)
			got := executed(t, executor, c.query, nil).Extensions.Explain
			if excess := exceeded(got, most); excess != "" {
				t.Errorf("%s\n%s\n%s", excess, c.query, requestsOf(got))
			}
			if c.tight && (got.Totals.Requests != most.Requests || got.Totals.RoundTrips != most.RoundTrips) {
				t.Errorf("%s\ntakes %d requests in %d round trips, want exactly the bound %+v", c.query, got.Totals.Requests, got.Totals.RoundTrips, most)
			}
		}
	})
}

// The longest page of the largest orders is just below the limit of one megabyte per Query. Its
// bound is only slightly higher than its cost.
func TestLargestPageBound(t *testing.T) {
	t.Parallel()
	w := newHardFixture("one shard", 1, 20)
	w.full = true
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		executor := w.executor(t, db)
		query := `{ customer(id: ` + w.values["id"][0] + `) { orders(first: 50) { nodes { id } pageInfo { hasNextPage } } } }`
		got := executed(t, executor, query, nil).Extensions.Explain
		most := bounded(t, query, 1)
		if excess := exceeded(got, most); excess != "" || most.Requests != 2 || got.Totals.ReadUnits < 0.9*most.ReadUnits {
			t.Errorf("%s: the bound is %+v\n%s", excess, most, requestsOf(got))
		}
	})
}

// Fragments that double thirty times are bounded quickly. The result is bound.Unbounded.
func TestBoundsOfNestedFragments(t *testing.T) {
	for name, c := range map[string]struct {
		last   string
		spread func(n int) string
	}{
		"doubled":     {`fragment F30 on Customer { orders(first: 100) { nodes { id } } }`, func(n int) string { return fmt.Sprintf(`a: customer { ...F%d } b: customer { ...F%d }`, n, n) }},
		"in one name": {`fragment F30 on Customer { orders(first: 100) { nodes { id } } }`, func(n int) string { return fmt.Sprintf(`customer { ...F%d ...F%d }`, n, n) }},
	} {
		t.Run(name, func(t *testing.T) {
			document := `{ customer(id: "x") { ...F0 } }` + "\n" + c.last
			for n := range 30 {
				document += fmt.Sprintf("\nfragment F%d on Customer { orders(first: 100) { nodes { %s } } }", n, c.spread(n+1))
			}
			if most := bounded(t, document, 4); most.Requests != bound.Unbounded || most.ReadUnits != bound.Unbounded {
				t.Errorf("the bound is %+v, want bound.Unbounded", most)
			}
		})
	}
}

// Literals in a document make a bound smaller. Variables do not.
func TestBoundsOfLiterals(t *testing.T) {
	for _, c := range []struct{ less, more string }{
		{`{ customers(first: 5) { nodes { orders(first: 5) { nodes { id } } } } }`, `query($n: Int = 1) { customers(first: 5) { nodes { orders(first: $n) { nodes { id } } } } }`},
		{`{ customers { nodes { orders { nodes { id } } } } }`, `{ customers(last: 21) { nodes { orders { nodes { id } } } } }`},
		{`{ orders(statuses: SHIPPED) { nodes { id } } }`, `{ orders(statuses: [SHIPPED, PENDING]) { nodes { id } } }`},
		{`{ orders(statuses: [SHIPPED, PENDING]) { nodes { id } } }`, `query($s: [OrderStatus!]) { orders(statuses: $s) { nodes { id } } }`},
		{`{ orders(statuses: [SHIPPED, PENDING]) { nodes { id } } }`, `query($shipped: OrderStatus!) { orders(statuses: [$shipped, PENDING]) { nodes { id } } }`},
		{`{ order(id: "x") { customer @skip(if: true) { name } } }`, `query($b: Boolean!) { order(id: "x") { customer @skip(if: $b) { name } } }`},
		{`{ order(id: "x") { ...A ...B } } fragment A on Order { customer { name } } fragment B on Order { customer { email } }`, `{ order(id: "x") { a: customer { name } b: customer { accountRep { name } } } }`},
		{`{ quote(input: {items: {sku: "a", quantity: 1}}) { lines { sku } } }`, `{ quote(input: {items: [{sku: "a", quantity: 1}, {sku: "b", quantity: 1}]}) { total { amount } } }`},
		{`query($n: Int!) { quote(input: {items: [{sku: "a", quantity: $n}]}) { total { amount } } }`, `query($i: QuoteInput!) { quote(input: $i) { total { amount } } }`},
		{`{ __schema { types { name } } }`, `{ warehouse(id: "x") { name } }`},
		{`mutation($i: CreateProductInput!) { createProduct(input: $i) { product { sku } } }`, `mutation($i: CreateProductInput!) { createProduct(input: $i) { product { inventory { nodes { quantity } } } } }`},
	} {
		less, more := bounded(t, c.less, 1), bounded(t, c.more, 1)
		if less.Requests > more.Requests || less.ReadUnits >= more.ReadUnits || less.RoundTrips > more.RoundTrips {
			t.Errorf("%s: %+v\n%s: %+v", c.less, less, c.more, more)
		}
	}
	if most := bounded(t, `query($p: TimeRange) { orders(placed: $p) { nodes { id } } }`, 1); len(most.Patterns) != 2 || most.Requests != most.Patterns[0].Requests {
		t.Errorf("the bound is %+v, want two possible access patterns and the requests of only one of them", most)
	}
}

// Representations are bounded like other references: one lookup per hundred records of a type, and
// the reads below them.
func TestBoundsOfEntities(t *testing.T) {
	others := len(parsedSchema.Types["_Entity"].Types) - 1
	for _, c := range []struct {
		query                string
		requests, roundTrips int
	}{
		{`query($r: [_Any!]!) { _entities(representations: $r) { ... on Order { status } } }`, 10 + others, 1},
		{`{ _entities(representations: [{__typename: "Customer", id: "a"}]) { ... on Customer { name } } }`, 1, 1},
		{`query($r: [_Any!]!) { _entities(representations: $r) { ... on Customer { orders(first: 1) { nodes { id } } } } }`, 1010 + others, 1},
		{`query($r: [_Any!]!) { _entities(representations: $r) { ... on Order { customer { name } } } }`, 21 + others, 2},
		{`query($r: [_Any!]!) { _entities(representations: $r) { __typename } }`, 10 + others, 1},
		// An order item collection takes one Query. Its timeline takes another Query if the collection is
		// too large for one page.
		{`{ _entities(representations: [{__typename: "Order", id: "a"}]) { ... on Order { timeline { nodes { type } } } } }`, 2, 2},
		{`{ _entities(representations: [{__typename: "Product", sku: "a"}, {__typename: "Product", sku: "b"}]) { ... on Product { inventory { nodes { quantity } } } } }`, 4, 2},
	} {
		if most := bounded(t, c.query, 1); most.Requests != c.requests || most.RoundTrips != c.roundTrips {
			t.Errorf("%s: %+v, want %d requests in %d round trips", c.query, most, c.requests, c.roundTrips)
		}
	}
}

// The bound of a subscription applies to each event. The order is read only if it is selected.
func TestBoundsOfSubscriptions(t *testing.T) {
	for _, c := range []struct {
		query    string
		requests int
		units    float64
	}{
		{`subscription { orderStatusChanged { id orderId event { type at note } } }`, 0, 0},
		{`subscription { orderStatusChanged { event { warehouse { name } } } }`, 1, 1},
		{`subscription($id: ID!, $after: ID) { orderUpdated(id: $id, after: $after) { order { status } } }`, 1, 5},
		{`subscription { orderUpdated(id: "a") { order { ...F } event { at } } } fragment F on Order { status customer { name accountRep { name } } }`, 3, 0},
		{`subscription { customerOrders(customerId: "a") { order { items(first: 100) { nodes { product { name } } } } } }`, 3, 0},
		{`subscription { orderUpdated(id: "a") { order { timeline(first: 5) { nodes { note } } } } }`, 2, 0},
	} {
		most := bounded(t, c.query, 1)
		if most.Requests != c.requests || most.RoundTrips != c.requests || c.units > 0 && most.ReadUnits != c.units || (most.ReadUnits > 0) != (c.requests > 0) {
			t.Errorf("%s: %+v, want %d requests", c.query, most, c.requests)
		}
	}
}

// Events on the fixture with the largest records do not exceed their bounds, with and without the
// order in the event.
func TestEventsKeepToTheirBounds(t *testing.T) {
	t.Parallel()
	w := newHardFixture("one shard", 1, 20)
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		e := w.executor(t, db)
		for i, n := range []int{0, 3, 7} {
			id := hardOrder(n)
			found, err := dynamo.ReadRecords(t.Context(), e.resolver.store, model.OrderByID, []commerce.OrderID{id})
			if err != nil || found[0].Err != nil {
				t.Fatal(err, found[0].Err)
			}
			for j, query := range []string{
				`subscription { orderStatusChanged { orderId order { status customer { name orderCount accountRep { name } } } } }`,
				`subscription { orderStatusChanged { order { itemCount items(first: 100) { nodes { product { name totalInventory } } } } } }`,
				`subscription { orderStatusChanged { order { timeline(first: 5) { nodes { note } } } } }`,
				`subscription { orderStatusChanged { order { timeline(last: 50) { nodes { note } pageInfo { hasPreviousPage } } items { nodes { name } } } } }`,
				`subscription { orderStatusChanged { event { warehouse { name } } order { timeline(first: 5) { nodes { warehouse { name } } } } } }`,
				`subscription { orderStatusChanged { a: order { customer { orders(first: 100) { nodes { items { nodes { name } } } } } } b: order { status } } }`,
			} {
				if (i+j)%longtest.Size(3, 1) > 0 {
					continue // by default each query runs with one order
				}
				event := &commerce.Event{Type: commerce.EventShipped, WarehouseID: "gone"}
				for _, change := range []feed.OrderChange{{OrderID: id, Event: event}, {OrderID: id, Order: found[0].Value}} {
					s := newScriptedStream(t, e, query, &scriptedSource{changes: []feed.OrderChange{change}})
					got, _ := s.Next(WithExplain(t.Context()))
					s.Close()
					explained, ok := got.Extensions["explain"].(explain.Explanation)
					if excess := exceeded(explained, bounded(t, query, w.shards)); excess != "" || !ok || len(got.Errors) > 0 {
						t.Errorf("%s\n%s\n%s%v", excess, query, requestsOf(explained), got.Errors)
					}
				}
			}
		}
	})
}

// A page of changes reads the partitions of all statuses and of the other changes, and then the
// orders.
func TestBoundOfChanges(t *testing.T) {
	for _, c := range []struct {
		first, shards, requests int
		units                   float64
	}{{1, 1, 6 + 1, 7.5}, {1, 4, 24 + 1, 20}, {100, 1, 28, 324.5}, {100, 4, 349, 488.5}} {
		most := bounded(t, fmt.Sprintf(`{ changes(first: %d) { nodes { version order { status } } } }`, c.first), c.shards)
		if most.Requests != c.requests || most.ReadUnits != c.units {
			t.Errorf("with %d shards, a page of %d changes takes %+v, want %d requests and %v read units", c.shards, c.first, most, c.requests, c.units)
		}
	}
}
