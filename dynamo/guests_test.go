package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

const guestAddress = "Gina@Example.com"

func guestRequest(t testing.TB, email string, lines int) commerce.OrderRequest {
	t.Helper()
	id, err := commerce.GuestID(email)
	if err != nil {
		t.Fatal(err)
	}
	o := commerce.OrderRequest{CustomerID: id, Contact: &commerce.OrderContact{Email: email}}
	for i := range lines {
		o.Lines = append(o.Lines, commerce.OrderLine{SKU: commerce.SKU(fmt.Sprintf("p%02d", i)), Quantity: 1})
	}
	return o
}

func placeAsGuest(t testing.TB, store *dynamo.Store, email string, lines int) commerce.OrderID {
	t.Helper()
	o, err := store.PlaceOrder(t.Context(), sam, guestRequest(t, email, lines))
	if err != nil {
		t.Fatal(err)
	}
	return o.ID
}

// claim claims the orders of a guest for a customer, and returns the claimed orders.
func claim(t testing.TB, store *dynamo.Store, customer commerce.CustomerID) (claimed []commerce.OrderID) {
	t.Helper()
	for {
		o, err := store.ClaimOrders(t.Context(), sam, commerce.GuestOrdersClaim{CustomerID: customer})
		if errors.As(err, new(commerce.NotFound)) {
			return claimed
		}
		if err != nil {
			t.Fatal(err)
		}
		claimed = append(claimed, o.ID)
	}
}

// newGuestTable returns a table in which c1 has the address of the guest gina in another spelling.
func newGuestTable(t testing.TB, db *dynamodb.Client) storetest.RawTable {
	t.Helper()
	dataset := storetest.SmallDataset(t, 30)
	dataset.Customers[0].Email = strings.ToLower(guestAddress)
	dataset.Warehouses = append(dataset.Warehouses, commerce.Warehouse{ID: "w3", Name: "West", Version: 1})
	for _, p := range dataset.Products {
		dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: p.SKU, WarehouseID: "w3", Quantity: 100, Version: 1})
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return storetest.NewRawTable(t, db, dataset, dynamo.Options{})
}

// guestRecords returns the keys of the records that contain the ID of a guest.
func guestRecords(r storetest.RawTable) (keys []string) {
	for key, rec := range r.All() {
		if strings.Contains(key+storetest.FormatItem(rec), "guest:") && model.TextOf(rec, "noteCustomerId") != string(commerce.AnyGuest) {
			keys = append(keys, key)
		}
	}
	return keys
}

// A guest's orders pass through their life without a customer record. The customer with the address claims
// them, and then they are his own.
func TestGuestOrders(t *testing.T) {
	storetest.ForEachEngine(t, func(t *testing.T, db *dynamodb.Client) {
		r := newGuestTable(t, db)
		r.Check(check.Options{Repair: true}) // count the open orders
		before := r.All()
		ids := []commerce.OrderID{placeAsGuest(t, r.Store, guestAddress, 1), placeAsGuest(t, r.Store, "gina@example.com", 27), placeAsGuest(t, r.Store, guestAddress, 3)}
		other := placeAsGuest(t, r.Store, "other@example.com", 1)
		for _, to := range []commerce.Status{commerce.Confirmed, commerce.Shipped} {
			if _, err := r.Store.ChangeOrderStatus(t.Context(), sam, commerce.OrderStatusChange{OrderID: ids[0], To: to, WarehouseID: "w3", WithoutAddress: true}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Store.ChangeOrderStatus(t.Context(), sam, commerce.OrderStatusChange{OrderID: ids[2], To: commerce.Cancelled}); err != nil {
			t.Fatal(err)
		}
		if _, err := pay(t, r.Store, ids[1], "capture 1", "ch_1"); err != nil {
			t.Fatal(err)
		}
		note := commerce.OrderNote{OrderID: ids[1], Note: "On its way", Visibility: new(commerce.VisibilityCustomer)}
		if _, err := r.Store.AddOrderNote(t.Context(), sam, note); err != nil {
			t.Fatal(err)
		}
		for _, email := range []string{"other@example.com", ""} {
			if _, err := r.Store.UpdateOrder(t.Context(), sam, commerce.BillingChange{OrderID: ids[1], Contact: &commerce.OrderContact{Email: email, Phone: "1"}}); !commerce.IsUserError(err) {
				t.Errorf("the new address %q: %v", email, err)
			}
		}
		if _, err := r.Store.UpdateOrder(t.Context(), sam, commerce.BillingChange{OrderID: ids[1], Contact: &commerce.OrderContact{Email: "gina@example.com", Phone: "1"}}); err != nil {
			t.Error(err)
		}
		r.CheckClean()
		all := r.All()
		if found, _ := r.Check(check.Options{Repair: true}); len(found) > 0 || len(storetest.DifferingKeys(all, r.All())) > 0 {
			t.Errorf("a repair finds %v and changes %v", found, storetest.DifferingKeys(all, r.All()))
		}
		for key, rec := range all {
			if e := model.TextOf(rec, "entity"); before[key] == nil && !slices.Contains([]string{"order", "customerOrder", "orderItem", "orderEvent", "lastEvent", "payment", "paymentClaim", "orderPaymentDue"}, e) {
				t.Errorf("the guests' orders have added %s", key)
			}
		}
		if claimed := claim(t, r.Store, "c2"); claimed != nil {
			t.Errorf("another customer has claimed %v", claimed)
		}
		if claimed := claim(t, r.Store, "c1"); !slices.Equal(claimed, slices.Sorted(slices.Values(ids))) {
			t.Errorf("the customer has claimed %v, want %v", claimed, ids)
		}
		r.CheckClean()
		for _, key := range guestRecords(r) {
			if !strings.Contains(key, string(other)) && !strings.HasSuffix(key, "LAST_EVENT") {
				t.Errorf("%s still belongs to the guest", key)
			}
		}
		count := func(name string) int { return storetest.Record(r.Get("CUSTOMER#c1", "#METADATA")).Int(name) }
		if got, want := count("orderCount"), storetest.Record(before["CUSTOMER#c1 #METADATA"]).Int("orderCount")+3; got != want {
			t.Errorf("the customer has %d orders, want %d", got, want)
		}
		if o := readOrder(t, r.Store, ids[1]); o.AccountRepID != "e1" {
			t.Errorf("the account rep of the claimed order is %q", o.AccountRepID)
		}
		ann := change.Caller{ID: "ann", Name: "ann", Customer: "c1"}
		if _, err := r.Store.UpdateOrder(t.Context(), ann, commerce.BillingChange{OrderID: ids[1], Contact: &commerce.OrderContact{Email: "new@example.com"}}); err != nil {
			t.Errorf("the customer changes the claimed order: %v", err)
		}
		erase(t, r.Store)
		for key, rec := range r.All() {
			if strings.Contains(strings.ToLower(key+storetest.FormatItem(rec)), "gina") {
				t.Errorf("after the erasure, %s contains the name", key)
			}
		}
		r.CheckClean()
	})
}

// Callers that are restricted to a customer can neither place an order of a guest nor change one.
func TestGuestOrdersOfCustomers(t *testing.T) {
	r := newGuestTable(t, storetest.Engines()[0].Client(t))
	o := guestRequest(t, guestAddress, 1)
	for _, customer := range []commerce.CustomerID{"c1", "c2"} {
		caller := change.Caller{ID: "x", Name: "x", Customer: customer}
		if _, err := r.Store.PlaceOrder(t.Context(), caller, o); !commerce.IsUserError(err) {
			t.Errorf("%s places an order as a guest: %v", customer, err)
		}
		id := placeAsGuest(t, r.Store, guestAddress, 1)
		if _, err := r.Store.ChangeOrderStatus(t.Context(), caller, commerce.OrderStatusChange{OrderID: id, To: commerce.Cancelled}); !commerce.IsUserError(err) {
			t.Errorf("%s cancels the order of a guest: %v", customer, err)
		}
	}
	if _, err := commerce.ParseID[commerce.CustomerID](string(o.CustomerID)); err == nil {
		t.Error("clients can use the ID of a guest")
	}
	r.CheckClean()
}

// If a server is killed after any request of a claim, repeating the mutation completes it.
func TestInterruptedClaim(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for requests := 0; ; requests++ {
			if !storetest.RunsCase(t, 5, requests) {
				continue
			}
			r, sent := newGuestTable(t, db), 0
			ids := []commerce.OrderID{placeAsGuest(t, r.Store, guestAddress, 2), placeAsGuest(t, r.Store, guestAddress, 1)}
			killed := errors.New("killed")
			dying := storetest.StoreWithClient(t, r.Store, storetest.WithRequestHook(db, func(context.Context, any) error {
				if sent++; sent > requests {
					return killed
				}
				return nil
			}), dynamo.Options{})
			var err error
			for err == nil {
				_, err = dying.ClaimOrders(t.Context(), sam, commerce.GuestOrdersClaim{CustomerID: "c1"})
			}
			done := errors.As(err, new(commerce.NotFound))
			if !done && !errors.Is(err, killed) {
				t.Fatal(err)
			}
			r.CheckClean()
			claim(t, r.Store, "c1")
			for _, id := range ids {
				if o := readOrder(t, r.Store, id); o.CustomerID != "c1" || o.Version != 2 {
					t.Errorf("after %d requests, order %s belongs to %s and has version %d", requests, id, o.CustomerID, o.Version)
				}
			}
			if left := guestRecords(r); len(left) > 0 {
				t.Errorf("after %d requests, there are %v", requests, left)
			}
			r.CheckClean()
			r.DeleteTable()
			if done {
				if requests < 10 {
					t.Errorf("the claim took only %d requests", requests)
				}
				return
			}
		}
	})
}

// If a guest places the first order during a claim, the claim of that order leaves no record of the guest.
func TestOrderDuringClaim(t *testing.T) {
	for requests := 0; ; requests++ {
		r := newGuestTable(t, storetest.Engines()[0].Client(t))
		sent, placed := 0, false
		claiming := storetest.StoreWithClient(t, r.Store, storetest.WithRequestHook(r.DB, func(context.Context, any) error {
			if sent++; sent == requests+1 {
				placeAsGuest(t, r.Store, guestAddress, 1)
				placed = true
			}
			return nil
		}), dynamo.Options{})
		claim(t, claiming, "c1")
		claim(t, r.Store, "c1")
		if left := guestRecords(r); len(left) > 0 {
			t.Errorf("an order before request %d of the claim leaves %v", requests, left)
		}
		r.CheckClean()
		if r.DeleteTable(); !placed {
			return
		}
	}
}

// Two clients claim orders, while others change and place them. Each order is claimed once.
func TestConcurrentClaims(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := newGuestTable(t, db)
		var ids []commerce.OrderID
		for range 6 {
			ids = append(ids, placeAsGuest(t, r.Store, guestAddress, 1))
		}
		var group sync.WaitGroup
		var mu sync.Mutex
		var claimed []commerce.OrderID
		for range 2 {
			group.Go(func() {
				some := claim(t, r.Store, "c1")
				mu.Lock()
				defer mu.Unlock()
				claimed = append(claimed, some...)
			})
		}
		group.Go(func() {
			for i, id := range ids {
				if _, err := r.Store.AddOrderNote(t.Context(), sam, commerce.OrderNote{OrderID: id, Note: "Gift"}); err != nil {
					t.Error(err)
				}
				if _, err := r.Store.ChangeOrderStatus(t.Context(), sam, commerce.OrderStatusChange{OrderID: ids[len(ids)-1-i], To: commerce.Cancelled}); err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() {
			for range 3 {
				placeAsGuest(t, r.Store, guestAddress, 1)
			}
		})
		group.Wait()
		if claimed = append(claimed, claim(t, r.Store, "c1")...); len(claimed) != 9 || len(slices.Compact(slices.Sorted(slices.Values(claimed)))) != 9 {
			t.Errorf("%v were claimed, want 9 orders", claimed)
		}
		if left := guestRecords(r); len(left) > 0 {
			t.Errorf("there are %v", left)
		}
		r.CheckClean()
	})
}

// A repeated request to place an order returns the first order, also after it was claimed. An export contains
// the orders of guests.
func TestGuestOrdersAreReplayedAndExported(t *testing.T) {
	r := newGuestTable(t, storetest.Engines()[0].Client(t))
	caller, request := change.Caller{ID: "shop", Name: "shop", IdempotencyKey: "k"}, guestRequest(t, guestAddress, 2)
	first, err := r.Store.PlaceOrder(t.Context(), caller, request)
	if err != nil {
		t.Fatal(err)
	}
	export := strings.Join(storetest.Export(t, r.Store, 1), "\n")
	claim(t, r.Store, "c1")
	if again, err := r.Store.PlaceOrder(t.Context(), caller, request); err != nil || again.ID != first.ID {
		t.Errorf("the replay returned %+v, %v", again, err)
	}
	if request.Contact.Email = "gina@example.org"; true {
		if _, err := r.Store.PlaceOrder(t.Context(), caller, request); !commerce.IsUserError(err) {
			t.Errorf("another request with the same key: %v", err)
		}
	}
	copied := storetest.NewRawTable(t, r.DB, commerce.Dataset{}, dynamo.Options{})
	storetest.Import(t, copied.Store, export, bulk.ImportOptions{})
	copied.Check(check.Options{Repair: true})
	copied.CheckClean()
	if ids := claim(t, copied.Store, "c1"); !slices.Equal(ids, []commerce.OrderID{first.ID}) {
		t.Errorf("of the imported orders, %v were claimed", ids)
	}
	copied.CheckClean()
	storetest.Import(t, r.Store, export, bulk.ImportOptions{Overwrite: true}) // it brings the guest's records back
	if found, summary := r.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 {
		t.Errorf("after the import of an old export, the repair found %v", found)
	}
	r.CheckClean()
}

// A table of an older version refuses the orders of guests until it has the feature, which older servers do not
// know.
func TestGuestOrdersInAnOldTable(t *testing.T) {
	r, clock := oldTable(t)
	old := r.Store
	request := guestRequest(t, guestAddress, 1)
	for range 2 {
		_, placing := old.PlaceOrder(t.Context(), sam, request)
		_, claiming := old.ClaimOrders(t.Context(), sam, commerce.GuestOrdersClaim{CustomerID: "c1"})
		for _, err := range []error{placing, claiming} {
			if missing, ok := errors.AsType[*model.DerivationUnavailable](err); !ok || missing.Name != model.OrderGuests {
				t.Errorf("got %v", err)
			}
		}
		clock.advance(time.Minute)
	}
	if _, err := old.ApplyDerivation(t.Context(), derivation(t, model.OrderGuests), applied(clock, model.Written)); err != nil {
		t.Fatal(err)
	}
	if _, err := old.PlaceOrder(t.Context(), sam, request); err != nil {
		t.Error(err)
	}
}
