package dynamo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// receiveEvent receives a provider's event about the given order, or about the payment pi.
func receiveEvent(t testing.TB, store *dynamo.Store, order commerce.OrderID, payment, reference string) error {
	kind, amount, _ := strings.Cut(payment, " ")
	e := commerce.PaymentEvent{Kind: commerce.PaymentKind(kind), Amount: storetest.USD(amount), Provider: "stripe", Reference: reference, OrderID: string(order)}
	if order == "" {
		e.Of = commerce.PaymentReferences{Authorization: "pi/authorization", Capture: "pi", Void: "pi/void"}
	}
	return store.ReceivePayment(t.Context(), change.Caller{Name: "stripe"}, e, false)
}

// unmatched returns the references of the unmatched payments, newest first.
func unmatched(t testing.TB, store *dynamo.Store) (references []string) {
	t.Helper()
	page, err := dynamo.ReadPage(t.Context(), store, model.UnmatchedPayments, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 100}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range page.Items {
		references = append(references, p.Reference())
	}
	return references
}

// A refund that names no order belongs to the order of the captured payment. The release of an
// authorization, which a provider may report as a refund, is never recorded as a refund.
func TestRefundsWithoutAnOrder(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		id := commerce.OrderID(storetest.SmallOrderID(0))
		for i, c := range []struct {
			before         []string
			refund, wanted string
		}{
			{[]string{"capture 5 pi"}, "refund 2", "refunded 2.00"},
			{[]string{"authorization 5 pi/authorization", "capture 5 pi"}, "refund 2", "refunded 2.00"},
			{[]string{"authorization 5 pi/authorization", "capture 3 pi"}, "refund 2", "may be the release of the rest"},
			{[]string{"authorization 5 pi/authorization", "void 5 pi/void"}, "refund 5", "refunded 0.00"},
			{[]string{"authorization 5 pi/authorization"}, "refund 5", "The payment pi does not exist"},
			{nil, "refund 5", "The payment pi does not exist"},
			{[]string{"capture 5 pi"}, "refund 6", "only 5.00 was captured"},
		} {
			r := r
			if i > 0 {
				r = storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
			}
			for _, payment := range c.before {
				at := strings.LastIndex(payment, " ")
				if err := receiveEvent(t, r.Store, id, payment[:at], payment[at+1:]); err != nil {
					t.Fatal(err)
				}
			}
			var got string
			for range 2 {
				if err := receiveEvent(t, r.Store, "", c.refund, "re"); err != nil {
					if got = err.Error(); !commerce.IsUserError(err) || fmt.Sprint(unmatched(t, r.Store)) != "[re]" {
						t.Errorf("%s %s: %v, and the unmatched payments are %s", c.before, c.refund, err, unmatched(t, r.Store))
					}
				} else if got = "refunded " + readOrder(t, r.Store, id).Refunded().Decimal(); len(unmatched(t, r.Store)) > 0 {
					t.Errorf("%s %s: the unmatched payments are %s", c.before, c.refund, unmatched(t, r.Store))
				}
				if !strings.Contains(got, c.wanted) {
					t.Errorf("%s %s: %s, want %s", c.before, c.refund, got, c.wanted)
				}
			}
			r.CheckClean()
		}
	})
}

// A refund that arrives before the payment that is refunded is recorded by a repetition. The reason
// of an unmatched payment is always the latest one.
func TestUnmatchedPayments(t *testing.T) {
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 3), dynamo.Options{})
	id := commerce.OrderID(storetest.SmallOrderID(0))
	reason := func() string {
		t.Helper()
		page, err := dynamo.ReadPage(t.Context(), r.Store, model.UnmatchedPayments, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 1}})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%+v, %v", page.Items, err)
		}
		return page.Items[0].Reason
	}
	if err := receiveEvent(t, r.Store, "", "refund 5", "re"); !commerce.IsUserError(err) || !strings.Contains(reason(), "The payment pi does not exist") {
		t.Error(err)
	}
	if err := receiveEvent(t, r.Store, id, "capture 4", "pi"); err != nil {
		t.Fatal(err)
	}
	if err := receiveEvent(t, r.Store, "", "refund 5", "re"); !commerce.IsUserError(err) || !strings.Contains(reason(), "only 4.00 was captured") {
		t.Error(err)
	}
	if err := receiveEvent(t, r.Store, id, "capture 1", "pi2"); err != nil {
		t.Fatal(err)
	}
	if err := receiveEvent(t, r.Store, "", "refund 5", "re"); err != nil || len(unmatched(t, r.Store)) > 0 {
		t.Errorf("%v, %s", err, unmatched(t, r.Store))
	}
	for order, want := range map[string]string{"no ULID": "The order no ULID does not exist", strings.Repeat("#", commerce.MaxGivenOrderID): "does not exist"} {
		if err := receiveEvent(t, r.Store, commerce.OrderID(order), "capture 5", "x"); !commerce.IsUserError(err) || !strings.Contains(reason(), want) {
			t.Errorf("%s: %v", order, err)
		}
	}
	if _, err := pay(t, r.Store, id, "capture 5", "x"); err != nil || len(unmatched(t, r.Store)) > 0 {
		t.Errorf("%v, %s", err, unmatched(t, r.Store))
	}
	e := commerce.PaymentEvent{Kind: commerce.PaymentCapture, Amount: storetest.USD("5"), Provider: "bank", Reference: "y"}
	if err := r.Store.ReceivePayment(t.Context(), change.Caller{Name: "bank"}, e, false); !commerce.IsUserError(err) || !strings.Contains(reason(), "orderId is missing") {
		t.Error(err)
	}
	r.CheckClean()
}
