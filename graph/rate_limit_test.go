package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// newRateLimitedExecutor returns an executor with rate limits, and its clock.
func newRateLimitedExecutor(t *testing.T, burst, restore int, opts Options) (*Executor, *manualClock) {
	t.Helper()
	clock := &manualClock{}
	opts.Rates = clock.rates(burst, restore)
	return executor(t, opts), clock
}

// costExtension returns extensions.cost of a result.
func costExtension(t rapid.TB, result Result) rate.CostExtension {
	t.Helper()
	cost, ok := result.Extensions["cost"].(rate.CostExtension)
	if !ok {
		t.Fatalf("the response has no cost: %v, %v", result.Extensions, result.Errors)
	}
	return cost
}

// The actual cost of an operation consists of the values in its response, its pages and its
// mutations. The rest of the reserved cost is refunded.
func TestActualCosts(t *testing.T) {
	for _, c := range []struct {
		query  string
		actual int
	}{
		{`{ __typename }`, 1},
		{`{ a: __typename ...F } fragment F on Query { b: __typename }`, 2},
		{`{ __typename @skip(if: true) }`, rate.MinRequestCost},
		{`{ customer(id: "nobody") { name email } }`, 1},
		{`{ customer(id: "nobody") { name email orders { nodes { id } } } }`, 2}, // the list is read together with the record
		{`{ customer(id: "cust_01") { name email } }`, 3},
		{`{ customer(id: "cust_01") { name name @include(if: true) email @skip(if: true) } }`, 2},
		{`{ customer(id: "cust_01") { phoneNumbers } }`, 2},
		{`{ order(id: "01HVNR4Q3R0000000000000002") { availableTransitions } }`, 2 + 2},
		{`{ customer(id: "cust_01") { orders(first: 1) { nodes { id } pageInfo { hasNextPage } } } }`, 1 + 1 + 10 + 1 + 2 + 2},
		{`{ customers(first: 0) { nodes { id } } }`, 1 + 10},
		{`mutation { confirmOrder(input: {orderId: "01HVNR4Q3R0000000000000002"}) { order { status } userErrors { code } } }`, 10 + 12 + 1 + 2 + 1},
		{`{ quote(input: {items: [{sku: "prod_100", quantity: 1}, {sku: "prod_101", quantity: 1}]}) { __typename } }`, 2 + 2},
		{`mutation { a: __typename confirmOrder(input: {orderId: "nothing"}) { order { status } userErrors { code } } }`, 1 + 10 + 1 + 1 + 1 + 2},
		{`{ _entities(representations: [{__typename: "Customer", id: "cust_01"}, {__typename: "Customer", id: "x"}]) { ... on Customer { name } } }`, 1 + 2 + 1},
		{`{ __type(name: "OrderStatus") { name enumValues { name } } }`, 1 + 1 + 1 + 5*2},
	} {
		e, _ := newRateLimitedExecutor(t, 10_000, 1, Options{Limits: document.Limits{Cost: 10_000}})
		result := e.Execute(t.Context(), Request{Query: c.query})
		want := rate.CostExtension{Requested: max(costOf(t, e, c.query, nil), 1), Actual: c.actual, Available: 10_000 - c.actual, Maximum: 10_000, RestoreRate: 1}
		if got := costExtension(t, result); result.Outcome != Executed || got != want {
			t.Errorf("%s\ncosts %+v, want %+v (%s, %v)", c.query, got, want, result.Data, result.Errors)
		}
	}
}

// A large response is charged by its bytes, even beyond the reserved cost, as long as the caller
// has points.
func TestLargeResponsesCostTheirBytes(t *testing.T) {
	e, _ := newRateLimitedExecutor(t, 300, 1, Options{Limits: document.Limits{Cost: 10_000}})
	sdl := Request{Query: `{ _service { sdl } }`}
	first := e.Execute(t.Context(), sdl)
	bytes := len(first.Data) / operation.BytesPerPoint
	if got, want := costExtension(t, first), (rate.CostExtension{Requested: 2, Actual: bytes, Available: 300 - bytes, Maximum: 300, RestoreRate: 1}); bytes < 151 || got != want {
		t.Fatalf("%d bytes cost %+v, want %+v", len(first.Data), got, want)
	}
	if got := costExtension(t, e.Execute(t.Context(), sdl)); got.Actual != bytes || got.Available != 0 {
		t.Errorf("with %d points left, the cost is %+v", 300-bytes, got)
	}
}

// An error that removes a part of the response does not make the request cheaper.
func TestRemovedPartsOfTheResponseCost(t *testing.T) {
	const invalid = ` customers(after: "invalid") { nodes { id } }`
	for name, query := range map[string]string{
		"bytes":  `{ a: _service { sdl } b: _service { sdl }%s }`,
		"values": `{ a: customers { nodes { id name email orders { nodes { id status } } } }%s }`,
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newRateLimitedExecutor(t, 10_000, 1, Options{Limits: document.Limits{Cost: 10_000}})
			whole := e.Execute(t.Context(), Request{Query: fmt.Sprintf(query, "")})
			removed := e.Execute(t.Context(), Request{Query: fmt.Sprintf(query, invalid)})
			if string(removed.Data) != "null" || len(removed.Errors) != 1 || len(whole.Errors) > 0 {
				t.Fatalf("the data is %.100s (%v, %v)", removed.Data, removed.Errors, whole.Errors)
			}
			if got, least := costExtension(t, removed).Actual, costExtension(t, whole).Actual; least < 40 || got < least {
				t.Errorf("a response of %d points costs %d points if an error removes it", least, got)
			}
		})
	}
}

// Parsing, validating and preparing a document costs points, whether the document is valid or not.
// A cached document costs nothing. The points are part of the operation's cost.
func TestDocumentWorkCosts(t *testing.T) {
	// 725 nodes are parsed. The nodes of C are visited 61 times: below the operation, A, B and by
	// itself. A tree is built for each combination of conditions and visits every fragment once.
	nested := func(field string, yes bool) Request {
		return Request{
			Query:     `query($yes: Boolean!) {customer(id: "x") {...A ...B @include(if: $yes)}}` + strings.ReplaceAll(nestedFragments("AB", 5), "Query", "Customer") + `fragment C on Customer{` + strings.Repeat(field+" ", 700) + `}`,
			Variables: map[string]any{"yes": yes},
		}
	}
	for _, c := range []struct {
		name     string
		requests []Request
		costs    []int
	}{
		{"small", []Request{{Query: `{ __typename }`}, {Query: `{ __typename }`}}, []int{1, 1}},
		{"refused", []Request{nested("nonsense", true), nested("nonsense", true)}, []int{1 + 14 + 171, 1 + 14 + 171}},
		{"accepted", []Request{nested("name", true), nested("name", true), nested("name", false), nested("name", true)}, []int{1 + 14 + 173, 1, 1 + 2, 1}},
		{"syntax", []Request{{Query: `{` + strings.Repeat(" a", 1000)}}, []int{1 + 1000/operation.ParsedNodesPerPoint}},
		{"no operation", []Request{{Query: `fragment F on Query {` + strings.Repeat("a ", 400) + `}`}}, []int{1 + 411/operation.ParsedNodesPerPoint}},
	} {
		e, _ := newRateLimitedExecutor(t, 10_000, 1, Options{Limits: document.Limits{Cost: 10_000}})
		for i, r := range c.requests {
			before := e.rates.Available("anonymous")
			e.Execute(t.Context(), r)
			if paid := before - e.rates.Available("anonymous"); paid != c.costs[i] {
				t.Errorf("%s, request %d costs %d, want %d", c.name, i, paid, c.costs[i])
			}
		}
	}
}

// For any query, the charged cost is at least the number of values in the response and at most the
// reserved cost. extensions.cost reports the points that the bucket lost.
func TestNothingCostsMoreThanItAskedFor(t *testing.T) {
	e, _ := newRateLimitedExecutor(t, 1<<31-1, 1, Options{Limits: document.Limits{Cost: 1 << 30, Aliases: 1 << 20, IntrospectionDepth: 100, Depth: 100, Tokens: 1 << 20}})
	largest := 0
	rapid.Check(t, func(rt *rapid.T) {
		query := drawSelections(rt, parsedSchema.Query, 4)
		if rapid.IntRange(0, 3).Draw(rt, "introspection") == 0 {
			query = "{__schema" + drawSelections(rt, parsedSchema.Types["__Schema"], 4) + "}"
		}
		admitted, _, errs := e.prepare(context.Background(), Request{Query: query})
		if len(errs) > 0 {
			return
		}
		before := e.rates.Available("p")
		paid, _ := e.rates.Reserve("p", admitted.cost, 0)
		response, spent := e.run(withReportedErrors(t.Context()), admitted, nil)
		var data any
		if err := json.Unmarshal(response.Data, &data); err != nil {
			rt.Fatalf("%s: %v", query, err)
		}
		held := values(data) - 1
		largest = max(largest, held)
		whole, err := json.Marshal(response) // errors cost points, too
		if err != nil {
			rt.Fatal(err)
		}
		written := len(whole)
		if len(response.Errors) > 0 {
			written += e.limits.Answer // for what the errors have removed
		}
		if held > spent || spent > max(admitted.cost, written/operation.BytesPerPoint) {
			rt.Fatalf("%s has the maximum cost %d, %d values in its response and the actual cost %d", query, admitted.cost, held, spent)
		}
		paid.Settle(spent, response)
		if lost := before - e.rates.Available("p"); lost != max(spent, rate.MinRequestCost) {
			rt.Fatalf("%s has the actual cost %d, but %d points were charged", query, spent, lost)
		}
	})
	if largest < 50 && longtest.Enabled() {
		t.Errorf("the largest response has %d values", largest)
	}
}

// An operation without enough points is refused with the time until it can run, and is executed
// after that time. A request that is refused for other reasons costs one point.
func TestRateLimited(t *testing.T) {
	e, clock := newRateLimitedExecutor(t, 200, 20, Options{Limits: document.Limits{Cost: 200}})
	large := Request{Query: `query($n: Int) { customers(first: $n) { nodes { id name email } } }`, Variables: map[string]any{"n": json.Number("47")}} // costs 200
	if got := costExtension(t, e.Execute(t.Context(), large)); got.Requested != 200 || got.Actual > 100 {
		t.Fatalf("the cost of the first request is %+v", got)
	}
	left := e.rates.Available("anonymous")
	refused := e.Execute(t.Context(), large)
	if refused.Outcome != RateLimited || refused.Data != nil || len(refused.Errors) != 1 {
		t.Fatalf("the second request has the outcome %d, errors %v, want a rate limit error", refused.Outcome, refused.Errors)
	}
	missing := time.Duration(200-left+rate.MinRequestCost) * time.Second / 20
	err, told := refused.Errors[0], rate.CostExtension{Requested: 200, Actual: rate.MinRequestCost, Available: left - rate.MinRequestCost, Maximum: 200, RestoreRate: 20}
	if refused.RetryAfter != missing || err.Extensions["code"] != errcode.RateLimited || err.Extensions["retryAfter"] != missing.Seconds() || err.Extensions["cost"] != told || costExtension(t, refused) != told ||
		!strings.Contains(err.Message, fmt.Sprintf("retry in %v s", missing.Seconds())) || len(err.Locations) != 1 {
		t.Errorf("refused with %v, %v, after %v; want %v", err, err.Extensions, refused.RetryAfter, missing)
	}
	clock.forward(refused.RetryAfter)
	if again := e.Execute(t.Context(), large); again.Outcome != Executed {
		t.Errorf("after the wait: %v", again.Errors)
	}
	clock.forward(time.Hour)
	for _, query := range []string{`{`, `{ nonsense }`, `query($n: Int) { customers(first: $n) { nodes { id name email phoneNumbers } } }`} {
		e.Execute(t.Context(), Request{Query: query})
	}
	if left := e.rates.Available("anonymous"); left != 200-3*rate.MinRequestCost {
		t.Errorf("%d points are left after three refused requests", left)
	}
	// Without points, the document is not even parsed.
	e.rates.Take("anonymous", e.rates.Available("anonymous"), 0)
	if got := e.Execute(t.Context(), Request{Query: `{`}); got.Outcome != RateLimited || got.RetryAfter != 50*time.Millisecond || costExtension(t, got) != (rate.CostExtension{Requested: rate.MinRequestCost, Actual: 0, Available: 0, Maximum: 200, RestoreRate: 20}) {
		t.Errorf("without points, the outcome is %d, retry after %v, extensions %v", got.Outcome, got.RetryAfter, got.Extensions)
	}
}

// An operation that costs more than the bucket's size gets an error without a waiting time.
func TestWhatNeverFitsIsTooExpensive(t *testing.T) {
	e, _ := newRateLimitedExecutor(t, 50, 1, Options{})
	got := e.Execute(t.Context(), Request{Query: `{ customers { nodes { id name } } }`})
	if got.Outcome != Refused || got.Errors[0].Extensions["code"] != document.LimitCodes.Cost || got.Extensions != nil {
		t.Errorf("outcome %d, %v, %v", got.Outcome, got.Errors, got.Extensions)
	}
}

// Each principal has its own bucket.
func TestPrincipalsPayForThemselves(t *testing.T) {
	e, _ := newRateLimitedExecutor(t, 20, 1, Options{Authenticated: true})
	as := func(id string) Outcome {
		ctx := WithPrincipal(t.Context(), access.Principal{ID: id, Role: access.RoleAdmin})
		return e.Execute(ctx, Request{Query: `{ ` + repeatNumbered(15, "a%d: __typename ") + `}`}).Outcome
	}
	for i, want := range []Outcome{Executed, RateLimited, RateLimited} {
		if got := as("ann"); got != want {
			t.Errorf("request %d: outcome %d, want %d", i, got, want)
		}
	}
	if got := as("bob"); got != Executed {
		t.Errorf("another principal: outcome %d", got)
	}
}

// An operation that is refused because of the concurrent cost costs one point.
func TestWhatIsNotDoneIsGivenBack(t *testing.T) {
	e, _ := newRateLimitedExecutor(t, 100_000, 1, Options{Admission: admission.New(admission.Sizes{admission.PoolOperationCost: 5000})})
	large := Request{Query: `{ orders(first: 100) { nodes { ` + repeatNumbered(30, "a%d: id ") + ` } } }`}
	others, cost := admission.Caller{Key: "others"}, e.pools[admission.PoolOperationCost]
	if refused := cost.TryAcquire(others, 4000); refused != nil {
		t.Fatal(refused)
	}
	if got := e.Execute(t.Context(), large); got.Outcome != Overloaded {
		t.Errorf("outcome %d", got.Outcome)
	}
	cost.Release(others, 4000)
	if left := e.rates.Available("anonymous"); left != 100_000-rate.MinRequestCost {
		t.Errorf("%d points are left", left)
	}
}

// Without rate limits, responses contain no cost.
func TestNoRateLimits(t *testing.T) {
	e := executor(t, Options{})
	if got := e.Execute(t.Context(), Request{Query: `{ customers { nodes { id } } }`}); got.Extensions["cost"] != nil || got.Outcome != Executed {
		t.Errorf("outcome %d, extensions %v", got.Outcome, got.Extensions)
	}
	if p, err := e.rates.Wait(t.Context(), "p", 10); p != nil || err != nil {
		t.Errorf("an event costs %v, %v", p, err)
	}
}

// Each event reserves its maximum cost and gets a refund. An event without enough points waits. No
// event is skipped.
func TestEventCosts(t *testing.T) {
	e, clock := newRateLimitedExecutor(t, 60, 10, Options{})
	from := &scriptedSource{}
	for range 8 {
		from.changes = append(from.changes, feed.OrderChange{OrderID: sampleOrder})
	}
	// The update costs 4, the items cost 12 and 20 times 2. The order does not exist.
	s := newScriptedStream(t, e, `subscription { orderStatusChanged { orderId order { items { nodes { name } } } } }`, from)
	defer s.Close()
	started := e.rates.Available("anonymous")
	if started != 60-55 {
		t.Errorf("%d points are left at the start", started)
	}
	for i := range 8 {
		got, more := s.Next(t.Context())
		if !more || len(got.Errors) > 0 {
			t.Fatalf("event %d: more %v, %v", i, more, got.Errors)
		}
		if told := costExtension(t, got); told.Requested != 55 || told.Actual != 3 || told.Available != 60-55+50-3 && told.Available != 55-3 {
			t.Errorf("event %d: %+v", i, told)
		}
	}
	if clock.slept != 8 {
		t.Errorf("slept %d times, want once for each", clock.slept)
	}
}

// A subscription that fails to start costs one point. A subscription without enough points is
// refused like other operations.
func TestRejectedSubscriptionCosts(t *testing.T) {
	e, _ := newRateLimitedExecutor(t, 60, 10, Options{})
	stream, got := e.Start(t.Context(), Request{Query: `subscription { orderStatusChanged { orderId order { items { nodes { name } } } } }`})
	if stream != nil || len(got.Errors) == 0 || got.Errors[0].Extensions["code"] != errcode.SubscriptionsOff || e.rates.Available("anonymous") != 60-rate.MinRequestCost {
		t.Errorf("a subscription without a change feed has the errors %v and leaves %d points", got.Errors, e.rates.Available("anonymous"))
	}
	e.rates.Take("anonymous", 30, 0)
	stream, got = e.Start(t.Context(), Request{Query: `subscription { orderStatusChanged { orderId order { items { nodes { name } } } } }`})
	if stream != nil || got.Outcome != RateLimited || costExtension(t, got).Requested != 55 {
		t.Errorf("without points: outcome %d, %v", got.Outcome, got.Errors)
	}
}

// A subscription that reads missed events in several pages pays for each page. Only the first page is
// part of the subscription's start.
func TestMissedEventPageCosts(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store, clock := storetest.SampleStore(t, db), &manualClock{}
	e := NewExecutor(Options{
		Store: store, Feed: storetest.OpenFeed(t, db, store, feed.Options{}), Cursors: paging.NewCursorSigner([]byte("a key for tests")), Rates: clock.rates(1000, 1),
		Report: func(_ context.Context, err error) { t.Error(err) },
	})
	caller := change.Caller{Name: "tester"}
	order, err := store.PlaceOrder(t.Context(), caller, commerce.OrderRequest{CustomerID: "cust_01", Lines: []commerce.OrderLine{{SKU: "prod_100", Quantity: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	const missed = 120
	for i := range missed {
		if _, err := store.SetOrderItem(t.Context(), caller, commerce.OrderItemChange{OrderID: order.ID, SKU: "prod_100", Quantity: 1 + (i+1)%2}); err != nil {
			t.Fatal(err)
		}
	}
	timeline, err := dynamo.ReadPage(t.Context(), store, model.Timeline, dynamo.ListRequest{PartitionValue: string(order.ID), Page: dynamo.PageRequest{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	stream, result := e.Start(t.Context(), Request{Query: fmt.Sprintf("subscription { orderUpdated(id: %q, after: %q) { id } }", order.ID, timeline.Items[0].ID)})
	if stream == nil {
		t.Fatal(result.Errors)
	}
	defer stream.Close()
	var paid []int
	for range missed {
		before := e.rates.Available(access.AnonymousAdmin().ID)
		if result, ok := stream.Next(t.Context()); !ok || len(result.Errors) > 0 {
			t.Fatal(result.Errors)
		}
		paid = append(paid, before-e.rates.Available(access.AnonymousAdmin().ID))
	}
	pages := 0
	for _, points := range paid {
		switch points {
		case paid[0]:
		case paid[0] + operation.ListCost:
			pages++
		default:
			t.Errorf("an event cost %d points", points)
		}
	}
	if pages != 1 {
		t.Errorf("%d events paid for another page, want 1: %v", pages, paid)
	}
}

// A subscription's start pays for reading missed events, even if "after" is not an event. Each of
// these starts reads the orders of a customer and their timelines.
func TestMissedEventCosts(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store, clock := storetest.SampleStore(t, db), &manualClock{}
	e := NewExecutor(Options{
		Store: store, Feed: storetest.OpenFeed(t, db, store, feed.Options{}), Cursors: paging.NewCursorSigner([]byte("a key for tests")), Rates: clock.rates(1000, 1),
		Report: func(_ context.Context, err error) { t.Error(err) },
	})
	var of []*commerce.Order
	for range 5 {
		order, err := store.PlaceOrder(t.Context(), change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "cust_01", Lines: []commerce.OrderLine{{SKU: "prod_100", Quantity: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, order)
	}
	start := func(arguments string) (started bool, paid int) {
		before := e.rates.Available(access.AnonymousAdmin().ID)
		stream, result := e.Start(t.Context(), Request{Query: `subscription { customerOrders(customerId: "cust_01"` + arguments + `) { id } }`})
		if stream != nil {
			stream.Close()
		} else if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != errcode.BadUserInput {
			t.Fatalf("%s: %v", arguments, result.Errors)
		}
		return stream != nil, before - e.rates.Available(access.AnonymousAdmin().ID)
	}
	timeline, err := dynamo.ReadPage(t.Context(), store, model.Timeline, dynamo.ListRequest{PartitionValue: string(of[0].ID), Page: dynamo.PageRequest{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	const begins = 1 + 1 // an update and its ID
	for _, c := range []struct {
		arguments string
		started   bool
		paid      int
	}{
		{"", true, begins},
		// The price includes the reads of the latest event and the list of orders, but not the reads of
		// five timelines.
		{fmt.Sprintf(", after: %q", timeline.Items[0].ID), true, begins + 5*operation.ListCost},
		// There are seven orders, including the orders of the sample dataset.
		{`, after: "00000000000000000000000001"`, false, rate.MinRequestCost + 7*operation.ListCost},
	} {
		if started, paid := start(c.arguments); started != c.started || paid != c.paid {
			t.Errorf("arguments %q: started is %v with a charge of %d points, want %v with %d", c.arguments, started, paid, c.started, c.paid)
		}
	}
	for range 20 {
		if e.rates.Available(access.AnonymousAdmin().ID) == 0 {
			break
		}
		start(`, after: "00000000000000000000000001"`)
	}
	if _, result := e.Start(t.Context(), Request{Query: `{ __typename }`}); result.Outcome != RateLimited || e.rates.Available(access.AnonymousAdmin().ID) != 0 {
		t.Errorf("there are %d points left: %v", e.rates.Available(access.AnonymousAdmin().ID), result.Errors)
	}
}

// A client that resumes again and again cannot read more missed events than its points pay for.
func TestResumingIsRateLimited(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store, clock := storetest.SampleStore(t, db), &manualClock{}
	const burst, restore, seconds = 100, 10, 200
	e := NewExecutor(Options{
		Store: store, Feed: storetest.OpenFeed(t, db, store, feed.Options{}), Cursors: paging.NewCursorSigner([]byte("a key for tests")), Rates: clock.rates(burst, restore),
		Report: func(_ context.Context, err error) { t.Error(err) },
	})
	var first *commerce.Order
	for range 5 {
		order, err := store.PlaceOrder(t.Context(), change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "cust_01", Lines: []commerce.OrderLine{{SKU: "prod_100", Quantity: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = order
		}
	}
	timeline, err := dynamo.ReadPage(t.Context(), store, model.Timeline, dynamo.ListRequest{PartitionValue: string(first.ID), Page: dynamo.PageRequest{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	const cost = 2 + 5*operation.ListCost // the update, its ID, and the timelines of five orders
	resumes := 0
	for range seconds {
		stream, result := e.Start(t.Context(), Request{Query: fmt.Sprintf(`subscription { customerOrders(customerId: "cust_01", after: %q) { id } }`, timeline.Items[0].ID)})
		switch {
		case stream != nil:
			resumes++
			stream.Close()
		case result.Outcome != RateLimited || costExtension(t, result).Available < 0 || result.RetryAfter > burst/restore*time.Second:
			t.Fatalf("outcome %d, %v", result.Outcome, result.Errors)
		}
		clock.forward(time.Second)
	}
	if most := (burst+restore*seconds)/cost + 1; resumes > most || resumes < most-2 {
		t.Errorf("the client has resumed %d times in %d s, want about %d", resumes, seconds, most)
	}
}

// Anonymous callers with any number of addresses do not evict the buckets of authenticated callers.
// A new bucket would be full.
func TestAnonymousCallersEvictNoBuckets(t *testing.T) {
	e := NewExecutor(Options{Authenticated: true, Limits: document.Limits{Cost: 100}, Rates: rate.Options{Burst: 100, Restore: 1, Now: func() time.Time { return time.Time{} }}})
	begin := func(who access.Principal) {
		e.Execute(WithPrincipal(t.Context(), who), Request{Query: "{"})
	}
	begin(access.Principal{ID: "ann", Role: access.RoleCustomer, Customer: "ann"})
	for i := range 1<<16 + 1 {
		begin(access.Principal{ID: fmt.Sprintf("anonymous/%d", i), Role: access.RoleAnonymous})
	}
	if left := e.rates.Available("ann"); left != 100-rate.MinRequestCost {
		t.Errorf("ann has %d points left", left)
	}
}
