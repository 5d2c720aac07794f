package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
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

// secret is in each personal attribute of the customer c1 and his orders.
const secret = "zephyr"

// personalReturn is the ID of a return with personal data.
const personalReturn commerce.ReturnID = "01HVMK3P2Q0000000000000001"

// newPersonalTable returns a table in which all personal attributes of the customer c1 contain secret.
func newPersonalTable(t testing.TB, db *dynamodb.Client, notes int, fields bool) storetest.RawTable {
	t.Helper()
	dataset := storetest.SmallDataset(t, 30)
	if fields {
		text := commerce.CustomField{Type: commerce.CustomString, MaxLength: 100}
		declared := map[string][]commerce.CustomField{}
		for _, typ := range []string{"Customer", "Order", "OrderItem"} {
			field := text
			field.Name = "own" + typ
			declared[typ] = []commerce.CustomField{field}
		}
		listed, unique := text, text
		listed.Name, listed.ListQuery, unique.Name, unique.LookupQuery = "listed", "ordersByListed", "unique", "orderByUnique"
		declared["Order"] = append(declared["Order"], listed, unique)
		t.Cleanup(model.DeclareCustomFields(declared))
	}
	own := func(typ, value string) commerce.CustomValues {
		if !fields {
			return commerce.CustomValues{}
		}
		return commerce.NewCustomValues(map[string]any{"own" + typ: value})
	}
	c := &dataset.Customers[0]
	c.Name, c.Email, c.PhoneNumbers, c.CustomFields = "Ann "+secret, secret+"@example.com", []string{"+1 " + secret}, own("Customer", secret)
	for i := range dataset.Orders {
		o := &dataset.Orders[i]
		if o.CustomerID != c.ID {
			continue
		}
		address := &commerce.Address{Recipient: secret, Line1: secret, Line2: secret, City: secret, Region: secret, PostalCode: secret, CountryCode: "US"}
		o.ShippingAddress, o.BillingAddress, o.Contact = address, address, &commerce.OrderContact{Email: secret + "@example.com", Phone: secret, Name: secret}
		for l := range o.Lines {
			o.Lines[l].CustomFields = own("OrderItem", secret)
		}
		if o.CustomFields = own("Order", secret); fields {
			o.CustomFields = commerce.NewCustomValues(map[string]any{"ownOrder": secret, "listed": secret, "unique": fmt.Sprint(secret, i)})
		}
		for e := range o.Events {
			o.Events[e].Actor, o.Events[e].Note, o.Events[e].NoteCustomerID = "sam", "for "+secret, c.ID
		}
		o.Events[0].Actor = secret
		if o.ID == commerce.OrderID(storetest.SmallOrderID(0)) {
			o.Returns = []commerce.Return{{ID: personalReturn, OrderID: o.ID, Status: commerce.ReturnRequested, Lines: []commerce.ReturnLine{{SKU: o.Lines[0].SKU, Quantity: 1, Reason: secret}}, Amount: o.Lines[0].UnitPrice,
				RejectionReason: secret, CreatedAt: o.PlacedAt, UpdatedAt: o.PlacedAt, Actor: secret}}
		}
	}
	r := storetest.NewRawTable(t, db, dataset, dynamo.Options{})
	ann := change.Caller{ID: secret, Name: secret, Customer: "c1"}
	id := commerce.OrderID(storetest.SmallOrderID(0))
	if _, err := r.Store.HoldOrder(t.Context(), sam, commerce.HoldRequest{OrderID: id, Reason: secret}); err != nil {
		t.Fatal(err)
	}
	if _, err := pay(t, r.Store, id, "capture 5", "ch_1"); err != nil {
		t.Fatal(err)
	}
	refund := commerce.PaymentRecord{OrderID: id, Kind: commerce.PaymentRefund, Amount: storetest.USD("1"), Provider: "stripe", Reference: "re_0", ReturnID: personalReturn, Reason: secret}
	if _, err := r.Store.RecordPayment(t.Context(), sam, refund); err != nil {
		t.Fatal(err)
	}
	sue := change.Caller{ID: "sue", Name: "sue", IdempotencyKey: "k"}
	if _, err := r.Store.ChangeOrderStatus(t.Context(), sue, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed}); err != nil {
		t.Fatal(err)
	}
	for i := range notes {
		if _, err := r.Store.AddOrderNote(t.Context(), ann, commerce.OrderNote{OrderID: id, Note: fmt.Sprint(secret, i)}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// personalAttributes returns the attributes whose values contain secret, such as order.contact.
func personalAttributes(r storetest.RawTable) map[string]bool {
	found := map[string]bool{}
	for key, rec := range r.All() {
		for name, v := range rec {
			if strings.Contains(strings.ToLower(storetest.FormatValue(v)), secret) {
				found[model.TextOf(rec, "entity")+"."+name] = true
			}
		}
		if strings.Contains(strings.ToLower(key), secret) {
			found[key] = true
		}
	}
	return found
}

// erase erases the customer c1, and returns the number of calls.
func erase(t testing.TB, store *dynamo.Store) (calls int) {
	t.Helper()
	for {
		calls++
		c, err := store.EraseCustomer(t.Context(), sam, commerce.CustomerErasure{CustomerID: "c1"})
		if err != nil {
			t.Fatal(err)
		}
		if c.Erased() {
			return calls
		}
	}
}

// The lines of a return are personal data, so a replay takes them from the record. It returns nothing
// that happened after the first execution.
func TestReplayOfReturn(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		r := newPersonalTable(t, db, 1, false)
		id := commerce.OrderID(storetest.SmallOrderID(0))
		sue := change.Caller{ID: "sue", Name: "sue", IdempotencyKey: "approval"}
		approval := commerce.ReturnDecision{OrderID: id, ReturnID: personalReturn, To: commerce.ReturnApproved}
		first, err := r.Store.DecideReturn(t.Context(), sue, approval)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Store.ReceiveReturn(t.Context(), sam, commerce.ReturnReceipt{OrderID: id, ReturnID: personalReturn, WarehouseID: "w1"}); err != nil {
			t.Fatal(err)
		}
		if again, err := r.Store.DecideReturn(t.Context(), sue, approval); err != nil || !reflect.DeepEqual(again, first) {
			t.Errorf("the first result was %+v, the replay returned %+v, %v", first, again, err)
		}
	})
}

// Erasing a customer removes the personal data from all records, and keeps amounts, statuses and counters. Then
// the email address can be used again.
func TestErasure(t *testing.T) {
	for _, fields := range []bool{false, true} {
		t.Run(fmt.Sprint("fields=", fields), func(t *testing.T) {
			storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) { testErasure(t, newPersonalTable(t, db, 45, fields)) })
		})
	}
}

func testErasure(t *testing.T, r storetest.RawTable) {
	found := personalAttributes(r)
	for _, e := range model.Entities() {
		for _, a := range model.AttributesOf(e) {
			if name := e.Name + "." + a.Name; a.Personal && !found[name] && !slices.Contains(e.Omitted, a.Name) && e != &model.EntityPaymentDue && e != &model.EntityOrderExpiry {
				t.Errorf("no record contains a value of %s", name)
			}
		}
	}
	before := r.All()
	// c1 has 3 orders. The first has 45 notes, so it takes two transactions. The last call finds no order.
	if calls := erase(t, r.Store); calls != 1+4+1 {
		t.Errorf("the erasure took %d calls", calls)
	}
	if left := personalAttributes(r); len(left) > 0 {
		t.Errorf("after the erasure, there are %v", slices.Sorted(maps.Keys(left)))
	}
	r.CheckClean()
	after := r.All()
	for key, rec := range before {
		for _, name := range []string{"total", "itemCount", "captured", "spent", "orders", "openOrders", "reservedUnits", "qty", "price", "customerId", "status", "amount", "orderCount"} {
			if got := after[key]; got != nil && storetest.FormatValue(rec[name]) != storetest.FormatValue(got[name]) {
				t.Errorf("%s: %s is %s, was %s", key, name, storetest.FormatValue(got[name]), storetest.FormatValue(rec[name]))
			}
		}
		if gone := after[key] == nil; gone && model.TextOf(rec, "entity") != "emailClaim" && !strings.HasPrefix(model.TextOf(rec, "entity"), "customer") && !strings.Contains(model.TextOf(rec, "entity"), ".") {
			t.Errorf("%s is gone", key)
		}
	}
	id := commerce.OrderID(storetest.SmallOrderID(0))
	for name, mutate := range map[string]func() error{
		"placeOrder": func() error {
			_, err := r.Store.PlaceOrder(t.Context(), sam, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p00", Quantity: 1}}})
			return err
		},
		"updateOrder": func() error {
			_, err := r.Store.UpdateOrder(t.Context(), sam, commerce.BillingChange{OrderID: id, Contact: &commerce.OrderContact{Name: secret}})
			return err
		},
		"addOrderNote": func() error {
			_, err := r.Store.AddOrderNote(t.Context(), sam, commerce.OrderNote{OrderID: id, Note: secret})
			return err
		},
		"createCustomer": func() error {
			_, err := r.Store.CreateCustomer(t.Context(), sam, commerce.Customer{ID: "c1", Name: "New", Email: "new@example.com"})
			return err
		},
	} {
		if err := mutate(); !commerce.IsUserError(err) {
			t.Errorf("%s returned %v", name, err)
		}
	}
	if o := readOrder(t, r.Store, id); o.Hold == nil {
		t.Error("the hold ended")
	}
	if _, err := pay(t, r.Store, id, "refund 1", "re_1"); err != nil {
		t.Error(err)
	}
	if _, err := r.Store.ChangeOrderStatus(t.Context(), sam, commerce.OrderStatusChange{OrderID: id, To: commerce.Cancelled}); err != nil {
		t.Error(err)
	}
	if _, err := r.Store.CreateCustomer(t.Context(), sam, commerce.Customer{ID: "c9", Name: "Zoe", Email: secret + "@example.com"}); err != nil {
		t.Error(err)
	}
	r.CheckClean()
}

// If a server is killed after any request of an erasure, repeating the mutation or a repair completes it.
func TestInterruptedErasure(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for requests := 0; ; requests++ {
			if !storetest.RunsCase(t, 7, requests) {
				continue
			}
			r, sent := newPersonalTable(t, db, 2, false), 0
			killed := errors.New("killed")
			dying := storetest.StoreWithClient(t, r.Store, storetest.WithRequestHook(db, func(context.Context, any) error {
				if sent++; sent > requests {
					return killed
				}
				return nil
			}), dynamo.Options{})
			var err error
			for deleted := (&commerce.DeletedCustomer{}); err == nil && !deleted.Erased(); {
				deleted, err = dying.EraseCustomer(t.Context(), sam, commerce.CustomerErasure{CustomerID: "c1"})
			}
			if err != nil && !errors.Is(err, killed) {
				t.Fatal(err)
			}
			_, begun := r.All()["CUSTOMER#c1 DELETED"]
			if requests%2 == 0 || !begun {
				erase(t, r.Store)
			} else if found, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 || err != nil && storetest.CountByKind(found)["erasure"] == 0 {
				t.Errorf("after %d requests, the repair found %v", requests, found)
			}
			if left := personalAttributes(r); len(left) > 0 {
				t.Errorf("after %d requests, there are %v", requests, slices.Sorted(maps.Keys(left)))
			}
			r.CheckClean()
			r.DeleteTable()
			if err == nil {
				if requests < 15 {
					t.Errorf("the erasure took only %d requests", requests)
				}
				return
			}
		}
	})
}

// A repair erases the data again that an import of an old export has brought back.
func TestErasureAndOldExport(t *testing.T) {
	r := newPersonalTable(t, storetest.Engines()[0].Client(t), 2, true)
	export := strings.Join(storetest.Export(t, r.Store, 1), "\n")
	erase(t, r.Store)
	if again := strings.Join(storetest.Export(t, r.Store, 1), "\n"); strings.Contains(strings.ToLower(again), secret) {
		t.Error("the new export contains personal data")
	}
	storetest.Import(t, r.Store, export, bulk.ImportOptions{Overwrite: true})
	if len(personalAttributes(r)) == 0 {
		t.Fatal("the import brought nothing back")
	}
	if exists, err := r.Store.CustomerExists(t.Context(), "c1"); exists || err != nil {
		t.Errorf("the customer exists: %v, %v", exists, err)
	}
	r.Check(check.Options{Repair: true})
	if left := personalAttributes(r); len(left) > 0 {
		t.Errorf("after the repair, there are %v", slices.Sorted(maps.Keys(left)))
	}
	r.CheckClean()
}

// A table of an older version refuses to erase customers until it has the feature, which older servers do not
// know.
func TestErasureNeedsFeature(t *testing.T) {
	r := newPersonalTable(t, storetest.Engines()[0].Client(t), 2, false)
	storetest.DeleteLayout(t, r.DB, r.Name)
	old := storetest.StoreWithClient(t, r.Store, r.DB, dynamo.Options{})
	if err := old.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := old.EraseCustomer(t.Context(), sam, commerce.CustomerErasure{CustomerID: "c1"})
	if missing, ok := errors.AsType[*model.DerivationUnavailable](err); !ok || missing.Name != "order.erased" {
		t.Errorf("got %v", err)
	}
}

// Clients change orders and place further ones during an erasure. Nothing that they write is left.
func TestConcurrentErasure(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := newPersonalTable(t, db, 45, false)
		var group sync.WaitGroup
		for client := range 4 {
			group.Go(func() {
				for i := range 20 {
					id := commerce.OrderID(storetest.SmallOrderID(2 * ((client + i) % 3)))
					address := commerce.Address{Recipient: secret, Line1: fmt.Sprint(secret, client, i), City: secret, CountryCode: "US"}
					var err error
					switch i % 4 {
					case 0:
						_, err = r.Store.AddOrderNote(t.Context(), sam, commerce.OrderNote{OrderID: id, Note: secret})
					case 1:
						_, err = r.Store.UpdateShippingAddress(t.Context(), sam, commerce.ShippingAddressChange{OrderID: id, ShippingAddress: address})
					case 2:
						_, err = r.Store.HoldOrder(t.Context(), sam, commerce.HoldRequest{OrderID: id, Reason: fmt.Sprint(secret, client, i)})
					case 3:
						_, err = r.Store.PlaceOrder(t.Context(), sam, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p00", Quantity: 1}}, ShippingAddress: &address})
					}
					if err != nil && !commerce.IsUserError(err) {
						t.Error(err)
					}
				}
			})
		}
		erase(t, r.Store)
		group.Wait()
		if left := personalAttributes(r); len(left) > 0 {
			t.Errorf("there are %v", slices.Sorted(maps.Keys(left)))
		}
		r.CheckClean()
	})
}
