package races_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// faultyServer is a server and a table whose engine can fail.
type faultyServer struct {
	db     *dynamodb.Client
	table  string
	url    string
	faults *faults.Client
}

// newFaultyServer loads a fixture into a new table and starts a server.
func newFaultyServer(t testing.TB, db *dynamodb.Client, w workload.Fixture, choose faults.Chooser) faultyServer {
	t.Helper()
	s := faultyServer{db: db, table: storetest.TableName()}
	store := storetest.NewTable(t, db, dynamo.Options{Table: s.table})
	if w.ReorderPoint > 0 {
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: store}, model.EntityLowStock.Name)
	}
	storetest.LoadDataset(t, store, w.Dataset(t))
	s.url, s.faults = s.startServer(t, choose)
	return s
}

// startServer starts another server on the same table.
func (s faultyServer) startServer(t testing.TB, choose faults.Chooser) (string, *faults.Client) {
	t.Helper()
	failing, between := faults.WrapClient(s.db, choose)
	// The SDK does not retry failed reads, because it would wait for seconds. Instead, the test's
	// clients repeat their requests. Writes have their own retry options.
	failing = dynamodb.New(failing.Options(), func(o *dynamodb.Options) { o.Retryer = faults.OneAttempt() })
	store, err := dynamo.New(failing, dynamo.Options{Table: s.table})
	if err != nil {
		t.Fatal(err)
	}
	// Ping reads the layout of the table, and can also fail.
	for err = store.Ping(t.Context()); err != nil; err = store.Ping(t.Context()) {
		t.Logf("read the layout: %v", err)
	}
	return workload.Serve(t, store, io.Discard), between
}

// lossyTransport is a network between client and server that loses requests and responses.
type lossyTransport struct {
	next   http.RoundTripper
	mu     sync.Mutex
	source *rand.Rand
	lost   atomic.Int64
}

func (f *lossyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	at := f.source.Float64()
	f.mu.Unlock()
	if at < 0.03 {
		return nil, fmt.Errorf("the request was lost")
	}
	response, err := f.next.RoundTrip(r)
	if err == nil && at < 0.1 {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		f.lost.Add(1)
		if err == nil {
			err = fmt.Errorf("the response was lost")
		}
		return nil, err
	}
	return response, err
}

// newLossyClient returns a client with a lossyTransport.
func newLossyClient(seed uint64) (*workload.Client, *lossyTransport) {
	c := workload.NewClient()
	f := &lossyTransport{next: c.HTTP.Transport, source: rand.New(rand.NewPCG(seed, 1))}
	c.HTTP.Transport = f
	return c, f
}

// With writeFaults, about a quarter of the writes fail. With readFaults, about a tenth of the reads
// fail. After each failed write, the SDK waits longer. At this rate of failures, it rarely waits
// for more than 20 ms.
func writeFaults() faults.Rates {
	return faults.Rates{
		faults.ThroughputExceeded: 0.02, faults.Throttling: 0.02, faults.InternalServerError: 0.02, faults.TransactionConflict: 0.04, faults.TransactionInProgress: 0.02, faults.ConnectionRefused: 0.02,
		faults.ConnectionReset: 0.04, faults.ResponseTimeout: 0.02, faults.TruncatedResponse: 0.05,
	}
}

func readFaults() faults.Rates {
	return faults.Rates{
		faults.ThroughputExceeded: 0.01, faults.Throttling: 0.01, faults.InternalServerError: 0.01, faults.ConnectionRefused: 0.01, faults.ConnectionReset: 0.01,
		faults.ResponseTimeout: 0.01, faults.TruncatedResponse: 0.01, faults.Unprocessed: 0.03,
	}
}

// randomFaults returns a Chooser with these rates.
func randomFaults(seed uint64) faults.Chooser {
	return faults.Random(seed, writeFaults(), readFaults())
}

// attempts is the maximum number of attempts per request, more than any request needs.
const attempts = 200

// inParallel runs n tasks on a number of concurrent clients.
func inParallel(n, clients int, task func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				task(i)
			}
		})
	}
	wg.Wait()
}

// Clients repeat each request until they get a response, and send some requests twice concurrently.
// Each idempotency key creates one order.
func TestOneOrderForEachKey(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		orders := longtest.Size(100, 1000)
		s := newFaultyServer(t, db, workload.Fixture{Customers: 20, Products: 10, Warehouses: 2, Employees: 3, Stock: 10 * orders}, randomFaults(7))
		c, network := newLossyClient(7)
		answers := make([]workload.Response, orders)
		var sent, doubled atomic.Int64
		send := func(m workload.Mutation) workload.Response {
			a, n, err := c.SendWithRetries(t.Context(), func() string { return s.url }, m, attempts)
			sent.Add(int64(n))
			if err != nil {
				t.Errorf("%s: %v", m.IdempotencyKey(), err)
			} else if !a.Succeeded() {
				t.Errorf("%s: %v", m.IdempotencyKey(), a)
			}
			return a
		}
		inParallel(orders, 16, func(i int) {
			m := placeOrderMutation(i, 1+i%4)
			if i%10 != 0 {
				answers[i] = send(m)
				return
			}
			second := make(chan workload.Response)
			doubled.Add(1)
			go func() { second <- send(m) }()
			answers[i] = send(m)
			if other := <-second; other.String() != answers[i].String() {
				t.Errorf("%s: two different responses: %v, %v", m.IdempotencyKey(), answers[i], other)
			}
		})
		t.Logf("%d orders, %d of them sent twice concurrently, %d attempts, %d responses to the client lost; faults: %v; %d responses to committed transactions lost",
			orders, doubled.Load(), sent.Load(), network.lost.Load(), s.faults.Counts(), s.faults.LostCommits())
		for kind := range writeFaults() {
			if s.faults.Counts()[kind] == 0 && longtest.Enabled() { // 100 orders can miss a rare fault
				t.Errorf("no request met %s: the test covers too little", kind)
			}
		}

		ids := map[string]bool{}
		for _, a := range answers {
			ids[a.Record().ID] = true
		}
		audited := storetest.AssertConsistent(t, db, s.table, 1)
		if len(audited.Orders) != orders || len(ids) != orders || len(audited.IdempotencyRecords) != orders {
			t.Errorf("%d orders in the table, %d in the responses, %d idempotency keys in the table, want %d of each", len(audited.Orders), len(ids), len(audited.IdempotencyRecords), orders)
		}
		for _, id := range audited.Orders {
			if !ids[id] {
				t.Errorf("order %s is in the table, but no response returned it", id)
			}
		}

		s.faults.Stop()
		inParallel(orders/4, 16, func(i int) {
			i *= 4
			if again := send(placeOrderMutation(i, 1+i%4)); again.String() != answers[i].String() {
				t.Errorf("key %d: the first response was %v, the repeated response is %v", i, answers[i], again)
			}
		})
		if after := storetest.AssertConsistent(t, db, s.table, 1); len(after.Records) != len(audited.Records) {
			t.Errorf("after repeating requests, the table has %d records, want %d", len(after.Records), len(audited.Records))
		}
	})
}

// placeOrderMutation returns the request for order i with a number of line items.
func placeOrderMutation(i, lines int) workload.Mutation {
	var items []map[string]any
	for j := range lines {
		items = append(items, map[string]any{"sku": fmt.Sprintf("p%d", (i+3*j)%10), "quantity": 1 + (i+j)%3})
	}
	return workload.Mutation{Field: "placeOrder", Input: map[string]any{
		"customerId": fmt.Sprintf("c%d", i%20), "items": items, "idempotencyKey": fmt.Sprintf("order-%d", i),
	}}
}
