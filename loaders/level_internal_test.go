package loaders

import (
	"context"
	"testing"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo"
)

// If a reader returns too few results, all its keys get an error. The server keeps running.
func TestMissingResults(t *testing.T) {
	ctx := t.Context()
	all := New(ctx, nil, access.Viewer{}, func(panicked any) { t.Errorf("a plan panicked: %v", panicked) }, nil)
	few := Loader[int, string]{loaders: all, batchReader: batchFunc[int, string](func(_ *Loaders, _ context.Context, keys []int) ([]dynamo.LookupResult[string], error) {
		return make([]dynamo.LookupResult[string], len(keys)-1), nil
	})}
	none := Loader[int, string]{loaders: all, batchReader: batchFunc[int, string](func(*Loaders, context.Context, []int) ([]dynamo.LookupResult[string], error) { return nil, nil })}
	all.Plan(func(first *Level) {
		for _, l := range []*Loader[int, string]{&few, &none} {
			l.Plan(ctx, first, []int{1, 2}, func(_ context.Context, _ *Level, found []FoundValue[int, string]) {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
			})
		}
	})
	for _, l := range []*Loader[int, string]{&few, &none} {
		for _, key := range []int{1, 2, 3} { // 3 was not planned
			if v, err := l.Load(ctx, key); err == nil {
				t.Errorf("key %d is %q", key, v)
			}
		}
	}
}
