package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/vektah/gqlparser/v2/ast"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// reproducible returns an order book with times and IDs that depend only on its clock and its
// changes.
func reproducible(t testing.TB, clock *manualClock) *dynamo.Store {
	t.Helper()
	return reproducibleOn(t, storetest.Engines()[0].Client(t), clock)
}

// reproducibleOn is like reproducible, for a given engine.
func reproducibleOn(t testing.TB, db *dynamodb.Client, clock *manualClock) *dynamo.Store {
	t.Helper()
	store := storetest.NewTable(t, db, dynamo.Options{
		Clock:   clock.Now,
		Entropy: &locked{from: rand.NewChaCha8([32]byte{1})},
	})
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, dataset)
	return store
}

// locked is a source of random bytes that is safe for concurrent use.
type locked struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

func (l *locked) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from.Read(b)
}

// inputValues are the GraphQL literals that random mutations use for input fields, by field name.
var inputValues = map[string][]string{
	"id":              {`"new_1"`, `"new_2"`, `"cust_01"`, `"prod_100"`, `"a#b"`},
	"customerId":      {`"cust_01"`, `"cust_001"`, `"new_1"`, `"nobody"`},
	"employeeId":      {`"rep_001"`, `"emp_001"`, `null`, `"nobody"`},
	"accountRepId":    {`"rep_001"`, `"nobody"`},
	"orderId":         {`"01HVMK3P2Q0000000000000001"`, `"01HVNR4Q3R0000000000000002"`, `"01KNVV2HR00000000000000101"`, `"x"`},
	"sku":             {`"prod_100"`, `"prod_101"`, `"AVON-TORTOISE"`, `"new_1"`, `"nothing"`},
	"warehouseId":     {`"wh_sea"`, `"wh_pdx"`, `"new_1"`, `"nowhere"`},
	"name":            {`"Ann"`, `"John Smith"`, `""`},
	"email":           {`"ann@example.com"`, `"alice@example.com"`, `"x"`},
	"phoneNumbers":    {`[]`, `["+1 555 0100"]`},
	"quantity":        {`0`, `1`, `3`, `40`, `1000000`},
	"delta":           {`-1`, `5`, `-1000`},
	"note":            {`"a note"`},
	"expectedVersion": {`0`, `1`, `2`},
	"idempotencyKey":  {`"k1"`, `"k2"`},
	"category":        {`"Electronics"`, `"Eyewear"`},
	"amount":          {`"1.50"`, `"29.99"`, `"-1.50"`, `"x"`},
	"kind":            {"SHIPPING", "TAX", "DISCOUNT", "FEE"},
	"line":            {`"prod_100"`, `"nothing"`},
	"currencyCode":    {`"USD"`, `"EUR"`},
	"jobTitle":        {`"Associate"`},
	"hireDate":        {`"2026-01-01"`},
}

// inputValue draws a GraphQL literal for an input field.
func inputValue(t *rapid.T, name string, typ *ast.Type) string {
	if values := inputValues[name]; values != nil {
		return rapid.SampledFrom(values).Draw(t, name)
	}
	if typ.Elem != nil {
		var elements []string
		for range rapid.IntRange(0, 3).Draw(t, name) {
			elements = append(elements, inputValue(t, "", typ.Elem))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	}
	d := parsedSchema.Types[typ.Name()]
	switch {
	case d.Name == "Boolean":
		return strconv.FormatBool(rapid.Bool().Draw(t, name))
	case d.Kind != ast.InputObject:
		return `"text"`
	}
	var fields []string
	for _, f := range d.Fields {
		if f.Type.NonNull || rapid.Bool().Draw(t, f.Name) {
			fields = append(fields, f.Name+": "+inputValue(t, f.Name, f.Type))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// drawMutation draws a mutation with one to three fields.
func drawMutation(t *rapid.T) string {
	var fields []string
	for i := range rapid.IntRange(1, 3).Draw(t, "mutations") {
		f := rapid.SampledFrom(parsedSchema.Mutation.Fields).Draw(t, "mutation")
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		payload := parsedSchema.Types[f.Type.Name()]
		record := payload.Fields[0]
		fields = append(fields, fmt.Sprintf("m%d: %s(input: %s) { __typename %s %s userErrors { __typename code ... on UserError { message field } ... on VersionConflict { currentVersion } ... on InsufficientStock { sku available } ... on PriceChanged { currentTotal { amount } lines { __typename sku name quantity unitPrice { amount } subtotal { amount currencyCode } available inStock } } } }",
			i, f.Name, inputValue(t, "input", f.Arguments[0].Type), record.Name, drawSelections(t, parsedSchema.Types[record.Type.Name()], 3)))
	}
	return "mutation($yes: Boolean = true, $no: Boolean = false) { __typename " + strings.Join(fields, " ") + " }"
}

// For any mutation, an execution returns the same response as the oracle and leaves the same
// records. All reads of the payload are planned.
func TestAnyMutationIsExecutedAsTheOracleDoes(t *testing.T) {
	clock, now := &manualClock{}, &manualClock{now: hardStart.AddDate(1, 0, 0)}
	pair := newExecutorPair(t, Options{Store: reproducible(t, now), Rates: clock.rates(1<<31-1, 1), Limits: document.Limits{Cost: 1 << 30, Aliases: 1 << 20}}, nil)
	pair.oracle.resolver.store = reproducible(t, now)
	compare := func(t rapid.TB, r Request, limit int) string {
		limits := setting.OrDefaults(document.Limits{Answer: limit})
		pair.executor.limits.Answer, pair.oracle.limits.Answer = limits.Answer, limits.Answer
		now.forward(time.Second)
		return pair.compare(t, r)
	}
	// These mutations have each kind of result. Random mutations can miss one.
	for _, fixed := range []struct {
		mutation, result string
		limit            int
	}{
		{`confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002", expectedVersion: 99})`, "VersionConflict", 0},
		{`confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002"})`, `"userErrors":[]`, 0},
		{`confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002"})`, "InvalidTransition", 0},
		{`confirmOrder(input: {orderId: "01HVNR4Q3R0000000000009999"})`, "NotFound", 0},
		{`confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002"})`, document.LimitCodes.Answer, 10},
	} {
		got := compare(t, Request{Query: "mutation { " + fixed.mutation + " { order { id status } userErrors { __typename message } } }"}, fixed.limit)
		if !strings.Contains(got, fixed.result) {
			t.Errorf("%s: %s, want %s", fixed.mutation, got, fixed.result)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		compare(rt, Request{Query: conditions(rt, drawMutation(rt))}, rapid.SampledFrom([]int{0, 100, 5000}).Draw(rt, "answer"))
	})
	records := func(store *dynamo.Store) string {
		var b strings.Builder
		err := store.Export(t.Context(), make([]bulk.SegmentProgress, 1), func(page bulk.ExportPage) error {
			b.Write(page.Lines)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	if executed, expected := records(pair.executor.resolver.store), records(pair.oracle.resolver.store); executed != expected {
		t.Errorf("the records are\n%s\nwant the records that execution by gqlgen writes:\n%s", executed, expected)
	}
}

// The selection of a payload's record is planned: lists and references of one kind share requests,
// as in a query.
func TestPayloadsArePlanned(t *testing.T) {
	e := executor(t, Options{})
	_, got := execute(t, e, Request{Query: `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_100", quantity: 1}, {sku: "prod_101", quantity: 1}]}) {
		order { id customer { name orders(first: 3) { nodes { id } } } items { nodes { product { name } } } timeline { nodes { type } } } userErrors { message } } }`})
	if len(got.Errors) > 0 {
		t.Fatal(got.Errors)
	}
	var requests []string
	last := 0
	for _, r := range got.Extensions.Explain.Requests {
		if r.AccessPattern[0] == 'A' {
			requests = append(requests, r.AccessPattern+" "+r.Operation+" "+r.Path)
		}
		last = max(last, r.RoundTrip)
	}
	slices.Sort(requests)
	want := []string{"AP10 BatchGetItem placeOrder.order.items.nodes.product", "AP2 Query placeOrder.order.customer.orders", "AP27 Query placeOrder.order.timeline", "AP6 GetItem placeOrder.order.customer"}
	if !slices.Equal(requests, want) || last != 3 {
		t.Errorf("the payload caused the requests %q in %d round trips, including the mutation, want %q in 3", requests, last, want)
	}
}

// A payload shows the record as the mutation left it, even if the selection leads back to the
// record.
func TestPayloadsGoBackToTheirRecord(t *testing.T) {
	e := executor(t, Options{})
	result := e.Execute(t.Context(), Request{Query: `mutation { confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002"}) { order { status items { nodes { order { status version } } } } } }`})
	if !strings.Contains(string(result.Data), `"items":{"nodes":[{"order":{"status":"CONFIRMED"`) {
		t.Errorf("%s %v", result.Data, result.Errors)
	}
}
