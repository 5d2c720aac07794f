package graph

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/graph/document"
)

// The caches rely on estimates of a document's memory, so this test measures the memory. For every
// kind of document, the estimate is at least the growth of the heap and at most six times as large.
func TestDocumentMemoryEstimates(t *testing.T) {
	d := document.NewStore(Schema(), document.Options{})
	e := NewExecutor(Options{})
	for name, text := range map[string]string{
		"a small one":       `{ customer(id: "cust_01") { name } }`,
		"a usual one":       `query Q($id: ID!, $n: Int) { customer(id: $id) { id name email orders(first: $n) { edges { cursor node { id status placedAt total { amount currencyCode } items { nodes { name quantity product { sku name } } } } } pageInfo { hasNextPage endCursor } } } }`,
		"introspection":     `{ __schema { types { name description fields(includeDeprecated: true) { name args { name type { name kind } } type { name kind ofType { name kind } } } } } }`,
		"fields":            "{ customer(id: 1) {" + strings.Repeat(" id", 600) + " } }",
		"aliases":           "{ customer(id: 1) {" + strings.Repeat(" a:id", 80) + " } }",
		"arguments":         "{ order(id: \"x\") { id " + strings.Repeat("customer { orders(first: 1) { nodes { id } } } ", 110) + " } }",
		"directives":        "{ customer(id: 1) { id" + strings.Repeat(" name @skip(if: false)", 45) + " } }",
		"a list":            "{ orders(statuses: [" + strings.Repeat("PENDING ", 1900) + "]) { nodes { id } } }",
		"variables":         "query (" + strings.Repeat("$%d: String ", 300) + ") { __typename }",
		"comments":          "{ customer(id: 1) {" + strings.Repeat(" id #\n", 600) + " } }",
		"a long comment":    "{ customer(id: 1) { " + strings.Repeat("#\n", 1900) + " id } }",
		"fragments":         "{ customer(id: 1) { ...F0 } } " + strings.Repeat("fragment F%d on Customer { id name } ", 100),
		"inline fragments":  "{ customer(id: 1) { id " + strings.Repeat("... { id } ", 400) + " } }",
		"a long text":       "{ customer(id: 1) { id } }" + strings.Repeat(" ", 100_000),
		"a long argument":   `{ customersByName(name: "` + strings.Repeat("x", 100_000) + `") { nodes { id } } }`,
		"an escaped string": `{ customersByName(name: "\n` + strings.Repeat("x", 100_000) + `") { nodes { id } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			if i := 0; strings.Contains(text, "%d") {
				for strings.Contains(text, "%d") {
					text = strings.Replace(text, "%d", fmt.Sprint("v", i), 1)
					i++
				}
			}
			one := d.Parse(text, false)
			if one.Parsed == nil {
				t.Fatal(one.Errors(false))
			}
			// Enough documents to make other allocations negligible.
			many := make([]*document.Document, 40+4<<20/one.Bytes())
			before := heap()
			for i := range many {
				many[i] = d.Parse(text, false)
				prepareAll(e, many[i])
			}
			grown := (heap() - before) / len(many)
			estimate := one.Bytes()
			t.Logf("the document uses %d bytes, estimated %d", grown, estimate)
			if estimate < grown || estimate > 6*grown {
				t.Errorf("a document takes %d bytes, but the estimate is %d", grown, estimate)
			}
			runtime.KeepAlive(many)
		})
	}
}

// prepareAll prepares all operations of a document for many combinations of conditions, so that the
// document caches them.
func prepareAll(e *Executor, d *document.Document) {
	if len(d.Errors(false)) > 0 {
		return
	}
	for _, o := range d.Parsed.Operations {
		var conditions []string
		for _, v := range o.VariableDefinitions {
			if v.Type.Name() == "Boolean" {
				conditions = append(conditions, v.Variable)
			}
		}
		for i := range min(1<<len(conditions), 64) {
			variables := map[string]any{}
			for bit, name := range conditions {
				variables[name] = i>>bit&1 == 1
			}
			e.preparer.Prepare(d, o, variables)
		}
	}
}

// The estimates of prepared operations are also measured. Clients choose the content of documents,
// such as few fields with long arguments and many conditions, so every part of a prepared operation
// is included.
func TestPreparedMemoryEstimates(t *testing.T) {
	d, e := document.NewStore(Schema(), document.Options{Limits: document.Limits{Aliases: 1000}}), NewExecutor(Options{})
	conditions, variables := "", "query ("
	for i := range 6 {
		variables += fmt.Sprintf("$v%d: Boolean! ", i)
		conditions += fmt.Sprintf(" ... @include(if: $v%d) { a%d: __typename }", i, i)
	}
	variables += ") "
	for name, text := range map[string]string{
		"a usual one":               `query Q($id: ID!, $n: Int) { customer(id: $id) { id name email orders(first: $n) { edges { cursor node { id status placedAt total { amount currencyCode } items { nodes { name quantity product { sku name } } } } } pageInfo { hasNextPage endCursor } } } }`,
		"few fields":                variables + "{ " + conditions + " }",
		"representations":           variables + "{ _entities(representations: [" + strings.Repeat(`{__typename: "Order", id: "x"} `, 200) + "]) {" + conditions + " } }",
		"small representations":     variables + "{ _entities(representations: [" + strings.Repeat(`{a: 1} `, 300) + "]) {" + conditions + " } }",
		"a list":                    variables + "{ orders(statuses: [" + strings.Repeat("PENDING ", 1500) + "]) { nodes { id " + conditions + " } } }",
		"fragments of other types":  variables + "{ _entities(representations: []) { " + strings.Repeat("... on Order { id } ", 250) + conditions + " } }",
		"selections that are left":  variables + "{ customer(id: 1) { ... @include(if: $v0) {" + strings.Repeat(" id", 1500) + " } " + conditions + " } }",
		"many operations":           strings.Repeat("query O%d { __typename } ", 300),
		"operations with sizes":     strings.Repeat("query O%d($n: Int) { orders(first: $n) { nodes { id } } } ", 80),
		"lists":                     "{ " + strings.Repeat("a%d: customer(id: 1) { orders(first: 1) { nodes { id } } } ", 49) + "}",
		"long names inside another": "{ " + strings.Repeat(strings.Repeat("a", 196)+"%d: customer(id: 1) { "+strings.Repeat("b", 200)+": orders(first: 1) { nodes { "+strings.Repeat("c", 200)+": customer { name } } } } ", 49) + "}",
		"entities of all types":     "{ " + strings.Repeat("a%d: _entities(representations: []) { ... on Order { id } ... on Customer { orderCount } ... on Product { sku } } ", 40) + "}",
		"records in records":        "{ customer(id: 1) {" + strings.Repeat(" a%d: accountRep { id name }", 100) + " } }",
		"pages with pages":          "{ customer(id: 1) {" + strings.Repeat(` a%d: orders(first: 2, after: "x", placed: {from: "2026-01-01T00:00:00Z"}) { nodes { customer { name } } edges { node { id } } pageInfo { hasNextPage } }`, 40) + " } }",
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; strings.Contains(text, "%d"); i++ {
				text = strings.Replace(text, "%d", fmt.Sprint("v", i), 1)
			}
			one := d.Parse(text, false)
			if len(one.Errors(false)) > 0 {
				t.Fatal(one.Errors(false))
			}
			many := make([]*document.Document, 4+1<<20/one.Bytes())
			for i := range many {
				many[i] = d.Parse(text, false)
			}
			before := heap()
			for _, d := range many {
				prepareAll(e, d)
			}
			grown := (heap() - before) / len(many)
			room := one.PreparedCapacity()
			estimate := many[0].PreparedBytes()
			t.Logf("%d bytes are cached, estimated %d, of %d", grown, estimate, room)
			if estimate < grown || estimate > 6*grown {
				t.Errorf("%d bytes are cached, but the estimate is %d", grown, estimate)
			}
			if estimate > room || one.Bytes() < room {
				t.Errorf("%d bytes are cached, the capacity is %d, and the estimate for the document is %d", estimate, room, one.Bytes())
			}
			runtime.KeepAlive(many)
		})
	}
}

// heap returns the number of heap bytes in use.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
