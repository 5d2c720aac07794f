package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/explain"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/setting"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// executorPair is an executor and its oracle. log has the reported errors of each, without stack
// traces and paths. An error that affects several fields is reported with the path of the first one
// only.
type executorPair struct {
	executor *Executor
	oracle   oracle
	mu       sync.Mutex
	log      map[*Executor][]string
}

type pairKey struct{}

func newExecutorPair(t testing.TB, opts Options, root func(*Resolver) ResolverRoot) *executorPair {
	pair := &executorPair{log: map[*Executor][]string{}}
	if opts.Store == nil {
		opts.Store = storetest.SampleStore(t, storetest.Engines()[0].Client(t))
	}
	opts.Cursors = paging.NewCursorSigner([]byte("a key for tests"))
	opts.Limits.Errors = cmp.Or(opts.Limits.Errors, 1<<30) // gqlgen resolves fields in any order
	opts.Report = func(ctx context.Context, err error) {
		pair.mu.Lock()
		defer pair.mu.Unlock()
		e := ctx.Value(pairKey{}).(*Executor)
		line, _, _ := strings.Cut(err.Error(), "\n")
		_, what, _ := strings.Cut(line, ": ")
		pair.log[e] = append(pair.log[e], what)
	}
	pair.executor, pair.oracle = NewExecutor(opts), oracle{NewExecutor(opts)}
	if root != nil {
		for _, e := range []*Executor{pair.executor, pair.oracle.Executor} {
			resolvers := root(e.resolver)
			e.schema = NewExecutableSchema(Config{Resolvers: resolvers, Schema: e.schema.Schema()}).(*executableSchema)
			e.fields = newFieldResolvers(resolvers, newExecutionContext(&graphql.OperationContext{}, e.schema, nil))
		}
	}
	return pair
}

// run returns the response and the log of a request, with sorted errors. reads describes the reads
// of each access pattern. It is empty for mutations, because the oracle does not plan payloads. If
// there are errors, response does not contain the actual cost, because the oracle does not know what
// they have removed.
func (pair *executorPair) run(e *Executor, execute func(context.Context, Request) Result, r Request) (response, reads string, actual int) {
	ctx := context.WithValue(WithExplain(context.Background()), pairKey{}, e)
	pair.log[e] = nil
	result := execute(ctx, r)
	var b strings.Builder
	fmt.Fprintf(&b, "outcome %d\ndata %s\n", result.Outcome, result.Data)
	var lines []string
	for _, err := range result.Errors {
		text, _ := json.Marshal(err)
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	fmt.Fprintf(&b, "errors %s\n", strings.Join(lines, "\n       "))
	if cost, ok := result.Extensions["cost"].(rate.CostExtension); ok {
		if len(result.Errors) > 0 {
			actual, cost.Actual = cost.Actual, 0
		}
		cost.Available = 0 // depends on earlier requests
		fmt.Fprintf(&b, "cost %+v\n", cost)
	}
	if explained, ok := result.Extensions["explain"].(explain.Explanation); ok && !result.Mutation {
		items, units := map[string]int{}, map[string]float64{}
		for _, r := range explained.Requests {
			items[r.AccessPattern] += r.Items
			units[r.AccessPattern] += r.ReadUnits
		}
		reads = fmt.Sprintf("reads %v, units %v\n", items, units) // maps are printed in key order
	}
	log := slices.Clone(pair.log[e])
	slices.Sort(log)
	fmt.Fprintf(&b, "log %s\n", strings.Join(slices.Compact(log), "\n    "))
	return b.String(), reads, actual
}

// compare executes a request with both and compares the results. It returns the response.
func (pair *executorPair) compare(t rapid.TB, r Request) string {
	t.Helper()
	executed, reads, cost := pair.run(pair.executor, pair.executor.Execute, r)
	expected, expectedReads, least := pair.run(pair.oracle.Executor, pair.oracle.Execute, r)
	// Concurrent reads of a level share records only if the timing allows it. After some repetitions
	// both sides have read the same.
	for range 100 {
		if reads == expectedReads || executed != expected {
			break
		}
		_, reads, cost = pair.run(pair.executor, pair.executor.Execute, r)
		_, expectedReads, least = pair.run(pair.oracle.Executor, pair.oracle.Execute, r)
	}
	if executed != expected || reads != expectedReads || cost < least {
		t.Fatalf("%s\n%v\nexecuted: %s%scost %d\nexpected from gqlgen: %s%scost %d", r.Query, r.Variables, executed, reads, cost, expected, expectedReads, least)
	}
	return executed
}

// For any query, an execution returns the same bytes, errors, costs and reads as the oracle.
func TestQueriesMatchOracle(t *testing.T) {
	clock := &manualClock{}
	pair := newExecutorPair(t, Options{Rates: clock.rates(1<<31-1, 1), Limits: document.Limits{Cost: 1 << 30, Aliases: 1 << 20}}, nil)
	rapid.Check(t, func(rt *rapid.T) {
		query := "query($yes: Boolean = true, $no: Boolean!) " + conditions(rt, drawSelections(rt, parsedSchema.Query, 4))
		r := Request{Query: query, Variables: map[string]any{"no": false}}
		limit := rapid.SampledFrom([]int{0, 20, 100, 300, 1000, 5000}).Draw(rt, "answer")
		pair.executor.limits.Answer, pair.oracle.limits.Answer = setting.OrDefaults(document.Limits{Answer: limit}).Answer, setting.OrDefaults(document.Limits{Answer: limit}).Answer
		pair.compare(rt, r)
	})
}

// conditions replaces some __typename fields of a query by variants: duplicates, conditions and
// fragments.
func conditions(t *rapid.T, query string) string {
	parts := strings.Split(query, " __typename")
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(part)
		if i < len(parts)-1 {
			b.WriteString(" " + rapid.SampledFrom([]string{
				"__typename", "__typename", "__typename __typename", "__typename @skip(if: $yes)", "__typename @include(if: $no)", "t: __typename @include(if: $yes)",
				"... @include(if: $no) { __typename }", "... @skip(if: $no) { t: __typename } __typename",
			}).Draw(t, "names"))
		}
	}
	return b.String()
}

// Operations that random queries do not cover.
func TestOperationsAreExecutedAsTheOracleDoes(t *testing.T) {
	clock := &manualClock{}
	pair := newExecutorPair(t, Options{Rates: clock.rates(1<<31-1, 1)}, nil)
	for _, c := range []struct {
		query     string
		variables map[string]any
		want      string
	}{
		{`{ __typename a: __typename __typename }`, nil, `{"__typename":"Query","a":"Query"}`},
		{`{ customer(id: "cust_01") { ...A ...B name } } fragment A on Customer { name ...B } fragment B on Customer { email }`, nil, `"name":`},
		{`query($c: Boolean!) { customer(id: "cust_01") { ...A @skip(if: $c) } } fragment A on Customer { name }`, map[string]any{"c": true}, `{"customer":{}}`},
		{`query($n: Int) { customers(first: $n) { nodes { id orders(first: $n) { pageInfo { hasNextPage } } } } }`, map[string]any{"n": json.Number("2")}, `"hasNextPage":`},
		{`query($n: Int) { customers { nodes { id orders(first: $n) { nodes { id } } } } }`, map[string]any{"n": json.Number("0")}, `is 0: use 1 to 100`},
		{`{ customers { nodes { id orders(after: "x") { nodes { id } } } } }`, nil, `is not a cursor`},
		{`query($d: DateRange) { employees(hired: $d) { nodes { id } } }`, map[string]any{"d": map[string]any{"from": "yesterday"}}, `must be a date, as a string of the form`},
		{`{ employees(hired: {from: "tomorrow"}) { nodes { id } } }`, nil, `must be a date, as a string of the form`},
		{`query($p: TimeRange) { customer(id: "cust_01") { orders(placed: $p) { nodes { id } } } }`, map[string]any{"p": map[string]any{"from": "now"}}, `must be a date with a time, as a string of the form`},
		{`query($r: [_Any!]!) { _entities(representations: $r) { __typename ... on Customer { __typename name } ... on Order { id } } }`,
			map[string]any{"r": []any{map[string]any{"__typename": "Customer", "id": "cust_01"}, map[string]any{"__typename": "Order", "id": "x"}, "y", map[string]any{"__typename": "Customer", "id": "nobody"}}}, `"__typename":"Customer","name"`},
		{`{ _service { sdl } }`, nil, `@key`},
		{`{ __type(name: "Order") { name } customer(id: "cust_01") { name } }`, nil, `"Order"`},
		{`mutation { updateCustomer(input: {id: "nobody", name: "A"}) { userErrors { code } } }`, nil, `NOT_FOUND`},
	} {
		if got := pair.compare(t, Request{Query: c.query, Variables: c.variables}); !strings.Contains(got, c.want) {
			t.Errorf("%s\nhas no %s:\n%s", c.query, c.want, got)
		}
	}
}

// faults makes resolvers fail. The salt determines how each call of a resolver fails. Both
// executors therefore have the same faults.
type faults struct {
	salt uint32
	// modulus determines how often resolvers fail: about 5 of modulus calls fail.
	modulus uint32
}

var errOfResolver = errors.New("a resolver's own words")

func withFault[T any](f *faults, field string, of any, value func() (T, error)) (T, error) {
	h := fnv.New32a()
	fmt.Fprint(h, f.salt, field, of)
	var none T
	switch n := h.Sum32() % f.modulus; n {
	case 0:
		return none, errOfResolver
	case 1:
		return none, commerce.ErrorWithArgument("after", commerce.NewInvalidError("is no good"))
	case 2:
		return none, nil
	case 3:
		panic("a resolver's panic")
	case 4:
		return none, errcode.New(nil, errcode.NotFound, "not today")
	}
	return value()
}

// withFaultPage makes resolvers of pages fail. A page can also contain a nil record.
func withFaultPage[T any](f *faults, field string, of any, page func() (*paging.Connection[*T], error)) (*paging.Connection[*T], error) {
	return withFault(f, field, of, func() (*paging.Connection[*T], error) {
		c, err := page()
		_, bad := withFault(f, field+" nodes", of, func() (int, error) { return 0, nil })
		if err != nil || bad == nil || len(c.Page.Items) == 0 {
			return c, err
		}
		c.Page.Items = slices.Clone(c.Page.Items)
		c.Page.Items[len(c.Page.Items)/2] = nil
		return c, nil
	})
}

type (
	faultyRoot struct {
		*Resolver
		*faults
	}
	faultyQuery struct {
		QueryResolver
		*faults
	}
	faultyCustomer struct {
		CustomerResolver
		*faults
	}
	faultyOrder struct {
		OrderResolver
		*faults
	}
	faultyItem struct {
		OrderItemResolver
		*faults
	}
	faultyEvent struct {
		OrderEventResolver
		*faults
	}
)

func (r faultyRoot) Query() QueryResolver { return faultyQuery{r.Resolver.Query(), r.faults} }
func (r faultyRoot) Customer() CustomerResolver {
	return faultyCustomer{r.Resolver.Customer(), r.faults}
}
func (r faultyRoot) Order() OrderResolver { return faultyOrder{r.Resolver.Order(), r.faults} }
func (r faultyRoot) OrderItem() OrderItemResolver {
	return faultyItem{r.Resolver.OrderItem(), r.faults}
}
func (r faultyRoot) OrderEvent() OrderEventResolver {
	return faultyEvent{r.Resolver.OrderEvent(), r.faults}
}

func (q faultyQuery) Customers(ctx context.Context, namePrefix, emailPrefix *string, first *int32, after *string, last *int32, before *string) (*CustomerConnection, error) {
	return withFaultPage(q.faults, "customers", nil, func() (*CustomerConnection, error) {
		return q.QueryResolver.Customers(ctx, namePrefix, emailPrefix, first, after, last, before)
	})
}

func (q faultyQuery) Order(ctx context.Context, id string) (*commerce.Order, error) {
	return withFault(q.faults, "order", id, func() (*commerce.Order, error) { return q.QueryResolver.Order(ctx, id) })
}

func (c faultyCustomer) Orders(ctx context.Context, of *commerce.Customer, placed *commerce.TimeRange, first *int32, after *string, last *int32, before *string) (*OrderConnection, error) {
	return withFaultPage(c.faults, "orders", of.ID, func() (*OrderConnection, error) {
		return c.CustomerResolver.Orders(ctx, of, placed, first, after, last, before)
	})
}

func (c faultyCustomer) OrderCount(ctx context.Context, of *commerce.Customer) (int32, error) {
	return withFault(c.faults, "orderCount", of.ID, func() (int32, error) { return c.CustomerResolver.OrderCount(ctx, of) })
}

func (o faultyOrder) Customer(ctx context.Context, of *commerce.Order) (*commerce.Customer, error) {
	return withFault(o.faults, "customer", of.ID, func() (*commerce.Customer, error) { return o.OrderResolver.Customer(ctx, of) })
}

func (o faultyOrder) Items(ctx context.Context, of *commerce.Order, first *int32, after *string, last *int32, before *string) (*OrderItemConnection, error) {
	return withFaultPage(o.faults, "items", of.ID, func() (*OrderItemConnection, error) {
		return o.OrderResolver.Items(ctx, of, first, after, last, before)
	})
}

func (o faultyOrder) ItemCount(ctx context.Context, of *commerce.Order) (int32, error) {
	return withFault(o.faults, "itemCount", of.ID, func() (int32, error) { return o.OrderResolver.ItemCount(ctx, of) })
}

func (i faultyItem) Product(ctx context.Context, of *commerce.LineItem) (*commerce.Product, error) {
	return withFault(i.faults, "product", of.SKU, func() (*commerce.Product, error) { return i.OrderItemResolver.Product(ctx, of) })
}

func (v faultyEvent) Note(ctx context.Context, of *commerce.Event) (*string, error) {
	return withFault(v.faults, "note", of.ID, func() (*string, error) { return v.OrderEventResolver.Note(ctx, of) })
}

// Faults of resolvers have the same effects as with the oracle: null in non-null positions, errors
// and panics.
func TestFaultsMatchOracle(t *testing.T) {
	f, clock := &faults{}, &manualClock{}
	pair := newExecutorPair(t, Options{Rates: clock.rates(1<<31-1, 1), Limits: document.Limits{Cost: 1 << 30, Aliases: 1 << 20}}, func(r *Resolver) ResolverRoot { return faultyRoot{r, f} })
	seen := map[string]bool{}
	queries := []string{
		`{ a: customers { nodes { id orders { nodes { id customer { name } items { nodes { productId product { name } } } itemCount } } orderCount } } b: customers { edges { cursor node { orders { edges { node { id } } pageInfo { endCursor } } } } } }`,
		`{ a: order(id: "01HVMK3P2Q0000000000000001") { id timeline { nodes { type note } } items { edges { node { product { sku } } } } } b: order(id: "01HVNR4Q3R0000000000000002") { customer { orders(first: 2) { nodes { itemCount } } } } }`,
	}
	results := []string{"a resolver's panic", errOfResolver.Error(), nullElement, "is no good", "not today", "data null"}
	compare := func(t rapid.TB, query string) {
		got := pair.compare(t, Request{Query: query})
		for _, result := range results {
			seen[result] = seen[result] || strings.Contains(got, result)
		}
	}
	// These queries meet each fault. Random queries can miss one.
	for salt := range uint32(20) {
		f.salt, f.modulus = salt, 6
		for _, query := range queries {
			compare(t, query)
		}
	}
	for _, result := range results {
		if !seen[result] {
			t.Errorf("no random query had the result %q", result)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		f.salt, f.modulus = rapid.Uint32().Draw(rt, "salt"), rapid.SampledFrom([]uint32{6, 20, 100}).Draw(rt, "most")
		compare(rt, rapid.SampledFrom(append(queries, conditions(rt, "query($yes: Boolean = true, $no: Boolean = false) "+drawSelections(rt, parsedSchema.Query, 4)))).Draw(rt, "query"))
	})
}

// Events have the same results as with the oracle, including failing and oversized events.
func TestEventsMatchOracle(t *testing.T) {
	f, clock := &faults{}, &manualClock{}
	pair := newExecutorPair(t, Options{Rates: clock.rates(1<<31-1, 1), Limits: document.Limits{Cost: 1 << 30, Aliases: 1 << 20}}, func(r *Resolver) ResolverRoot { return faultyRoot{r, f} })
	event := &commerce.Event{ID: "01HVMK3P2Q0000000000000003", Type: commerce.EventPlaced, Actor: "ann"}
	rapid.Check(t, func(rt *rapid.T) {
		f.salt, f.modulus = rapid.Uint32().Draw(rt, "salt"), rapid.SampledFrom([]uint32{6, 20, 1 << 30}).Draw(rt, "most")
		query := "subscription($yes: Boolean = true, $no: Boolean = false) { u: orderStatusChanged " + conditions(rt, drawSelections(rt, parsedSchema.Types["OrderUpdate"], 3)) + " }"
		change := feed.OrderChange{OrderID: rapid.SampledFrom([]commerce.OrderID{"01HVMK3P2Q0000000000000001", "01HVNR4Q3R0000000000000002", sampleOrder}).Draw(rt, "order")}
		if rapid.Bool().Draw(rt, "event") {
			change.Event = event
		}
		limit := rapid.SampledFrom([]int{30, 100, 1000, 100_000}).Draw(rt, "answer")
		var delivered []string
		for _, run := range []func(context.Context, *admittedOperation, *feed.OrderChange) (*graphql.Response, int){pair.executor.run, pair.oracle.run} {
			pair.executor.limits.Answer, pair.oracle.limits.Answer = limit, limit
			operation, refused := pair.executor.admit(withReportedErrors(t.Context()), Request{Query: query})
			if refused != nil {
				return
			}
			response, spent := run(context.WithValue(withReportedErrors(t.Context()), pairKey{}, pair.executor), operation, &change)
			var lines []string
			for _, err := range response.Errors {
				text, _ := json.Marshal(err)
				lines = append(lines, string(text))
			}
			slices.Sort(lines)
			if len(lines) > 0 {
				spent = 0 // the oracle does not know what the errors have removed
			}
			delivered = append(delivered, fmt.Sprint(string(response.Data), lines, spent))
		}
		if delivered[0] != delivered[1] {
			rt.Fatalf("%s\nexecuted: %s\nexpected from gqlgen: %s", query, delivered[0], delivered[1])
		}
	})
}

// A bounded response counts dropped bytes, and is complete after it was truncated below its limit.
func TestBoundedResponse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := boundedResponse{limit: 100_000}
		var whole []byte
		var places []int
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				places = append(places, len(whole))
			case 1:
				if n := len(places); n > 0 {
					a.truncate(places[n-1])
					whole, places = whole[:places[n-1]], places[:n-1]
				}
			default:
				b := []byte(strings.Repeat(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "letter"), rapid.IntRange(0, 50_000).Draw(rt, "length")))
				a.out, whole = append(a.out, b...), append(whole, b...)
				a.dropExcess()
			}
			if a.offset() != len(whole) || len(a.out) > a.limit+responseSlack {
				rt.Fatalf("the response counts %d bytes and stores %d, want a count of %d", a.offset(), len(a.out), len(whole))
			}
			if len(whole) <= a.limit && (a.dropped > 0 || !bytes.Equal(a.out, whole)) {
				rt.Fatalf("a response of %d bytes is incomplete", len(whole))
			}
		}
	})
}
