package change_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// reservationFixture is a table with one customer and much stock of one product.
type reservationFixture struct {
	*dynamo.Store
	t testing.TB
}

func newReservationFixture(t testing.TB, db *dynamodb.Client, limits commerce.ReservationLimits) reservationFixture {
	t.Helper()
	store := storetest.NewTable(t, db, dynamo.Options{Reservations: limits})
	price, err := commerce.ParsePrice("1", "USD")
	if err != nil {
		t.Fatal(err)
	}
	dataset := commerce.Dataset{
		Customers:  []commerce.Customer{{ID: "ann", Name: "Ann", Email: "ann@example.com"}},
		Warehouses: []commerce.Warehouse{{ID: "w", Name: "W"}},
		Products:   []commerce.Product{{SKU: "mug", Name: "Mug", Category: "Kitchen", UnitPrice: price}, {SKU: "cup", Name: "Cup", Category: "Kitchen", UnitPrice: price}},
		Levels:     []commerce.InventoryLevel{{SKU: "mug", WarehouseID: "w", Quantity: 1000}, {SKU: "cup", WarehouseID: "w", Quantity: 1000}},
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	storetest.LoadDataset(t, store, dataset)
	return reservationFixture{store, t}
}

var (
	ann   = change.Caller{ID: "ann", Name: "ann", Customer: "ann"}
	staff = change.Caller{ID: "sam", Name: "sam"}
)

func (s reservationFixture) place(caller change.Caller, units int) (*commerce.Order, error) {
	return s.PlaceOrder(s.t.Context(), caller, commerce.OrderRequest{CustomerID: "ann", Lines: []commerce.OrderLine{{SKU: "mug", Quantity: units}}})
}

func (s reservationFixture) setUnits(o *commerce.Order, units int) error {
	_, err := s.SetOrderItem(s.t.Context(), ann, commerce.OrderItemChange{OrderID: o.ID, SKU: "mug", Quantity: units})
	return err
}

func (s reservationFixture) move(caller change.Caller, o *commerce.Order, to commerce.Status) {
	s.t.Helper()
	c := commerce.OrderStatusChange{OrderID: o.ID, To: to, WithoutAddress: to == commerce.Shipped}
	if to == commerce.Shipped {
		c.WarehouseID = "w"
	}
	if _, err := s.ChangeOrderStatus(s.t.Context(), caller, c); err != nil {
		s.t.Fatal(err)
	}
}

// limited reports whether err is the user error ReservationLimit. Any other error fails the test.
func (s reservationFixture) limited(err error) bool {
	s.t.Helper()
	_, limited := errors.AsType[commerce.ReservationLimit](err)
	if err != nil && !limited {
		s.t.Fatal(err)
	}
	return limited
}

// A customer can have 3 open orders. Shipped and cancelled orders are not counted. Staff can place
// more orders for the customer.
func TestOpenOrdersAreLimited(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{OpenOrders: 3})
		var orders []*commerce.Order
		for range 3 {
			o, err := s.place(ann, 1)
			if err != nil {
				t.Fatal(err)
			}
			orders = append(orders, o)
		}
		refused := func(when string) {
			t.Helper()
			if _, err := s.place(ann, 1); !s.limited(err) {
				t.Errorf("%s, a fourth order is placed", when)
			}
		}
		refused("after three orders")
		s.move(staff, orders[0], commerce.Confirmed)
		refused("after a confirmation")
		s.move(staff, orders[0], commerce.Shipped)
		if _, err := s.place(ann, 1); err != nil {
			t.Errorf("after a shipment: %v", err)
		}
		refused("after a shipment and an order")
		s.move(staff, orders[0], commerce.Delivered)
		refused("after a delivery")
		s.move(ann, orders[1], commerce.Cancelled)
		if _, err := s.place(ann, 1); err != nil {
			t.Errorf("after a cancellation: %v", err)
		}
		if _, err := s.place(staff, 1); err != nil {
			t.Errorf("staff: %v", err)
		}
		refused("after an order of staff")
	})
}

// A customer can reserve 10 units, with placeOrder and setOrderItem together.
func TestReservedUnitsAreLimited(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{Units: 10})
		if _, err := s.place(ann, 11); !s.limited(err) {
			t.Error("11 units are reserved")
		}
		o, err := s.place(ann, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			units   int
			limited bool
		}{{11, true}, {10, false}, {9, false}, {11, true}, {3, false}} {
			if err := s.setUnits(o, step.units); s.limited(err) != step.limited {
				t.Errorf("%d units: %v", step.units, err)
			}
		}
		if _, err := s.place(ann, 8); !s.limited(err) {
			t.Error("3 and 8 units are reserved")
		}
		other, err := s.place(ann, 7)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.setUnits(o, 4); !s.limited(err) {
			t.Error("4 and 7 units are reserved")
		}
		s.move(ann, other, commerce.Cancelled)
		if err := s.setUnits(o, 10); err != nil {
			t.Errorf("after a cancellation: %v", err)
		}
	})
}

// Other software has stored an impossible sum. A sum above the limit still limits the customer. A sum
// that is no whole number does not. Both must not block mutations.
func TestImpossibleSums(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db, commerce.ReservationLimits{OpenOrders: 10, Units: 10})
		o, err := s.place(staff, 1)
		if err != nil {
			t.Fatal(err)
		}
		raw := storetest.RawTable{T: t, DB: db, Name: storetest.StoreTableName(t, s.Store), Store: s.Store}
		for _, sum := range []struct {
			stored  string
			limited bool
		}{{"9223372036854775807", true}, {"9223372036854775808", false}, {"1E37", false}, {"9.5", false}, {"1.5", false}, {"-9223372036854775808", false}} {
			for _, name := range []string{"openOrders", "reservedUnits"} {
				raw.Set("CUSTOMER#ann", "LAST_EVENT", storetest.Item{"openOrders": storetest.Num("1"), "reservedUnits": storetest.Num("1")})
				raw.Set("CUSTOMER#ann", "LAST_EVENT", storetest.Item{name: storetest.Num(sum.stored)})
				if _, err := s.place(ann, 2); s.limited(err) != sum.limited {
					t.Errorf("%s is %s: %v", name, sum.stored, err)
				}
				raw.Set("CUSTOMER#ann", "LAST_EVENT", storetest.Item{"openOrders": storetest.Num("1"), name: storetest.Num(sum.stored)})
				if err := s.setUnits(o, 3); s.limited(err) != (sum.limited && name == "reservedUnits") {
					t.Errorf("%s is %s: setOrderItem: %v", name, sum.stored, err)
				}
				if err := s.setUnits(o, 1); err != nil {
					t.Errorf("%s is %s: fewer units: %v", name, sum.stored, err)
				}
			}
		}
	})
}

// Many concurrent orders together do not exceed the limits.
func TestConcurrentOrdersStayWithinTheLimits(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, limits := range map[string]commerce.ReservationLimits{"open orders": {OpenOrders: 5}, "units": {Units: 10}} {
			t.Run(name, func(t *testing.T) {
				s := newReservationFixture(t, db, limits)
				errs := make([]error, 12)
				var clients sync.WaitGroup
				for i := range errs {
					clients.Go(func() { _, errs[i] = s.place(ann, 2) })
				}
				clients.Wait()
				placed := 0
				for _, err := range errs {
					if !s.limited(err) {
						placed++
					}
				}
				if placed != 5 {
					t.Errorf("%d orders are placed, want 5", placed)
				}
			})
		}
	})
}
