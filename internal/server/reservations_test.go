package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// newReservationFixture is a fixture in which customers can have 2 open orders with 10 units.
func newReservationFixture(t *testing.T, db *dynamodb.Client) authenticatedFixture {
	t.Helper()
	s := newFixture(t, db, smallDataset(t))
	store, err := dynamo.New(storetest.WithoutResponseDate(db), dynamo.Options{Table: s.table, Clock: s.clock.Now, Reservations: commerce.ReservationLimits{OpenOrders: 2, Units: 10}})
	if err != nil {
		t.Fatal(err)
	}
	s.store = store
	return authenticatedFixture{fixture: s, url: s.serveRoles(t)}
}

// tryMutation sends a mutation of a caller. It returns the ID of the order, or the user error
// ReservationLimit as text. Any other error fails the test.
func (s authenticatedFixture) tryMutation(t *testing.T, caller, mutation, input string) (order, limited string) {
	t.Helper()
	got := s.query(t, caller, fmt.Sprintf(`mutation { p: %s(input: {%s}) { order { id } userErrors { __typename code field ... on ReservationLimit { limit } } } }`, mutation, input))
	_, body, _ := strings.Cut(got, " ")
	var response struct {
		Data struct {
			P struct {
				Order      *struct{ ID string }
				UserErrors []struct {
					Typename string `json:"__typename"`
					Code     string
					Field    []string
					Limit    int
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatalf("%s: %s: %v", mutation, got, err)
	}
	p := response.Data.P
	switch {
	case p.Order != nil && len(p.UserErrors) == 0:
		return p.Order.ID, ""
	case len(p.UserErrors) == 1 && p.UserErrors[0].Code == "RESERVATION_LIMIT":
		returned.Store(mutation+" "+p.UserErrors[0].Typename, true)
		return "", fmt.Sprint(strings.Join(p.UserErrors[0].Field, "."), " ", p.UserErrors[0].Limit)
	}
	t.Fatalf("%s: %s", mutation, got)
	return "", ""
}

func (s authenticatedFixture) placeUnits(t *testing.T, caller string, units int) (order, limited string) {
	t.Helper()
	return s.tryMutation(t, caller, "placeOrder", fmt.Sprintf(`customerId: "ann", items: [{sku: "mug", quantity: %d}]`, units))
}

// A customer at a limit cannot reserve more, until it cancels an order. Staff can.
func TestReservationLimits(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db)
		want := func(when, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s, the user error is %q, want %q", when, got, want)
			}
		}
		_, limited := s.placeUnits(t, annToken, 11)
		want("for 11 units", limited, "input.items 10")
		first, limited := s.placeUnits(t, annToken, 4)
		want("for 4 units", limited, "")
		_, limited = s.placeUnits(t, annToken, 7)
		want("for 7 more units", limited, "input.items 10")
		second, limited := s.placeUnits(t, annToken, 3)
		want("for 3 more units", limited, "")
		_, limited = s.placeUnits(t, annToken, 1)
		want("for a third order", limited, "input.items 2")
		setItem := func(caller string, units int) string {
			t.Helper()
			_, limited := s.tryMutation(t, caller, "setOrderItem", fmt.Sprintf(`orderId: %q, sku: "mug", quantity: %d`, first, units))
			return limited
		}
		want("for 8 and 3 units", setItem(annToken, 8), "input.quantity 10")
		want("for 7 and 3 units", setItem(annToken, 7), "")
		want("for 9 and 3 units, by staff", setItem(asStaff, 9), "")
		want("for 8 and 3 units instead of 9 and 3", setItem(annToken, 8), "")
		_, limited = s.placeUnits(t, asStaff, 1)
		want("for an order by staff", limited, "")
		for _, order := range []string{first, second} {
			_, limited = s.tryMutation(t, annToken, "cancelOrder", fmt.Sprintf(`orderId: %q`, order))
			want("for a cancellation", limited, "")
		}
		_, limited = s.placeUnits(t, annToken, 9)
		want("after the cancellations", limited, "")
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}

// An older server replaces the record of the last event without counts. The customer can place
// orders then, and orders that were not counted can be cancelled.
func TestReservationsBesideOlderServers(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newReservationFixture(t, db)
		old, _ := s.placeUnits(t, annToken, 10)
		r := storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}
		r.Set("CUSTOMER#ann", "LAST_EVENT", storetest.Item{"openOrders": nil, "reservedUnits": nil, "reservationsCounted": nil})
		for i := range 2 {
			if _, limited := s.placeUnits(t, annToken, 5); limited != "" {
				t.Errorf("order %d: %s", i, limited)
			}
		}
		if _, limited := s.placeUnits(t, annToken, 1); limited == "" {
			t.Error("a third order of a newer server is placed")
		}
		if _, limited := s.tryMutation(t, annToken, "cancelOrder", fmt.Sprintf(`orderId: %q`, old)); limited != "" {
			t.Errorf("the cancellation: %s", limited)
		}
		storetest.AssertConsistent(t, db, s.table, 1)
	})
}
