package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	checking "github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// counts returns the numbers of orders by status.
func (s *fixture) counts(t testing.TB) map[string]int {
	t.Helper()
	var data struct {
		OrderCounts []struct {
			Status string
			Count  int
		}
	}
	s.read(t, &data, `{ orderCounts { status count } }`)
	counts := map[string]int{}
	for _, c := range data.OrderCounts {
		counts[c.Status] = c.Count
	}
	return counts
}

// Exactly the mutations that change the status of an order change the counts.
func TestOrdersAreCountedByStatus(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s := newFixture(t, db, smallDataset(t))
		want := s.counts(t)
		for status := range want {
			want[status] = 0
		}
		for _, to := range commerce.Statuses() {
			s.placeWithStatus(t, to)
			want[strings.ToUpper(to.String())]++
		}
		pending := s.placeWithStatus(t, commerce.Pending)
		want["PENDING"]++
		s.mutate(t, "updateShippingAddress", mutationInput{"orderId": pending, "shippingAddress": mutationInput{"recipient": "Bo", "line1": "2 High St", "city": "Leeds", "countryCode": "GB"}})
		s.refuse(t, "shipOrder", mutationInput{"orderId": pending, "warehouseId": "north", "withoutAddress": true}, "INVALID_TRANSITION input.orderId")
		if got := s.counts(t); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the order counts are %v, want %v", got, want)
		}
	})
}

// External orders are not counted until a repair has counted them.
func TestOrdersOfOtherSoftwareAreCountedByARepair(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		s, order := externalFixture(t, db)
		s.mutate(t, "confirmOrder", mutationInput{"orderId": order})
		got := s.withoutLog(t).api.ask(t, `{ orderCounts { status count } }`, nil)
		if string(got.Data) != `{"orderCounts":null}` || len(got.Errors) != 1 || got.Errors[0].Extensions["code"] != "UNAVAILABLE" {
			t.Errorf("the response is %s, %+v, want null and UNAVAILABLE", got.Data, got.Errors)
		}
		if _, err := s.store.CheckRecords(t.Context(), checking.Options{Repair: true, IndexLag: checking.NoIndexLag}); err != nil {
			t.Fatal(err)
		}
		s.mutate(t, "shipOrder", mutationInput{"orderId": order, "warehouseId": "hall", "withoutAddress": true})
		if got := s.counts(t); got["SHIPPED"] != 1 || got["CONFIRMED"] != 0 {
			t.Errorf("the order counts are %v, want one order with status SHIPPED", got)
		}
	})
}
