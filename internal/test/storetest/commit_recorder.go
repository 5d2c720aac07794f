package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/faults"
)

// CommitRecorder is an HTTP client that records order events in the sequence in which their
// transactions commit. Unlike DynamoDB, test engines do not cancel conflicting transactions, so
// CommitRecorder cancels them or executes one transaction at a time.
type CommitRecorder struct {
	next            faults.HTTPClient
	cancelConflicts bool

	transactionMu sync.Mutex

	mu         sync.Mutex
	lockedKeys map[string]bool
	// Events maps a customer's ID to the IDs of the customer's order events. The event that was
	// committed first is the first element.
	Events map[string][]string
	// Attempts is the number of transactions, including cancelled transactions. Cancelled["conflict"]
	// is the number of transactions that the CommitRecorder has cancelled. Cancelled["engine"] is the
	// number of transactions that the test engine has rejected.
	Attempts  int
	Cancelled map[string]int
}

// RecordCommits returns a client of db's engine and its CommitRecorder. If conflict is true,
// conflicting transactions are cancelled. Otherwise, all transactions are executed one after the
// other.
func RecordCommits(db *dynamodb.Client, conflict bool) (*dynamodb.Client, *CommitRecorder) {
	w := &CommitRecorder{cancelConflicts: conflict, lockedKeys: map[string]bool{}, Events: map[string][]string{}, Cancelled: map[string]int{}}
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		w.next, o.HTTPClient, o.Retryer = o.HTTPClient, w, faults.OneAttempt()
	}), w
}

// transactionAction is one action of a transaction, such as a Put. Only the attributes that can
// contain the record's key are decoded.
type transactionAction struct{ Item, Key map[string]map[string]any }

func (a transactionAction) keyAttribute(name string) string {
	for _, attributes := range []map[string]map[string]any{a.Item, a.Key} {
		if s, ok := attributes[name]["S"].(string); ok {
			return s
		}
	}
	return ""
}

// Do sends the request. If the request is a transaction that commits, Do records the transaction's
// event.
func (w *CommitRecorder) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		return w.next.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	var request struct {
		TransactItems []map[string]transactionAction
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	var keys []string
	customer, event := "", ""
	for _, item := range request.TransactItems {
		for _, a := range item {
			keys = append(keys, a.keyAttribute("pk")+" "+a.keyAttribute("sk"))
			if a.keyAttribute("sk") == "LAST_EVENT" {
				customer = model.FirstPlaceholderValue(model.EntityLastEvent.PK, a.keyAttribute("pk"))
			}
			if id, ok := strings.CutPrefix(a.keyAttribute("sk"), "EVENT#"); ok {
				event = id
			}
		}
	}
	if event == "" {
		customer = "" // a repair may correct the record of the last event without an event
	}
	switch {
	case !w.cancelConflicts:
		w.transactionMu.Lock()
		defer w.transactionMu.Unlock()
	case !w.lockKeys(keys):
		return conflictResponse(r, len(keys))
	default:
		defer w.unlockKeys(keys)
	}
	copied := r.Clone(r.Context())
	copied.Body = io.NopCloser(bytes.NewReader(body))
	response, err := w.next.Do(copied)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(text))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Attempts++
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		w.Cancelled["engine"]++
	case customer != "":
		w.Events[customer] = append(w.Events[customer], event)
	}
	return response, nil
}

// lockKeys locks the records of a transaction. It returns false if a concurrent transaction has
// locked one of these records.
func (w *CommitRecorder) lockKeys(keys []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if w.lockedKeys[key] {
			w.Attempts++
			w.Cancelled["conflict"]++
			return false
		}
	}
	for _, key := range keys {
		w.lockedKeys[key] = true
	}
	return true
}

func (w *CommitRecorder) unlockKeys(keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		delete(w.lockedKeys, key)
	}
}

// conflictResponse returns DynamoDB's response to a transaction that conflicts with a concurrent
// transaction.
func conflictResponse(r *http.Request, actions int) (*http.Response, error) {
	reasons := make([]map[string]string, actions)
	for i := range reasons {
		reasons[i] = map[string]string{"Code": "TransactionConflict"}
	}
	text, err := json.Marshal(map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "Transaction cancelled", "CancellationReasons": reasons,
	})
	return &http.Response{
		Status: "400 Bad Request", StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, err
}

// CheckEventOrder fails t if the event IDs of a customer are not in ascending order.
func CheckEventOrder(t TB, customer string, events []string) {
	t.Helper()
	for i := 1; i < len(events); i++ {
		if events[i] <= events[i-1] {
			t.Errorf("%s: event number %d has the ID %s, want an ID above the previous event's ID %s", customer, i, events[i], events[i-1])
		}
	}
}

// PlaceOrders places n orders of the product p0 for a customer and returns the IDs of the orders.
func PlaceOrders(t TB, store *dynamo.Store, customer commerce.CustomerID, n int) []commerce.OrderID {
	t.Helper()
	var ids []commerce.OrderID
	for range n {
		o, err := store.PlaceOrder(context.Background(), change.Caller{Name: "test"}, commerce.OrderRequest{
			CustomerID: customer, Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 1}},
		})
		if err != nil {
			t.Fatalf("place an order: %v", err)
		}
		ids = append(ids, o.ID)
	}
	return ids
}

// ChangeAddress changes the first line of an order's shipping address to "Street n".
func ChangeAddress(store *dynamo.Store, id commerce.OrderID, n int) error {
	_, err := store.UpdateShippingAddress(context.Background(), change.Caller{Name: "test"}, commerce.ShippingAddressChange{
		OrderID: id, ShippingAddress: commerce.Address{Recipient: "R", Line1: fmt.Sprintf("Street %d", n), City: "C", PostalCode: "1", CountryCode: "US"},
	})
	return err
}
