package drill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

const (
	// buyers and readers are the numbers of clients. Buyers place orders, and readers read orders that
	// do not change. Each client has its own customer and product.
	buyers, readers = 4, 4
	// ordersEach is the number of orders of each reader.
	ordersEach = 3
	// A client waits for pause after a response, and for retryPause before it repeats a failed
	// request.
	pause, retryPause = 50 * time.Millisecond, 20 * time.Millisecond
)

// load simulates clients of two servers. A client sends each request to the servers in turn until
// it succeeds.
type load struct {
	client *workload.Client
	urls   [2]string
	// want are the expected responses of the readers.
	want [readers]map[string]any
	// stopping makes the clients send no new request.
	stopping atomic.Bool
	running  sync.WaitGroup

	// sent counts requests. failed counts requests that failed with an error that allows a retry.
	// partial counts responses to queries in which some fields failed.
	sent, failed, partial atomic.Int64

	mu      sync.Mutex
	changed *sync.Cond
	// succeeded counts the successful requests by client.
	succeeded [buyers + readers]int
	// orders maps the acknowledged orders to their idempotency keys. repeated counts the orders that
	// were requested more than once.
	orders   map[string]string
	repeated int
}

func newLoad(t *testing.T, servers [2]*workload.Process) *load {
	l := &load{client: workload.NewClient(), orders: map[string]string{}}
	l.changed = sync.NewCond(&l.mu)
	for i, s := range servers {
		l.urls[i] = s.URL
	}
	t.Cleanup(l.client.HTTP.CloseIdleConnections)
	return l
}

// start places the orders of the readers and starts the clients. The clients repeat requests until
// the context ends.
func (l *load) start(ctx context.Context, t *testing.T) {
	t.Helper()
	for i := range readers {
		for n := range ordersEach {
			key := fmt.Sprintf("reader-%d-%d", i, n)
			response, err := l.client.Send(ctx, l.urls[n%2], orderOf(buyers+i, key))
			if err != nil || !response.Succeeded() {
				t.Fatalf("placeOrder: %v, %v", response, err)
			}
			l.orders[response.Record().ID] = key
		}
		data, errs, err := l.query(ctx, l.urls[0], readerQuery(i))
		if err != nil || len(errs) > 0 {
			t.Fatalf("query: %v, %v, %v", data, errs, err)
		}
		l.want[i] = data
	}
	for i := range buyers {
		l.running.Go(func() { l.each(ctx, t, i, func(n int) error { return l.buy(ctx, t, i, n) }) })
	}
	for i := range readers {
		l.running.Go(func() { l.each(ctx, t, buyers+i, func(int) error { return l.read(ctx, t, i) }) })
	}
}

// each calls request with increasing numbers until the load stops.
func (l *load) each(ctx context.Context, t *testing.T, client int, request func(n int) error) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for n := 0; !l.stopping.Load(); n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := request(n); ctx.Err() != nil {
			return
		} else if err != nil {
			t.Errorf("client %d: %v", client, err)
			return
		}
		l.mu.Lock()
		l.succeeded[client]++
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}

// repeat sends a request to the servers in turn until it succeeds. send returns ErrUnknownOutcome
// if the request can be repeated. repeat returns all other errors, and the number of attempts.
func (l *load) repeat(ctx context.Context, first int, send func(url string) error) (int, error) {
	ticker := time.NewTicker(retryPause)
	defer ticker.Stop()
	for n := 1; ; n++ {
		l.sent.Add(1)
		err := send(l.urls[(first+n)%2])
		if !errors.Is(err, workload.ErrUnknownOutcome) {
			return n, err
		}
		l.failed.Add(1)
		select {
		case <-ctx.Done():
			return n, err
		case <-ticker.C:
		}
	}
}

// orderOf returns a request for an order of a client.
func orderOf(client int, key string) workload.Mutation {
	return workload.Mutation{Field: "placeOrder", Input: map[string]any{
		"customerId": fmt.Sprintf("c%d", client), "items": []map[string]any{{"sku": fmt.Sprintf("p%d", client), "quantity": 1}}, "idempotencyKey": key,
	}}
}

// buy places an order and then reads it from the other server.
func (l *load) buy(ctx context.Context, t *testing.T, client, n int) error {
	key := fmt.Sprintf("buyer-%d-%d", client, n)
	var placed workload.Response
	attempts, err := l.repeat(ctx, n, func(url string) (err error) {
		placed, err = l.client.Send(ctx, url, orderOf(client, key))
		return err
	})
	if err != nil {
		return err
	}
	if !placed.Succeeded() {
		return fmt.Errorf("placeOrder %s returned user errors: %v", key, placed)
	}
	id := placed.Record().ID
	l.mu.Lock()
	other, twice := l.orders[id]
	l.orders[id] = key
	if attempts > 1 {
		l.repeated++
	}
	l.mu.Unlock()
	if twice {
		return fmt.Errorf("order %s is the result of the keys %s and %s", id, other, key)
	}
	want := map[string]any{"order": map[string]any{
		"id": id, "status": "PENDING", "customer": map[string]any{"id": fmt.Sprintf("c%d", client)},
		"items": map[string]any{"nodes": []any{map[string]any{"quantity": 1.0, "product": map[string]any{"sku": fmt.Sprintf("p%d", client)}}}},
	}}
	return l.expect(ctx, t, n+attempts, fmt.Sprintf(`{ order(id: %q) { id status customer { id } items { nodes { quantity product { sku } } } } }`, id), want)
}

// readerQuery returns the query of a reader.
func readerQuery(reader int) string {
	client := buyers + reader
	return fmt.Sprintf(`{ customer(id: "c%d") { name email orders(first: 5) { nodes { id status total { amount } timeline { nodes { type at } } items { nodes { quantity product { sku name } } } } } } product(sku: "p%d") { name unitPrice { amount } } }`, client, client)
}

func (l *load) read(ctx context.Context, t *testing.T, reader int) error {
	return l.expect(ctx, t, reader, readerQuery(reader), l.want[reader])
}

// expect repeats a query until no field has failed. In each response, all other fields must have
// the expected values.
func (l *load) expect(ctx context.Context, t *testing.T, first int, query string, want map[string]any) error {
	_, err := l.repeat(ctx, first, func(url string) error {
		data, errs, err := l.query(ctx, url, query)
		if err != nil {
			return err
		}
		if err := compare(want, data, nil, errs); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		if len(errs) == 0 {
			return nil
		}
		for _, field := range data {
			if field != nil {
				l.partial.Add(1)
				break
			}
		}
		return fmt.Errorf("%w: %v", workload.ErrUnknownOutcome, errs)
	})
	return err
}

// fieldError is an error in a response.
type fieldError struct {
	Message    string
	Path       []any
	Extensions struct{ Code string }
}

// query sends a query. It returns the data and the errors of fields. The errors must allow a retry.
func (l *load) query(ctx context.Context, url, query string) (map[string]any, []fieldError, error) {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := l.client.HTTP.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, err
	}
	var decoded struct {
		Data   map[string]any
		Errors []fieldError
	}
	if err := json.Unmarshal(text, &decoded); err != nil || response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	for _, e := range decoded.Errors {
		if !slices.Contains([]string{"UNAVAILABLE", "TIMED_OUT"}, e.Extensions.Code) {
			return nil, nil, fmt.Errorf("unexpected error: %s", text)
		}
	}
	return decoded.Data, decoded.Errors, nil
}

// compare returns an error if got differs from want, except for fields that are null because of an
// error.
func compare(want, got any, path []any, errs []fieldError) error {
	isNull := got == nil || reflect.ValueOf(got).Kind() == reflect.Map && reflect.ValueOf(got).IsNil()
	if isNull && slices.ContainsFunc(errs, func(e fieldError) bool { return len(e.Path) >= len(path) && slices.Equal(e.Path[:len(path)], path) }) {
		return nil
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%v is %v, want %v", path, got, want)
		}
		for name := range w {
			if err := compare(w[name], g[name], append(slices.Clip(path), name), errs); err != nil {
				return err
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%v is %v, want %v", path, got, want)
		}
		for i := range w {
			if err := compare(w[i], g[i], append(slices.Clip(path), float64(i)), errs); err != nil {
				return err
			}
		}
	default:
		if want != got {
			return fmt.Errorf("%v is %v, want %v", path, got, want)
		}
	}
	return nil
}

// waitSucceeded waits until n further requests of each client have succeeded.
func (l *load) waitSucceeded(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.succeeded
	for i := range l.succeeded {
		for l.succeeded[i] < before[i]+n && ctx.Err() == nil && !t.Failed() {
			l.changed.Wait()
		}
	}
	if ctx.Err() != nil || t.Failed() {
		t.Fatalf("clients have no successful responses: before %v, now %v", before, l.succeeded)
	}
}

// stop stops the clients. They first complete their requests.
func (l *load) stop() {
	l.stopping.Store(true)
	l.running.Wait()
}

// expectFewFailures fails the test if more than 2 of 100 requests failed.
func (l *load) expectFewFailures(t *testing.T) {
	t.Helper()
	sent, failed := l.sent.Load(), l.failed.Load()
	if failed*50 > sent {
		t.Errorf("%d of %d requests failed", failed, sent)
	}
	t.Logf("%d requests so far, %d failed", sent, failed)
}

func (l *load) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d requests, %d failed and were repeated (%d partial responses); %d orders were acknowledged, %d of them after a repetition",
		l.sent.Load(), l.failed.Load(), l.partial.Load(), len(l.orders), l.repeated)
}

// checkOrders verifies that the table has exactly the acknowledged orders.
func (l *load) checkOrders(t *testing.T, audited *storetest.AuditResult) {
	t.Helper()
	if len(audited.Orders) != len(l.orders) || len(audited.IdempotencyRecords) != len(l.orders) {
		t.Errorf("the table has %d orders and %d idempotency keys, want %d", len(audited.Orders), len(audited.IdempotencyRecords), len(l.orders))
	}
	for _, id := range audited.Orders {
		if l.orders[id] == "" {
			t.Errorf("order %s is in the table, but no response returned it", id)
		}
	}
}
