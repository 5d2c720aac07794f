package server_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	checking "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// spending returns the spending of a customer by month.
func (s *fixture) spending(t testing.TB, customer string) map[string]string {
	t.Helper()
	var data struct {
		Customer struct {
			Spending []struct {
				Month string
				Total struct{ Amount string }
			}
		}
	}
	s.read(t, &data, `{ customer(id: %q) { spending { month total { amount } } } }`, customer)
	months := map[string]string{}
	for _, m := range data.Customer.Spending {
		months[m.Month] = m.Total.Amount
	}
	return months
}

// A customer's spending follows every change of an order's items. Cancelled orders do not count.
func TestSpendingFollowsTheOrders(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		month := commerce.MonthOf(s.clock.Now())
		before := s.spending(t, "ann")[month]
		first := s.place(t, "ann", "mug", "plate")
		one := s.spending(t, "ann")[month]
		if one == before {
			t.Errorf("placing an order did not change the spending %q", before)
		}
		second := s.place(t, "ann", "mug", "plate")
		s.mutate(t, "setOrderItem", mutationInput{"orderId": second, "sku": "mug", "quantity": 5})
		s.mutate(t, "removeOrderItem", mutationInput{"orderId": second, "sku": "mug"})
		s.mutate(t, "setOrderItem", mutationInput{"orderId": second, "sku": "mug", "quantity": 1})
		two := s.spending(t, "ann")[month]
		s.mutate(t, "cancelOrder", mutationInput{"orderId": second})
		if got := s.spending(t, "ann")[month]; got != one || two == one {
			t.Errorf("the spending is %s after one order, %s after two, and %s after the second was cancelled", one, two, got)
		}
		s.mutate(t, "cancelOrder", mutationInput{"orderId": first})
		if got := s.spending(t, "ann")[month]; got != "0.00" {
			t.Errorf("the spending is %s after both orders were cancelled, want 0.00", got)
		}
	})
}

// External orders are not added up until a repair has done so.
func TestSpendingOfOtherSoftwaresOrders(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s, order := externalFixture(t, db)
		s.mutate(t, "setOrderItem", mutationInput{"orderId": order, "sku": "abc", "quantity": 1})
		got := s.withoutLog(t).api.ask(t, `{ customer(id: "cust_01") { name spending { month } } }`, nil)
		if string(got.Data) != `{"customer":{"name":"Alice Chen","spending":null}}` || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "UNAVAILABLE" {
			t.Errorf("the response is %s, %+v, want null and UNAVAILABLE", got.Data, got.Errors)
		}
		if _, err := s.store.CheckRecords(t.Context(), checking.Options{Repair: true, IndexLag: checking.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		if got := s.spending(t, "cust_01"); len(got) != 1 || got["2024-04"] != "89.70" {
			t.Errorf("spent %v, want 89.70 in 2024-04", got)
		}
		s.mutate(t, "cancelOrder", mutationInput{"orderId": order})
		if got := s.spending(t, "cust_01"); got["2024-04"] != "0.00" {
			t.Errorf("spent %v after the order is cancelled", got)
		}
	})
}

// A range of days returns the months that it touches. A range that ends before its start is
// refused.
func TestSpendingInARange(t *testing.T) {
	t.Parallel()
	s := newFixture(t, storetest.Engines()[0].Client(t), smallDataset(t))
	s.place(t, "ann", "mug")
	day := s.clock.Now().UTC()
	shown := func(from, to string) int {
		t.Helper()
		var data struct {
			Customer struct{ Spending []struct{ Month string } }
		}
		s.read(t, &data, `{ customer(id: "ann") { spending(placed: {from: %q, to: %q}) { month } } }`, from, to)
		return len(data.Customer.Spending)
	}
	date := func(years, months, days int) string { return day.AddDate(years, months, days).Format("2006-01-02") }
	first := day.Format("2006-01") + "-01"
	for _, c := range []struct {
		from, to string
		months   int
	}{
		{date(0, 0, 0), date(0, 0, 1), 1}, {first, date(1, 0, 0), 1}, {date(-1, 0, 0), first, 0}, {date(1, 0, 0), date(2, 0, 0), 0}, {date(0, 0, 0), date(0, 0, 0), 0},
	} {
		if got := shown(c.from, c.to); got != c.months {
			t.Errorf("from %s to %s: %d months, want %d", c.from, c.to, got, c.months)
		}
	}
	got := s.api.ask(t, `{ customer(id: "ann") { spending(placed: {from: "2026-02-01", to: "2026-01-01"}) { month } } }`, nil)
	if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "BAD_USER_INPUT" {
		t.Errorf("a range that ends before it begins: %+v", got.Errors)
	}
}
