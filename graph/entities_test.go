package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// entityLimits are limits that allow one request per entity.
var entityLimits = document.Limits{Tokens: 1 << 20, Aliases: 1 << 20, Cost: 1 << 30}

const gatewayQuery = `query ($representations: [_Any!]!) {
	_entities(representations: $representations) {
		__typename
		... on Customer { name }
		... on Order { status }
		... on Product { name }
		... on Employee { name }
		... on Warehouse { name }
	}
}`

// decodeRepresentations decodes representations as the HTTP server does.
func decodeRepresentations(t testing.TB, text string) []any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var representations []any
	if err := d.Decode(&representations); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return representations
}

// execute returns the response to a query as JSON.
func execute(t testing.TB, e *Executor, r Request) (string, reply) {
	t.Helper()
	text, err := json.Marshal(e.Execute(WithExplain(t.Context()), r).Response)
	if err != nil {
		t.Fatal(err)
	}
	var got reply
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return string(text), got
}

// Each representation is resolved independently of the others. Missing records are null, and
// malformed representations are errors at their path.
func TestEachRepresentationStandsForItself(t *testing.T) {
	e := executor(t, Options{Limits: entityLimits})
	const good, answer = `{"__typename": "Customer", "id": "cust_01"}`, `{"__typename":"Customer","name":"Alice Chen"}`
	for _, c := range []struct{ representation, answer, wrong string }{
		{good, answer, ""},
		{`{"__typename": "Order", "id": "01HVMK3P2Q0000000000000001"}`, `{"__typename":"Order","status":"DELIVERED"}`, ""},
		{`{"__typename": "Product", "sku": "prod_100"}`, `{"__typename":"Product","name":"Widget A"}`, ""},
		{`{"__typename": "Customer", "id": "cust_01", "loyaltyPoints": {"of": [1, 2]}, "name": "Bob"}`, answer, ""},
		{`{"__typename": "Customer", "id": "nobody"}`, `null`, ""},
		{`{"__typename": "Customer", "id": 7}`, `null`, ""},
		{`{"__typename": "Order", "id": "01HVMK3P2Q0000000000000009"}`, `null`, ""},
		{`{"__typename": "Warehouse", "id": "nowhere"}`, `null`, ""},
		{`{"__typename": "Employee", "id": "nobody"}`, `null`, ""},
		{`{"__typename": "Product", "sku": "nothing"}`, `null`, ""},
		{`{}`, `null`, `argument "__typename" is not an entity`},
		{`{"id": "cust_01"}`, `null`, `argument "__typename" is not an entity`},
		{`{"__typename": null, "id": "cust_01"}`, `null`, `argument "__typename" is not an entity`},
		{`{"__typename": ["Customer"], "id": "cust_01"}`, `null`, `argument "__typename" is not an entity`},
		{`{"__typename": "Money", "id": "cust_01"}`, `null`, `argument "__typename" is not an entity`},
		{`{"__typename": "customer", "id": "cust_01"}`, `null`, `argument "__typename" is not an entity`},
		{`{"__typename": "Customer"}`, `null`, `argument "id" is missing or null`},
		{`{"__typename": "Customer", "id": null}`, `null`, `argument "id" is missing or null`},
		{`{"__typename": "Product", "id": "prod_100"}`, `null`, `argument "sku" is missing or null`},
		{`{"__typename": "Customer", "id": ""}`, `null`, `argument "id" is not an ID`},
		{`{"__typename": "Customer", "id": true}`, `null`, `argument "id" is not an ID`},
		{`{"__typename": "Customer", "id": 1.5}`, `null`, `argument "id" is not an ID`},
		{`{"__typename": "Customer", "id": 1e3}`, `null`, `argument "id" is not an ID`},
		{`{"__typename": "Customer", "id": {"id": "cust_01"}}`, `null`, `argument "id" is not an ID`},
		{`{"__typename": "Customer", "id": ["cust_01"]}`, `null`, `argument "id" is not an ID`},
		{`{"__typename": "Customer", "id": "a#b"}`, `null`, ""},
		{`{"__typename": "Order", "id": "cust_01"}`, `null`, ""},
		{`{"__typename": "Order", "id": 7}`, `null`, ""},
		{`"Customer"`, `null`, `argument "representations" contains a value that is not an object`},
		{`[[]]`, `null`, `argument "representations" contains a value that is not an object`},
	} {
		t.Run(c.representation, func(t *testing.T) {
			text := fmt.Sprintf(`[%s, %s, %[1]s]`, good, c.representation)
			_, got := execute(t, e, Request{Query: gatewayQuery, Variables: map[string]any{"representations": decodeRepresentations(t, text)}})
			if want := fmt.Sprintf(`{"_entities":[%s,%s,%[1]s]}`, answer, c.answer); string(got.Data) != want {
				t.Errorf("the response is %s, want %s", got.Data, want)
			}
			switch {
			case c.wrong == "" && len(got.Errors) == 0:
			case c.wrong != "" && len(got.Errors) == 1 && strings.HasPrefix(got.Errors[0].Message, c.wrong) && fmt.Sprint(got.Errors[0].Path) == "[_entities 1]":
			default:
				t.Errorf("errors are %v, want %q at its path", got.Errors, c.wrong)
			}
		})
	}
}

// Literal representations are resolved like representations in variables.
func TestRepresentationsInTheDocument(t *testing.T) {
	e := executor(t, Options{Limits: entityLimits})
	for query, want := range map[string]string{
		`{ a: _entities(representations: [{__typename: "Order", id: "01HVMK3P2Q0000000000000001"}, {__typename: "Customer", id: 7}, {__typename: "Customer", id: "cust_01"}]) {
			... on Order { a: status } ... on _Entity { ... on Customer { name orders(first: 1) { nodes { __typename } } } } } }`: `{"a":[{"a":"DELIVERED"},null,{"name":"Alice Chen","orders":{"nodes":[{"__typename":"Order"}]}}]}`,
		`query ($id: ID = "cust_01") { _entities(representations: {__typename: "Customer", id: $id}) { ... on Customer { name } } }`: `{"_entities":[{"name":"Alice Chen"}]}`,
		`{ _entities(representations: []) { __typename } }`:                                                                          `{"_entities":[]}`,
	} {
		if text, got := execute(t, e, Request{Query: query}); string(got.Data) != want || len(got.Errors) > 0 {
			t.Errorf("%s\nhas the response %s", query, text)
		} else {
			for _, r := range got.Extensions.Explain.Requests {
				if r.Path == "" {
					t.Errorf("%s\n%s %s was not planned", query, r.AccessPattern, r.Key)
				}
			}
		}
	}
}

func TestNoMoreThanAThousandRepresentations(t *testing.T) {
	e := executor(t, Options{Limits: entityLimits})
	for _, n := range []int{1000, 1001} {
		representations := make([]any, n)
		for i := range representations {
			representations[i] = map[string]any{"__typename": "Customer", "id": "cust_01"}
		}
		text, got := execute(t, e, Request{Query: gatewayQuery, Variables: map[string]any{"representations": representations}})
		if n <= operation.MaxRepresentations {
			if answers := strings.Count(string(got.Data), "Alice Chen"); answers != n || len(got.Errors) > 0 || got.Extensions.Explain.Totals.Requests != 1 {
				t.Errorf("%d representations return %d entities with errors %v and %d requests, want all entities and 1 request", n, answers, got.Errors, got.Extensions.Explain.Totals.Requests)
			}
			continue
		}
		if string(got.Data) != "null" || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "1001") || fmt.Sprint(got.Errors[0].Path) != "[_entities]" ||
			!strings.Contains(text, errcode.BadUserInput) || got.Extensions.Explain.Totals.Requests != 0 {
			t.Errorf("%d representations have the response %s", n, text)
		}
	}
}

// A panic affects only one representation, not the server.
func TestPanicsAtRepresentations(t *testing.T) {
	var reported []error
	r := &Resolver{entityTypes: entityTypes(), access: operation.NewAccessChecker(Schema(), nil, true), report: func(_ context.Context, err error) { reported = append(reported, err) }}
	ctx := graphql.WithResponseContext(withReportedErrors(t.Context()), r.presentError, panicError)
	// Look-ups panic without loaders.
	found, err := r.entities(ctx, []any{map[string]any{"__typename": "Customer", "id": "cust_01"}, map[string]any{}})
	if err != nil || len(found) != 2 || found[0] != nil || len(graphql.GetErrors(ctx)) != 2 || len(reported) != 1 {
		t.Errorf("found %v, error %v; the response has the errors %v, and reported are %v", found, errors.Join(err), graphql.GetErrors(ctx), reported)
	}
}

// Each representation returns the same record as the corresponding field of Query.
func TestEntitiesAreWhatTheirOwnFieldsGive(t *testing.T) {
	e := executor(t, Options{Limits: entityLimits})
	fields := map[string]string{"Customer": "customer", "Order": "order", "Product": "product", "Employee": "employee", "Warehouse": "warehouse"}
	rapid.Check(t, func(rt *rapid.T) {
		types := []string{"Customer", "Employee", "Order", "Product", "Warehouse"}
		selections := map[string]string{}
		var fragments, alone bytes.Buffer
		for _, typ := range types {
			selections[typ] = drawSelections(rt, parsedSchema.Types[typ], 2)
			fmt.Fprintf(&fragments, " ... on %s %s", typ, selections[typ])
		}
		n := rapid.IntRange(0, 12).Draw(rt, "representations")
		var representations []any
		for i := range n {
			typ, key := rapid.SampledFrom(types).Draw(rt, "type"), "id"
			if typ == "Product" {
				key = "sku"
			}
			quoted := rapid.SampledFrom(argumentValues[key]).Draw(rt, key)
			id := strings.Trim(quoted, `"`)
			representations = append(representations, map[string]any{"__typename": typ, key: id})
			fmt.Fprintf(&alone, " e%d: %s(%s: %s) %s", i, fields[typ], key, quoted, selections[typ])
		}
		query := `query ($representations: [_Any!]!) { _entities(representations: $representations) {` + fragments.String() + ` } }`
		_, together := execute(t, e, Request{Query: query, Variables: map[string]any{"representations": decodeRepresentations(t, marshalled(representations))}})
		_, apart := execute(t, e, Request{Query: `{ __typename` + alone.String() + ` }`})
		var data struct {
			Entities []json.RawMessage `json:"_entities"`
		}
		own := map[string]json.RawMessage{}
		if err := errors.Join(json.Unmarshal(together.Data, &data), json.Unmarshal(apart.Data, &own)); err != nil || len(data.Entities) != n {
			rt.Fatalf("%s\n%v: %v; %s, %s", query, representations, err, together.Data, apart.Data)
		}
		for i, entity := range data.Entities {
			if string(entity) != string(own[fmt.Sprintf("e%d", i)]) {
				rt.Errorf("%s\nthe entity of %v is\n%s\nits own query field returns\n%s", query, representations[i], entity, own[fmt.Sprintf("e%d", i)])
			}
		}
		if len(together.Errors) != len(apart.Errors) {
			rt.Errorf("%s\nthe entities of %v have the errors\n%v\ntheir own query fields have the errors\n%v", query, representations, together.Errors, apart.Errors)
		}
	})
}

func marshalled(v []any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
