package dynamo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

var sam = change.Caller{ID: "sam", Name: "sam"}

// pay records a payment. The kind and the amount are separated by a space.
func pay(t testing.TB, store *dynamo.Store, order commerce.OrderID, payment, reference string) (*commerce.Payment, error) {
	kind, amount, _ := strings.Cut(payment, " ")
	return store.RecordPayment(t.Context(), sam, commerce.PaymentRecord{OrderID: order, Kind: commerce.PaymentKind(kind), Amount: storetest.USD(amount), Provider: "stripe", Reference: reference})
}

func readOrder(t testing.TB, store *dynamo.Store, id commerce.OrderID) *commerce.Order {
	t.Helper()
	o, err := dynamo.ReadRecord(t.Context(), store.Consistent(), model.OrderByID, id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A provider's event that is recorded by several clients at the same time is one payment. Refunds at the same
// time never exceed what was captured.
func TestConcurrentPayments(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		id := commerce.OrderID(storetest.SmallOrderID(0))
		concurrently := func(record func(i int) error) {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					if err := record(i); err != nil && !commerce.IsUserError(err) {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		ids := make([]commerce.PaymentID, 8)
		concurrently(func(i int) error {
			p, err := pay(t, r.Store, id, "capture 5", "ch_1")
			if err == nil {
				ids[i] = p.ID
			}
			return err
		})
		if slices.Sort(ids); ids[0] != ids[7] || ids[0] == "" {
			t.Errorf("the payments are %s", ids)
		}
		concurrently(func(i int) error {
			_, err := pay(t, r.Store, id, "refund 2", fmt.Sprint("re_", i))
			return err
		})
		if o := readOrder(t, r.Store, id); o.Captured().Decimal() != "5.00" || o.Refunded().Decimal() != "4.00" {
			t.Errorf("captured %s, refunded %s, want 5.00 and 4.00", o.Captured().Decimal(), o.Refunded().Decimal())
		}
		r.CheckClean()
	})
}

// Payments that break a rule are refused, and change nothing.
func TestRefusedPayments(t *testing.T) {
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 3), dynamo.Options{})
	id, other := commerce.OrderID(storetest.SmallOrderID(0)), commerce.OrderID(storetest.SmallOrderID(1))
	for _, p := range []string{"authorization 5", "capture 5", "refund 2"} {
		if _, err := pay(t, r.Store, id, p, p[:2]); err != nil {
			t.Fatal(err)
		}
	}
	before := len(r.All())
	for _, c := range []struct {
		order                    commerce.OrderID
		payment, reference, want string
	}{
		{id, "refund 3.01", "x", "only 5.00 was captured"},
		{id, "chargeback 4", "x", "only 5.00 was captured"},
		{id, "void 5.01", "x", "more than the authorized amount"},
		{id, "capture 9999999999999.99", "x", "more than 15 digits"},
		{id, "capture 6", "ca", "already has a payment ca"},
		{id, "refund 5", "ca", "already has a payment ca"},
		{other, "capture 5", "ca", "already has a payment ca"},
		{commerce.OrderID(storetest.ULIDAt(storetest.FirstOrderTime(), 77)), "capture 5", "x", "does not exist"},
	} {
		if _, err := pay(t, r.Store, c.order, c.payment, c.reference); !commerce.IsUserError(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.payment, c.reference, err, c.want)
		}
	}
	if after := len(r.All()); after != before {
		t.Errorf("the table has %d records, had %d", after, before)
	}
}

// Lost and wrong records of payments are repaired, except a lost payment. An export and an import keep payments.
func TestRepairOfPayments(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		id := storetest.SmallOrderID(0)
		var last *commerce.Payment
		for _, p := range []string{"capture 1", "refund 0.25"} {
			var err error
			if last, err = pay(t, r.Store, commerce.OrderID(id), p, p[:2]); err != nil {
				t.Fatal(err)
			}
		}
		r.CheckClean()
		before := r.All()
		for want, damage := range map[string]func(){
			"claim-missing": func() { r.Delete("PAYMENT#stripe:ca", "#METADATA") },
			"edge-missing":  func() { r.Delete("ORDER#"+id, "WITH_PAYMENT_DUE") },
			"payments": func() {
				r.Set("ORDER#"+id, "#METADATA", storetest.Item{"captured": storetest.Num("7"), "paymentDue": nil})
			},
			"orphan-claim": func() {
				r.Put(storetest.Item{"pk": storetest.Str("PAYMENT#stripe:x"), "sk": storetest.Str("#METADATA"), "entity": storetest.Str("paymentClaim"), "orderId": storetest.Str(id), "paymentId": storetest.Str(string(last.ID))})
			},
		} {
			damage()
			found, _ := r.Check(check.Options{Repair: true, IndexLag: check.NoIndexLag})
			if len(found) == 0 || found[0].Kind != want || !found[0].Repaired {
				t.Errorf("%s: the check found %v", want, found)
			}
			if after := r.All(); !model.EqualRecords(model.Record(before["ORDER#"+id+" #METADATA"]), model.Record(after["ORDER#"+id+" #METADATA"])) || len(after) != len(before) {
				t.Errorf("%s: the records differ after the repair", want)
			}
		}
		exported := strings.Join(storetest.Export(t, r.Store, 1), "")
		empty := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
		if _, err := empty.Store.Import(t.Context(), strings.NewReader(exported), bulk.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		empty.CheckClean()
		if p, err := pay(t, empty.Store, commerce.OrderID(id), "refund 0.25", "re"); err != nil || p.ID != last.ID {
			t.Errorf("the imported payment is %v, %v", p, err)
		}
		r.Delete("ORDER#"+id, "PAYMENT#"+string(last.ID))
		if found, _ := r.Check(check.Options{Repair: true, IndexLag: check.NoIndexLag}); len(found) == 0 {
			t.Error("the check does not find a lost payment")
		}
		r.CheckClean()
	})
}

// oldTable returns a table with a small dataset, as a version without derivations created it, and its
// clock.
func oldTable(t *testing.T) (storetest.RawTable, *movingClock) {
	t.Helper()
	clock := newMovingClock(start)
	r := storetest.NewRawTable(t, storetest.WithoutResponseDate(storetest.Engines()[0].Client(t)), storetest.SmallDataset(t, 3), dynamo.Options{Clock: clock.Now})
	storetest.DeleteLayout(t, r.DB, r.Name)
	store, err := dynamo.New(r.DB, dynamo.Options{Table: r.Name, Clock: clock.Now})
	if err == nil {
		err = store.Ping(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Store = store
	return r, clock
}

// A table that is older than payments refuses them until an operator has added the list of orders with
// outstanding payments. Older servers reject the table from then on, because they do not know this list.
func TestPaymentsInAnOldTable(t *testing.T) {
	r, clock := oldTable(t)
	store := r.Store
	id := commerce.OrderID(storetest.SmallOrderID(0))
	var unavailable *model.DerivationUnavailable
	if _, err := pay(t, store, id, "capture 1", "ch_1"); !errors.As(err, &unavailable) || unavailable.Name != model.EntityPaymentDue.Name {
		t.Errorf("the payment: %v", err)
	}
	for _, name := range []string{model.EntityPaymentDue.Name, model.OrderAdjustments} {
		if _, err := store.ApplyDerivation(t.Context(), derivation(t, name), applied(clock, model.Written)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pay(t, store, id, "capture 1", "ch_1"); err != nil {
		t.Errorf("the payment: %v", err)
	}
	due, err := dynamo.ReadPage(t.Context(), store, model.OrdersByPaymentDue, dynamo.ListRequest{PartitionValue: string(commerce.DuePartlyPaid), Page: dynamo.PageRequest{Limit: 2}})
	if err != nil || len(due.Items) != 1 || due.Items[0].ID != id {
		t.Errorf("the orders with an outstanding payment are %v, %v", due.Items, err)
	}
}
