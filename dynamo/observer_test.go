package dynamo_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// sentRequests is an HTTP client that counts the requests to DynamoDB. It also counts the requests
// that ask for the consumed capacity.
type sentRequests struct {
	next dynamodb.HTTPClient

	mu               sync.Mutex
	all, forCapacity int
}

// reset sets the counters to 0.
func (s *sentRequests) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.forCapacity = 0, 0
}

// Do counts and sends a request.
func (s *sentRequests) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.all++
	if bytes.Contains(body, []byte(`"ReturnConsumedCapacity":"TOTAL"`)) {
		s.forCapacity++
	}
	s.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return s.next.Do(r)
}

// observations is an Observer that records a line for each request.
type observations struct {
	mu    sync.Mutex
	lines []string
}

func (o *observations) Observes(context.Context) bool { return true }

func (o *observations) BeginRequest(ctx context.Context, _ trace.Target) context.Context { return ctx }

func (o *observations) EndRequest(_ context.Context, r trace.Request, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	if r.Key != "" || err == nil && r.ReadUnits+r.WriteUnits == 0 {
		result = "has a key or no units"
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, r.Pattern+" "+r.Operation+" "+result)
}

// An Observer is notified of all kinds of requests. A table asks DynamoDB for the consumed capacity
// only if it has an Observer.
func TestObserverIsNotifiedOfAllRequests(t *testing.T) {
	for _, observed := range []bool{true, false} {
		sent, got, opts := &sentRequests{}, &observations{}, dynamo.Options{}
		if observed {
			opts.Observer = got
		}
		db := embedded.New().Client(func(o *dynamodb.Options) {
			sent.next, o.HTTPClient = o.HTTPClient, sent
		})
		store := storetest.NewTable(t, db, opts)
		dataset, _ := storetest.SampleDataset(t)
		storetest.LoadDataset(t, store, dataset)
		sent.reset()
		got.lines = nil
		ctx, caller := t.Context(), change.Caller{ID: "test", Name: "test", IdempotencyKey: "key"}
		for _, step := range []func() error{
			func() error {
				_, err := dynamo.ReadRecord(ctx, store, model.OrderByID, "01HVNR4Q3R0000000000000002")
				return err
			},
			func() error {
				_, err := dynamo.ReadRecords(ctx, store, model.CustomerByID, []commerce.CustomerID{"cust_01", "cust_02"})
				return err
			},
			func() error { _, err := store.ReadOrderPartition(ctx, "01HVNR4Q3R0000000000000002"); return err },
			func() error { _, err := store.CountCustomerOrders(ctx, "cust_01"); return err },
			func() error {
				_, err := store.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: "01HVNR4Q3R0000000000000002", To: commerce.Confirmed})
				return err
			},
			// The order cannot be moved to the same status again. The server therefore checks whether an
			// idempotency record contains the result.
			func() error {
				_, err := store.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: "01HVNR4Q3R0000000000000002", To: commerce.Confirmed})
				return err
			},
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		all := strings.Join(got.lines, "\n")
		if !observed {
			if all != "" || sent.forCapacity != 0 {
				t.Errorf("without an observer, %d of %d requests ask for the capacity, and these are observed: %s", sent.forCapacity, sent.all, all)
			}
			continue
		}
		if len(got.lines) != sent.all || sent.forCapacity != sent.all {
			t.Errorf("%d requests are observed, %d of %d ask for the capacity", len(got.lines), sent.forCapacity, sent.all)
		}
		if want := "AP1 GetItem ok\nAP6 BatchGetItem ok\nAP25 Query ok\nAP2 Query ok\nWP5 GetItem ok\nWP5 TransactWriteItems ok\nWP5 GetItem ok\nWP5 TransactGetItems ok"; all != want {
			t.Errorf("observed are\n%s\nwant\n%s", all, want)
		}
	}
}
