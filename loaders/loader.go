package loaders

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// longestWait ends a batch of unplanned loads that no caller ends by waiting for a value.
const longestWait = time.Second

// Loader reads values by key for one GraphQL request: each key once, batched where DynamoDB can. It
// is safe for concurrent use.
type Loader[K comparable, V any] struct {
	all *Loaders
	// One of the two reads, the other is nil: many reads keys that can share a request, one reads a
	// key that cannot, so that waiting for more of them gains nothing.
	many manyReader[K, V]
	one  reader[K, V]
	// collections has the records that came with their item collections; nil where none can.
	collections source[K, V]

	mu sync.Mutex
	// known has the keys that were planned, primed or loaded.
	known smallMap[K, place[K, V]]
	// unplanned batches the keys that no plan foresaw; nil as long as there was none.
	unplanned *dataloader.Loader[K, loaded[V]]
}

// single makes l a loader of what takes a request of its own for each key: several run at once, up
// to maxQueries.
func (l *Loader[K, V]) single(all *Loaders, read func(*Loaders, context.Context, K) (V, error)) {
	l.all, l.one = all, single[K, V](read)
}

type (
	// reader reads the value of one key.
	reader[K comparable, V any] interface {
		read(ctx context.Context, l *Loaders, key K) (V, error)
	}
	// manyReader reads keys that can share a request. It has a result for each key, in their order;
	// an error is the whole batch's.
	manyReader[K comparable, V any] interface {
		read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.Result[V], error)
	}
	// source has values beside the loader's own.
	source[K comparable, V any] interface {
		knows(key K) bool
		load(ctx context.Context, key K) (V, error)
	}
)

// The readers hold at most one pointer, so that no request has to allocate them.
type (
	single[K comparable, V any]  func(*Loaders, context.Context, K) (V, error)
	batched[K comparable, V any] func(*Loaders, context.Context, []K) ([]dynamo.Result[V], error)
	lookup[K comparable, V any]  struct{ pattern *model.Lookup[K, V] }
	list[V any]                  struct{ pattern *model.List[V] }
)

func (f single[K, V]) read(ctx context.Context, l *Loaders, key K) (V, error) { return f(l, ctx, key) }

func (f batched[K, V]) read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.Result[V], error) {
	return f(l, ctx, keys)
}

func (r lookup[K, V]) read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.Result[V], error) {
	return dynamo.ReadRecords(ctx, l.store, r.pattern, keys)
}

// read reads a page. The orders of customers whom the viewer does not see are not there.
func (r list[V]) read(ctx context.Context, l *Loaders, key dynamo.ListRequest) (dynamo.Slice[V], error) {
	if r.pattern.PK == model.CustomerOrders.PK && !l.viewer.ordersOf(commerce.CustomerID(key.Of)) {
		return dynamo.Slice[V]{}, nil
	}
	return dynamo.ReadPage(ctx, l.store, r.pattern, key)
}

// loaded is a value, the wave of requests after which it was there, and how many waves reading it
// took.
type loaded[V any] struct {
	value      V
	wave, took int
}

// after is the wave that a line of reading has waited for once it has the value, if it asked for it
// after the given one. A value that another line asks for as well may come of a longer chain of
// requests; but whoever joins in the middle of it waits no longer than if the reading had begun
// then.
func (v loaded[V]) after(wave int) int { return min(v.wave, wave+v.took) }

// Load returns the value of a key: the one that was planned, or one that is read now.
//
// Errors: those of the store's method that reads it; the context's, where it has ended.
func (l *Loader[K, V]) Load(ctx context.Context, key K) (V, error) {
	if err := ctx.Err(); err != nil {
		var none V
		return none, err
	}
	if l.collections != nil && l.collections.knows(key) {
		return l.collections.load(ctx, key)
	}
	l.mu.Lock()
	at, ok := l.known.find(key)
	if !ok {
		at = l.ask(ctx, key)
	}
	l.mu.Unlock()
	v, err := at.get()
	return v.value, err
}

// ask begins to read a key that no plan foresaw. Keys that can share a request are batched until a
// caller waits for a value. l.mu is held.
func (l *Loader[K, V]) ask(ctx context.Context, key K) place[K, V] {
	b := &batch[K, V]{loader: l, ctx: ctx}
	if l.many == nil {
		b.keys = []K{key}
	} else {
		if l.unplanned == nil {
			l.unplanned = dataloader.NewBatchedLoader(l.readUnplanned, dataloader.WithWait[K, loaded[V]](longestWait))
		}
		b.unplanned = l.unplanned.Load(ctx, key)
	}
	at := place[K, V]{batch: b}
	l.known.add(key, at)
	return at
}

// readUnplanned reads the keys of a batch, for the caller that came first.
func (l *Loader[K, V]) readUnplanned(first context.Context, keys []K) []*dataloader.Result[loaded[V]] {
	b := &batch[K, V]{loader: l, ctx: first, keys: keys}
	out := make([]*dataloader.Result[loaded[V]], len(keys))
	for i := range keys {
		v, err := place[K, V]{b, i}.get()
		out[i] = &dataloader.Result[loaded[V]]{Data: v, Error: err}
	}
	return out
}

// find returns the value of a key that was planned, primed or asked for, when it is read; false
// where it is unknown or not there.
func (l *Loader[K, V]) find(key K) (v V, ok bool) {
	l.mu.Lock()
	at, known := l.known.find(key)
	l.mu.Unlock()
	if !known {
		return v, false
	}
	got, err := at.get()
	return got.value, err == nil
}

// knows reports whether a key was planned, primed or asked for.
func (l *Loader[K, V]) knows(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known.find(key)
	return known
}

// Prime gives the loader a value that came along with another, so that nobody reads it again.
func (l *Loader[K, V]) Prime(ctx context.Context, key K, value V) {
	l.prime(ctx, []K{key}, []dynamo.Result[V]{{Value: value}})
}

// prime is Prime for many.
func (l *Loader[K, V]) prime(ctx context.Context, keys []K, values []dynamo.Result[V]) {
	b := &batch[K, V]{results: values, wave: table.SpanOf(ctx).Wave()}
	b.once.Do(func() {}) // it is read
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.grow(len(keys))
	for i, key := range keys {
		if _, known := l.known.find(key); !known {
			l.known.add(key, place[K, V]{b, i})
		}
	}
}

// batch is keys that are read together, once, by whoever needs one of them first: whoever waits for
// a value does what it waits for, or waits for somebody who is doing it. So nobody waits for
// something that has not begun.
type batch[K comparable, V any] struct {
	once   sync.Once
	loader *Loader[K, V]
	// ctx tells what the reading has waited for; it does not end the reading.
	ctx  context.Context
	keys []K
	// unplanned returns the value of the only key, which shares its request with other unplanned
	// loads; nil for planned keys.
	unplanned dataloader.Thunk[loaded[V]]

	// Below is what was read.
	results    []dynamo.Result[V]
	err        error
	wave, took int
}

func (b *batch[K, V]) read() {
	if b.unplanned != nil {
		b.loader.unplanned.Flush()
		v, err := b.unplanned()
		b.results, b.wave, b.took = []dynamo.Result[V]{{Value: v.value, Err: err}}, v.wave, v.took
		return
	}
	ctx := table.SpanOf(b.ctx).Fork(b.loader.all.ctx)
	b.results, b.err = b.loader.read(ctx, b.keys)
	b.wave = table.SpanOf(ctx).Wave()
	b.took = b.wave - table.SpanOf(b.ctx).Wave()
}

// read reads keys with the store. A panic is the error of all of them.
func (l *Loader[K, V]) read(ctx context.Context, keys []K) (results []dynamo.Result[V], err error) {
	defer table.Recovered(&err)
	if l.many != nil {
		if results, err = l.many.read(ctx, l.all, keys); err == nil && len(results) != len(keys) {
			// Whoever looks for a result that is not there would panic, and in a goroutine of a
			// level that ends the server.
			return nil, fmt.Errorf("%d keys have %d results", len(keys), len(results))
		}
		return results, err
	}
	results = make([]dynamo.Result[V], len(keys))
	if len(keys) == 1 {
		results[0].Value, results[0].Err = l.one.read(ctx, l.all, keys[0])
		return results, nil
	}
	err = table.Parallel(ctx, len(keys), maxQueries, func(ctx context.Context, i int) error {
		results[i].Value, results[i].Err = l.one.read(ctx, l.all, keys[i])
		return nil // each key has its own error
	})
	return results, err
}

// place is where the value of a key is: in a batch, at an index.
type place[K comparable, V any] struct {
	batch *batch[K, V]
	at    int
}

// get returns the value, when it is read.
func (p place[K, V]) get() (loaded[V], error) {
	b := p.batch
	b.once.Do(b.read)
	if b.err != nil {
		return loaded[V]{}, b.err
	}
	return loaded[V]{b.results[p.at].Value, b.wave, b.took}, b.results[p.at].Err
}
