package loaders_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/loaders"
)

const tableName = "orders"

// interceptor intercepts requests between the SDK and the engine. It forwards a request with next
// or handles it differently.
type interceptor func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error)

// fixture is a table with a dataset.
type fixture struct {
	t     testing.TB
	store *dynamo.Store
	// db calls the engine directly, without between.
	db *dynamodb.Client
}

type httpClient func(*http.Request) (*http.Response, error)

func (c httpClient) Do(r *http.Request) (*http.Response, error) { return c(r) }

// newFixture returns a table with a dataset. Its requests go through b if b is not nil.
func newFixture(t testing.TB, dataset commerce.Dataset, b interceptor) fixture {
	t.Helper()
	engine := embedded.New()
	s := fixture{t: t, db: engine.Client()}
	plain, err := dynamo.New(s.db, dynamo.Options{Table: tableName})
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.CreateTable(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Load(context.Background(), dataset); err != nil {
		t.Fatal(err)
	}
	if s.store = plain; b == nil {
		return s
	}
	watched := engine.Client(func(o *dynamodb.Options) {
		next := o.HTTPClient
		o.HTTPClient = httpClient(func(r *http.Request) (*http.Response, error) { return b(r, next) })
	})
	if s.store, err = dynamo.New(watched, dynamo.Options{Table: tableName}); err != nil {
		t.Fatal(err)
	}
	return s
}

// putExternal writes an external record. Values have the type string or int.
func (s fixture) putExternal(attributes map[string]any) {
	s.t.Helper()
	item := map[string]types.AttributeValue{}
	for name, v := range attributes {
		switch v := v.(type) {
		case string:
			item[name] = &types.AttributeValueMemberS{Value: v}
		case int:
			item[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		}
	}
	if _, err := s.db.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(tableName), Item: item}); err != nil {
		s.t.Fatal(err)
	}
}

// begin returns a context, loaders and a trace, as for one GraphQL request. A panic in a plan fails
// the test.
func (s fixture) begin() (context.Context, *loaders.Loaders, *trace.Trace) {
	trace := &trace.Trace{}
	ctx := trace.NewContext(context.Background())
	return ctx, loaders.New(ctx, s.store, adminViewer(), func(panicked any) { s.t.Errorf("a plan panicked: %v", panicked) }, nil), trace
}

// checkRequests compares the requests of a trace, by round trip, with access patterns and
// operations such as "AP6 GetItem".
func checkRequests(t testing.TB, trace *trace.Trace, want ...string) {
	t.Helper()
	var got []string
	for _, r := range trace.Requests() {
		got = append(got, r.Pattern+" "+r.Operation)
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests: %q, want %q", got, want)
	}
}

// customers returns a dataset of n customers and their IDs: cust_000 and so on.
func customers(n int) (commerce.Dataset, []commerce.CustomerID) {
	var dataset commerce.Dataset
	var ids []commerce.CustomerID
	for i := range n {
		id := commerce.CustomerID(fmt.Sprintf("cust_%03d", i))
		ids = append(ids, id)
		dataset.Customers = append(dataset.Customers, commerce.Customer{
			ID: id, Name: "Name of " + string(id), Email: string(id) + "@example.com", OrderCount: new(i),
			CreatedAt: time.Date(2026, 2, 1, 0, 0, i, 0, time.UTC), Version: 1,
		})
	}
	return dataset, ids
}

func checkCustomer(t testing.TB, c *commerce.Customer, err error, id commerce.CustomerID) {
	t.Helper()
	if err != nil {
		t.Errorf("customer %s: %v", id, err)
	} else if c.ID != id || c.Name != "Name of "+string(id) {
		t.Errorf("customer %s: got %+v", id, c)
	}
}

// batch is the part of a BatchGetItem request that the tests use: its keys.
type batch struct {
	RequestItems map[string]struct{ Keys []json.RawMessage }
}

// operation returns the DynamoDB operation of a request.
func operation(r *http.Request) string {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return name
}

// readBody returns the body of a request and restores it for the next reader.
func readBody(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	setBody(r, body)
	return body
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// keyLog counts how often each key is read by BatchGetItem or GetItem.
type keyLog struct {
	mu    sync.Mutex
	times map[string]int
}

func (l *keyLog) pass(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	var b struct {
		batch
		Key json.RawMessage
	}
	if err := json.Unmarshal(readBody(r), &b); err != nil {
		return nil, err
	}
	l.mu.Lock()
	for _, key := range append(b.RequestItems[tableName].Keys, b.Key) {
		if key != nil {
			l.times[string(key)]++
		}
	}
	l.mu.Unlock()
	return next.Do(r)
}

// Concurrent loads of a key read it once.
func TestEveryKeyIsReadOnce(t *testing.T) {
	dataset, ids := customers(7)
	log := keyLog{times: map[string]int{}}
	s := newFixture(t, dataset, log.pass)
	ctx, l, _ := s.begin()
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			id := ids[i%len(ids)]
			c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
			checkCustomer(t, c, err, id)
		})
	}
	group.Wait()
	if len(log.times) != len(ids) {
		t.Errorf("%d keys were read, want %d", len(log.times), len(ids))
	}
	for key, times := range log.times {
		if times != 1 {
			t.Errorf("%s was read %d times", key, times)
		}
	}
}

func TestSingleLoadIsOneGetItem(t *testing.T) {
	dataset, ids := customers(2)
	ctx, l, trace := newFixture(t, dataset, nil).begin()
	for range 3 {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, ids[1])
		checkCustomer(t, c, err, ids[1])
	}
	checkRequests(t, trace, "AP6 GetItem")
}

func TestAPlanIsOneBatch(t *testing.T) {
	dataset, ids := customers(250)
	for _, c := range []struct {
		name string
		keys []commerce.CustomerID
		want []string
	}{
		{"nothing", nil, nil},
		{"one key", ids[:1], []string{"AP6 GetItem"}},
		{"one key twice", []commerce.CustomerID{ids[3], ids[3]}, []string{"AP6 GetItem"}},
		{"some keys, some twice", []commerce.CustomerID{ids[0], ids[1], ids[0], ids[2], ids[1]}, []string{"AP6 BatchGetItem"}},
		{"a hundred keys", ids[:100], []string{"AP6 BatchGetItem"}},
		{"101 keys", ids[:101], []string{"AP6 BatchGetItem", "AP6 BatchGetItem"}},
		{"250 keys", ids, []string{"AP6 BatchGetItem", "AP6 BatchGetItem", "AP6 BatchGetItem"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, l, trace := newFixture(t, dataset, nil).begin()
			l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, c.keys, nil) })
			l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, c.keys, nil) })
			for _, id := range c.keys {
				got, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
				checkCustomer(t, got, err, id)
			}
			checkRequests(t, trace, c.want...)
			for _, r := range trace.Requests() {
				if r.RoundTrip != 1 {
					t.Errorf("%s waited for another request", r.Operation)
				}
			}
		})
	}
}

// A plan of many keys is one batch, even if adding the keys takes longer than the loader waits for
// unplanned keys.
func TestALargePlanIsOneBatch(t *testing.T) {
	ctx, l, trace := newFixture(t, commerce.Dataset{}, nil).begin()
	var keys []commerce.CustomerID
	for i := range 2000 {
		keys = append(keys, commerce.CustomerID(fmt.Sprintf("nobody_%d", i)))
	}
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, keys, nil) })
	if n := len(trace.Requests()); n != 20 {
		t.Errorf("%d requests for 2000 keys, want 20", n)
	}
}

// A level may plan keys that another level is still reading.
func TestPlansOfOverlappingKeysReadEachOnce(t *testing.T) {
	dataset, ids := customers(30)
	log := keyLog{times: map[string]int{}}
	ctx, l, _ := newFixture(t, dataset, log.pass).begin()
	l.Plan(func(first *loaders.Level) {
		for from := range 20 {
			loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids[from:from+10], nil)
		}
	})
	for _, id := range ids[:29] {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
		checkCustomer(t, c, err, id)
	}
	for key, times := range log.times {
		if times != 1 {
			t.Errorf("%s was read %d times", key, times)
		}
	}
}

// blockedEngine delays all requests until the test releases them.
type blockedEngine struct{ arrived, release chan struct{} }

func newBlockedEngine() blockedEngine {
	return blockedEngine{make(chan struct{}, 100), make(chan struct{})}
}

func (h blockedEngine) pass(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	h.arrived <- struct{}{}
	select {
	case <-h.release:
		return next.Do(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// If the first caller of a key is cancelled during the read, the read continues for the others.
func TestACallersCancellationDoesNotFailAnother(t *testing.T) {
	dataset, ids := customers(1)
	h := newBlockedEngine()
	ctx, l, _ := newFixture(t, dataset, h.pass).begin()
	first, leave := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { _, _ = loaders.RecordLoader(l, model.CustomerByID).Load(first, ids[0]) })
	<-h.arrived
	leave()
	group.Go(func() {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, ids[0])
		checkCustomer(t, c, err, ids[0])
	})
	close(h.release)
	group.Wait()
	c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, ids[0])
	checkCustomer(t, c, err, ids[0])
}

// The end of the GraphQL request ends its reads.
func TestTheEndOfTheRequestEndsItsReads(t *testing.T) {
	dataset, ids := customers(3)
	h := newBlockedEngine()
	s := newFixture(t, dataset, h.pass)
	ctx, end := context.WithCancel(context.Background())
	l := loaders.New(ctx, s.store, adminViewer(), nil, nil)
	var planning sync.WaitGroup
	planning.Go(func() {
		l.Plan(func(first *loaders.Level) {
			loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, func(context.Context, *loaders.Level, []loaders.FoundValue[commerce.CustomerID, *commerce.Customer]) {
				t.Error("something was planned after the end")
			})
		})
	})
	<-h.arrived
	end()
	planning.Wait() // for all goroutines of the plan, too
	for _, id := range ids {
		if c, err := loaders.RecordLoader(l, model.CustomerByID).Load(context.Background(), id); !errors.Is(err, context.Canceled) || c != nil {
			t.Errorf("customer %s: %v, %v, want the context's error", id, c, err)
		}
	}
}

// When Plan returns, the keys that callbacks planned are read, too. Their trace shows that they
// waited for the first reads.
func TestAPlanIsCompleteWhenItReturns(t *testing.T) {
	dataset, ids := customers(2)
	ctx, l, trace := newFixture(t, dataset, nil).begin()
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids[:1], func(ctx context.Context, next *loaders.Level, found []loaders.FoundValue[commerce.CustomerID, *commerce.Customer]) {
			if len(found) != 1 || found[0].Key != ids[0] {
				t.Errorf("then was told %v", found)
				return
			}
			checkCustomer(t, found[0].Value, nil, ids[0])
			loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, next, ids[1:], nil)
		})
		checkRequests(t, trace) // nothing is read before all is known that can be read with it
	})
	for range 2 {
		checkRequests(t, trace, "AP6 GetItem", "AP6 GetItem")
		for _, id := range ids {
			c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
			checkCustomer(t, c, err, id)
		}
	}
	if roundTrips := trace.Requests(); roundTrips[0].RoundTrip != 1 || roundTrips[1].RoundTrip != 2 {
		t.Errorf("round trips %d and %d, want 1 and 2", roundTrips[0].RoundTrip, roundTrips[1].RoundTrip)
	}
}

// Reads of a level run concurrently. A callback does not wait for the other reads.
func TestChainsOfAPlanDoNotWaitForOneAnother(t *testing.T) {
	dataset := sampleData(t)
	followed := make(chan struct{})
	s := newFixture(t, dataset, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		switch body := string(readBody(r)); {
		case strings.Contains(body, "wh_sea"):
			close(followed)
		case strings.Contains(body, "prod_100"):
			select {
			case <-followed:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.Do(r)
	})
	for _, slowFirst := range []bool{true, false} {
		followed = make(chan struct{})
		ctx, l, trace := s.begin()
		slow := func(first *loaders.Level) {
			loaders.RecordLoader(l, model.ProductBySKU).Plan(ctx, first, []commerce.SKU{"prod_100"}, nil)
		}
		l.Plan(func(first *loaders.Level) {
			if slowFirst {
				slow(first)
			}
			loaders.RecordLoader(l, model.EmployeeByID).Plan(ctx, first, []commerce.EmployeeID{"emp_001"}, func(ctx context.Context, next *loaders.Level, _ []loaders.FoundValue[commerce.EmployeeID, *commerce.Employee]) {
				loaders.RecordLoader(l, model.WarehouseByID).Plan(ctx, next, []commerce.WarehouseID{"wh_sea"}, nil)
			})
			if !slowFirst {
				slow(first)
			}
		})
		checkCounts(t, trace, []string{"AP10 GetItem", "AP16 GetItem", "AP30 GetItem"})
	}
}

// Planning only saves requests: if a callback panics, the values are still available.
func TestAPanicInThenIsReported(t *testing.T) {
	dataset, ids := customers(3)
	s := newFixture(t, dataset, nil)
	ctx := context.Background()
	reported := make(chan any, 1)
	l := loaders.New(ctx, s.store, adminViewer(), func(panicked any) { reported <- panicked }, nil)
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids[:2], func(ctx context.Context, next *loaders.Level, _ []loaders.FoundValue[commerce.CustomerID, *commerce.Customer]) {
			loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, next, ids[2:], nil)
			panic("oh")
		})
	})
	for _, id := range ids {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
		checkCustomer(t, c, err, id)
	}
	if panicked := <-reported; panicked != "oh" {
		t.Errorf("reported %v, want the panic", panicked)
	}
}

func TestMissingRecords(t *testing.T) {
	dataset, ids := customers(3)
	ctx, l, trace := newFixture(t, dataset, nil).begin()
	keys := append([]commerce.CustomerID{"nobody", "no.one"}, ids...)
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, keys, func(_ context.Context, _ *loaders.Level, found []loaders.FoundValue[commerce.CustomerID, *commerce.Customer]) {
			if len(found) != len(ids) {
				t.Errorf("then received %d customers, want %d", len(found), len(ids))
			}
		})
	})
	for _, id := range ids {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
		checkCustomer(t, c, err, id)
	}
	for _, id := range []commerce.CustomerID{"nobody", "no.one", "nothing planned this"} {
		if c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id); !errors.Is(err, commerce.ErrNotFound) || c != nil {
			t.Errorf("customer %s: %v, %v, want ErrNotFound", id, c, err)
		}
	}
	checkRequests(t, trace, "AP6 BatchGetItem", "AP6 GetItem")
}

func TestACorruptRecordFailsItsOwnKeyOnly(t *testing.T) {
	dataset, ids := customers(3)
	s := newFixture(t, dataset, nil)
	s.putExternal(map[string]any{"pk": "CUSTOMER#cust_001", "sk": "#METADATA", "customerId": "cust_001", "name": 5, "email": "x@example.com", "createdAt": "2026-02-01T00:00:00.000Z"})
	ctx, l, trace := s.begin()
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, nil) })
	for i, id := range ids {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
		if i != 1 {
			checkCustomer(t, c, err, id)
		} else if !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "CUSTOMER#cust_001") || !strings.Contains(err.Error(), `"name"`) {
			t.Errorf("customer %s: error %v, want one that names record and attribute", id, err)
		}
	}
	checkRequests(t, trace, "AP6 BatchGetItem")
}

// throttledEngine answers only a part of each batch, at least one key, and returns the others as
// unprocessed.
type throttledEngine struct {
	some  int
	calls int
}

func (b *throttledEngine) pass(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
	if operation(r) != "BatchGetItem" {
		return next.Do(r)
	}
	b.calls++
	var asked batch
	if err := json.Unmarshal(readBody(r), &asked); err != nil {
		return nil, err
	}
	keys := asked.RequestItems[tableName].Keys
	done := min(b.some, len(keys))
	if done == 0 {
		return reply(r, map[string]any{"Responses": map[string]any{}, "UnprocessedKeys": keysOf(keys)}), nil
	}
	body, err := json.Marshal(map[string]any{"RequestItems": keysOf(keys[:done])})
	if err != nil {
		return nil, err
	}
	setBody(r, body)
	res, err := next.Do(r)
	if err != nil || done == len(keys) {
		return res, err
	}
	var answer map[string]any
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, err
	}
	answer["UnprocessedKeys"] = keysOf(keys[done:])
	return reply(r, answer), nil
}

func keysOf(keys []json.RawMessage) map[string]any {
	return map[string]any{tableName: map[string]any{"Keys": keys}}
}

func reply(r *http.Request, answer any) *http.Response {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
}

func TestUnprocessedKeysAreReadAgain(t *testing.T) {
	dataset, ids := customers(10)
	b := &throttledEngine{some: 4}
	ctx, l, trace := newFixture(t, dataset, b.pass).begin()
	keys := append(slices.Clone(ids), "nobody")
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, keys, nil) })
	for _, id := range ids {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
		checkCustomer(t, c, err, id)
	}
	if _, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, "nobody"); !errors.Is(err, commerce.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	checkRequests(t, trace, "AP6 BatchGetItem", "AP6 BatchGetItem", "AP6 BatchGetItem")
	items := 0
	for i, r := range trace.Requests() {
		items += r.Items
		if r.RoundTrip != i+1 {
			t.Errorf("attempt %d counts as round trip %d", i+1, r.RoundTrip)
		}
	}
	if items != len(ids) {
		t.Errorf("the trace contains %d records, want %d", items, len(ids))
	}
}

// Unprocessed keys are requested again until the GraphQL request ends.
func TestUnprocessedKeysEndWithTheRequest(t *testing.T) {
	dataset, ids := customers(2)
	b := &throttledEngine{}
	ctx, end := context.WithCancel(context.Background())
	s := newFixture(t, dataset, func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
		res, err := b.pass(r, next)
		if b.calls == 3 {
			end()
		}
		return res, err
	})
	l := loaders.New(ctx, s.store, adminViewer(), nil, nil)
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, nil) })
	for _, id := range ids {
		if _, err := loaders.RecordLoader(l, model.CustomerByID).Load(context.Background(), id); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
	}
}

// Each list is read with its access pattern, and the same page is read once.
func TestListsAreReadOnce(t *testing.T) {
	type reading func(context.Context, *loaders.Loaders) (string, error)
	s := newFixture(t, sampleData(t), nil)
	page := dynamo.PageRequest{Limit: 2}
	placed := commerce.TimeRange{From: time.Date(2024, 4, 17, 0, 0, 0, 0, time.UTC)}
	for _, c := range []struct {
		name string
		read reading
		// want has the IDs of the page, requests has the expected requests.
		want     string
		requests []string
	}{
		{"a customer's orders", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(orderID)(loaders.PageLoader(l, model.CustomerOrders).Load(ctx, dynamo.ListRequest{PartitionValue: "cust_01", Page: page}))
		}, "[01HVNR4Q3R0000000000000002 01HVMK3P2Q0000000000000001]", []string{"AP2 Query"}},
		{"a customer's orders of a time", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(orderID)(loaders.PageLoader(l, model.CustomerOrders).Load(ctx, dynamo.ListRequest{PartitionValue: "cust_01", Pattern: &model.CustomerOrdersPlaced.AccessPattern, Range: dynamo.PlacedOrdersRange(placed), Page: page}))
		}, "[01HVNR4Q3R0000000000000002]", []string{"AP23 Query"}},
		{"orders by status", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(orderID)(loaders.PageLoader(l, model.OrdersByStatus).Load(ctx, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(commerce.Shipped), Page: page}))
		}, "[01KNVV2HR00000000000000101]", []string{"AP3 Query"}},
		{"orders in two statuses", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(orderID)(loaders.PageLoader(l, model.Orders).Load(ctx, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(commerce.Confirmed, commerce.Shipped), Pattern: &model.OrdersInStatuses.AccessPattern, Page: page}))
		}, "[01KNVV2HR00000000000000101 01KE1VN3G00000000000000005]", []string{"AP24 Query", "AP24 Query"}},
		{"an account rep's orders", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(orderID)(loaders.PageLoader(l, model.EmployeeOrders).Load(ctx, dynamo.ListRequest{PartitionValue: "rep_002", Page: page}))
		}, "[01KE1VN3G00000000000000005 01K76ZW0G00000000000000004]", []string{"AP22 Query"}},
		{"a product's order items", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(orderOf)(loaders.PageLoader(l, model.ProductOrderItems).Load(ctx, dynamo.ListRequest{PartitionValue: "prod_101", Page: page}))
		}, "[01KCXT31G00000000000000002 01K76ZW0G00000000000000004]", []string{"AP11 Query"}},
		{"customers", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(customerID)(loaders.PageLoader(l, model.Customers).Load(ctx, dynamo.ListRequest{Page: page}))
		}, "[cust_01 cust_001]", []string{"AP9 Query"}},
		{"an account rep's customers", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(customerID)(loaders.PageLoader(l, model.EmployeeCustomers).Load(ctx, dynamo.ListRequest{PartitionValue: "rep_001", Page: page}))
		}, "[cust_001 cust_002]", []string{"AP21 Query"}},
		{"products of a category", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(productSKU)(loaders.PageLoader(l, model.Products).Load(ctx, dynamo.ListRequest{PartitionValue: "Eyewear", Page: page}))
		}, "[AVON-TORTOISE GRANBY-CLEAR]", []string{"AP12 Query"}},
		{"what lies in a warehouse", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(levelSKU)(loaders.PageLoader(l, model.WarehouseInventory).Load(ctx, dynamo.ListRequest{PartitionValue: "wh_pdx", Page: page}))
		}, "[prod_100 prod_101]", []string{"AP28 Query"}},
		{"warehouses", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(warehouseID)(loaders.PageLoader(l, model.Warehouses).Load(ctx, dynamo.ListRequest{Page: page}))
		}, "[wh_atl wh_pdx]", []string{"AP31 Query"}},
		{"employees hired on some days", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(employeeID)(loaders.PageLoader(l, model.Employees).Load(ctx, dynamo.ListRequest{Range: dynamo.HireDateRange(commerce.DateRange{From: "2025-01-01"}), Page: page}))
		}, "[emp_002 emp_003]", []string{"AP18 Query"}},
		{"employees by name", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(employeeID)(loaders.PageLoader(l, model.EmployeesByName).Load(ctx, dynamo.ListRequest{PartitionValue: "Jane Doe", Page: page}))
		}, "[emp_002]", []string{"AP17 Query"}},
		{"employees by job title", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(employeeID)(loaders.PageLoader(l, model.EmployeesByJobTitle).Load(ctx, dynamo.ListRequest{PartitionValue: "Associate", Page: page}))
		}, "[emp_002 emp_003]", []string{"AP20 Query"}},
		{"a warehouse's employees", func(ctx context.Context, l *loaders.Loaders) (string, error) {
			return pageIDs(employeeID)(loaders.PageLoader(l, model.WarehouseEmployees).Load(ctx, dynamo.ListRequest{PartitionValue: "wh_sea", Page: page}))
		}, "[emp_001 emp_002]", []string{"AP19 Query"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, l, trace := s.begin()
			for range 2 {
				if got, err := c.read(ctx, l); err != nil || got != c.want {
					t.Errorf("got %v, %v, want %v", got, err, c.want)
				}
			}
			checkRequests(t, trace, c.requests...)
		})
	}
}

// pageIDs returns a function that formats the IDs of a page.
func pageIDs[T any](id func(T) string) func(dynamo.Page[T], error) (string, error) {
	return func(page dynamo.Page[T], err error) (string, error) {
		all := make([]string, len(page.Items))
		for i, item := range page.Items {
			all[i] = id(item)
		}
		return fmt.Sprint(all), err
	}
}

func orderID(o *commerce.Order) string           { return string(o.ID) }
func orderOf(i *commerce.LineItem) string        { return string(i.OrderID) }
func customerID(c *commerce.Customer) string     { return string(c.ID) }
func productSKU(p *commerce.Product) string      { return string(p.SKU) }
func levelSKU(v *commerce.InventoryLevel) string { return string(v.SKU) }
func warehouseID(w *commerce.Warehouse) string   { return string(w.ID) }
func employeeID(e *commerce.Employee) string     { return string(e.ID) }

// sampleData returns the sample data.
func sampleData(t testing.TB) commerce.Dataset {
	t.Helper()
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	return dataset
}

// Records other than customers also have loaders.
func TestRecordsByID(t *testing.T) {
	s := newFixture(t, sampleData(t), nil)
	const order = "01HVMK3P2Q0000000000000001"
	for _, c := range []struct {
		read string
		load func(context.Context, *loaders.Loaders) (any, error)
		want any
	}{
		{"AP1 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			o, err := l.Order(ctx, order)
			return o.ID, err
		}, commerce.OrderID(order)},
		{"AP29 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			o, err := loaders.RecordLoader(l, model.CustomerOrder).Load(ctx, model.CustomerOrderKey{Customer: "cust_01", Order: order})
			return o.ID, err
		}, commerce.OrderID(order)},
		{"AP5 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			i, err := loaders.RecordLoader(l, model.OrderItem).Load(ctx, model.OrderItemKey{Order: order, SKU: "prod_def"})
			return i.Quantity, err
		}, 3},
		{"AP10 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			p, err := loaders.RecordLoader(l, model.ProductBySKU).Load(ctx, "prod_100")
			return p.Available, err
		}, 477},
		{"AP14 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			v, err := loaders.RecordLoader(l, model.InventoryLevel).Load(ctx, model.InventoryLevelKey{SKU: "prod_100", Warehouse: "wh_sea"})
			return v.Quantity, err
		}, 200},
		{"AP30 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			w, err := loaders.RecordLoader(l, model.WarehouseByID).Load(ctx, "wh_sea")
			return w.Name, err
		}, "Seattle"},
		{"AP16 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			e, err := loaders.RecordLoader(l, model.EmployeeByID).Load(ctx, "emp_004")
			return e.Name, err
		}, "Alice Brown"},
		{"AP26 GetItem", func(ctx context.Context, l *loaders.Loaders) (any, error) {
			return loaders.RecordLoader(l, model.EmailClaim).Load(ctx, "alice@example.com")
		}, commerce.CustomerID("cust_01")},
	} {
		t.Run(c.read, func(t *testing.T) {
			ctx, l, trace := s.begin()
			got, err := c.load(ctx, l)
			if err != nil || got != c.want {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
			checkRequests(t, trace, c.read)
		})
	}
}

// Lists of one level are read concurrently. Each reports its own malformed records, and the callback
// waits for all lists.
func TestListsOfOneLevel(t *testing.T) {
	s := newFixture(t, sampleData(t), nil)
	s.putExternal(map[string]any{"pk": "CUSTOMER#c1", "sk": "ORDER#01KNVV2HR00000000000000101", "orderId": "01KNVV2HR00000000000000101"})
	ctx, l, trace := s.begin()
	key := func(id commerce.CustomerID) dynamo.ListRequest {
		return dynamo.ListRequest{PartitionValue: string(id), Page: dynamo.PageRequest{Limit: 10}}
	}
	all := []dynamo.ListRequest{key("cust_01"), key("c1"), key("cust_001"), key("nobody")}
	l.Plan(func(first *loaders.Level) {
		loaders.PageLoader(l, model.CustomerOrders).Plan(ctx, first, all, func(ctx context.Context, next *loaders.Level, found []loaders.FoundValue[dynamo.ListRequest, dynamo.Page[*commerce.Order]]) {
			if len(found) != 4 {
				t.Errorf("then received %d lists, want 4", len(found))
			}
			loaders.RecordLoader(l, model.WarehouseByID).Plan(ctx, next, []commerce.WarehouseID{"wh_sea"}, nil)
		})
	})
	for id, want := range map[commerce.CustomerID]int{"cust_01": 2, "cust_001": 2, "nobody": 0} {
		if got, err := loaders.PageLoader(l, model.CustomerOrders).Load(ctx, key(id)); err != nil || len(got.Items) != want {
			t.Errorf("customer %s has %d orders, %v, want %d", id, len(got.Items), err, want)
		}
	}
	if got, err := loaders.PageLoader(l, model.CustomerOrders).Load(ctx, key("c1")); err != nil || len(got.Items) != 1 || len(got.Malformed) != 1 || !errors.Is(got.Malformed[0], model.ErrCorrupt) {
		t.Errorf("the list with a malformed record has %d orders and leaves out %v, %v, want one of each", len(got.Items), got.Malformed, err)
	}
	checkRequests(t, trace, "AP2 Query", "AP2 Query", "AP2 Query", "AP2 Query", "AP30 GetItem")
	for i, r := range trace.Requests() {
		if want := 1 + i/len(all); r.RoundTrip != want {
			t.Errorf("%s is in round trip %d, want %d", r.Key, r.RoundTrip, want)
		}
	}
}

// The empty set of statuses means all statuses.
func TestOrdersOfAllStatuses(t *testing.T) {
	dataset := sampleData(t)
	ctx, l, trace := newFixture(t, dataset, nil).begin()
	got, err := loaders.PageLoader(l, model.Orders).Load(ctx, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 100}})
	if err != nil || len(got.Items) != len(dataset.Orders) {
		t.Errorf("%d orders, %v, want %d", len(got.Items), err, len(dataset.Orders))
	}
	// Statuses are read in lifecycle order, in four groups.
	for _, r := range trace.Requests()[:5] {
		if r.Pattern != "AP7" || r.RoundTrip > 4 {
			t.Errorf("%s in round trip %d, want AP7 in 4 at most", r.Pattern, r.RoundTrip)
		}
	}
}

// A key that a level plans twice is read once. Both callbacks run as soon as the value is
// available, and the trace shows that both waited for it.
func TestTwoPlansOfOneKey(t *testing.T) {
	dataset, ids := customers(3)
	ctx, l, trace := newFixture(t, dataset, nil).begin()
	type found = []loaders.FoundValue[commerce.CustomerID, *commerce.Customer]
	one, other := make(chan struct{}), make(chan struct{})
	meet := func(mine, yours chan struct{}, want []commerce.CustomerID) func(context.Context, *loaders.Level, found) {
		return func(_ context.Context, _ *loaders.Level, got found) {
			close(mine)
			<-yours
			var keys []commerce.CustomerID
			for _, f := range got {
				checkCustomer(t, f.Value, nil, f.Key)
				keys = append(keys, f.Key)
			}
			if !slices.Equal(keys, want) {
				t.Errorf("then received %v, want %v", keys, want)
			}
		}
	}
	mixed := []commerce.CustomerID{ids[2], ids[0], ids[1], ids[2]}
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids[:1], meet(one, other, ids[:1]))
		loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, mixed, meet(other, one, mixed))
	})
	checkCounts(t, trace, []string{"AP6 GetItem", "AP6 BatchGetItem"})
}

// A plan may load a key that it has just planned. The key is then read at once.
func TestAPlanCanLoadPlannedKeys(t *testing.T) {
	ctx, l, trace := newFixture(t, sampleData(t), nil).begin()
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.OrderByID).PlanCollections(ctx, first, []commerce.OrderID{largeOrder}, nil)
		if _, err := loaders.PageLoader(l, model.Timeline).Load(ctx, dynamo.ListRequest{PartitionValue: string(largeOrder), Page: dynamo.PageRequest{Limit: 1}}); err != nil {
			t.Error("the timeline of the planned order is not loaded:", err)
		}
	})
	checkRequests(t, trace, "AP25 Query")
}

// If the first function of a plan panics, the keys that it planned are read before the panic
// continues.
func TestAPanicInAPlan(t *testing.T) {
	dataset, ids := customers(1)
	ctx, l, trace := newFixture(t, dataset, nil).begin()
	func() {
		defer func() {
			if recover() != "oh" {
				t.Error("the panic is lost")
			}
		}()
		l.Plan(func(first *loaders.Level) {
			loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, nil)
			panic("oh")
		})
	}()
	checkRequests(t, trace, "AP6 GetItem")
}

// A load with a cancelled context returns an error even if the value is available, so that a
// timed-out request ends.
func TestLoadWithCancelledContext(t *testing.T) {
	dataset, ids := customers(1)
	ctx, l, _ := newFixture(t, dataset, nil).begin()
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, nil) })
	gone, leave := context.WithCancel(ctx)
	leave()
	if c, err := loaders.RecordLoader(l, model.CustomerByID).Load(gone, ids[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("Load gives %v, %v, want the context's error", c, err)
	}
}

// An ID in a record that cannot be part of a key fails only its own read.
func TestAnImpossibleKeyFailsAlone(t *testing.T) {
	dataset, ids := customers(2)
	ctx, l, _ := newFixture(t, dataset, nil).begin()
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, []commerce.CustomerID{ids[0], "", "a#b", ids[1]}, nil)
	})
	for _, id := range ids {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
		checkCustomer(t, c, err, id)
	}
	for _, id := range []commerce.CustomerID{"", "a#b"} {
		if _, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("customer %q: error is %v, want ErrCorrupt", id, err)
		}
	}
}

// adminViewer returns a viewer who may read all records.
func adminViewer() access.Viewer {
	return access.Viewer{Principal: access.AnonymousAdmin(), Policy: access.StandardPolicy()}
}
