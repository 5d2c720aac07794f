package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// sales returns the sales in a range of days, as "day total orders".
func (s *fixture) sales(t testing.TB, placed string) (all []string) {
	t.Helper()
	var data struct {
		Sales []struct {
			Day        string
			Total      struct{ Amount, CurrencyCode string }
			OrderCount int
		}
	}
	s.read(t, &data, `{ sales(placed: %s, currency: "USD") { day total { amount currencyCode } orderCount } }`, placed)
	for _, d := range data.Sales {
		all = append(all, fmt.Sprint(d.Day, " ", d.Total.Amount, " ", d.Total.CurrencyCode, " ", d.OrderCount))
	}
	return all
}

// refuseSales requires that the field sales returns an error with this code, whose message contains a text.
func (s *fixture) refuseSales(t testing.TB, arguments, code, text string) {
	t.Helper()
	got := s.withoutLog(t).api.ask(t, `{ sales(`+arguments+`) { day } }`, nil)
	if len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != code || !strings.Contains(got.Errors[0].Message, text) {
		t.Errorf("sales(%s) returns %+v, want %s with %q", arguments, got.Errors, code, text)
	}
}

// Sales add up the totals of all orders of a day that are not cancelled. Until the table has them, the
// field returns the command that adds them.
func TestSalesByDay(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShardedFixture(t, db, smallDataset(t), 3)
		day := commerce.Date(s.clock.Now().UTC().Format("2006-01-02"))
		april := fmt.Sprintf("{from: %q, to: %q}", day.Month()+"-01", day.Month()+"-31")
		s.place(t, "ann", "mug")
		s.refuseSales(t, `placed: `+april+`, currency: "USD"`, "UNAVAILABLE", "not ready")
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}, model.EntityDailySales.Name)
		if _, err := s.store.CheckRecords(t.Context(), check.Options{Repair: true, IndexLag: check.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		before := s.sales(t, april)
		for range 5 {
			s.mutate(t, "cancelOrder", mutationInput{"orderId": s.place(t, "ann", "mug", "plate")})
		}
		if after := s.sales(t, april); len(before) != 1 || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("after cancelled orders, the sales are %v, want %v", after, before)
		}
		order := s.place(t, "bob", "mug")
		one := s.sales(t, april)
		s.mutate(t, "setOrderItem", mutationInput{"orderId": order, "sku": "mug", "quantity": 2})
		two := s.sales(t, april)
		if len(two) != 1 || fmt.Sprint(one) == fmt.Sprint(before) || fmt.Sprint(two) == fmt.Sprint(one) {
			t.Errorf("the sales are %v, then %v and %v", before, one, two)
		}
		storetest.AssertConsistent(t, db, s.table, 3)
		for _, none := range []string{`{from: "2020-01-01", to: "2020-01-01"}`, `{from: "2020-01-01", to: "2020-01-02"}`} {
			if got := s.api.ask(t, `{ sales(placed: `+none+`, currency: "USD") { day } }`, nil); string(got.Data) != `{"sales":[]}` {
				t.Errorf("the sales of %s are %s", none, got.Data)
			}
		}
		for _, placed := range []string{`{from: "2026-01-01"}`, `{to: "2026-01-01"}`, `{from: "2026-01-01", to: "2026-02-02"}`, `{from: "2026-02-01", to: "2026-01-01"}`} {
			s.refuseSales(t, `placed: `+placed+`, currency: "USD"`, "BAD_USER_INPUT", "placed")
		}
		s.refuseSales(t, `placed: `+april+`, currency: "usd"`, "BAD_USER_INPUT", "currency")
	})
}

// Days begin at midnight in the time zone of the table. A later change of the time zone moves no sales.
func TestSalesInATimeZone(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newShardedFixture(t, db, smallDataset(t), 3)
		setZone := func(name string) {
			t.Helper()
			if _, err := s.store.SetTimeZone(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		setZone("Pacific/Pago_Pago") // 11 hours behind UTC
		s.place(t, "ann", "mug")
		storetest.MakeReadable(t, storetest.RawTable{T: t, DB: db, Name: s.table, Store: s.store}, model.EntityDailySales.Name)
		if _, err := s.store.CheckRecords(t.Context(), check.Options{Repair: true, IndexLag: check.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		s.place(t, "ann", "mug")
		setZone("UTC")
		s.place(t, "ann", "mug") // the new time zone applies a minute later
		s.clock.pass(2 * time.Minute)
		s.place(t, "ann", "plate")
		now := s.clock.Now().UTC()
		if now.Hour() >= 11 {
			t.Fatalf("it is %s: the days must differ", now)
		}
		today := commerce.Date(now.Format(time.DateOnly))
		yesterday := commerce.Date(now.AddDate(0, 0, -1).Format(time.DateOnly))
		want := fmt.Sprintf("[%s 22.50 USD 3 %s 12.00 USD 1]", yesterday, today)
		if got := s.sales(t, fmt.Sprintf(`{from: %q, to: %q}`, yesterday, now.AddDate(0, 0, 1).Format(time.DateOnly))); fmt.Sprint(got) != want {
			t.Errorf("the sales are %v, want %s", got, want)
		}
		report, err := s.store.CheckRecords(t.Context(), check.Options{IndexLag: check.NoIndexLag})
		if err != nil || report.UnrepairedCount() > 0 {
			t.Errorf("check finds %+v: %v", report, err)
		}
	})
}
