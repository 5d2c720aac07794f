package loaders_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/loaders"
)

const largeOrder = commerce.OrderID("01HVMK3P2Q0000000000000001")

// orderOfSize returns a dataset with one order that has the given numbers of line items and events.
func orderOfSize(t testing.TB, items, events int) commerce.Dataset {
	t.Helper()
	price, err := commerce.ParseMoney("1.50", "USD")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2024, 4, 16, 23, 15, 41, 783e6, time.UTC)
	o := commerce.OrderWithItems{Order: commerce.Order{ID: largeOrder, CustomerID: "c1", Status: commerce.Pending, PlacedAt: at, UpdatedAt: at}}
	dataset := commerce.Dataset{Customers: []commerce.Customer{{ID: "c1", Name: "Carl", Email: "carl@example.com", CreatedAt: at}}}
	for i := range items {
		sku := commerce.SKU(fmt.Sprintf("sku_%03d", i))
		dataset.Products = append(dataset.Products, commerce.Product{SKU: sku, Name: "N", Category: "C", UnitPrice: price})
		o.Lines = append(o.Lines, commerce.LineItem{SKU: sku, Name: "N", Quantity: 1 + i, UnitPrice: price})
	}
	for i := range events {
		o.Events = append(o.Events, commerce.Event{ID: commerce.EventID(fmt.Sprintf("01HVMK3P2Q%016d", i)), OrderID: largeOrder, Type: commerce.EventItemSet, At: at, Actor: fmt.Sprint(i)})
	}
	dataset.Orders = []commerce.OrderWithItems{o}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}

// pages returns page requests from both ends and the middle of a list.
func pages(position func(i int) string) []dynamo.PageRequest {
	return []dynamo.PageRequest{
		{Limit: 5}, {Limit: 5, DetectMore: true}, {Limit: 100, DetectMore: true}, {Limit: 5, FromEnd: true, DetectMore: true}, {Limit: 5, After: position(7), DetectMore: true},
		{Limit: 5, FromEnd: true, Before: position(12), DetectMore: true}, {Limit: 100, After: position(2), Before: position(9), DetectMore: true},
	}
}

func planOrderCollection(ctx context.Context, l *loaders.Loaders, id commerce.OrderID) {
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.OrderByID).PlanCollections(ctx, first, []commerce.OrderID{id}, nil)
	})
}

// Pages of an order's line items and events are correct, whether the items are embedded in the
// order, were read with the item collection or need their own Query.
func TestPagesOfOrderItemCollections(t *testing.T) {
	for _, c := range []struct {
		name          string
		items, events int
		// more are the requests for a page of items and a page of events, in addition to the order's
		// request.
		more []string
	}{
		{"embedded items", 20, 30, nil},
		{"items in the collection", 60, 30, nil},
		{"199 records in all", 60, 138, nil},
		// A Query that stops at its limit reports that there may be more records, even if there are none.
		{"200 records in all", 60, 139, []string{"AP27 Query", "AP4 Query"}},
		{"a collection too large for one Query", 60, 250, []string{"AP27 Query", "AP4 Query"}},
		{"embedded items, events too many for one Query", 20, 250, []string{"AP27 Query"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dataset := orderOfSize(t, c.items, c.events)
			s := newFixture(t, dataset, nil)
			lines, events := dataset.Orders[0].Lines, dataset.Orders[0].Events
			sku := func(i int) string { return string(lines[i].SKU) }
			event := func(i int) string { return string(events[i].ID) }
			for i, itemsPage := range pages(sku) {
				eventsPage := pages(event)[i]
				ctx, l, trace := s.begin()
				planOrderCollection(ctx, l, largeOrder)
				o, err := l.Order(ctx, largeOrder)
				if err != nil || o.ID != largeOrder || *o.ItemCount != c.items {
					t.Fatalf("order %+v, %v", o, err)
				}
				gotItems, err := l.OrderItems(ctx, o, itemsPage)
				checkPage(t, gotItems, err, lines, sku, itemsPage)
				gotEvents, err := loaders.PageLoader(l, model.Timeline).Load(ctx, dynamo.ListRequest{PartitionValue: string(largeOrder), Page: eventsPage})
				checkPage(t, gotEvents, err, events, event, eventsPage)
				checkCounts(t, trace, append([]string{"AP25 Query"}, c.more...))
			}
		})
	}
}

// checkCounts is checkRequests for reads in any order.
func checkCounts(t testing.TB, trace *trace.Trace, want []string) {
	t.Helper()
	count := map[string]int{}
	for _, r := range trace.Requests() {
		count[r.Pattern+" "+r.Operation]++
	}
	for _, r := range want {
		count[r]--
	}
	for r, n := range count {
		if n != 0 {
			t.Errorf("%s: %+d requests against what is wanted", r, n)
		}
	}
}

// checkPage compares a page with the same page of the complete list.
func checkPage[T any](t testing.TB, got dynamo.Page[*T], err error, all []T, position func(int) string, page dynamo.PageRequest) {
	t.Helper()
	if err != nil {
		t.Errorf("page %+v: %v", page, err)
		return
	}
	pointers, positions := make([]*T, len(all)), map[*T]string{}
	for i := range all {
		pointers[i], positions[&all[i]] = &all[i], position(i)
	}
	want := dynamo.PageOfList(pointers, func(p *T) string { return positions[p] }, page)
	if !reflect.DeepEqual(got.Items, want.Items) || !slices.Equal(got.ItemPositions(), want.ItemPositions()) || got.HasNext != want.HasNext || got.HasPrevious != want.HasPrevious {
		t.Errorf("page %+v: got %d of %v, next %v, previous %v; want %d of %v, next %v, previous %v", page,
			len(got.Items), got.ItemPositions(), got.HasNext, got.HasPrevious, len(want.Items), want.ItemPositions(), want.HasNext, want.HasPrevious)
	}
}

func TestItemOfAnOrder(t *testing.T) {
	for _, c := range []struct {
		name     string
		items    int
		planned  bool
		requests []string
	}{
		{"on the order", 20, false, []string{"AP1 GetItem"}},
		{"in the collection", 60, true, []string{"AP25 Query"}},
		{"on its own", 60, false, []string{"AP1 GetItem", "AP5 BatchGetItem"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t, orderOfSize(t, c.items, 1), nil)
			ctx, l, trace := s.begin()
			if c.planned {
				planOrderCollection(ctx, l, largeOrder)
			}
			o, err := l.Order(ctx, largeOrder)
			if err != nil {
				t.Fatal(err)
			}
			if !c.planned {
				// Plan the item as a query plan does, so that both loads share a request if one is needed.
				if _, atHand := l.CachedOrderItem(o, "sku_007"); !atHand {
					l.Plan(func(first *loaders.Level) {
						loaders.RecordLoader(l, model.OrderItem).Plan(ctx, first, []model.OrderItemKey{{Order: o.ID, SKU: "sku_007"}, {Order: o.ID, SKU: "vase"}}, nil)
					})
				}
			}
			item, err := l.OrderItem(ctx, o, "sku_007")
			if err != nil || item.SKU != "sku_007" || item.Quantity != 8 || item.OrderID != o.ID || item.CustomerID != "c1" {
				t.Errorf("item %+v, %v", item, err)
			}
			if item, err := l.OrderItem(ctx, o, "vase"); !errors.Is(err, commerce.ErrNotFound) || item != nil {
				t.Errorf("an item that the order has not: %v, %v, want ErrNotFound", item, err)
			}
			checkRequests(t, trace, c.requests...)
		})
	}
}

func TestMissingOrderItemCollection(t *testing.T) {
	ctx, l, trace := newFixture(t, orderOfSize(t, 1, 1), nil).begin()
	const missing = "01HVMK3P2Q0000000000000009"
	planOrderCollection(ctx, l, missing)
	if o, err := l.Order(ctx, missing); !errors.Is(err, commerce.ErrNotFound) || o != nil {
		t.Errorf("order %v, %v, want ErrNotFound", o, err)
	}
	checkRequests(t, trace, "AP25 Query")
}

// A plan of values that an item collection contains waits for the item collection, and reads only
// the other values.
func TestPlannedCollectionsAreKnown(t *testing.T) {
	ctx, l, trace := newFixture(t, sampleData(t), nil).begin()
	const other = commerce.OrderID("01HVNR4Q3R0000000000000002")
	timelines := []dynamo.ListRequest{
		{PartitionValue: string(largeOrder), Page: dynamo.PageRequest{Limit: 1}}, {PartitionValue: string(other), Page: dynamo.PageRequest{Limit: 1}},
		{PartitionValue: string(largeOrder), Page: dynamo.PageRequest{Limit: 2}},
	}
	var found []dynamo.ListRequest
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.OrderByID).PlanCollections(ctx, first, []commerce.OrderID{largeOrder}, func(ctx context.Context, next *loaders.Level, _ []loaders.FoundValue[commerce.OrderID, *commerce.Order]) {
			loaders.PageLoader(l, model.Timeline).Plan(ctx, next, timelines[:1], nil)
		})
	})
	l.Plan(func(first *loaders.Level) {
		var mu sync.Mutex
		loaders.PageLoader(l, model.Timeline).Plan(ctx, first, timelines, func(_ context.Context, _ *loaders.Level, pages []loaders.FoundValue[dynamo.ListRequest, dynamo.Page[*commerce.Event]]) {
			mu.Lock()
			defer mu.Unlock()
			for _, page := range pages {
				found = append(found, page.Key)
			}
		})
	})
	if len(found) != len(timelines) {
		t.Errorf("the plan found the timelines %v", found)
	}
	checkCounts(t, trace, []string{"AP25 Query", "AP27 Query"})
}

// The plan of an order item collection calls then with the order.
func TestThenOfItemCollections(t *testing.T) {
	ctx, l, _ := newFixture(t, sampleData(t), nil).begin()
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.OrderByID).PlanCollections(ctx, first, []commerce.OrderID{largeOrder}, func(_ context.Context, _ *loaders.Level, found []loaders.FoundValue[commerce.OrderID, *commerce.Order]) {
			if len(found) != 1 || found[0].Key != largeOrder || found[0].Value.Total.Decimal() != "94.96" {
				t.Errorf("then was told %+v", found)
			}
		})
	})
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.ProductBySKU).PlanCollections(ctx, first, []commerce.SKU{"prod_100"}, func(_ context.Context, _ *loaders.Level, found []loaders.FoundValue[commerce.SKU, *commerce.Product]) {
			if len(found) != 1 || found[0].Key != "prod_100" || found[0].Value.Name != "Widget A" {
				t.Errorf("then was told %+v", found)
			}
		})
	})
}

// A product's inventory is read with the product, or with its own Query if there are too many
// warehouses.
func TestPagesOfProductInventory(t *testing.T) {
	for _, c := range []struct {
		warehouses int
		more       []string
	}{{30, nil}, {198, nil}, {199, []string{"AP13 Query"}}, {250, []string{"AP13 Query"}}} {
		t.Run(fmt.Sprint(c.warehouses), func(t *testing.T) {
			dataset := orderOfSize(t, 2, 1)
			for i := range c.warehouses {
				dataset.Levels = append(dataset.Levels, commerce.InventoryLevel{SKU: "sku_000", WarehouseID: commerce.WarehouseID(fmt.Sprintf("w_%03d", i)), Quantity: i})
			}
			s := newFixture(t, dataset, nil)
			warehouse := func(i int) string { return string(dataset.Levels[i].WarehouseID) }
			for _, page := range pages(warehouse) {
				ctx, l, trace := s.begin()
				l.Plan(func(first *loaders.Level) {
					loaders.RecordLoader(l, model.ProductBySKU).PlanCollections(ctx, first, []commerce.SKU{"sku_000"}, func(context.Context, *loaders.Level, []loaders.FoundValue[commerce.SKU, *commerce.Product]) {})
				})
				l.Plan(func(first *loaders.Level) {
					loaders.RecordLoader(l, model.ProductBySKU).Plan(ctx, first, []commerce.SKU{"sku_000"}, nil)
				}) // it comes along
				if p, err := loaders.RecordLoader(l, model.ProductBySKU).Load(ctx, "sku_000"); err != nil || p.SKU != "sku_000" {
					t.Fatalf("product %v, %v", p, err)
				}
				got, err := loaders.PageLoader(l, model.ProductInventory).Load(ctx, dynamo.ListRequest{PartitionValue: "sku_000", Page: page})
				checkPage(t, got, err, dataset.Levels, warehouse, page)
				checkRequests(t, trace, append([]string{"AP13 Query"}, c.more...)...)
			}
		})
	}
}

func TestMissingProductItemCollection(t *testing.T) {
	ctx, l, trace := newFixture(t, sampleData(t), nil).begin()
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.ProductBySKU).PlanCollections(ctx, first, []commerce.SKU{"vase"}, func(context.Context, *loaders.Level, []loaders.FoundValue[commerce.SKU, *commerce.Product]) {})
	})
	if p, err := loaders.RecordLoader(l, model.ProductBySKU).Load(ctx, "vase"); !errors.Is(err, commerce.ErrNotFound) || p != nil {
		t.Errorf("product %v, %v, want ErrNotFound", p, err)
	}
	checkRequests(t, trace, "AP13 Query")
}

// Products that are planned without their inventory share a batch.
func TestPlannedProducts(t *testing.T) {
	ctx, l, trace := newFixture(t, sampleData(t), nil).begin()
	skus := []commerce.SKU{"prod_100", "prod_101", "prod_abc"}
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.ProductBySKU).Plan(ctx, first, skus, nil) })
	for _, sku := range skus {
		if p, err := loaders.RecordLoader(l, model.ProductBySKU).Load(ctx, sku); err != nil || p.SKU != sku {
			t.Errorf("product %s: %v, %v", sku, p, err)
		}
	}
	checkRequests(t, trace, "AP10 BatchGetItem")
}

// Orders and customers that were read from a list are not read again by ID.
func TestPrimedRecords(t *testing.T) {
	ctx, l, trace := newFixture(t, sampleData(t), nil).begin()
	page, err := loaders.PageLoader(l, model.CustomerOrders).Load(ctx, dynamo.ListRequest{PartitionValue: "cust_01", Page: dynamo.PageRequest{Limit: 10}})
	if err != nil {
		t.Fatal(err)
	}
	l.PrimeOrders(ctx, page.Items)
	for _, want := range page.Items {
		if o, err := l.Order(ctx, want.ID); err != nil || o != want {
			t.Errorf("order %s: %v, %v", want.ID, o, err)
		}
	}
	checkRequests(t, trace, "AP2 Query")
	l.Plan(func(first *loaders.Level) {
		loaders.RecordLoader(l, model.OrderByID).Plan(ctx, first, []commerce.OrderID{"01KE70EHG00000000000000003", "01KE1VN3G00000000000000005"}, nil)
	})
	if o, err := l.Order(ctx, "01KE70EHG00000000000000003"); err != nil || o.CustomerID != "cust_002" {
		t.Errorf("order %v, %v", o, err)
	}
	checkRequests(t, trace, "AP1 BatchGetItem", "AP2 Query")
}

// externalCustomer writes external records of a customer and orders, without a count.
func externalCustomer(s fixture, orders int) {
	s.putExternal(map[string]any{"pk": "CUSTOMER#foreign", "sk": "#METADATA", "customerId": "foreign", "name": "F", "email": "f@example.com", "createdAt": "2026-02-01T00:00:00Z"})
	for i := range orders {
		id := fmt.Sprintf("01HVMK3P2Q%016d", i)
		s.putExternal(map[string]any{"pk": "CUSTOMER#foreign", "sk": "ORDER#" + id, "orderId": id, "customerId": "foreign", "status": "pending", "total": 5, "createdAt": "2026-02-01T00:00:00Z"})
	}
}

func TestOrderCount(t *testing.T) {
	for _, c := range []struct {
		id       commerce.CustomerID
		want     int
		requests []string
	}{
		{"cust_01", 2, []string{"AP6 GetItem"}},
		{"cust_005", 0, []string{"AP6 GetItem"}},
		{"foreign", 7, []string{"AP6 GetItem", "AP2 Query"}},
	} {
		t.Run(string(c.id), func(t *testing.T) {
			s := newFixture(t, sampleData(t), nil)
			externalCustomer(s, 7)
			ctx, l, trace := s.begin()
			customer, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, c.id)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if n, err := l.CustomerOrderCount(ctx, customer); err != nil || n != c.want {
					t.Errorf("%d orders, %v, want %d", n, err, c.want)
				}
			}
			checkCounts(t, trace, c.requests)
		})
	}
}

// The list of an account rep's customers contains edges without a count. The customers' records are
// read, and only the orders of customers without a count are counted.
func TestPlannedOrderCounts(t *testing.T) {
	s := newFixture(t, sampleData(t), nil)
	externalCustomer(s, 3)
	s.putExternal(map[string]any{"pk": "CUSTOMER#foreign", "sk": "REP", "gsi1pk": "REP#rep_001", "gsi1sk": "CUSTOMER#foreign", "customerId": "foreign", "name": "F", "email": "f@example.com", "createdAt": "2026-02-01T00:00:00Z"})
	ctx, l, trace := s.begin()
	page, err := loaders.PageLoader(l, model.EmployeeCustomers).Load(ctx, dynamo.ListRequest{PartitionValue: "rep_001", Page: dynamo.PageRequest{Limit: 10}})
	if err != nil {
		t.Fatal(err)
	}
	l.Plan(func(first *loaders.Level) { l.PlanCustomerOrderCounts(ctx, first, page.Items) })
	got := map[commerce.CustomerID]int{}
	for _, customer := range page.Items {
		if got[customer.ID], err = l.CustomerOrderCount(ctx, customer); err != nil {
			t.Errorf("customer %s: %v", customer.ID, err)
		}
	}
	if want := map[commerce.CustomerID]int{"cust_001": 2, "cust_002": 1, "foreign": 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	checkCounts(t, trace, []string{"AP21 Query", "AP6 BatchGetItem", "AP2 Query"})
	if all := trace.Requests(); all[len(all)-1].Pattern != "AP2" || all[len(all)-1].RoundTrip != 2 {
		t.Errorf("the count is %s in round trip %d, want AP2 in 2", all[len(all)-1].Pattern, all[len(all)-1].RoundTrip)
	}
}

func TestOrderCountOfTheRecord(t *testing.T) {
	ctx, l, trace := newFixture(t, sampleData(t), nil).begin()
	if n, err := l.CustomerOrderCount(ctx, &commerce.Customer{ID: "cust_01", OrderCount: new(41)}); err != nil || n != 41 {
		t.Errorf("%d orders, %v, want the 41 that the record tells", n, err)
	}
	checkRequests(t, trace)
}

// The orders of an edge's customer are counted even if the customer's record is missing.
func TestOrderCountOfAnEdgeWithoutItsCustomer(t *testing.T) {
	ctx, l, trace := newFixture(t, sampleData(t), nil).begin()
	if n, err := l.CustomerOrderCount(ctx, &commerce.Customer{ID: "nobody"}); err != nil || n != 0 {
		t.Errorf("%d orders, %v, want 0", n, err)
	}
	checkCounts(t, trace, []string{"AP6 GetItem", "AP2 Query"})
}
