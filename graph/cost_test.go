package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// costOf returns the cost of a query with the default limits.
func costOf(t rapid.TB, e *Executor, query string, variables map[string]any) int {
	t.Helper()
	document := e.documents.Parse(query, false)
	if len(document.Errors(false)) > 0 {
		t.Fatalf("%s: %v", query, document.Errors(false))
	}
	coerced, errs := e.documents.CoerceVariables(document, document.Parsed.Operations[0], variables, false)
	if len(errs) > 0 {
		t.Fatalf("%s: %v", query, errs)
	}
	prepared, _ := e.preparer.Prepare(document, document.Parsed.Operations[0], coerced)
	return prepared.Cost(coerced)
}

// quoted returns the variables of a quote with this number of lines.
func quoted(lines int, name ...string) map[string]any {
	items := make([]any, lines)
	for i := range items {
		items[i] = map[string]any{"sku": fmt.Sprint("p", i), "quantity": json.Number("1")}
	}
	return map[string]any{append(name, "i")[0]: items}
}

func TestCost(t *testing.T) {
	e := newExecutorWithoutStore(t, document.Limits{})
	paged := func(page string) string { return `query($n:Int,$m:Int=3){customers` + page + `{nodes{id}}}` }
	page := func(size int) int { return 1 + 10 + 1 + size*2 }
	// The maximum write units of each mutation and of each line of an order.
	most := func(mutation string, lines int) int { return int(dynamo.NewCostBounds(1).WriteUnits(mutation, lines)) }
	confirming, placing := most("confirmOrder", 0), most("placeOrder", 0)
	each := most("placeOrder", 1) - placing
	for _, c := range []struct {
		query     string
		variables map[string]any
		want      int
	}{
		{`{__typename}`, nil, 1},
		{`{customer(id:"1"){id name}}`, nil, 3},
		{`{customer(id:"1"){phoneNumbers}}`, nil, 2 + 10},
		{`{order(id:"1"){total{amount currencyCode} availableTransitions}}`, nil, 1 + 3 + 1 + 5},
		{`{customers{nodes{id}}}`, nil, page(20)},
		{`{customers(first:3){nodes{id}}}`, nil, page(3)},
		{`{customers(last:3){nodes{id}}}`, nil, page(3)},
		{`{customers(before:"x"){nodes{id}}}`, nil, page(20)},
		{`{customers(first:0){nodes{id}}}`, nil, page(1)},
		{`{customers(first:101){nodes{id}}}`, nil, page(100)},
		{`{customers(first:3,last:30){nodes{id}}}`, nil, page(30)},
		{`{customers(first:null){nodes{id}}}`, nil, page(20)},
		{paged("(first:$n,last:$m)"), map[string]any{"n": json.Number("7")}, page(7)},
		{paged("(first:$n,last:$m)"), map[string]any{"m": json.Number("70")}, page(70)},
		{paged("(first:$n,last:$m)"), nil, page(3)},
		{`{customers(first:3){pageInfo{hasNextPage} edges{cursor node{id}}}}`, nil, 1 + 10 + 2 + 1 + 3*4},
		{`{customers(first:3){nodes{id} edges{cursor}}}`, nil, 1 + 10 + 1 + 3*2 + 1 + 3*2},
		{`{customers(first:3){nodes{orders(first:5){nodes{id}}}}}`, nil, 1 + 10 + 1 + 3*(1+1+10+1+5*2)},
		{`{customers(first:3){...F}} fragment F on CustomerConnection{pageInfo{hasNextPage} ...G} fragment G on CustomerConnection{nodes{id}}`, nil, page(3) + 2},
		{`{a:customers(first:3){...F} b:customers(first:5){...F}} fragment F on CustomerConnection{nodes{id}}`, nil, page(3) + page(5)},
		{`{quote(input:{items:[{sku:"a",quantity:1},{sku:"b",quantity:2}]}){lines{sku subtotal{amount}} total{amount}}}`, nil, 1 + 2 + 1 + 2*4 + 2},
		{`{quote(input:{items:{sku:"a",quantity:1}}){lines{sku}}}`, nil, 1 + 1 + 1 + 1*2},
		{`query($n:Int!){quote(input:{items:[{sku:"a",quantity:$n},{sku:"b",quantity:$n}]}){lines{sku}}}`, map[string]any{"n": json.Number("3")}, 1 + 2 + 1 + 2*2},
		{`query($i:[OrderLineInput!]!){quote(input:{items:$i}){lines{sku}}}`, quoted(3), 1 + 3 + 1 + 3*2},
		{`query($i:[OrderLineInput!]!){quote(input:{items:$i}){lines{sku}}}`, quoted(100), 1 + commerce.MaxLines + 1 + commerce.MaxLines*2},
		{`query($q:QuoteInput!){quote(input:$q){lines{sku}}}`, map[string]any{"q": quoted(3, "items")}, 1 + 3 + 1 + 3*2},
		{`{customer(id:"1"){id id name @skip(if:true)}}`, nil, 2},
		{`mutation{confirmOrder(input:{orderId:"1"}){order{id} userErrors{code}}}`, nil, confirming + 10 + 1 + 2 + 1 + 50*2},
		{`mutation{placeOrder(input:{customerId:"1",items:[]}){userErrors{code ... on PriceChanged{lines{sku subtotal{amount}}}}}}`, nil, placing + each + 1 + 10 + 1 + 1 + 50*2 + 1 + commerce.MaxLines*4},
		{`mutation($i:[OrderLineInput!]!){placeOrder(input:{customerId:"1",items:$i}){__typename}}`, quoted(7), placing + 7*(each+1) + 10 + 1 + 1},
		{`mutation{...F ...F} fragment F on Mutation{confirmOrder(input:{orderId:"1"}){order{id}}}`, nil, confirming + 10 + 3},
		{`mutation{confirmOrder(input:{orderId:"1"}){userErrors{... on NotFound{code} ... on VersionConflict{code currentVersion}}}}`, nil, confirming + 10 + 1 + 1 + 50*3},
		{`subscription{orderStatusChanged{id}}`, nil, 2},
		{`subscription{orderUpdated(id:"1"){id event{type at} order{status items(first:3){nodes{name}}}}}`, nil, 1 + 1 + 3 + 2 + 1 + 10 + 1 + 3*2},
	} {
		if got := costOf(t, e, c.query, c.variables); got != c.want {
			t.Errorf("%s with %v costs %d, want %d", c.query, c.variables, got, c.want)
		}
	}
}

// An operation above the cost limit is rejected before anything is read. An operation at the limit
// is executed.
func TestCostLimit(t *testing.T) {
	query := `query($n:Int!){customers(first:$n){nodes{id}}}`
	e := newExecutorWithoutStore(t, document.Limits{Cost: 112})
	for n, refused := range map[string]bool{"50": false, "51": true} {
		_, _, errs := e.prepare(t.Context(), Request{Query: query, Variables: map[string]any{"n": json.Number(n)}})
		if (len(errs) > 0) != refused {
			t.Errorf("a page of %s: %v", n, errs)
		}
		if refused && (errs[0].Extensions["code"] != document.LimitCodes.Cost || !strings.Contains(errs[0].Message, "114") || !strings.Contains(errs[0].Message, "112") || len(errs[0].Locations) != 1) {
			t.Errorf("a page of %s: %v %v", n, errs, errs[0].Extensions)
		}
	}
	circle := `id`
	for range 4 {
		circle = `orders(first: 100) { nodes { customer { ` + circle + ` } } }`
	}
	for name, query := range map[string]string{
		"a circle":      `{ customer(id: "cust_001") { ` + circle + ` } }`,
		"introspection": `{__schema{` + repeatNumbered(20, "t%d:types{fields{type{fields{name description}}}} ") + `}}`,
		"edges":         `{ customers(last: 100) { edges { node { orders(first: 100) { edges { node { items(first: 100) { edges { node { name } } } } } } } } } }`,
	} {
		if _, _, errs := newExecutorWithoutStore(t, document.Limits{}).prepare(t.Context(), Request{Query: query}); len(errs) != 1 || errs[0].Extensions["code"] != document.LimitCodes.Cost {
			t.Errorf("%s: %v, want %s", name, errs, document.LimitCodes.Cost)
		}
	}
}

// values counts the values in a response.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			n += values(element)
		}
	case map[string]any:
		for _, field := range v {
			n += values(field)
		}
	}
	return n
}

// answered returns the number of values in the response to a query.
func answered(t rapid.TB, e *Executor, query string) int {
	t.Helper()
	result := e.Execute(context.Background(), Request{Query: query})
	if result.Outcome != Executed {
		return 0
	}
	var data any
	if err := json.Unmarshal(result.Data, &data); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values(data) - 1 // the root object is not the value of a field
}

// The response to any query never has more values than the query's cost. The cost does not depend
// on fragments.
func TestNoAnswerIsLargerThanItsCost(t *testing.T) {
	e := executor(t, Options{Limits: document.Limits{Cost: 1 << 30, Aliases: 1 << 20, IntrospectionDepth: 100, Depth: 100, Tokens: 1 << 20}})
	largest := 0
	rapid.Check(t, func(rt *rapid.T) {
		query := drawSelections(rt, parsedSchema.Query, 4)
		if rapid.IntRange(0, 3).Draw(rt, "introspection") == 0 {
			query = "{__schema" + drawSelections(rt, parsedSchema.Types["__Schema"], 4) + "}"
		}
		cost, valueCount := costOf(rt, e, query, nil), answered(rt, e, query)
		largest = max(largest, valueCount)
		if valueCount > cost {
			rt.Fatalf("%s costs %d, but its response has more values: %d", query, cost, valueCount)
		}
		document, err := parser.ParseQuery(&ast.Source{Input: query})
		if err != nil {
			rt.Fatal(err)
		}
		if cut := cut(document); costOf(rt, e, cut, nil) != cost {
			rt.Fatalf("%s costs %d, but the equivalent document %s costs %d", query, cost, cut, costOf(rt, e, cut, nil))
		}
	})
	if largest < 50 && longtest.Enabled() {
		t.Errorf("the largest response has %d values", largest)
	}
}

// cut moves inline fragments to named fragments.
func cut(document *ast.QueryDocument) string {
	var replace func(ast.SelectionSet)
	replace = func(set ast.SelectionSet) {
		for i, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				replace(s.SelectionSet)
			case *ast.InlineFragment:
				replace(s.SelectionSet)
				name := fmt.Sprintf("F%d", len(document.Fragments))
				document.Fragments = append(document.Fragments, &ast.FragmentDefinition{Name: name, TypeCondition: s.TypeCondition, SelectionSet: s.SelectionSet})
				set[i] = &ast.FragmentSpread{Name: name}
			}
		}
	}
	replace(document.Operations[0].SelectionSet)
	var b bytes.Buffer
	formatter.NewFormatter(&b).FormatQueryDocument(document)
	return b.String()
}

// The introspection query of tools costs the values of its response, plus the longest lists that
// could be there instead of null.
func TestIntrospectionCost(t *testing.T) {
	query, err := os.ReadFile("testdata/introspection.graphql")
	if err != nil {
		t.Fatal(err)
	}
	e := newExecutorWithoutStore(t, document.Limits{})
	cost, valueCount := costOf(t, e, string(query), nil), answered(t, e, string(query))
	t.Logf("introspection costs %d, its response has %d values", cost, valueCount)
	if valueCount > cost || valueCount < 1000 || cost > setting.OrDefaults(document.Limits{}).Cost/2 {
		t.Errorf("introspection costs %d, its response has %d values", cost, valueCount)
	}
}

// The example in docs/limits.md has the documented cost.
func TestDocumentedCosts(t *testing.T) {
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```graphql\n")
	query, rest, _ := strings.Cut(rest, "```")
	_, rest, _ = strings.Cut(rest, "It costs ")
	documented, _, _ := strings.Cut(rest, ".\n")
	cost := fmt.Sprint(costOf(t, newExecutorWithoutStore(t, document.Limits{}), query, nil))
	if cost != strings.ReplaceAll(documented, ",", "") {
		t.Errorf("%s costs %s, the documentation has %s", query, cost, documented)
	}
}

// docs/limits.md documents the resources that a point pays for.
func TestGoldenPoints(t *testing.T) {
	golden.CheckSection(t, "../docs/limits.md", "points", fmt.Sprintf(
		"One rate limit point pays for %d µs of processor time, %d bytes of requests or `data`, %d DynamoDB\nread unit, or %d write unit.\n\nA new document costs one point per %d nodes as sent, plus one per %d nodes after fragments are\nexpanded.\n",
		operation.CPUTimePerPoint.Microseconds(), operation.BytesPerPoint, operation.ReadUnitsPerPoint, operation.WriteUnitsPerPoint, operation.ParsedNodesPerPoint, operation.VisitedNodesPerPoint))
}

// The cost of _entities is the number of representations times the cost of the most expensive type.
func TestEntitiesCost(t *testing.T) {
	e := newExecutorWithoutStore(t, document.Limits{})
	customer := map[string]any{"__typename": "Customer", "id": "1"}
	for _, c := range []struct {
		query     string
		variables map[string]any
		want      int
	}{
		{`{_entities(representations:[{id:"1"},{id:"2"},{id:"3"}]){...on Customer{id}}}`, nil, 1 + 3*2},
		{`{_entities(representations:[{id:"1"},{id:"2"}]){...on Customer{id} ...on Order{id status}}}`, nil, 1 + 2*3},
		{`{_entities(representations:{id:"1"}){...on Customer{id}}}`, nil, 1 + 2},
		{`query($r:[_Any!]!){_entities(representations:$r){...on Customer{id}}}`, map[string]any{"r": []any{customer, customer, customer}}, 1 + 3*2},
		{`query($a:_Any!){_entities(representations:[$a,$a]){...on Customer{id}}}`, map[string]any{"a": customer}, 1 + 2*2},
	} {
		if cost := costOf(t, e, c.query, c.variables); cost != c.want {
			t.Errorf("%s costs %d, want %d", c.query, cost, c.want)
		}
	}
}
