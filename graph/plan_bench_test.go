package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/loaders"
)

// plannedQuery is a query, the store reads that its plan makes, and the loads of its resolvers.
type plannedQuery struct {
	name    string
	request Request
	// allocations is the maximum number of allocations of an execution before its first resolver,
	// without the reads. It is about 20% above the measured number.
	allocations float64
	reads       func(context.Context, *dynamo.Store) error
	resolvers   func(context.Context, *loaders.Loaders) error
}

// busyCustomer has the ten newest orders of busyDataset.
const busyCustomer = commerce.CustomerID("busy")

func busyOrder(n int) commerce.OrderID {
	var id ulid.ULID
	id[15] = byte(n)
	if err := id.SetTime(uint64(hardStart.Add(-time.Duration(n) * time.Minute).UnixMilli())); err != nil {
		panic(err)
	}
	return commerce.OrderID(id.String())
}

// busyDataset returns a dataset of 50 pending orders with three embedded items each. The first ten
// orders belong to one customer, all others to a customer of their own.
func busyDataset(t testing.TB) commerce.Dataset {
	var dataset commerce.Dataset
	price, err := commerce.ParseMoney("1.50", "USD")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		dataset.Products = append(dataset.Products, commerce.Product{SKU: commerce.SKU(fmt.Sprintf("sku_%d", i)), Name: "Thing", Category: "C", UnitPrice: price})
	}
	for n := range 50 {
		of := busyCustomer
		if n >= 10 {
			of = commerce.CustomerID(fmt.Sprintf("customer_%02d", n))
		}
		if n == 0 || n >= 10 {
			dataset.Customers = append(dataset.Customers, commerce.Customer{ID: of, Name: "N", Email: string(of) + "@example.com", CreatedAt: hardStart})
		}
		order := commerce.OrderWithItems{Order: commerce.Order{ID: busyOrder(n), CustomerID: of, Status: commerce.Pending, PlacedAt: hardStart, UpdatedAt: hardStart}}
		for _, p := range dataset.Products {
			order.Lines = append(order.Lines, commerce.LineItem{SKU: p.SKU, Name: p.Name, Quantity: 1, UnitPrice: price})
		}
		dataset.Orders = append(dataset.Orders, order)
	}
	if err := derive.Complete(&dataset); err != nil {
		t.Fatal(err)
	}
	return dataset
}

// plannedQueries returns queries for a customer with orders and items, for an order with items and
// customer, and for a page of orders with customers and items.
func plannedQueries() []plannedQuery {
	items := `items { nodes { productId name quantity unitPrice { amount } } }`
	fields := `id status total { amount } placedAt ` + items
	itemsOf := func(ctx context.Context, l *loaders.Loaders, o *commerce.Order) error {
		_, err := l.OrderItems(ctx, o, dynamo.PageRequest{Limit: operation.DefaultPageSize})
		return err
	}
	customersOf := func(orders []*commerce.Order) (ids []commerce.CustomerID) {
		seen := map[commerce.CustomerID]bool{}
		for _, o := range orders {
			if !seen[o.CustomerID] {
				ids = append(ids, o.CustomerID)
			}
			seen[o.CustomerID] = true
		}
		return ids
	}
	return []plannedQuery{
		{
			"a customer's orders",
			Request{Query: `query ($id: ID!, $first: Int) { customer(id: $id) { id name orders(first: $first) { nodes { ` + fields + ` } } } }`,
				Variables: map[string]any{"id": string(busyCustomer), "first": json.Number("10")}},
			66,
			func(ctx context.Context, s *dynamo.Store) error {
				if _, err := dynamo.ReadRecords(ctx, s, model.CustomerByID, []commerce.CustomerID{busyCustomer}); err != nil {
					return err
				}
				_, err := dynamo.ReadPage(ctx, s, model.CustomerOrders, dynamo.ListRequest{PartitionValue: string(busyCustomer), Page: dynamo.PageRequest{Limit: 10}})
				return err
			},
			func(ctx context.Context, l *loaders.Loaders) error {
				if _, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, busyCustomer); err != nil {
					return err
				}
				_, err := loaders.PageLoader(l, model.CustomerOrders).Load(ctx, dynamo.ListRequest{PartitionValue: string(busyCustomer), Page: dynamo.PageRequest{Limit: 10}})
				return err
			},
		},
		{
			"an order",
			Request{Query: `query ($id: ID!) { order(id: $id) { ` + fields + ` customer { id name email } } }`, Variables: map[string]any{"id": string(busyOrder(0))}},
			47,
			func(ctx context.Context, s *dynamo.Store) error {
				if _, err := dynamo.ReadRecords(ctx, s, model.OrderByID, []commerce.OrderID{busyOrder(0)}); err != nil {
					return err
				}
				_, err := dynamo.ReadRecords(ctx, s, model.CustomerByID, []commerce.CustomerID{busyCustomer})
				return err
			},
			func(ctx context.Context, l *loaders.Loaders) error {
				o, err := l.Order(ctx, busyOrder(0))
				if err != nil {
					return err
				}
				if err := itemsOf(ctx, l, o); err != nil {
					return err
				}
				_, err = loaders.RecordLoader(l, model.CustomerByID).Load(ctx, o.CustomerID)
				return err
			},
		},
		{
			"a page of orders",
			Request{Query: `query ($status: OrderStatus!, $first: Int) { ordersByStatus(status: $status, first: $first) { nodes { ` + fields + ` customer { name } } } }`,
				Variables: map[string]any{"status": "PENDING", "first": json.Number("50")}},
			50,
			func(ctx context.Context, s *dynamo.Store) error {
				page, err := dynamo.ReadPage(ctx, s, model.OrdersByStatus, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(commerce.Pending), Page: dynamo.PageRequest{Limit: 50}})
				if err != nil {
					return err
				}
				_, err = dynamo.ReadRecords(ctx, s, model.CustomerByID, customersOf(page.Items))
				return err
			},
			func(ctx context.Context, l *loaders.Loaders) error {
				page, err := loaders.PageLoader(l, model.OrdersByStatus).Load(ctx, dynamo.ListRequest{Statuses: dynamo.NewStatusSet(commerce.Pending), Page: dynamo.PageRequest{Limit: 50}})
				if err != nil {
					return err
				}
				for _, o := range page.Items {
					if _, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, o.CustomerID); err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
}

func busyExecutor(t testing.TB) *Executor {
	store := storetest.NewTable(t, storetest.Engines()[0].Client(t), dynamo.Options{})
	if _, err := store.Load(context.Background(), busyDataset(t)); err != nil {
		t.Fatal(err)
	}
	return NewExecutor(Options{Store: store, Cursors: paging.NewCursorSigner([]byte("a key for tests")), Report: func(_ context.Context, err error) { t.Error(err) }})
}

// planning returns a function that plans the query once and calls the loads of its resolvers.
func (f plannedQuery) planning(t testing.TB, e *Executor) func() {
	operation, _, errs := e.prepare(context.Background(), f.request)
	if errs = append(errs, e.readArguments(context.Background(), operation)...); len(errs) > 0 {
		t.Fatal(errs)
	}
	return func() {
		x := e.newExecution(context.Background(), operation)
		x.newLoaders(e.resolver.store, "")
		x.runPlan(x.ctx, func(p plan) { p.planRootFields(x.ctx, operation.prepared.Root) })
		if err := f.resolvers(x.ctx, x.loaders); err != nil {
			t.Fatal(err)
		}
	}
}

// reading returns a function that makes the same reads without a plan.
func (f plannedQuery) reading(t testing.TB, e *Executor) func() {
	ctx := table.NewReadBudget(e.limits.Requests).NewContext(context.Background())
	return func() {
		if err := f.reads(ctx, e.resolver.store); err != nil {
			t.Fatal(err)
		}
	}
}

// The allocations of a plan and its loaders are limited, apart from the allocations of the reads.
func TestPlanAllocations(t *testing.T) {
	if raceenabled.On || testing.CoverMode() != "" {
		t.Skip("the race detector and coverage add allocations")
	}
	e := busyExecutor(t)
	for _, f := range plannedQueries() {
		const runs = 20
		planned, read := testing.AllocsPerRun(runs, f.planning(t, e)), testing.AllocsPerRun(runs, f.reading(t, e))
		if took := planned - read; took > f.allocations {
			t.Errorf("planning %s makes %v allocations in addition to its reads, want at most %v", f.name, took, f.allocations)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	e := busyExecutor(b)
	for _, f := range plannedQueries() {
		for name, once := range map[string]func(){"planned": f.planning(b, e), "reads alone": f.reading(b, e)} {
			b.Run(f.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					once()
				}
			})
		}
	}
}
