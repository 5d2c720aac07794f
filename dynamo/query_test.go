package dynamo_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

func TestMain(m *testing.M) {
	longtest.SetRapidChecks(10, 100)
	os.Exit(dynamolocal.Main(m))
}

// orderAt returns the n-th order of a test, placed n milliseconds after start.
func orderAt(start time.Time, n int, customer commerce.CustomerID, status commerce.Status) commerce.OrderWithItems {
	hash := sha256.Sum256([]byte(fmt.Sprint(n)))
	var id ulid.ULID
	copy(id[6:], hash[:])
	at := start.Add(time.Duration(n) * time.Millisecond)
	if err := id.SetTime(uint64(at.UnixMilli())); err != nil {
		panic(err)
	}
	line := commerce.LineItem{SKU: "sku", Name: "Thing", Quantity: 1, UnitPrice: money("2.50")}
	return commerce.OrderWithItems{
		Order: commerce.Order{ID: commerce.OrderID(id.String()), CustomerID: customer, Status: status, PlacedAt: at, UpdatedAt: at},
		Lines: []commerce.LineItem{line},
	}
}

func money(amount string) commerce.Money {
	m, err := commerce.ParseMoney(amount, "USD")
	if err != nil {
		panic(err)
	}
	return m
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// datasetOf returns a dataset with one customer's orders in these statuses, in placing order.
func datasetOf(t interface{ Fatal(...any) }, statuses ...commerce.Status) commerce.Dataset {
	dataset := commerce.Dataset{
		Customers: []commerce.Customer{{ID: "c", Name: "C", Email: "c@example.com", CreatedAt: start, UpdatedAt: start}},
		Products:  []commerce.Product{{SKU: "sku", Name: "Thing", Category: "Things", UnitPrice: money("2.50")}},
	}
	for i, status := range statuses {
		dataset.Orders = append(dataset.Orders, orderAt(start, i, "c", status))
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}

func orderIDs(orders []*commerce.Order) []commerce.OrderID {
	ids := make([]commerce.OrderID, len(orders))
	for i, o := range orders {
		ids[i] = o.ID
	}
	return ids
}

// Paging through a merged list returns each order once and in order. This holds for any page size,
// direction, number of shards, statuses and time range. No page reads more than three times its
// size and one order per partition of each level.
func TestMergedListsReadInPagesEqualTheWholeList(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		shards := rapid.SampledFrom([]int{1, 2, 3, 7}).Draw(rt, "shards")
		// Runs of one status are the worst case of merging.
		var statuses []commerce.Status
		for range rapid.IntRange(0, 6).Draw(rt, "runs") {
			status := rapid.SampledFrom(commerce.Statuses()).Draw(rt, "status")
			statuses = append(statuses, slices.Repeat([]commerce.Status{status}, rapid.IntRange(1, 12).Draw(rt, "length"))...)
		}
		dataset := datasetOf(rt, statuses...)
		store := storetest.NewTable(t, db, dynamo.Options{Shards: shards})
		storetest.LoadDataset(t, store, dataset)

		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(commerce.Statuses()), 0, 4, rapid.ID).Draw(rt, "chosen")
		var placed commerce.TimeRange
		if rapid.Bool().Draw(rt, "ranged") {
			from := rapid.IntRange(0, len(statuses)).Draw(rt, "from")
			placed.From = start.Add(time.Duration(from) * time.Millisecond)
			placed.To = placed.From.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "span")) * time.Millisecond)
		}
		var want []commerce.OrderID
		for _, o := range slices.Backward(dataset.Orders) {
			in := len(chosen) == 0 || slices.Contains(chosen, o.Status)
			if in && (placed.From.IsZero() || !o.PlacedAt.Before(placed.From) && o.PlacedAt.Before(placed.To)) {
				want = append(want, o.ID)
			}
		}
		limit := rapid.IntRange(1, 15).Draw(rt, "limit")
		listed, most := chosen, 0
		if len(chosen) == 0 {
			listed = commerce.Statuses()
		}
		for _, level := range commerce.GroupStatusesByLifecycle(listed) {
			if partitions := len(level) * shards; partitions > 1 {
				most += 3*limit + partitions
			} else {
				most += limit + 1
			}
		}
		fromEnd := rapid.Bool().Draw(rt, "fromEnd")

		var got []commerce.OrderID
		page := dynamo.PageRequest{Limit: limit, FromEnd: fromEnd, DetectMore: true}
		for {
			trace := &trace.Trace{}
			slice, err := dynamo.ReadPage(trace.NewContext(context.Background()), store, model.Orders, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(chosen...), Range: dynamo.PlacedOrdersRange(placed), Page: page})
			if err != nil {
				rt.Fatal(err)
			}
			read := 0
			for _, r := range trace.Requests() {
				read += r.Items
			}
			if read > most {
				rt.Fatalf("a page of %d of %v over %d shards read %d orders, more than %d", limit, listed, shards, read, most)
			}
			ids := orderIDs(slice.Items)
			more := slice.HasNext
			if fromEnd {
				more = slice.HasPrevious
				got = append(ids, got...)
			} else {
				got = append(got, ids...)
			}
			if more && len(ids) != limit {
				rt.Fatalf("a page of %d has only %d orders, but more orders follow", limit, len(ids))
			}
			if !more {
				break
			}
			if fromEnd {
				page.Before = slice.Positions[0]
			} else {
				page.After = slice.Positions[len(slice.Positions)-1]
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("walked %v, want %v", got, want)
		}
	})
}

// Orders placed during paging neither repeat nor hide older orders. A position also works with
// another number of shards.
func TestPositionsOutliveInsertsAndShards(t *testing.T) {
	db := storetest.Engines()[0].Client(t)
	statuses := slices.Repeat(commerce.Statuses(), 4)
	dataset := datasetOf(t, statuses...)
	one, many := storetest.NewTable(t, db, dynamo.Options{}), storetest.NewTable(t, db, dynamo.Options{Shards: 5})
	storetest.LoadDataset(t, one, dataset)
	storetest.LoadDataset(t, many, dataset)

	var got []commerce.OrderID
	page := dynamo.PageRequest{Limit: 3, DetectMore: true}
	for turn := 0; ; turn++ {
		store := []*dynamo.Store{one, many}[turn%2]
		slice, err := dynamo.ReadPage(context.Background(), store, model.Orders, dynamo.ListRequest{Page: page})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, orderIDs(slice.Items)...)
		if !slice.HasNext {
			break
		}
		page.After = slice.Positions[len(slice.Positions)-1]
		newer := orderAt(start, 1000+turn, "c", commerce.Pending)
		for _, s := range []*dynamo.Store{one, many} {
			storetest.LoadDataset(t, s, commerce.Dataset{Orders: []commerce.OrderWithItems{newer}})
		}
	}
	var want []commerce.OrderID
	for _, o := range slices.Backward(dataset.Orders) {
		want = append(want, o.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("walked %v, want %v", got, want)
	}
}

// If orders are spread evenly over partitions, a page takes few round trips more than one per level
// of statuses. This also holds for more partitions than rows on the page.
func TestMergedListsTakeFewRoundTrips(t *testing.T) {
	t.Parallel()
	db := storetest.Engines()[0].Client(t)
	var statuses []commerce.Status
	for n := range longtest.Size(150, 400) {
		statuses = append(statuses, commerce.Statuses()[n*7%5])
	}
	dataset := datasetOf(t, statuses...)
	stores := map[int]*dynamo.Store{} // by number of shards
	for _, c := range []struct{ shards, limit, roundTrips int }{
		{1, 1, 4}, {1, 50, 4}, {1, 100, 4}, {2, 5, 4}, {4, 10, 7}, {4, 20, 6}, {4, 50, 5}, {16, 20, 8}, {16, 50, 6},
	} {
		store := stores[c.shards]
		if store == nil {
			store = storetest.NewTable(t, db, dynamo.Options{Shards: c.shards})
			storetest.LoadDataset(t, store, dataset)
			stores[c.shards] = store
		}
		trace := &trace.Trace{}
		slice, err := dynamo.ReadPage(trace.NewContext(context.Background()), store, model.Orders, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: c.limit}})
		if err != nil || len(slice.Items) != c.limit {
			t.Fatalf("%d orders, %v", len(slice.Items), err)
		}
		roundTrips := 0
		for _, r := range trace.Requests() {
			roundTrips = max(roundTrips, r.RoundTrip)
		}
		if roundTrips > c.roundTrips {
			t.Errorf("a page of %d over %d shards took %d round trips and %d requests, want at most %d round trips", c.limit, c.shards, roundTrips, len(trace.Requests()), c.roundTrips)
		}
	}
}
