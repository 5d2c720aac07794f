package loaders_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/loaders"
)

// beginAs is begin for a viewer.
func (s fixture) beginAs(v access.Viewer) (context.Context, *loaders.Loaders, *trace.Trace) {
	trace := &trace.Trace{}
	ctx := trace.NewContext(context.Background())
	return ctx, loaders.New(ctx, s.store, v, func(panicked any) { s.t.Errorf("a plan panicked: %v", panicked) }, nil), trace
}

// A customer finds only its own records. Another customer's records are not found. For them,
// nothing is read except the key that the order would have in the customer's own partition.
func TestCustomersFindOnlyTheirOwnRecords(t *testing.T) {
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	s := newFixture(t, dataset, nil)
	const (
		me, other     = commerce.CustomerID("cust_001"), commerce.CustomerID("cust_002")
		mine, theirs  = commerce.OrderID("01KCXT31G00000000000000002"), commerce.OrderID("01KE70EHG00000000000000003")
		missing       = commerce.OrderID("01KE70EHG00000000000000009")
		ofMine        = commerce.SKU("prod_101")
		ofTheirs      = commerce.SKU("prod_100")
		ownKey        = "AP29 GetItem"
		withoutPolicy = "without a policy"
	)
	viewer := access.Viewer{Principal: access.Principal{ID: "me", Role: access.RoleCustomer, Customer: me}, Policy: access.StandardPolicy()}
	page := dynamo.PageRequest{Limit: 10}
	for _, c := range []struct {
		name  string
		load  func(context.Context, *loaders.Loaders) (bool, error)
		found bool
		reads []string
	}{
		{"the own record", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			return found(loaders.RecordLoader(l, model.CustomerByID).Load(ctx, me))
		}, true, []string{"AP6 GetItem"}},
		{"another's record", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			return found(loaders.RecordLoader(l, model.CustomerByID).Load(ctx, other))
		}, false, nil},
		{"an own order", func(ctx context.Context, l *loaders.Loaders) (bool, error) { return found(l.Order(ctx, mine)) }, true, []string{ownKey}},
		{"another's order", func(ctx context.Context, l *loaders.Loaders) (bool, error) { return found(l.Order(ctx, theirs)) }, false, []string{ownKey}},
		{"a missing order", func(ctx context.Context, l *loaders.Loaders) (bool, error) { return found(l.Order(ctx, missing)) }, false, []string{ownKey}},
		{"another's order item collection", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			l.Plan(func(first *loaders.Level) {
				loaders.RecordLoader(l, model.OrderByID).PlanCollections(ctx, first, []commerce.OrderID{theirs}, nil)
			})
			return found(l.Order(ctx, theirs))
		}, false, []string{ownKey}},
		{"an own order of the own customer", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			return found(loaders.RecordLoader(l, model.CustomerOrder).Load(ctx, model.CustomerOrderKey{Customer: me, Order: mine}))
		}, true, []string{ownKey}},
		{"another's order of that customer", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			return found(loaders.RecordLoader(l, model.CustomerOrder).Load(ctx, model.CustomerOrderKey{Customer: other, Order: theirs}))
		}, false, nil},
		{"an own item", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			return found(l.OrderItemByID(ctx, model.OrderItemKey{Order: mine, SKU: ofMine}))
		}, true, []string{ownKey}},
		{"another's item", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			return found(l.OrderItemByID(ctx, model.OrderItemKey{Order: theirs, SKU: ofTheirs}))
		}, false, []string{ownKey}},
		{"another's planned item", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			l.Plan(func(first *loaders.Level) {
				l.PlanItemsAfterOrders(ctx, first, []model.OrderItemKey{{Order: theirs, SKU: ofTheirs}}, func(_ context.Context, _ *loaders.Level, there []model.OrderItemKey) {
					if len(there) > 0 {
						t.Errorf("%v is there", there)
					}
				})
			})
			return found(l.OrderItemByID(ctx, model.OrderItemKey{Order: theirs, SKU: ofTheirs}))
		}, false, []string{ownKey}},
		{"the own orders", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			slice, err := loaders.PageLoader(l, model.CustomerOrders).Load(ctx, dynamo.ListRequest{PartitionValue: string(me), Page: page})
			return len(slice.Items) > 0, err
		}, true, []string{"AP2 Query"}},
		{"another's orders", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			slice, err := loaders.PageLoader(l, model.CustomerOrders).Load(ctx, dynamo.ListRequest{PartitionValue: string(other), Page: page})
			return len(slice.Items) > 0, err
		}, false, nil},
		{"the count of the own orders", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			n, err := l.OrderCountQueries.Load(ctx, me)
			return n > 0, err
		}, true, []string{"AP2 Query"}},
		{"the count of another's orders", func(ctx context.Context, l *loaders.Loaders) (bool, error) {
			n, err := l.OrderCountQueries.Load(ctx, other)
			return n > 0, err
		}, false, nil},
	} {
		ctx, l, trace := s.beginAs(viewer)
		if got, err := c.load(ctx, l); got != c.found || err != nil {
			t.Errorf("%s: found %v, %v", c.name, got, err)
		}
		checkRequests(t, trace, c.reads...)
		if c.found || !slices.Contains(c.reads, ownKey) {
			continue
		}
		// A viewer without a policy or without a customer reads nothing.
		for _, unprivileged := range []access.Viewer{{}, {Policy: access.StandardPolicy()}, {Principal: viewer.Principal}} {
			ctx, l, trace := s.beginAs(unprivileged)
			if got, err := c.load(ctx, l); got || err != nil {
				t.Errorf("%s %s: found %v, %v", c.name, withoutPolicy, got, err)
			}
			checkRequests(t, trace)
		}
	}
}

// found reports whether a record exists. A missing record is not an error.
func found[T any](_ T, err error) (bool, error) {
	if errors.Is(err, commerce.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// A batch returns the viewer's own records in place and reports the others as not found.
func TestBatchOfOwnAndOtherRecords(t *testing.T) {
	dataset, ids := customers(3)
	s := newFixture(t, dataset, nil)
	ctx, l, trace := s.beginAs(access.Viewer{Principal: access.Principal{ID: "me", Role: access.RoleCustomer, Customer: ids[1]}, Policy: access.StandardPolicy()})
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, nil) })
	for i, id := range ids {
		c, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id)
		if i == 1 {
			checkCustomer(t, c, err, id)
		} else if !errors.Is(err, commerce.ErrNotFound) {
			t.Errorf("%s: %v, %v", id, c, err)
		}
	}
	checkRequests(t, trace, "AP6 GetItem")
}
