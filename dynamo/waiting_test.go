package dynamo_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// toShip returns the orders that wait to be shipped.
func toShip(t testing.TB, store *dynamo.Store) (ids []commerce.OrderID, err error) {
	t.Helper()
	page, err := dynamo.ReadPage(t.Context(), store, model.OrdersToShip, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 9}})
	for _, o := range page.Items {
		ids = append(ids, o.ID)
	}
	return ids, err
}

// An operator adds the list of orders to ship to a table with confirmed orders. They wait since
// they were placed, and later orders since their confirmation. Dropping the list removes its
// records.
func TestAddingTheListOfOrdersToShip(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		clock := newMovingClock(start)
		r := storetest.NewRawTable(t, storetest.WithoutResponseDate(db), storetest.SmallDataset(t, 3), dynamo.Options{Clock: clock.Now})
		if _, err := r.Store.SetInventoryLevel(t.Context(), sam, commerce.InventoryLevelChange{SKU: "p01", WarehouseID: "w1", Quantity: new(50)}); err != nil {
			t.Fatal(err)
		}
		place := func() commerce.OrderID {
			clock.advance(time.Minute)
			o, err := r.Store.PlaceOrder(t.Context(), sam, commerce.OrderRequest{CustomerID: "c1", Lines: []commerce.OrderLine{{SKU: "p01", Quantity: 1}}})
			if err != nil {
				t.Fatal(err)
			}
			return o.ID
		}
		confirm := func(id commerce.OrderID) {
			clock.advance(time.Minute)
			if _, err := r.Store.ChangeOrderStatus(t.Context(), sam, commerce.OrderStatusChange{OrderID: id, To: commerce.Confirmed}); err != nil {
				t.Fatal(err)
			}
		}
		a, b, c, d := place(), place(), place(), place()
		confirm(b)
		confirm(a)
		var unavailable *model.DerivationUnavailable
		if _, err := toShip(t, r.Store); !errors.As(err, &unavailable) || unavailable.Name != model.EntityOrderWaiting.Name {
			t.Errorf("before: %v", err)
		}
		if r.Get("ORDER#"+string(a), "#METADATA")[model.AttrWaitingSince] != nil {
			t.Error("an order in a table without the list contains the time of its confirmation")
		}
		want := func(what string, orders ...commerce.OrderID) {
			t.Helper()
			earlier := func(id commerce.OrderID) bool { return !slices.Contains([]commerce.OrderID{a, b, c, d}, id) } // of the dataset
			if got, err := toShip(t, r.Store); err != nil || !slices.Equal(slices.DeleteFunc(got, earlier), orders) {
				t.Errorf("%s: the orders are %v (%v), want %v", what, got, err, orders)
			}
			found, _ := r.Check(check.Options{IndexLag: check.NoIndexLag})
			if i := slices.IndexFunc(found, func(f check.Inconsistency) bool { return strings.HasPrefix(f.PK, "ORDER#") }); i >= 0 {
				t.Errorf("%s: the check found %v", what, found[i])
			}
		}
		apply := func() {
			t.Helper()
			if _, err := r.Store.ApplyDerivation(t.Context(), derivation(t, model.EntityOrderWaiting.Name), applied(clock, model.Written)); err != nil {
				t.Fatal(err)
			}
		}
		apply()
		want("applied", a, b)
		confirm(d)
		confirm(c)
		want("confirmed", a, b, d, c)
		if _, err := r.Store.HoldOrder(t.Context(), sam, commerce.HoldRequest{OrderID: a, Reason: "r"}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Store.ChangeOrderStatus(t.Context(), sam, commerce.OrderStatusChange{OrderID: b, To: commerce.Cancelled}); err != nil {
			t.Fatal(err)
		}
		want("one cancelled, one on hold", a, d, c)

		key, edge := "ORDER#"+string(d), r.Get("ORDER#"+string(d), "WITH_WAITING")
		for name, damage := range map[string]struct {
			do   func()
			kind string
		}{
			"no edge": {func() { r.Delete(key, "WITH_WAITING") }, "edge-missing"},
			"another time": {func() {
				r.Set(key, "WITH_WAITING", storetest.Item{"waitingSince": storetest.Str("2020-01-01T00:00:00.000Z")})
			}, "edge-differs"},
			"a shipped one":   {func() { r.Put(edgeOf(storetest.SmallOrderID(2), edge)) }, "orphan-edge"},
			"of a lost order": {func() { r.Put(edgeOf("01KDV000000000000000000000", edge)) }, "orphan-edge"},
		} {
			damage.do()
			if found, _ := r.Check(check.Options{Repair: true, IndexLag: check.NoIndexLag}); !slices.ContainsFunc(found, func(f check.Inconsistency) bool { return f.Kind == damage.kind }) {
				t.Errorf("%s: the check found %v", name, found)
			}
			want(name, a, d, c)
		}

		again := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{Shards: 2})
		storetest.MakeReadable(t, again, model.EntityOrderWaiting.Name)
		if _, err := again.Store.Import(t.Context(), strings.NewReader(strings.Join(storetest.Export(t, r.Store, 1), "")), bulk.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err := toShip(t, again.Store); err != nil || !slices.Equal(got[len(got)-3:], []commerce.OrderID{a, d, c}) {
			t.Errorf("after an import, the orders are %v (%v)", got, err)
		}

		if _, err := r.Store.DropDerivation(t.Context(), derivation(t, model.EntityOrderWaiting.Name), applied(clock, model.Dropped)); err != nil {
			t.Fatal(err)
		}
		for key := range r.All() {
			if strings.Contains(key, "WITH_WAITING") {
				t.Errorf("after the drop, the table contains %s", key)
			}
		}
		apply()
		want("applied again", a, d, c)
	})
}

// edgeOf returns the edge of another order that waits to be shipped.
func edgeOf(order string, edge storetest.Item) storetest.Item {
	other := storetest.Item{}
	for name, v := range edge {
		other[name] = v
	}
	other["pk"], other["orderId"] = storetest.Str("ORDER#"+order), storetest.Str(order)
	other["gsi1sk"] = storetest.Str(storetest.Record(edge).Text("waitingSince") + "#" + order)
	return other
}
