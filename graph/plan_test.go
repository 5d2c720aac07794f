package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/explain"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// argumentValues are the GraphQL literals that random queries use for arguments, by argument name.
// They refer to existing and missing records, or are invalid.
var argumentValues = map[string][]string{
	"id": {`"cust_01"`, `"cust_001"`, `"c1"`, `"rep_001"`, `"emp_001"`, `"wh_sea"`, `"nobody"`, `"a#b"`, `"01HVMK3P2Q0000000000000001"`,
		`"01HVNR4Q3R0000000000000002"`, `"01KNVV2HR00000000000000101"`, `"01HVMK3P2Q0000000000000009"`},
	"orderId":     {`"01HVMK3P2Q0000000000000001"`, `"01KNVV2HR00000000000000101"`, `"x"`},
	"sku":         {`"prod_100"`, `"prod_101"`, `"AVON-TORTOISE"`, `"nothing"`},
	"productId":   {`"prod_def"`, `"AVON-TORTOISE"`, `"prod_100"`, `"nothing"`},
	"warehouseId": {`"wh_sea"`, `"wh_pdx"`, `"nowhere"`},
	"email":       {`"alice@example.com"`, `"contact@acme.com"`, `"nobody@example.com"`, `"x"`},
	"status":      {`PENDING`, `DELIVERED`, `CANCELLED`},
	"statuses":    {`[PENDING, CONFIRMED]`, `SHIPPED`, `null`, `[]`},
	"placed":      {`{from: "2025-01-01T00:00:00Z"}`, `{to: "2026-01-01T00:00:00Z", from: null}`, `null`},
	"hired":       {`{from: "2025-01-01"}`, `{to: "2024-01-01"}`},
	"tag":         {`"vip"`, `"none"`, `""`},
	"category":    {`"Electronics"`, `"Eyewear"`, `"None"`},
	"name":        {`"John Smith"`, `"Nobody"`},
	"jobTitle":    {`"Associate"`, `"Manager"`},
	"input":       {`{items: [{sku: "prod_100", quantity: 1}, {sku: "prod_def", quantity: 2}, {sku: "prod_100", quantity: 3}]}`, `{items: {sku: "nothing", quantity: 1000}}`, `{items: [{sku: "", quantity: 0}]}`},
	"first":       {`1`, `2`, `5`, `0`},
	"last":        {`1`, `3`},
}

// drawSelections draws a selection set of a type.
func drawSelections(t *rapid.T, d *ast.Definition, depth int) string {
	var b strings.Builder
	b.WriteString("{ __typename")
	if d.Kind == ast.Union {
		for _, name := range d.Types {
			if rapid.Bool().Draw(t, name) {
				b.WriteString(" ... on " + name + " " + drawSelections(t, parsedSchema.Types[name], depth))
			}
		}
		return b.String() + " }"
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
		f := rapid.SampledFrom(d.Fields).Draw(t, "field")
		of := parsedSchema.Types[f.Type.Name()]
		composite := of.IsCompositeType()
		if strings.HasPrefix(f.Name, "__") || depth == 0 && composite {
			continue
		}
		// The alias contains the type, because fields with one response name must not have different
		// types.
		fmt.Fprintf(&b, " %s%d: %s%s", d.Name, i, f.Name, arguments(t, f))
		if composite {
			next := depth - 1
			if strings.HasSuffix(of.Name, "Connection") || strings.HasSuffix(of.Name, "Edge") {
				next = depth // connections do not count as a level
			}
			set := drawSelections(t, of, next)
			if rapid.Bool().Draw(t, "fragment") {
				set = "{ ... on " + of.Name + " " + set + " }"
			}
			b.WriteString(" " + set)
		}
	}
	b.WriteString(" }")
	return b.String()
}

func arguments(t *rapid.T, f *ast.FieldDefinition) string {
	var given []string
	for _, a := range f.Arguments {
		if a.Name == "representations" {
			given = append(given, a.Name+": ["+strings.Join(rapid.SliceOfN(rapid.Custom(representation), 0, 6).Draw(t, a.Name), " ")+"]")
			continue
		}
		if operation.BatchArgument(f) == a {
			keys := rapid.SliceOfN(rapid.SampledFrom(argumentValues[strings.TrimSuffix(a.Name, "s")]), 0, 6).Draw(t, a.Name)
			given = append(given, a.Name+": ["+strings.Join(keys, ", ")+"]")
			continue
		}
		values := argumentValues[a.Name]
		if a.Type.Name() == "DateRange" {
			values = argumentValues["hired"]
			if a.Type.NonNull {
				values = []string{anyValue(a.Type)}
			}
		}
		if a.Type.NonNull && (values == nil || a.Type.Name() == "ReturnStatus") {
			values = []string{anyValue(a.Type)}
		}
		if values == nil || !a.Type.NonNull && rapid.IntRange(0, 3).Draw(t, "given") > 0 {
			continue
		}
		given = append(given, a.Name+": "+rapid.SampledFrom(values).Draw(t, a.Name))
	}
	if len(given) == 0 {
		return ""
	}
	return "(" + strings.Join(given, ", ") + ")"
}

// anyValue returns a literal of a type.
func anyValue(t *ast.Type) string {
	switch t.Name() {
	case "Int":
		return "7"
	case "Boolean":
		return "true"
	case "CurrencyCode":
		return `"USD"`
	case "DateRange":
		return `{from: "2026-01-01", to: "2026-01-31"}`
	case "PaymentDue":
		return "AUTHORIZED"
	case "ReturnStatus":
		return "REQUESTED"
	default:
		return `"x"`
	}
}

// representation draws the literal representation of an entity.
func representation(t *rapid.T) string {
	typ := rapid.SampledFrom([]string{"Customer", "Employee", "Order", "Order", "Product", "Warehouse", "Money"}).Draw(t, "type")
	key := "id"
	if typ == "Product" {
		key = "sku"
	}
	return fmt.Sprintf("{__typename: %q, %s: %s}", typ, key, rapid.SampledFrom(argumentValues[key]).Draw(t, key))
}

// A plan never changes a response, for any query. All reads of a query are planned.
func TestAnyQueryIsAnsweredAlikeWithAndWithoutAPlan(t *testing.T) {
	store := storetest.SampleStore(t, storetest.Engines()[0].Client(t))
	opts := Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key for tests")), Report: func(_ context.Context, err error) { t.Error(err) }}
	planned, alone := NewExecutor(opts), NewExecutor(opts)
	alone.lookahead = false

	rapid.Check(t, func(rt *rapid.T) {
		query := drawSelections(rt, parsedSchema.Query, 4)
		with, without := post(rt, planned, query), post(rt, alone, query)
		if string(with.Data) != string(without.Data) || with.Errors.String() != without.Errors.String() {
			rt.Fatalf("%s\nwith a plan:    %s %s\nwithout a plan: %s %s", query, with.Data, with.Errors, without.Data, without.Errors)
		}
		for _, request := range with.Extensions.Explain.Requests {
			if request.Path == "" {
				rt.Errorf("%s\n%s %s was not planned", query, request.AccessPattern, request.Key)
			}
		}
	})
}

type reply struct {
	Data       json.RawMessage
	Errors     messages
	Extensions struct{ Explain explain.Explanation }
}

// messages returns errors in an order that does not depend on timing.
type messages []struct {
	Message string
	Path    []any
}

func (m messages) String() string {
	seen := map[string]int{}
	for _, e := range m {
		seen[fmt.Sprint(e.Path, e.Message)]++
	}
	return fmt.Sprint(seen)
}

func post(t *rapid.T, e *Executor, query string) reply {
	body, err := json.Marshal(e.Execute(WithExplain(t.Context()), Request{Query: query}).Response)
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%s: %v: %s", query, err, body)
	}
	return r
}

// A product that was read with its inventory is not read again for a list that contains the
// product.
func TestInventoryThatIsAtHandIsNotReadAgain(t *testing.T) {
	e := executor(t, Options{})
	_, got := execute(t, e, Request{Query: `{
		product(sku: "prod_101") { inventory { nodes { quantity } } }
		products(category: "Electronics") { nodes { sku inventory { nodes { warehouse { name } } } } }
	}`})
	read := map[string]int{}
	for _, r := range got.Extensions.Explain.Requests {
		if r.AccessPattern == "AP13" {
			sku, _, _ := strings.Cut(r.Key, " ")
			read[sku]++
		}
		if r.Path == "" {
			t.Errorf("%s %s was not planned", r.AccessPattern, r.Key)
		}
	}
	if read["PRODUCT#prod_101"] != 1 || len(read) < 2 {
		t.Errorf("the inventories were read %v times, want each once", read)
	}
}

// Timeouts are logged for the operators. Requests that clients cancel are not logged.
func TestTimeoutsAreReported(t *testing.T) {
	var reported []error
	r := &Resolver{report: func(_ context.Context, err error) { reported = append(reported, err) }}
	ctx := withReportedErrors(t.Context())
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, context.DeadlineExceeded} {
		if shown := r.presentError(ctx, err); shown.Extensions["code"] != errcode.Unavailable {
			t.Errorf("%v is shown as %v", err, shown.Extensions)
		}
	}
	if len(reported) != 1 {
		t.Errorf("the reported errors are %v, want one timeout", reported)
	}
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	for err, code := range map[error]string{
		context.DeadlineExceeded: errcode.TimedOut, context.Canceled: errcode.TimedOut, table.ErrUnavailable: errcode.TimedOut, errors.New("a fault"): errcode.Internal,
	} {
		if shown := r.presentError(late, err); shown.Extensions["code"] != code {
			t.Errorf("after the deadline, the error %v has the code %v in the response, want %s", err, shown.Extensions, code)
		}
	}
}
