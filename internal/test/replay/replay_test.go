package replay_test

import (
	"context"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/test/replay"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// requestCounter is an HTTPClient client that counts the requests to an engine.
type requestCounter struct {
	next     replay.HTTPClient
	requests atomic.Int64
}

func (c *requestCounter) Do(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.next.Do(r)
}

// newReplayedStore returns a Store of the sample dataset behind a replaying client. It also returns
// the counter of requests to the engine.
func newReplayedStore(t *testing.T) (*dynamo.Store, *replay.Client, *requestCounter) {
	t.Helper()
	engine := &requestCounter{}
	db := embedded.New().Client(func(o *dynamodb.Options) { engine.next, o.HTTPClient = o.HTTPClient, engine })
	client, replayed := replay.WrapClient(db)
	store := storetest.NewTable(t, client, dynamo.Options{Table: "dataset"})
	sample, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, sample)
	return store, replayed, engine
}

func readCustomer(ctx context.Context, t *testing.T, store *dynamo.Store) commerce.Customer {
	t.Helper()
	found, err := dynamo.ReadRecords(ctx, store, model.CustomerByID, []commerce.CustomerID{"cust_01"})
	if err != nil || found[0].Err != nil {
		t.Errorf("the customer cannot be read: %v, %+v", err, found)
		return commerce.Customer{}
	}
	return *found[0].Value
}

func TestReadsReachTheEngineOnce(t *testing.T) {
	store, replayed, engine := newReplayedStore(t)
	ctx := context.Background()
	first := readCustomer(ctx, t, store)
	engineRequests, clientRequests := engine.requests.Load(), replayed.RequestCount()

	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 25 {
				var n atomic.Int64
				if again := readCustomer(replay.WithRequestCounter(ctx, &n), t, store); again.Name != first.Name || n.Load() != 1 {
					t.Errorf("%d requests return %+v, want 1 request that returns %+v", n.Load(), again, first)
				}
			}
		})
	}
	clients.Wait()
	if now := engine.requests.Load(); now != engineRequests {
		t.Errorf("the engine got %d requests, although their responses were recorded", now-engineRequests)
	}
	if now := replayed.RequestCount(); now != clientRequests+100 {
		t.Errorf("%d requests were counted, want 100", now-clientRequests)
	}
}

func TestWritesDeleteKeptResponses(t *testing.T) {
	store, _, _ := newReplayedStore(t)
	ctx := context.Background()
	changed := readCustomer(ctx, t, store)
	changed.Name = "New Name"
	storetest.LoadDataset(t, store, commerce.Dataset{Customers: []commerce.Customer{changed}})
	if now := readCustomer(ctx, t, store); now.Name != changed.Name {
		t.Errorf("the renamed customer has the name %q, want %q", now.Name, changed.Name)
	}
}

// After Record, the engine executes each transaction once. Repeat replays the responses, also of a
// failed transaction. A read after a transaction gets the response from after it.
func TestRecordedTransactionsAreRepeated(t *testing.T) {
	store, replayed, engine := newReplayedStore(t)
	ctx := context.Background()
	id := readCustomer(ctx, t, store).ID
	execute := func() (names [2]string, refusal error) {
		names[0] = readCustomer(ctx, t, store).Name
		name := names[0] + " II"
		if _, err := store.UpdateCustomer(ctx, change.Caller{Name: "test"}, commerce.CustomerChange{ID: id, Name: &name}); err != nil {
			t.Fatal(err)
		}
		names[1] = readCustomer(ctx, t, store).Name
		_, refusal = store.CreateCustomer(ctx, change.Caller{Name: "test"}, commerce.Customer{ID: id, Name: "Ann", Email: "ann@example.com"})
		return names, refusal
	}
	replayed.Record()
	first, refused := execute()
	if first[1] != first[0]+" II" || refused == nil {
		t.Fatalf("the customer has the names %q and %q; the second transaction returns %v", first[0], first[1], refused)
	}
	engineRequests := engine.requests.Load()
	for range 2 {
		replayed.Rewind()
		if again, err := execute(); again != first || err == nil || err.Error() != refused.Error() {
			t.Errorf("the replay returned %q and %v, want %q and %v", again, err, first, refused)
		}
	}
	if more := engine.requests.Load() - engineRequests; more > 0 {
		t.Errorf("the engine got %d repeated requests, want 0", more)
	}
}

// The engine executes the first transaction only. All later transactions get its response, and
// reads get their old responses.
func TestTransactionsAreReplayed(t *testing.T) {
	store, replayed, engine := newReplayedStore(t)
	ctx := context.Background()
	before := readCustomer(ctx, t, store)
	replayed.ReplayTransactions()
	orders := map[commerce.OrderID]bool{}
	for range 3 {
		order, err := store.PlaceOrder(ctx, change.Caller{Name: "test"}, commerce.OrderRequest{
			CustomerID: before.ID, Lines: []commerce.OrderLine{{SKU: "prod_100", Quantity: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		orders[order.ID] = true
	}
	if len(orders) != 3 {
		t.Errorf("3 transactions placed %d orders", len(orders))
	}
	engineRequests := engine.requests.Load()
	if after := readCustomer(ctx, t, store); *after.OrderCount != *before.OrderCount || engine.requests.Load() != engineRequests {
		t.Errorf("the customer has %d orders, want the replayed %d", *after.OrderCount, *before.OrderCount)
	}
	// A read that was not kept before reads the engine.
	page, err := dynamo.ReadPage(ctx, store, model.CustomerOrders, dynamo.ListRequest{PartitionValue: string(before.ID), Page: dynamo.PageRequest{Limit: 100}})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, o := range page.Items {
		if orders[o.ID] {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the engine has %d of the orders, want only the first", found)
	}
}

// Over HTTPClient a response has DynamoDB's length and checksum headers with the right values.
func TestResponsesOverHTTP(t *testing.T) {
	store, replayed, _ := newReplayedStore(t)
	if err := store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(replayed)
	defer web.Close()
	for _, one := range []struct {
		body   string
		status int
	}{
		{`{"TableName":"dataset","Key":{"pk":{"S":"CUSTOMER#cust_01"},"sk":{"S":"#METADATA"}}}`, http.StatusOK},
		{`{"TableName":"dataset","Key":{"sk":{"S":"#METADATA"},"pk":{"S":"CUSTOMER#cust_01"}}}`, http.StatusOK},
		{`{"TableName":"none","Key":{"pk":{"S":"CUSTOMER#cust_01"},"sk":{"S":"#METADATA"}}}`, http.StatusBadRequest},
		{`{`, http.StatusBadRequest},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != one.status {
			t.Fatalf("%s: status %d, %s", one.body, response.StatusCode, body)
		}
		sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)
		if one.status == http.StatusOK && (response.Header.Get("X-Amz-Crc32") != sum || response.ContentLength != int64(len(body)) || !strings.Contains(string(body), "cust_01")) {
			t.Errorf("%s: %d bytes with the checksum %s: %s, with the header %v", one.body, len(body), sum, body, response.Header)
		}
	}
}
