package loaders_test

import (
	"context"
	"testing"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/raceenabled"
	"github.com/ordergraph/ordergraph/loaders"
)

// Loading planned keys does not allocate.
func TestLoadingPlannedKeysDoesNotAllocate(t *testing.T) {
	if countable, reason := allocationsCountable(); !countable {
		t.Skip(reason)
	}
	for _, n := range []int{1, 50} {
		ctx, l, ids := loadersOf(t, n)
		l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, nil) })
		if allocations := testing.AllocsPerRun(100, func() {
			for _, id := range ids {
				if _, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
		}); allocations != 0 {
			t.Errorf("%d customers are loaded with %v allocations", n, allocations)
		}
	}
}

// loadersOf returns loaders and the IDs of n customers in the table.
func loadersOf(t testing.TB, n int) (context.Context, *loaders.Loaders, []commerce.CustomerID) {
	dataset, ids := customers(n)
	ctx := context.Background()
	return ctx, loaders.New(ctx, newFixture(t, dataset, nil).store, adminViewer(), nil, nil), ids
}

func BenchmarkNew(b *testing.B) {
	store, viewer := newFixture(b, commerce.Dataset{}, nil).store, adminViewer()
	b.ReportAllocs()
	for b.Loop() {
		loaders.New(context.Background(), store, viewer, nil, nil)
	}
}

func BenchmarkLoad(b *testing.B) {
	b.Run("one of 1", func(b *testing.B) { benchmarkLoad(b, 1) })
	b.Run("one of 50", func(b *testing.B) { benchmarkLoad(b, 50) })
}

func benchmarkLoad(b *testing.B, n int) {
	ctx, l, ids := loadersOf(b, n)
	l.Plan(func(first *loaders.Level) { loaders.RecordLoader(l, model.CustomerByID).Plan(ctx, first, ids, nil) })
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := loaders.RecordLoader(l, model.CustomerByID).Load(ctx, ids[i%n]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCachedItems(b *testing.B) {
	order := orderOfSize(b, 3, 1).Orders[0]
	order.Items, order.EmbedsItems = order.Lines, true
	_, l, _ := loadersOf(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		if slice, ok := l.CachedOrderItems(&order.Order, dynamo.PageRequest{Limit: 20}); !ok || len(slice.Items) != 3 {
			b.Fatal(slice)
		}
	}
}

// allocationsCountable reports whether allocations can be counted, or the reason why they cannot.
func allocationsCountable() (bool, string) {
	return !raceenabled.On && testing.CoverMode() == "", "the race detector and -cover also allocate"
}
