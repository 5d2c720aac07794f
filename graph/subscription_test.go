package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/explain"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/graph/rate"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// scriptedSource is a source that delivers prepared changes, and then an error.
type scriptedSource struct {
	changes []feed.OrderChange
	then    error
	closed  int
}

func (s *scriptedSource) Next(ctx context.Context) (feed.OrderChange, error) {
	if len(s.changes) == 0 {
		if s.then == nil {
			<-ctx.Done()
			return feed.OrderChange{}, ctx.Err()
		}
		return feed.OrderChange{}, s.then
	}
	next := s.changes[0]
	s.changes = s.changes[1:]
	return next, nil
}

func (s *scriptedSource) Close() { s.closed++ }

// newScriptedStream returns a stream of prepared changes.
func newScriptedStream(t *testing.T, e *Executor, query string, from *scriptedSource) *Subscription {
	t.Helper()
	operation, refused := e.admit(withReportedErrors(t.Context()), Request{Query: query})
	if refused != nil {
		t.Fatal(refused.Errors)
	}
	if refused := e.subscriptionMemory.Reserve(admission.Caller{}, operation.document, operation.Variables); refused != nil {
		t.Fatal(refused)
	}
	return &Subscription{executor: e, operation: operation, source: from}
}

const sampleOrder = "01HVMK3P2QRSV8T4X6Y9ZABCD1"

func text(t *testing.T, r Result) string {
	t.Helper()
	b, err := json.Marshal(r.Response)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sampleOrderRecord returns an order of the sample dataset.
func sampleOrderRecord(t *testing.T, e *Executor) *commerce.Order {
	t.Helper()
	got := e.Execute(t.Context(), Request{Query: `{ orders(first: 1) { nodes { id } } }`})
	var data struct {
		Orders struct{ Nodes []struct{ ID string } }
	}
	if err := json.Unmarshal(got.Data, &data); err != nil || len(data.Orders.Nodes) != 1 {
		t.Fatal(err, got.Errors)
	}
	id := commerce.OrderID(data.Orders.Nodes[0].ID)
	found, err := dynamo.ReadRecords(t.Context(), e.resolver.store, model.OrderByID, []commerce.OrderID{id})
	if err != nil || found[0].Err != nil {
		t.Fatal(err)
	}
	return found[0].Value
}

// Each event produces its own response. Records in the event are not read, the others are read, and
// all selections are planned.
func TestEventsProduceResponses(t *testing.T) {
	e := executor(t, Options{})
	order := sampleOrderRecord(t, e)
	changed := *order
	changed.Status = commerce.Cancelled
	event := &commerce.Event{ID: "01HVMK3P2QRSV8T4X6Y9ZABCDE", OrderID: order.ID, Type: commerce.EventShipped, At: time.Unix(0, 0).UTC(), WarehouseID: "wh_sea"}
	for name, c := range map[string]struct {
		change   feed.OrderChange
		want     string
		requests int
	}{
		"with the order":           {feed.OrderChange{OrderID: order.ID, Event: event, Position: event.ID, Order: &changed}, fmt.Sprintf(`{"u":{"id":%q,"orderId":%q,"event":{"type":"SHIPPED","warehouse":{"id":"wh_sea"}},"order":{"status":"CANCELLED","customer":{"id":%q}}}}`, event.ID, order.ID, order.CustomerID), 2},
		"without the order":        {feed.OrderChange{OrderID: order.ID, Event: event, Position: event.ID}, fmt.Sprintf(`{"u":{"id":%q,"orderId":%q,"event":{"type":"SHIPPED","warehouse":{"id":"wh_sea"}},"order":{"status":%q,"customer":{"id":%q}}}}`, event.ID, order.ID, strings.ToUpper(order.Status.String()), order.CustomerID), 3},
		"without an event":         {feed.OrderChange{OrderID: order.ID, Order: &changed}, fmt.Sprintf(`{"u":{"id":null,"orderId":%q,"event":null,"order":{"status":"CANCELLED","customer":{"id":%q}}}}`, order.ID, order.CustomerID), 1},
		"of an order that is gone": {feed.OrderChange{OrderID: "01HVMK3P2QRSV8T4X6Y9ZABCDZ"}, `{"u":{"id":null,"orderId":"01HVMK3P2QRSV8T4X6Y9ZABCDZ","event":null,"order":null}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			from := &scriptedSource{changes: []feed.OrderChange{c.change, c.change}}
			s := newScriptedStream(t, e, `subscription { u: orderStatusChanged { id orderId event { type warehouse { id } } order { status customer { id } } } }`, from)
			for range 2 {
				got, more := s.Next(WithExplain(t.Context()))
				if !more || len(got.Errors) > 0 || string(got.Data) != c.want || got.Outcome != Executed {
					t.Fatalf("more %v, errors %v, data %s\nwant %s", more, got.Errors, got.Data, c.want)
				}
				explained := got.Extensions["explain"].(explain.Explanation)
				if explained.Totals.Requests != c.requests {
					t.Errorf("%d requests, want %d: each event has loaders of its own", explained.Totals.Requests, c.requests)
				}
				for _, r := range explained.Requests {
					if !strings.HasPrefix(r.Path, "u.order") && r.Path != "u.event.warehouse" {
						t.Errorf("%s was not planned: its path is %q", r.AccessPattern, r.Path)
					}
				}
			}
			s.Close()
			if held := e.pools[admission.PoolSubscriptionMemory].Used(); from.closed != 1 || held != 0 {
				t.Errorf("after Close, the source was closed %d times and %d bytes are still counted, want 1 and 0", from.closed, held)
			}
		})
	}
}

// The timeline of an order in the event is read separately. An order that must be read is read
// together with its timeline.
func TestEventsPlanTimelines(t *testing.T) {
	e := executor(t, Options{})
	order := sampleOrderRecord(t, e)
	for _, change := range []feed.OrderChange{{OrderID: order.ID, Order: order}, {OrderID: order.ID}} {
		s := newScriptedStream(t, e, `subscription { orderStatusChanged { order { id timeline(first: 5) { nodes { type } } } } }`, &scriptedSource{changes: []feed.OrderChange{change}})
		got, _ := s.Next(WithExplain(t.Context()))
		if explained, ok := got.Extensions["explain"].(explain.Explanation); !ok || len(got.Errors) > 0 || explained.Totals.Requests != 1 {
			t.Errorf("%s: want one request", text(t, got))
		}
	}
}

// An error in one event produces a response with errors, and the subscription continues.
func TestErrorsOfEvents(t *testing.T) {
	e := executor(t, Options{Limits: document.Limits{Requests: 1, Answer: 1000}})
	order := sampleOrderRecord(t, executor(t, Options{}))
	change := feed.OrderChange{OrderID: order.ID, Order: order}
	for name, c := range map[string]struct {
		query, code, data string
		path              string
	}{
		"too many requests": {`subscription { u: orderStatusChanged { order { customer { id } accountRep { id } timeline { nodes { id } } } } }`, document.LimitCodes.Requests, "", `["u","order",`},
		"too long":          {`subscription { u: orderStatusChanged { order { ` + strings.Repeat("a", 195) + `: customer{` + strings.Repeat("b", 195) + `:id ` + strings.Repeat("c", 195) + `:id ` + strings.Repeat("d", 195) + `:id ` + strings.Repeat("e", 195) + `:id ` + strings.Repeat("f", 195) + `:id} } } }`, document.LimitCodes.Answer, "", ``},
		"a bad argument":    {`subscription { u: orderStatusChanged { order { items(first: 0) { nodes { sku: productId } } } } }`, errcode.BadUserInput, `{"u":{"order":null}}`, `["u","order","items"]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScriptedStream(t, e, c.query, &scriptedSource{changes: []feed.OrderChange{change, change}})
			defer s.Close()
			for range 2 {
				got, more := s.Next(t.Context())
				all := text(t, got)
				if !more || len(got.Errors) == 0 || got.Errors[0].Extensions["code"] != c.code || got.Outcome != Executed || !strings.Contains(all, c.path) || c.data != "" && string(got.Data) != c.data {
					t.Errorf("more %v: %s", more, all)
				}
			}
		})
	}
}

// If a non-null update is null, the data is null.
func TestNullReachesTheData(t *testing.T) {
	e := executor(t, Options{})
	e.resolver.report = func(context.Context, error) {}
	s := newScriptedStream(t, e, `subscription { u: orderStatusChanged { orderId } }`, &scriptedSource{})
	defer s.Close()
	got, _ := e.run(withReportedErrors(t.Context()), s.operation, nil)
	if string(got.Data) != "null" || len(got.Errors) != 1 || got.Errors[0].Path.String() != "u" {
		t.Errorf("data %s, errors %v", got.Data, got.Errors)
	}
}

// A stream ends with an error that describes how to continue. It ends without an error if its
// context has ended.
func TestStreamsEnd(t *testing.T) {
	e := executor(t, Options{})
	e.resolver.report = func(_ context.Context, err error) {
		if strings.HasPrefix(err.Error(), ":") {
			t.Errorf("the reported error %q begins with an empty field name", err)
		}
	}
	for name, c := range map[string]struct {
		err  error
		code string
	}{
		"too slow": {fmt.Errorf("following: %w", feed.ErrTooSlow), errcode.TooSlow}, "broken": {fmt.Errorf("following: %w", table.ErrUnavailable), errcode.Unavailable}, "a fault": {errors.New("x"), errcode.Internal},
	} {
		s := newScriptedStream(t, e, `subscription { orderStatusChanged { id } }`, &scriptedSource{then: c.err})
		got, more := s.Next(t.Context())
		if more || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != c.code || got.Outcome != Refused {
			t.Errorf("%s: more %v, %s", name, more, text(t, got))
		}
		if got, more := s.Next(t.Context()); more || len(got.Errors) > 0 {
			t.Errorf("%s: after the end, Next returns more %v, %s", name, more, text(t, got))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := newScriptedStream(t, e, `subscription { orderStatusChanged { id } }`, &scriptedSource{})
	cancel()
	if got, more := s.Next(ctx); more || len(got.Errors) > 0 {
		t.Errorf("after the context has ended, Next returns more %v, %s", more, text(t, got))
	}
}

// Events have their own pool, wait for capacity in it, and release the capacity.
func TestEventsWaitForCapacity(t *testing.T) {
	e := executor(t, Options{Admission: admission.New(admission.Sizes{admission.PoolOperationCost: 16_000})})
	order := sampleOrderRecord(t, e)
	s := newScriptedStream(t, e, `subscription { orderStatusChanged { orderId } }`, &scriptedSource{changes: []feed.OrderChange{{OrderID: order.ID}, {OrderID: order.ID}}})
	others, events := admission.Caller{Key: "others"}, e.pools[admission.PoolEventCost]
	if err := events.Acquire(t.Context(), others, events.Size); err != nil {
		t.Fatal(err)
	}
	if got := e.Execute(t.Context(), Request{Query: `{ __typename }`}); got.Outcome != Executed {
		t.Errorf("a query fails while events use all of their capacity: %v", got.Errors)
	}
	done := make(chan bool)
	go func() {
		_, more := s.Next(t.Context())
		done <- more
	}()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-done:
		t.Fatal("an event was executed without capacity")
	default:
	}
	events.Release(others, events.Size)
	if !<-done {
		t.Error("the event was not delivered when there was capacity")
	}
	if _, more := s.Next(t.Context()); !more {
		t.Error("the capacity was not released")
	}
}

// A subscription has exactly one root field.
func TestSubscriptionRootField(t *testing.T) {
	e := executor(t, Options{})
	const id = `id: "` + sampleOrder + `"`
	for query, valid := range map[string]bool{
		`subscription { orderUpdated(` + id + `) { id } }`:                                                                          true,
		`subscription { orderUpdated(` + id + `) { id } ...F } fragment F on Subscription { orderUpdated(` + id + `) { orderId } }`: true,
		`subscription { ... on Subscription { a: orderStatusChanged { id } } a: orderStatusChanged { orderId } }`:                   true,
		`subscription { a: orderStatusChanged { id } b: orderStatusChanged { id } }`:                                                false,
		`subscription { orderStatusChanged { id } orderUpdated(` + id + `) { id } }`:                                                false,
		`subscription { orderStatusChanged { id } ...F } fragment F on Subscription { b: orderStatusChanged { id } }`:               false,
		`subscription { __typename }`:                                                                     false,
		`subscription { ...F } fragment F on Subscription { __typename }`:                                 false,
		`subscription { t: __typename orderStatusChanged { id } }`:                                        false,
		`subscription { orderStatusChanged @skip(if: false) { id } }`:                                     false,
		`subscription($on: Boolean!) { orderStatusChanged @include(if: $on) { id } }`:                     false,
		`subscription { ... @include(if: true) { orderStatusChanged { id } } }`:                           false,
		`subscription { ...F @skip(if: false) } fragment F on Subscription { orderStatusChanged { id } }`: false,
		`subscription { orderStatusChanged { id @skip(if: true) orderId } }`:                              true,
		`query { __typename }`: true,
	} {
		_, refused := e.admit(t.Context(), Request{Query: query, Variables: map[string]any{"on": true}})
		if (refused == nil) != valid {
			t.Errorf("%s: %v", query, refused)
		}
	}
}

// Execute rejects a subscription, and the error names the streaming transports. A read-only request
// rejects mutations.
func TestExecuteRejectsSubscriptions(t *testing.T) {
	e := executor(t, Options{})
	e.resolver.feed = new(feed.Feed) // refused before it is used
	for _, readOnly := range []bool{false, true} {
		got := e.Execute(t.Context(), Request{Query: `subscription { orderStatusChanged { id } }`, ReadOnly: readOnly})
		if got.Outcome != Refused || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != errcode.BadUserInput || !strings.Contains(got.Errors[0].Message, "text/event-stream") {
			t.Errorf("outcome %d, %s", got.Outcome, text(t, got))
		}
	}
	if stream, got := e.Start(t.Context(), Request{Query: `mutation { __typename }`, ReadOnly: true}); stream != nil || got.Outcome != MutationNotAllowed {
		t.Errorf("a mutation: outcome %d", got.Outcome)
	}
	if stream, got := e.Start(t.Context(), Request{Query: `{ customer(id: "cust_01") { name } }`}); stream != nil || string(got.Data) != `{"customer":{"name":"Alice Chen"}}` {
		t.Errorf("a query: %s", text(t, got))
	}
}

// Without a change feed, subscriptions are rejected.
func TestSubscriptionsNeedChangeFeed(t *testing.T) {
	e := executor(t, Options{})
	var reported []error
	e.resolver.report = func(_ context.Context, err error) { reported = append(reported, err) }
	stream, got := e.Start(t.Context(), Request{Query: `subscription { orderStatusChanged { id } }`})
	if stream != nil || got.Outcome != Refused || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != errcode.SubscriptionsOff || len(reported) != 0 {
		t.Errorf("%s, reported %v", text(t, got), reported)
	}
	if held := e.pools[admission.PoolSubscriptionMemory].Used(); held != 0 {
		t.Errorf("%d bytes are still counted for a rejected subscription", held)
	}
}

// A document that several subscriptions hold is counted once. The total is limited.
func TestSubscriptionMemoryLimit(t *testing.T) {
	e := executor(t, Options{})
	admitted := func(query string, variables map[string]any) *admittedOperation {
		o, refused := e.admit(t.Context(), Request{Query: query, Variables: variables})
		if refused != nil {
			t.Fatal(refused.Errors)
		}
		return o
	}
	const query = `subscription($id: ID!) { orderUpdated(id: $id) { id } }`
	first := admitted(query, map[string]any{"id": "a"})
	room := func(bytes int) *admission.Pool {
		pool := admission.New(admission.Sizes{admission.PoolSubscriptionMemory: bytes})[admission.PoolSubscriptionMemory]
		e.subscriptionMemory = document.NewSubscriptionMemory(pool)
		return pool
	}
	ann, bob := admission.Caller{Key: "ann"}, admission.Caller{Key: "bob"}
	take := func(c admission.Caller, o *admittedOperation) bool {
		return e.subscriptionMemory.Reserve(c, o.document, o.Variables) == nil
	}
	pool := room(1 << 20)
	if !take(ann, first) {
		t.Fatal("no capacity for the first subscription")
	}
	one := pool.Used()
	same := admitted(query, map[string]any{"id": "a"})
	if !take(bob, same) || pool.Used() >= 2*one || pool.UsedBy(bob) >= one/2 {
		t.Errorf("one subscription to a document uses %d bytes, two use %d, and %d of these are charged to the second caller", one, pool.Used(), pool.UsedBy(bob))
	}
	// When the caller whom a document is charged to has gone, another caller is charged.
	e.subscriptionMemory.Release(ann, first.document, first.Variables)
	if pool.UsedBy(ann) != 0 || pool.UsedBy(bob) != one {
		t.Errorf("the first caller has %d bytes, the second %d, want 0 and %d", pool.UsedBy(ann), pool.UsedBy(bob), one)
	}
	e.subscriptionMemory.Release(bob, same.document, same.Variables)
	if pool.Used() != 0 {
		t.Errorf("after all subscriptions ended, %d bytes are still counted", pool.Used())
	}
	if room(2*one - 1); !take(ann, first) {
		t.Fatal("no capacity for the first subscription")
	}
	other := admitted(query+" ", map[string]any{"id": "a"})
	if take(bob, other) {
		t.Error("a document beyond the capacity was accepted")
	}
	long := admitted(query, map[string]any{"id": strings.Repeat("a", one)})
	if take(bob, long) {
		t.Error("variables beyond the capacity were accepted")
	}
	if refused := room(one).TryAcquire(bob, one); refused != nil {
		t.Fatal(refused)
	}
	e.resolver.feed = new(feed.Feed) // refused before it is used
	stream, got := e.Start(t.Context(), Request{Query: `subscription { orderStatusChanged { id } }`})
	if stream != nil || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != errcode.TooManySubscriptions || got.Errors[0].Extensions["pool"] != "subscriptionMemory" {
		t.Errorf("%s", text(t, got))
	}
}

// A subscription does not hold the request's extensions and undefined variables, so they are not
// counted.
func TestSubscriptionsHoldNoExtensions(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	store := storetest.SampleStore(t, db)
	e := NewExecutor(Options{Store: store, Feed: storetest.OpenFeed(t, db, store, feed.Options{}), Cursors: paging.NewCursorSigner([]byte("a key for tests"))})
	stream, result := e.Start(t.Context(), Request{Query: `subscription { orderStatusChanged { id } }`, Extensions: map[string]any{"x": strings.Repeat("x", 100_000)}, Variables: map[string]any{"x": strings.Repeat("x", 100_000)}})
	if stream == nil {
		t.Fatal(result.Errors)
	}
	defer stream.Close()
	if held := stream.operation.OperationContext; len(held.Extensions) > 0 || len(held.Variables) > 0 {
		t.Errorf("the stream keeps %d extensions and %d variables in memory, want none", len(held.Extensions), len(held.Variables))
	}
}

// An event holds its capacity until it has been delivered.
func TestEventsHoldCapacity(t *testing.T) {
	var e *Executor
	var free []bool
	look := func() time.Time {
		if e != nil {
			free = append(free, e.pools[admission.PoolEventCost].Used() == 0)
		}
		return time.Unix(0, 0)
	}
	e = executor(t, Options{Rates: rate.Options{Burst: 1000, Now: look}})
	s := newScriptedStream(t, e, `subscription { orderStatusChanged { orderId } }`, &scriptedSource{changes: []feed.OrderChange{{OrderID: sampleOrder}}})
	defer s.Close()
	free = nil
	if got, more := s.Next(t.Context()); !more || len(got.Errors) > 0 {
		t.Fatal(text(t, got))
	}
	// The points are reserved before the capacity, and refunded before the capacity is released.
	if len(free) < 2 || !free[0] || free[len(free)-1] {
		t.Errorf("the pool was free when the points changed: %v, want true first and false last", free)
	}
}

// If a client disconnects while an event waits for capacity, the event's points are refunded.
func TestCanceledEventsAreRefunded(t *testing.T) {
	e, _ := newRateLimitedExecutor(t, 1000, 1, Options{})
	s := newScriptedStream(t, e, `subscription { orderStatusChanged { orderId } }`, &scriptedSource{changes: []feed.OrderChange{{OrderID: sampleOrder}}})
	defer s.Close()
	s.operation.cost = 100
	others, events := admission.Caller{Key: "others"}, e.pools[admission.PoolEventCost]
	if err := events.Acquire(t.Context(), others, events.Size); err != nil {
		t.Fatal(err)
	}
	defer events.Release(others, events.Size)
	left := e.rates.Available("anonymous")
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan bool)
	go func() {
		_, more := s.Next(ctx)
		told <- more
	}()
	for e.rates.Available("anonymous") == left { // until the points are reserved
		runtime.Gosched()
	}
	cancel()
	if <-told {
		t.Error("an event was delivered without capacity")
	}
	if now := e.rates.Available("anonymous"); now != left-rate.MinRequestCost {
		t.Errorf("%d points are left of %d", now, left)
	}
}

// Each event has a time limit.
func TestEventsHaveATimeLimit(t *testing.T) {
	e := executor(t, Options{EventTime: time.Nanosecond})
	e.resolver.report = func(context.Context, error) {}
	s := newScriptedStream(t, e, `subscription { orderStatusChanged { orderId order { id } } }`, &scriptedSource{changes: []feed.OrderChange{{OrderID: sampleOrder}}})
	defer s.Close()
	got, more := s.Next(t.Context())
	if !more || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != errcode.TimedOut {
		t.Errorf("more %v: %s", more, text(t, got))
	}
}

// Events read consistently. Otherwise they could show the state before the change.
func TestEventsReadConsistently(t *testing.T) {
	e := executor(t, Options{})
	units := func(by func(context.Context) Result) float64 {
		trace := &trace.Trace{}
		if got := by(trace.NewContext(t.Context())); len(got.Errors) > 0 || len(trace.Requests()) != 1 {
			t.Fatal(text(t, got), trace.Requests())
		}
		return trace.Requests()[0].ReadUnits
	}
	order := sampleOrderRecord(t, e)
	s := newScriptedStream(t, e, `subscription { orderStatusChanged { order { status } } }`, &scriptedSource{changes: []feed.OrderChange{{OrderID: order.ID}}})
	defer s.Close()
	event := units(func(ctx context.Context) Result {
		got, _ := s.Next(ctx)
		return got
	})
	query := units(func(ctx context.Context) Result {
		return e.Execute(ctx, Request{Query: fmt.Sprintf(`{ order(id: %q) { status } }`, order.ID)})
	})
	if event != 2*query {
		t.Errorf("an event reads %v units, a query %v", event, query)
	}
}

// A subscription to status changes can resume only if the table lists them, and only after an event in this list.
func TestResumingStatusChangesNeedsTheList(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	name := storetest.TableName()
	store := storetest.NewTable(t, db, dynamo.Options{Table: name})
	e := NewExecutor(Options{Store: store, Feed: storetest.OpenFeed(t, db, store, feed.Options{}), Cursors: paging.NewCursorSigner([]byte("a key for tests"))})
	now, _ := commerce.MinULIDAt(time.Now().Add(time.Minute))
	for _, c := range []struct {
		listed      bool
		after, code string
	}{
		{false, now, errcode.Unavailable},
		{true, now, ""},
		{true, "01HVMK3P2QRSV8T4X6Y9ZABCD1", errcode.BadUserInput},
		{true, "x", errcode.BadUserInput},
	} {
		if c.listed {
			storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: name, Store: store}, model.StatusChanges)
		}
		stream, result := e.Start(t.Context(), Request{Query: fmt.Sprintf("subscription { orderStatusChanged(status: CONFIRMED, after: %q) { id } }", c.after)})
		code := ""
		if stream != nil {
			stream.Close()
		} else {
			code, _ = result.Errors[0].Extensions["code"].(string)
		}
		if code != c.code {
			t.Errorf("after %s: the code is %q, want %q: %v", c.after, code, c.code, result.Errors)
		}
	}
}
