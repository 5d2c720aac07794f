package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// twins are two executors that differ in how they execute queries alone: one walks, the other has gqlgen's code do it. log is what each has
// reported, without the stacks of panics, and without the field, as what happens to several is reported of the first.
type twins struct {
	walks, generates *Executor
	mu               sync.Mutex
	log              map[*Executor][]string
}

type twinKey struct{}

func newTwins(t testing.TB, opts Options, root func(*Resolver) ResolverRoot) *twins {
	tw := &twins{log: map[*Executor][]string{}}
	if opts.Store == nil {
		opts.Store = storetest.Sample(t, storetest.Engines()[0].Client(t))
	}
	opts.Cursors = NewCursors([]byte("a key for tests"))
	opts.Report = func(ctx context.Context, err error) {
		tw.mu.Lock()
		defer tw.mu.Unlock()
		e := ctx.Value(twinKey{}).(*Executor)
		line, _, _ := strings.Cut(err.Error(), "\n")
		_, what, _ := strings.Cut(line, ": ")
		tw.log[e] = append(tw.log[e], what)
	}
	tw.walks, tw.generates = NewExecutor(opts), NewExecutor(opts)
	if root != nil {
		for _, e := range []*Executor{tw.walks, tw.generates} {
			resolvers := root(e.resolver)
			e.schema = NewExecutableSchema(Config{Resolvers: resolvers, Schema: e.schema.Schema()}).(*executableSchema)
			e.walkers = newWalkers(resolvers, e.schema)
		}
	}
	tw.generates.walkers = nil
	return tw
}

// told is all that a client and the log see of a request, but the order of errors and how long requests took.
func (tw *twins) told(e *Executor, r Request) string {
	ctx := context.WithValue(WithExplain(context.Background()), twinKey{}, e)
	tw.log[e] = nil
	result := e.Execute(ctx, r)
	var b strings.Builder
	fmt.Fprintf(&b, "outcome %d\ndata %s\n", result.Outcome, result.Data)
	var lines []string
	for _, err := range result.Errors {
		text, _ := json.Marshal(err)
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	fmt.Fprintf(&b, "errors %s\n", strings.Join(lines, "\n       "))
	if cost, ok := result.Extensions["cost"].(costTold); ok {
		cost.Available = 0 // it is what earlier requests have left
		fmt.Fprintf(&b, "cost %+v\n", cost)
	}
	lines = nil
	if explained, ok := result.Extensions["explain"].(explanation); ok {
		for _, r := range explained.Requests {
			r.DurationMs = 0
			lines = append(lines, fmt.Sprintf("%+v", r))
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(&b, "reads %s\n", strings.Join(lines, "\n      "))
	log := slices.Clone(tw.log[e])
	slices.Sort(log)
	fmt.Fprintf(&b, "log %s\n", strings.Join(slices.Compact(log), "\n    "))
	return b.String()
}

// alike answers a request in both ways, and is the answer.
func (tw *twins) alike(t rapid.TB, r Request) string {
	t.Helper()
	walked, generated := tw.told(tw.walks, r), tw.told(tw.generates, r)
	if walked != generated {
		t.Fatalf("%s\n%v\nwalked: %s\nby gqlgen: %s", r.Query, r.Variables, walked, generated)
	}
	return walked
}

// Whatever the query, the walker gives the bytes, the errors, the costs and the reads of gqlgen's code.
func TestAnyQueryIsWalkedAsGqlgenExecutesIt(t *testing.T) {
	clock := &handClock{}
	tw := newTwins(t, Options{Rates: clock.rates(1<<31-1, 1), Limits: Limits{Cost: 1 << 30, Aliases: 1 << 20}}, nil)
	walked := 0
	rapid.Check(t, func(rt *rapid.T) {
		query := "query($yes: Boolean = true, $no: Boolean!) " + conditions(rt, selectionSet(rt, parsedSchema.Query, 4))
		r := Request{Query: query, Variables: map[string]any{"no": false}}
		if operation, _, errs := tw.walks.prepare(t.Context(), r); len(errs) == 0 && tw.walks.walkTree(operation.document, operation.OperationContext) != nil {
			walked++
		}
		limit := rapid.SampledFrom([]int{0, 20, 100, 300, 1000, 5000}).Draw(rt, "answer")
		tw.walks.limits.Answer, tw.generates.limits.Answer = Limits{Answer: limit}.orDefaults().Answer, Limits{Answer: limit}.orDefaults().Answer
		tw.alike(rt, r)
	})
	if walked < 4 { // of 20, where tests are short
		t.Errorf("%d queries were walked", walked)
	}
}

// conditions puts variants in the place of some of a query's names of types: twice, under a condition, and in fragments.
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

// Operations that random queries do not come by.
func TestWalkedOperations(t *testing.T) {
	clock := &handClock{}
	tw := newTwins(t, Options{Rates: clock.rates(1<<31-1, 1)}, nil)
	for _, c := range []struct {
		query     string
		variables map[string]any
		want      string
	}{
		{`{ __typename a: __typename __typename }`, nil, `{"__typename":"Query","a":"Query"}`},
		{`{ customer(id: "cust_01") { ...A ...B name } } fragment A on Customer { name ...B } fragment B on Customer { email }`, nil, `"name":`},
		{`query($c: Boolean!) { customer(id: "cust_01") { ...A @skip(if: $c) } } fragment A on Customer { name }`, map[string]any{"c": true}, `{"customer":{}}`},
		{`query($n: Int) { customers(first: $n) { nodes { id orders(first: $n) { pageInfo { hasNextPage } } } } }`, map[string]any{"n": json.Number("2")}, `"hasNextPage":`},
		{`query($n: Int) { customers { nodes { id orders(first: $n) { nodes { id } } } } }`, map[string]any{"n": json.Number("0")}, `a page has 1 to 100`},
		{`{ customers { nodes { id orders(after: "x") { nodes { id } } } } }`, nil, `is no cursor`},
		{`query($d: DateRange) { employees(hired: $d) { nodes { id } } }`, map[string]any{"d": map[string]any{"from": "yesterday"}}, `a date has the form`},
		{`{ employees(hired: {from: "tomorrow"}) { nodes { id } } }`, nil, `a date has the form`},
		{`query($p: TimeRange) { customer(id: "cust_01") { orders(placed: $p) { nodes { id } } } }`, map[string]any{"p": map[string]any{"from": "now"}}, `a date with a time has the form`},
		{`query($r: [_Any!]!) { _entities(representations: $r) { __typename ... on Customer { __typename name } ... on Order { id } } }`,
			map[string]any{"r": []any{map[string]any{"__typename": "Customer", "id": "cust_01"}, map[string]any{"__typename": "Order", "id": "x"}, "y", map[string]any{"__typename": "Customer", "id": "nobody"}}}, `"__typename":"Customer","name"`},
		{`{ _service { sdl } }`, nil, `@key`},
		{`{ __type(name: "Order") { name } customer(id: "cust_01") { name } }`, nil, `"Order"`},
		{`mutation { updateCustomer(input: {id: "nobody", name: "A"}) { userErrors { code } } }`, nil, `NOT_FOUND`},
	} {
		if got := tw.alike(t, Request{Query: c.query, Variables: c.variables}); !strings.Contains(got, c.want) {
			t.Errorf("%s\nhas no %s:\n%s", c.query, c.want, got)
		}
	}
}

// Trees are made once for all requests that select the same, and no more of them are kept than their document has room for.
func TestTreesAreKeptWithTheirDocument(t *testing.T) {
	e := executor(t, Options{Limits: Limits{Cost: 1 << 30, Aliases: 1 << 20, Depth: 100}})
	tree := func(query, operation string, variables map[string]any) (*walkTree, *document) {
		o, _, errs := e.prepare(t.Context(), Request{Query: query, OperationName: operation, Variables: variables})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return e.walkTree(o.document, o.OperationContext), o.document
	}
	query := `query A($c: Boolean!, $n: Int) { customers(first: $n) { nodes { id name @include(if: $c) } } } query B { customer(id: "cust_01") { id } }`
	with, _ := tree(query, "A", map[string]any{"c": true, "n": json.Number("1")})
	without, _ := tree(query, "A", map[string]any{"c": false})
	again, _ := tree(query, "A", map[string]any{"c": true})
	if with == nil || with != again || with == without || len(with.nodes()) != len(without.nodes())+1 {
		t.Errorf("with the field %p, again %p, without %p", with, again, without)
	}
	fragments := `query A { ...F0 } query B { ...F0 }`
	for i := range 4 {
		fragments += fmt.Sprintf(" fragment F%d on Query { a%d: customer(id: 1) { orders { nodes { customer { ...G%d } } } } }", i, i, i)
		fragments += fmt.Sprintf(" fragment G%d on Customer { name a: order(id: 1) { customer { ...G%d } } b: order(id: 1) { customer { ...G%d } } }", i, i+1, i+1)
	}
	fragments += ` fragment G4 on Customer { name }`
	fragments = strings.Replace(fragments, "{ ...F0 }", "{ ...F0 ...F1 ...F2 ...F3 }", 2)
	large, document := tree(fragments, "A", nil)
	room := document.room.left.Load()
	if other, _ := tree(fragments, "A", nil); other == large || int64(large.bytes) <= room {
		t.Errorf("a tree of %d bytes is kept with a document that has room for %d", large.bytes, room)
	}
	if left := document.room.left.Load(); left != room {
		t.Errorf("there is room for %d bytes, of %d", left, room)
	}
}

// What an operation selects is not collected where it is very much: of what does not exist, that would be work for nothing.
func TestVeryLargeOperationsAreNotWalked(t *testing.T) {
	tw := newTwins(t, Options{Limits: Limits{Cost: 1 << 30}}, nil)
	text := "{"
	for i := range 30 {
		text += fmt.Sprintf(` c%d: customer(id: %q) { ...C0 }`, i, []string{"nobody", "cust_01"}[i/29])
	}
	text += " }"
	for i := range 3 {
		text += fmt.Sprintf(` fragment C%d on Customer { id name orders(first: 1) { nodes { ...O%d } edges { node { ...O%d } } } order(id: "x") { ...O%d } } fragment O%d on Order { id customer { ...C%d } }`, i, i, i, i, i, i+1)
	}
	r := Request{Query: text + " fragment C3 on Customer { id email }"}
	operation, _, errs := tw.walks.prepare(t.Context(), r)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if tree := tw.walks.walkTree(operation.document, operation.OperationContext); tree != nil {
		t.Errorf("there is a tree of %d bytes", tree.bytes)
	}
	if got := tw.alike(t, r); !strings.Contains(got, `"email":`) {
		t.Error(got)
	}
}

// nodes are the fields of customers' nodes.
func (t *walkTree) nodes() []walkedField { return t.root.fields[0].set.fields[0].set.fields }

// faults makes resolvers fail: which, of which objects and how depends on the salt alone, so that both ways of executing meet the same.
type faults struct {
	salt uint32
	// most is one in how many calls fails.
	most uint32
}

var errOfResolver = errors.New("a resolver's own words")

func faulty[T any](f *faults, field string, of any, value func() (T, error)) (T, error) {
	h := fnv.New32a()
	fmt.Fprint(h, f.salt, field, of)
	var none T
	switch n := h.Sum32() % f.most; n {
	case 0:
		return none, errOfResolver
	case 1:
		return none, commerce.For("after", commerce.Invalid("is no good"))
	case 2:
		return none, nil
	case 3:
		panic("a resolver's panic")
	case 4:
		return none, refusedAt(nil, CodeForbidden, "not today")
	}
	return value()
}

// faultyPage is faulty for pages, which can have a record that is nil as well.
func faultyPage[T any](f *faults, field string, of any, page func() (*Connection[*T], error)) (*Connection[*T], error) {
	return faulty(f, field, of, func() (*Connection[*T], error) {
		c, err := page()
		_, bad := faulty(f, field+" nodes", of, func() (int, error) { return 0, nil })
		if err != nil || bad == nil || len(c.slice.Items) == 0 {
			return c, err
		}
		c.slice.Items = slices.Clone(c.slice.Items)
		c.slice.Items[len(c.slice.Items)/2] = nil
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

func (q faultyQuery) Customers(ctx context.Context, first *int32, after *string, last *int32, before *string) (*CustomerConnection, error) {
	return faultyPage(q.faults, "customers", nil, func() (*CustomerConnection, error) { return q.QueryResolver.Customers(ctx, first, after, last, before) })
}

func (q faultyQuery) Order(ctx context.Context, id string) (*commerce.Order, error) {
	return faulty(q.faults, "order", id, func() (*commerce.Order, error) { return q.QueryResolver.Order(ctx, id) })
}

func (c faultyCustomer) Orders(ctx context.Context, of *commerce.Customer, placed *commerce.TimeRange, first *int32, after *string, last *int32, before *string) (*OrderConnection, error) {
	return faultyPage(c.faults, "orders", of.ID, func() (*OrderConnection, error) {
		return c.CustomerResolver.Orders(ctx, of, placed, first, after, last, before)
	})
}

func (c faultyCustomer) OrderCount(ctx context.Context, of *commerce.Customer) (int32, error) {
	return faulty(c.faults, "orderCount", of.ID, func() (int32, error) { return c.CustomerResolver.OrderCount(ctx, of) })
}

func (o faultyOrder) Customer(ctx context.Context, of *commerce.Order) (*commerce.Customer, error) {
	return faulty(o.faults, "customer", of.ID, func() (*commerce.Customer, error) { return o.OrderResolver.Customer(ctx, of) })
}

func (o faultyOrder) Items(ctx context.Context, of *commerce.Order, first *int32, after *string, last *int32, before *string) (*OrderItemConnection, error) {
	return faultyPage(o.faults, "items", of.ID, func() (*OrderItemConnection, error) {
		return o.OrderResolver.Items(ctx, of, first, after, last, before)
	})
}

func (o faultyOrder) ItemCount(ctx context.Context, of *commerce.Order) (int32, error) {
	return faulty(o.faults, "itemCount", of.ID, func() (int32, error) { return o.OrderResolver.ItemCount(ctx, of) })
}

func (i faultyItem) Product(ctx context.Context, of *commerce.LineItem) (*commerce.Product, error) {
	return faulty(i.faults, "product", of.SKU, func() (*commerce.Product, error) { return i.OrderItemResolver.Product(ctx, of) })
}

func (v faultyEvent) Note(ctx context.Context, of *commerce.Event) (*string, error) {
	return faulty(v.faults, "note", of.ID, func() (*string, error) { return v.OrderEventResolver.Note(ctx, of) })
}

// Whatever resolvers do, null where none may be, errors and panics, it has the same consequences.
func TestFaultsAreWalkedAsGqlgenExecutesThem(t *testing.T) {
	f, clock := &faults{}, &handClock{}
	tw := newTwins(t, Options{Rates: clock.rates(1<<31-1, 1), Limits: Limits{Cost: 1 << 30, Aliases: 1 << 20}}, func(r *Resolver) ResolverRoot { return faultyRoot{r, f} })
	seen := map[string]bool{}
	queries := []string{
		`{ a: customers { nodes { id orders { nodes { id customer { name } items { nodes { productId product { name } } } itemCount } } orderCount } } b: customers { edges { cursor node { orders { edges { node { id } } pageInfo { endCursor } } } } } }`,
		`{ a: order(id: "01HVMK3P2Q0000000000000001") { id timeline { nodes { type note } } items { edges { node { product { sku } } } } } b: order(id: "01HVNR4Q3R0000000000000002") { customer { orders(first: 2) { nodes { itemCount } } } } }`,
	}
	rapid.Check(t, func(rt *rapid.T) {
		f.salt, f.most = rapid.Uint32().Draw(rt, "salt"), rapid.SampledFrom([]uint32{6, 20, 100}).Draw(rt, "most")
		query := rapid.SampledFrom(append(queries, conditions(rt, "query($yes: Boolean = true, $no: Boolean = false) "+selectionSet(rt, parsedSchema.Query, 4)))).Draw(rt, "query")
		got := tw.alike(rt, Request{Query: query})
		for _, what := range []string{"a resolver's panic", errOfResolver.Error(), nullElement, "is no good", "not today", "data null"} {
			seen[what] = seen[what] || strings.Contains(got, what)
		}
	})
	for _, what := range []string{"a resolver's panic", errOfResolver.Error(), nullElement, "is no good", "not today", "data null"} {
		if !seen[what] && !testing.Short() { // in 20 queries chance may leave one out
			t.Errorf("no query met %q", what)
		}
	}
}

// Events are told alike, also those that cannot be, and those that are too long.
func TestEventsAreWalkedAsGqlgenExecutesThem(t *testing.T) {
	f, clock := &faults{}, &handClock{}
	tw := newTwins(t, Options{Rates: clock.rates(1<<31-1, 1), Limits: Limits{Cost: 1 << 30, Aliases: 1 << 20}}, func(r *Resolver) ResolverRoot { return faultyRoot{r, f} })
	event := &commerce.Event{ID: "01HVMK3P2Q0000000000000003", Type: commerce.EventPlaced, Actor: "ann"}
	rapid.Check(t, func(rt *rapid.T) {
		f.salt, f.most = rapid.Uint32().Draw(rt, "salt"), rapid.SampledFrom([]uint32{6, 20, 1 << 30}).Draw(rt, "most")
		query := "subscription($yes: Boolean = true, $no: Boolean = false) { u: orderStatusChanged " + conditions(rt, selectionSet(rt, parsedSchema.Types["OrderUpdate"], 3)) + " }"
		change := dynamo.OrderChange{OrderID: rapid.SampledFrom([]commerce.OrderID{"01HVMK3P2Q0000000000000001", "01HVNR4Q3R0000000000000002", sampleOrder}).Draw(rt, "order")}
		if rapid.Bool().Draw(rt, "event") {
			change.Event = event
		}
		limit := rapid.SampledFrom([]int{30, 100, 1000, 100_000}).Draw(rt, "answer")
		var told []string
		for _, e := range []*Executor{tw.walks, tw.generates} {
			e.limits.Answer = limit
			operation, refused := e.admit(withReported(t.Context()), Request{Query: query})
			if refused != nil {
				return
			}
			s := &Stream{executor: e, operation: operation, changes: &scripted{changes: []dynamo.OrderChange{change}}}
			e.followed.take(operation.OperationContext)
			result, _ := s.Next(context.WithValue(t.Context(), twinKey{}, e))
			var lines []string
			for _, err := range result.Errors {
				text, _ := json.Marshal(err)
				lines = append(lines, string(text))
			}
			slices.Sort(lines)
			told = append(told, fmt.Sprint(string(result.Data), lines, toldOf(rt, result).Actual))
			s.Close()
		}
		if told[0] != told[1] {
			rt.Fatalf("%s\nwalked: %s\nby gqlgen: %s", query, told[0], told[1])
		}
	})
}

// What is dropped of an answer is measured all the same, and what is gone back behind is whole.
func TestAnswersKeepNoMoreThanTheirLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := boundedAnswer{most: 100_000}
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
				a.bound()
			}
			if a.offset() != len(whole) || len(a.out) > a.most+answerSlack {
				rt.Fatalf("%d bytes measured, %d kept, of %d", a.offset(), len(a.out), len(whole))
			}
			if len(whole) <= a.most && (a.dropped > 0 || !bytes.Equal(a.out, whole)) {
				rt.Fatalf("an answer of %d bytes is not whole", len(whole))
			}
		}
	})
}
