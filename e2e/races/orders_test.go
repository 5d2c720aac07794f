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
	"github.com/ordergraph/ordergraph/internal/faults"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/shoptest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// shop is a shop on a table whose engine can fail.
type shop struct {
	db    *dynamodb.Client
	table string
	url   string
	fault *faults.Client
}

// open opens a shop in a new table.
func open(t testing.TB, db *dynamodb.Client, w shoptest.World, choose faults.Chooser) shop {
	t.Helper()
	s := shop{db: db, table: storetest.TableName()}
	storetest.Load(t, storetest.NewTable(t, db, dynamo.Options{Table: s.table}), w.Book(t))
	s.url, s.fault = s.another(t, choose)
	return s
}

// another starts one more server on the shop's table.
func (s shop) another(t testing.TB, choose faults.Chooser) (string, *faults.Client) {
	t.Helper()
	failing, between := faults.Between(s.db, choose)
	// Reads that fail are the caller's to repeat: the SDK would wait for seconds. Writes are
	// persistent all the same.
	failing = dynamodb.New(failing.Options(), func(o *dynamodb.Options) { o.Retryer = faults.OneAttempt() })
	store, err := dynamo.New(failing, dynamo.Options{Table: s.table})
	if err != nil {
		t.Fatal(err)
	}
	return shoptest.Serve(t, store, io.Discard), between
}

// forgetful is a network between client and server that loses requests and replies.
type forgetful struct {
	next   http.RoundTripper
	mu     sync.Mutex
	source *rand.Rand
	lost   atomic.Int64
}

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	at := f.source.Float64()
	f.mu.Unlock()
	if at < 0.03 {
		return nil, fmt.Errorf("the request is lost")
	}
	response, err := f.next.RoundTrip(r)
	if err == nil && at < 0.1 {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		f.lost.Add(1)
		if err == nil {
			err = fmt.Errorf("the reply is lost")
		}
		return nil, err
	}
	return response, err
}

// client is a client behind such a network.
func client(seed uint64) (*shoptest.Client, *forgetful) {
	c := shoptest.NewClient()
	f := &forgetful{next: c.HTTP.Transport, source: rand.New(rand.NewPCG(seed, 1))}
	c.HTTP.Transport = f
	return c, f
}

// writeFaults and readFaults are rates at which a request in five or so fails. The SDK waits longer
// each time that a write fails in a row; at these rates few wait for longer than 20 ms.
func writeFaults() faults.Rates {
	return faults.Rates{
		faults.Throughput: 0.02, faults.Throttling: 0.02, faults.Internal: 0.02, faults.Conflict: 0.04, faults.InProgress: 0.02, faults.Refused: 0.02,
		faults.Reset: 0.04, faults.Silence: 0.02, faults.Cut: 0.05,
	}
}

func readFaults() faults.Rates {
	return faults.Rates{
		faults.Throughput: 0.01, faults.Throttling: 0.01, faults.Internal: 0.01, faults.Refused: 0.01, faults.Reset: 0.01,
		faults.Silence: 0.01, faults.Cut: 0.01, faults.Unprocessed: 0.03,
	}
}

// randomFaults are faults at those rates.
func randomFaults(seed uint64) faults.Chooser {
	return faults.Random(seed, writeFaults(), readFaults())
}

// attempts is how often a client sends a request: more than any needs.
const attempts = 200

// inParallel runs n tasks, so many at a time.
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

// Every request is sent until it is answered, and some of them twice at once: each makes one order.
func TestOneOrderForEachKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		orders := longtest.Size(100, 150)
		if !storetest.Embedded(t) { // where a transaction takes as long as the table is large
			orders = longtest.Size(orders, 1000)
		}
		s := open(t, db, shoptest.World{Customers: 20, Products: 10, Warehouses: 2, Employees: 3, Stock: 10 * orders}, randomFaults(7))
		c, network := client(7)
		answers := make([]shoptest.Answer, orders)
		var sent, twins atomic.Int64
		send := func(m shoptest.Mutation) shoptest.Answer {
			a, n, err := c.Insist(t.Context(), func() string { return s.url }, m, attempts)
			sent.Add(int64(n))
			if err != nil {
				t.Errorf("%s: %v", m.Key(), err)
			} else if !a.Done() {
				t.Errorf("%s: %v", m.Key(), a)
			}
			return a
		}
		inParallel(orders, 16, func(i int) {
			m := order(i, 1+i%4)
			if i%10 != 0 {
				answers[i] = send(m)
				return
			}
			twin := make(chan shoptest.Answer)
			twins.Add(1)
			go func() { twin <- send(m) }()
			answers[i] = send(m)
			if other := <-twin; other.String() != answers[i].String() {
				t.Errorf("%s: two answers: %v, %v", m.Key(), answers[i], other)
			}
		})
		t.Logf("%d orders, %d of them sent twice at once, %d requests, %d replies lost on the way to the client; %v; %d transactions committed without a reply",
			orders, twins.Load(), sent.Load(), network.lost.Load(), s.fault.Counts(), s.fault.LostCommits())
		for kind := range writeFaults() {
			if s.fault.Counts()[kind] == 0 {
				t.Errorf("no request met %s: the test is weaker than it says", kind)
			}
		}

		ids := map[string]bool{}
		for _, a := range answers {
			ids[a.Record().ID] = true
		}
		audited := storetest.Clean(t, db, s.table, 1)
		if len(audited.Orders) != orders || len(ids) != orders || len(audited.Answers) != orders {
			t.Errorf("%d orders in the table, %d in the answers, %d keys in the table, want %d of each", len(audited.Orders), len(ids), len(audited.Answers), orders)
		}
		for _, id := range audited.Orders {
			if !ids[id] {
				t.Errorf("order %s is in the table, and no answer told of it", id)
			}
		}

		s.fault.Heal()
		inParallel(orders/4, 16, func(i int) {
			i *= 4
			if again := send(order(i, 1+i%4)); again.String() != answers[i].String() {
				t.Errorf("key %d: the first answer was %v, now it is %v", i, answers[i], again)
			}
		})
		if after := storetest.Clean(t, db, s.table, 1); len(after.Records) != len(audited.Records) {
			t.Errorf("sending requests again made %d records of %d", len(after.Records), len(audited.Records))
		}
	})
}

// order is the request for order i, of so many lines.
func order(i, lines int) shoptest.Mutation {
	var items []map[string]any
	for j := range lines {
		items = append(items, map[string]any{"sku": fmt.Sprintf("p%d", (i+3*j)%10), "quantity": 1 + (i+j)%3})
	}
	return shoptest.Mutation{Field: "placeOrder", Input: map[string]any{
		"customerId": fmt.Sprintf("c%d", i%20), "items": items, "idempotencyKey": fmt.Sprintf("order-%d", i),
	}}
}
