package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// Any document with any variables gets a response without an INTERNAL error.
//
// `go test ./graph -fuzz FuzzRequests` searches for failing inputs. It stores them in
// testdata/fuzz, and every test run repeats them.
func FuzzRequests(f *testing.F) {
	store := storetest.SampleStore(f, storetest.Engines()[0].Client(f))
	var faults struct {
		sync.Mutex
		errs []error
	}
	opts := Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key for tests")), Report: func(_ context.Context, err error) {
		faults.Lock()
		defer faults.Unlock()
		faults.errs = append(faults.errs, err)
	}}
	e := NewExecutor(opts)
	opts.NoIntrospection = true
	closed := NewExecutor(opts)
	for _, query := range examples(f) {
		f.Add(query, `{"first":1,"input":{"customerId":"cust_01","items":[{"sku":"prod_100","quantity":1.0}]}}`)
	}
	for _, c := range []struct{ query, variables string }{
		{`query($s:[OrderStatus!],$p:TimeRange={from:"2026-01-01T00:00:00Z"},$n:Int=3){orders(statuses:$s,placed:$p,first:$n){nodes{id ...F}}} fragment F on Order{items(last:$n){edges{cursor node{product{sku}}}}}`, `{"s":"PENDING","n":2}`},
		{`query($d:DateRange,$i:ID!,$b:Boolean=true){employees(hired:$d){nodes{id @skip(if:$b)}} employee(id:$i){name @include(if:$b)}}`, `{"d":{"from":"2024-01-01","to":null},"i":7,"b":null}`},
		{`mutation($i:PlaceOrderInput!,$k:String){placeOrder(input:$i){order{id} userErrors{__typename code ...on InsufficientStock{sku available}}} updateCustomer(input:{id:"cust_01",name:$k}){customer{version}}}`, `{"i":{"customerId":"cust_01","items":{"sku":"prod_100","quantity":1}},"k":null}`},
		{`mutation($p:Decimal!,$c:CurrencyCode){createProduct(input:{sku:"a",name:"b",category:"c",unitPrice:{amount:$p,currencyCode:$c}}){userErrors{message}}}`, `{"p":[[1e9]],"c":{"x":1}}`},
		{`mutation($d:Date!){hireEmployee(input:{name:"a",jobTitle:"b",hireDate:$d}){employee{hireDate}}}`, `{"d":1}`},
		{`query A{...F} query B($a:Int=5){...F} fragment F on Query{customers(first:1){nodes{orders(placed:{from:null}){nodes{id}}}}}`, `{}`},
		{`{__schema{types{...F}}} fragment F on __Type{fields{args{type{...G}}} possibleTypes{fields{name}}} fragment G on __Type{ofType{ofType{name}}}`, `null`},
		{"{\"\"\"\n\\\"\"\"\"\"\"}", `[]`},
		{"#\xff\n{a(b:\"\\ud83d\\ude00\\u{1F600}\")}", `{"a":1e999}`},
		{`query($a:[[Int!]]!=[[1]],$b:Any){a}`, `{"a":[[[[[[[[[[[1]]]]]]]]]]]}`},
	} {
		f.Add(c.query, c.variables)
	}
	f.Fuzz(func(t *testing.T, query, variables string) {
		if len(query)+len(variables) > 128<<10 {
			t.Skip("the input exceeds the maximum size of a request")
		}
		var given map[string]any
		d := json.NewDecoder(bytes.NewReader([]byte(variables)))
		d.UseNumber()
		if err := d.Decode(&given); err != nil {
			given = nil
		}
		// The limit is generous. It only stops requests that do not terminate.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, executor := range []*Executor{e, closed} {
			result := executor.Execute(ctx, Request{Query: query, Variables: given})
			for _, err := range result.Errors {
				if err.Extensions["code"] == errcode.Internal || err.Extensions["code"] == errcode.Unavailable || err.Extensions["code"] == nil {
					t.Errorf("%v: %v", err, err.Extensions)
				}
			}
			if (result.Outcome == Refused) != (result.Data == nil) {
				t.Errorf("a result with the outcome %d has the data %s", result.Outcome, result.Data)
			}
			if _, err := json.Marshal(result.Response); err != nil {
				t.Errorf("%s: %v", result.Data, err)
			}
		}
		faults.Lock()
		defer faults.Unlock()
		for _, err := range faults.errs {
			t.Error(err)
		}
		faults.errs = nil
	})
}
