package check_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

const c0Partition = "CUSTOMER#c0"

// newReservingCustomer returns a table in which customer c0 has placed an order with lines items.
func newReservingCustomer(t *testing.T, db *dynamodb.Client, lines int) storetest.RawTable {
	t.Helper()
	r := storetest.NewRawTable(t, db, workload.Fixture{Customers: 1, Products: lines, Warehouses: 1, Stock: 100}.Dataset(t), dynamo.Options{})
	var items []commerce.OrderLine
	for i := range lines {
		items = append(items, commerce.OrderLine{SKU: commerce.SKU(fmt.Sprint("p", i)), Quantity: 2})
	}
	if _, err := r.Store.PlaceOrder(t.Context(), change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "c0", Lines: items}); err != nil {
		t.Fatal(err)
	}
	return r
}

// expectReservation verifies what the record of c0's last event counts.
func expectReservation(t *testing.T, r storetest.RawTable, orders, units int) {
	t.Helper()
	rec := storetest.Record(r.Get(c0Partition, "LAST_EVENT"))
	if counted, _ := rec["reservationsCounted"].(*types.AttributeValueMemberBOOL); rec.Int("openOrders") != orders || rec.Int("reservedUnits") != units || counted == nil || !counted.Value {
		t.Errorf("the record is %v, want %d open orders and %d units, all counted", rec, orders, units)
	}
}

// A check finds and repairs wrong counts of what a customer's open orders reserve, also if the orders
// do not embed their items.
func TestReservationsOfACustomer(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, lines := range map[string]int{"embedded items": 2, "item records": 30} {
			t.Run(name, func(t *testing.T) {
				r := newReservingCustomer(t, db, lines)
				expectReservation(t, r, 1, 2*lines)
				r.CheckClean()
				for _, damaged := range []storetest.Item{
					{"openOrders": storetest.Num("0")}, {"reservedUnits": storetest.Num("1")}, {"reservedUnits": nil}, {"openOrders": storetest.Num("-3"), "reservedUnits": storetest.Num("500")},
				} {
					r.Set(c0Partition, "LAST_EVENT", damaged)
					inconsistencies, summary := r.Check(check.Options{Repair: true})
					if got := storetest.FormatKindCounts(inconsistencies); got != "last-event 1" || summary.UnrepairedCount() > 0 {
						t.Errorf("after %v, a repair finds %q: %+v", damaged, got, summary)
					}
					expectReservation(t, r, 1, 2*lines)
				}
				r.CheckClean()
			})
		}
	})
}

// The orders of an older version are not counted. That is no inconsistency, but a repair counts them.
func TestReservationsThatNobodyCounted(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := newReservingCustomer(t, db, 30)
		r.Set(c0Partition, "LAST_EVENT", storetest.Item{"openOrders": nil, "reservedUnits": nil, "reservationsCounted": nil})
		r.CheckClean()
		if _, err := r.Store.PlaceOrder(t.Context(), change.Caller{Name: "tester"}, commerce.OrderRequest{CustomerID: "c0", Lines: []commerce.OrderLine{{SKU: "p0", Quantity: 5}}}); err != nil {
			t.Fatal(err)
		}
		if rec := storetest.Record(r.Get(c0Partition, "LAST_EVENT")); rec.Int("openOrders") != 1 || rec.Int("reservedUnits") != 5 || rec.Has("reservationsCounted") {
			t.Errorf("after the second order, the record is %v", rec)
		}
		r.CheckClean()
		if inconsistencies, summary := r.Check(check.Options{Repair: true}); len(inconsistencies) > 0 || summary.UnrepairedCount() > 0 {
			t.Errorf("a repair finds %v: %+v", inconsistencies, summary)
		}
		expectReservation(t, r, 2, 65)
		r.CheckClean()
	})
}
