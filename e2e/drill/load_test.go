package drill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

const (
	// buyers is the number of clients. Each has its own customer and product.
	buyers = 8
	// A client waits for pause after a response, and for retryPause before it repeats a failed
	// request.
	pause, retryPause = 50 * time.Millisecond, 20 * time.Millisecond
)

// load simulates clients of two servers, which place orders and read them. A client sends each
// request to the servers in turn until it succeeds.
type load struct {
	client *workload.Client
	urls   [2]string
	// stopping makes the clients send no new request.
	stopping atomic.Bool
	running  sync.WaitGroup

	// sent counts requests. failed counts requests that failed with an error that allows a retry.
	sent, failed atomic.Int64

	mu      sync.Mutex
	changed *sync.Cond
	// succeeded counts the orders of each client, which it has also read.
	succeeded [buyers]int
	// orders contains the acknowledged orders.
	orders map[string]bool
}

func newLoad(t *testing.T, servers [2]*workload.Process) *load {
	l := &load{client: workload.NewClient(), orders: map[string]bool{}}
	l.changed = sync.NewCond(&l.mu)
	for i, s := range servers {
		l.urls[i] = s.URL
	}
	t.Cleanup(l.client.HTTP.CloseIdleConnections)
	return l
}

// start starts the clients. They repeat requests until the context ends.
func (l *load) start(ctx context.Context, t *testing.T) {
	for i := range buyers {
		l.running.Go(func() {
			ticker := time.NewTicker(pause)
			defer ticker.Stop()
			for n := 0; !l.stopping.Load(); n++ {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
				if err := l.buy(ctx, i, n); ctx.Err() != nil {
					return
				} else if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				l.mu.Lock()
				l.succeeded[i]++
				l.changed.Broadcast()
				l.mu.Unlock()
			}
		})
	}
}

// repeat sends a request to the servers in turn until it succeeds. send returns ErrUnknownOutcome
// if the request can be repeated. repeat returns all other errors.
func (l *load) repeat(ctx context.Context, first int, send func(url string) error) error {
	ticker := time.NewTicker(retryPause)
	defer ticker.Stop()
	for n := 1; ; n++ {
		l.sent.Add(1)
		err := send(l.urls[(first+n)%2])
		if !errors.Is(err, workload.ErrUnknownOutcome) {
			return err
		}
		l.failed.Add(1)
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// buy places an order and then reads it from the other server.
func (l *load) buy(ctx context.Context, client, n int) error {
	order := workload.Mutation{Field: "placeOrder", Input: map[string]any{
		"customerId": fmt.Sprintf("c%d", client), "items": []map[string]any{{"sku": fmt.Sprintf("p%d", client), "quantity": 1}}, "idempotencyKey": fmt.Sprintf("buyer-%d-%d", client, n),
	}}
	var placed workload.Response
	if err := l.repeat(ctx, n, func(url string) (err error) {
		placed, err = l.client.Send(ctx, url, order)
		return err
	}); err != nil {
		return err
	}
	id := placed.Record().ID
	l.mu.Lock()
	twice := l.orders[id]
	l.orders[id] = true
	l.mu.Unlock()
	if twice || !placed.Succeeded() {
		return fmt.Errorf("placeOrder %d returned %v, which is no new order", n, placed)
	}
	return l.repeat(ctx, n+1, func(url string) error { return l.read(ctx, url, id) })
}

// read reads an order with its line item.
func (l *load) read(ctx context.Context, url, id string) error {
	body, err := json.Marshal(map[string]string{"query": fmt.Sprintf(`{ order(id: %q) { id items { nodes { product { sku } } } } }`, id)})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := l.client.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var got struct {
		Data   struct{ Order *struct{ ID string } }
		Errors []struct{ Extensions struct{ Code string } }
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %+v: %w", response.StatusCode, got, err)
	}
	for _, e := range got.Errors {
		if slices.Contains([]string{"UNAVAILABLE", "TIMED_OUT"}, e.Extensions.Code) {
			return workload.ErrUnknownOutcome
		}
	}
	if len(got.Errors) > 0 || got.Data.Order == nil || got.Data.Order.ID != id {
		return fmt.Errorf("order %s is %+v", id, got)
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

// checkOrders verifies that the table has exactly the acknowledged orders.
func (l *load) checkOrders(t *testing.T, audited *storetest.AuditResult) {
	t.Helper()
	if len(audited.Orders) != len(l.orders) || len(audited.IdempotencyRecords) != len(l.orders) {
		t.Errorf("the table has %d orders and %d idempotency keys, want %d", len(audited.Orders), len(audited.IdempotencyRecords), len(l.orders))
	}
	for _, id := range audited.Orders {
		if !l.orders[id] {
			t.Errorf("order %s is in the table, but no response returned it", id)
		}
	}
}
