package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
)

// Without introspection, messages reveal nothing of the schema that the request does not contain.
func TestIntrospectionOff(t *testing.T) {
	e := NewExecutor(Options{NoIntrospection: true})
	for query, code := range map[string]string{
		`{__schema{queryType{name}}}`:                                   errcode.IntrospectionOff,
		`{a:__type(name:"Order"){name}}`:                                errcode.IntrospectionOff,
		`{...F} fragment F on Query{...on Query{__schema{__typename}}}`: errcode.IntrospectionOff,
		`{custome(id:"1"){name}}`:                                       errcode.BadUserInput,
		`{customer(id:"1"){nam}}`:                                       errcode.BadUserInput,
		`{customer(id:"1")}`:                                            errcode.BadUserInput,
		`{customer(id:"1"){name{a}}}`:                                   errcode.BadUserInput,
		`{customer{id}}`:                                                errcode.BadUserInput,
		`{customer(i:"1",id:"1"){id}}`:                                  errcode.BadUserInput,
		`{customer(id:PENDIN){id}}`:                                     errcode.BadUserInput,
		`{customers(first:"1"){nodes{id}}}`:                             errcode.BadUserInput,
		`{ordersByStatus(status:PENDIN){nodes{id}}}`:                    errcode.BadUserInput,
		`{ordersByStatus(status:"PENDIN"){nodes{id}}}`:                  errcode.BadUserInput,
		`{orders(placed:{fro:1}){nodes{id}}}`:                           errcode.BadUserInput,
		`{orders(statuses:[{a:1}]){nodes{id}}}`:                         errcode.BadUserInput,
		`mutation{placeOrder(input:{}){__typename}}`:                    errcode.BadUserInput,
		`mutation{placeOrder(input:null){__typename}}`:                  errcode.BadUserInput,
		`query($a:String){customers(first:$a){nodes{id}}}`:              errcode.BadUserInput,
		`query($a:Custome){customers(first:$a){nodes{id}}}`:             errcode.BadUserInput,
		`query($a:Int!){customer(id:$a){id}}`:                           errcode.BadUserInput,
		`{customer(id:"1"){...on Produc{sku}}}`:                         errcode.BadUserInput,
		`{customer(id:"1"){...on Product{sku}}}`:                        errcode.BadUserInput,
		`{customer(id:"1"){...F}} fragment F on Custome{id}`:            errcode.BadUserInput,
		`{customer(id:"1"){...on ID{id}}}`:                              errcode.BadUserInput,
		`{customer(id:"1"){id @inclu}}`:                                 errcode.BadUserInput,
		`{customer(id:"1"){id @include}}`:                               errcode.BadUserInput,
		`{customer(id:"1"){x:id x:name}}`:                               errcode.BadUserInput,
		`{customer(id:"1"){x:id x:orders{__typename}}}`:                 errcode.BadUserInput,
		`subscription{a}`:                                               errcode.BadUserInput,
	} {
		answer := e.Execute(t.Context(), Request{Query: query})
		if len(answer.Errors) == 0 || answer.Errors[0].Extensions["code"] != code || answer.Outcome != Refused {
			t.Errorf("%s: %v, want %s", query, answer.Errors, code)
		}
		checkSchemaHidden(t, query, answer.Errors)
	}
	for query, variables := range map[string]map[string]any{
		`query($i:PlaceOrderInput!){placeOrder(input:$i){__typename}}`:    {"i": map[string]any{"item": "x"}},
		`mutation($i:PlaceOrderInput!){placeOrder(input:$i){__typename}}`: {"i": map[string]any{"items": []any{map[string]any{"sku": 1}}, "customerId": true}},
		`query($s:[OrderStatus!]){orders(statuses:$s){nodes{id}}}`:        {"s": []any{"PENDIN", 5}},
	} {
		answer := e.Execute(t.Context(), Request{Query: query, Variables: variables})
		if len(answer.Errors) == 0 {
			t.Errorf("%s is not refused", query)
		}
		checkSchemaHidden(t, fmt.Sprint(query, variables), answer.Errors)
	}
	if answer := e.Execute(t.Context(), Request{Query: `{__typename}`}); string(answer.Data) != `{"__typename":"Query"}` {
		t.Errorf("__typename gives %s %v", answer.Data, answer.Errors)
	}
}

// checkSchemaHidden fails the test if errors contain names of the schema that the request does not
// contain.
func checkSchemaHidden(t *testing.T, sent string, errs gqlerror.List) {
	t.Helper()
	words := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < '0' || r > 'z' || r > '9' && r < 'A' || r > 'Z' && r < 'a') })
	}
	secret := map[string]bool{}
	for name, d := range parsedSchema.Types {
		secret[name] = true
		for _, f := range d.Fields {
			secret[f.Name] = true
			for _, a := range f.Arguments {
				secret[a.Name] = true
			}
		}
		for _, v := range d.EnumValues {
			secret[v.Name] = true
		}
	}
	for _, word := range append(words(sent), "field", "fields", "type", "name", "of", "from", "to", "id", "on", "at", "order", "args", "item", "code", "note", "Query", "operation", "FIELD", "message", "types", "limit", "cursor", "return", "returned",
		"Boolean", "String", "Int", "ID") {
		delete(secret, word)
	}
	for _, err := range errs {
		if strings.Contains(err.Message, "Did you mean") {
			t.Errorf("%s: %s", sent, err.Message)
		}
		for _, word := range words(err.Message) {
			if secret[word] {
				t.Errorf("%s: %q reveals %s", sent, err.Message, word)
			}
		}
	}
}

// With introspection, messages contain helpful names.
func TestMessagesSuggest(t *testing.T) {
	e := newExecutorWithoutStore(t, document.Limits{})
	for query, message := range map[string]string{
		`{custome(id:"1"){name}}`:           `Did you mean "customer"`,
		`{customer(id:"1")}`:                `must have a selection`,
		`{customers(first:"1"){nodes{id}}}`: `Int cannot represent non-integer value: "1"`,
		`{customer(id:true){id}}`:           `ID cannot represent`,
		`{customer{id}}`:                    `argument "id"`,
		`{customer(id:"1"){x:id x:name}}`:   `"x"`,
	} {
		if errs := refusals(e, query); len(errs) != 1 || !strings.Contains(errs[0].Message, message) {
			t.Errorf("%s: %v, want %q", query, errs, message)
		}
	}
}

// Operations that share a fragment do not share the defaults of its variables.
func TestOperationsHaveTheirOwnDefaults(t *testing.T) {
	e := executor(t, Options{})
	query := `query A($from:DateTime){...F} query B($from:DateTime="2100-01-01T00:00:00Z"){...F} fragment F on Query{orders(first:1,placed:{from:$from}){nodes{__typename}}}`
	for operation, want := range map[string]string{"A": `{"orders":{"nodes":[{"__typename":"Order"}]}}`, "B": `{"orders":{"nodes":[]}}`} {
		if answer := e.Execute(t.Context(), Request{Query: query, OperationName: operation}); string(answer.Data) != want {
			t.Errorf("operation %s returns %s %v, want %s", operation, answer.Data, answer.Errors, want)
		}
	}
}
