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
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// maxBatchWait is the maximum time that a batch waits for further keys. It applies only to keys
// that no query plan has added. If a caller waits for one of the values, the batch is read
// immediately.
const maxBatchWait = time.Second

// Loader reads values by key for one GraphQL request. It reads each key at most once. Where
// possible, it reads several keys with one DynamoDB request. It is safe for concurrent use.
type Loader[K comparable, V any] struct {
	loaders *Loaders
	// pattern is the ID of the access pattern, such as AP6.
	pattern string
	// If several keys can share a DynamoDB request, batchReader is set, and keyReader is nil.
	// Otherwise, keyReader is set, and batchReader is nil.
	batchReader batchReader[K, V]
	keyReader   keyReader[K, V]
	// collections contains values that a query plan reads as part of an item collection. It is nil if
	// the values of this loader are never read that way.
	collections collectionSource[K, V]

	mu sync.Mutex
	// known contains the keys that were planned, primed or loaded. It maps each key to the location of
	// its value.
	known smallMap[K, valueRef[K, V]]
	// unplanned collects keys that no query plan has added, and reads them in batches. It is nil until
	// the first such key is loaded.
	unplanned *dataloader.Loader[K, valueWithRoundTrips[V]]
}

// initSingle initializes a loader whose keys cannot share a DynamoDB request. The parameter read is
// the function that reads the value of one key. At most maxConcurrentQueries keys of a batch are
// read concurrently.
func (l *Loader[K, V]) initSingle(all *Loaders, pattern string, read func(*Loaders, context.Context, K) (V, error)) {
	l.loaders, l.pattern, l.keyReader = all, pattern, keyReaderFunc[K, V](read)
}

type (
	// keyReader reads the value of one key.
	keyReader[K comparable, V any] interface {
		read(ctx context.Context, l *Loaders, key K) (V, error)
	}
	// batchReader reads several keys that share DynamoDB requests. It returns one result per key, in
	// the order of the keys. If it returns an error, the error applies to all keys.
	batchReader[K comparable, V any] interface {
		read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.LookupResult[V], error)
	}
)

// Each of these readers is at most one pointer in size, so storing it in an interface does not
// allocate memory.
type (
	keyReaderFunc[K comparable, V any] func(*Loaders, context.Context, K) (V, error)
	batchFunc[K comparable, V any]     func(*Loaders, context.Context, []K) ([]dynamo.LookupResult[V], error)
	lookupReader[K comparable, V any]  struct{ pattern *model.LookupPattern[K, V] }
	listReader[V any]                  struct{ pattern *model.ListPattern[V] }
)

func (f keyReaderFunc[K, V]) read(ctx context.Context, l *Loaders, key K) (V, error) {
	return f(l, ctx, key)
}

func (f batchFunc[K, V]) read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.LookupResult[V], error) {
	return f(l, ctx, keys)
}

// read reads the records that the viewer may read. If it may not read a record, the result is
// commerce.ErrNotFound.
func (r lookupReader[K, V]) read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.LookupResult[V], error) {
	visible := l.viewer.Records(r.pattern.Owner)
	if visible.All() {
		return dynamo.ReadRecords(ctx, l.store, r.pattern, keys)
	}
	results := make([]dynamo.LookupResult[V], len(keys))
	var visibleKeys []K
	var indexes []int
	for i, key := range keys {
		if visible.Includes(r.pattern.OwnerOf(key)) {
			visibleKeys, indexes = append(visibleKeys, key), append(indexes, i)
		} else {
			results[i].Err = commerce.ErrNotFound
		}
	}
	if len(visibleKeys) == 0 {
		return results, nil
	}
	found, err := dynamo.ReadRecords(ctx, l.store, r.pattern, visibleKeys)
	if err != nil {
		return nil, err
	}
	for i, index := range indexes {
		results[index] = found[i]
	}
	return results, nil
}

// read reads a page of a list. If the viewer may not read the records of the list's owner, the page
// is empty.
func (r listReader[V]) read(ctx context.Context, l *Loaders, key dynamo.ListRequest) (dynamo.Page[V], error) {
	if !l.viewer.Records(r.pattern.Owner).Includes(commerce.CustomerID(key.PartitionValue)) {
		return dynamo.Page[V]{}, nil
	}
	return dynamo.ReadPage(ctx, l.store, r.pattern, key)
}

// valueWithRoundTrips is a value with the round trips of its read, for the explain output.
type valueWithRoundTrips[V any] struct {
	value V
	// roundTrip identifies the round trip that returned the value, as in trace.Request.RoundTrip.
	// roundTrips is the number of consecutive round trips that the read needed.
	roundTrip, roundTrips int
}

// availableInRoundTrip returns the number of the round trip in which a caller receives the value.
// The parameter roundTrip is the last round trip before the caller requested the value. If another
// caller started the read only after further round trips, these do not count.
func (v valueWithRoundTrips[V]) availableInRoundTrip(roundTrip int) int {
	return min(v.roundTrip, roundTrip+v.roundTrips)
}

// Load returns the value of a key. If the value was not read before, Load reads it.
//
// Load returns the errors of the read, such as the errors of dynamo.ReadRecords, and the error of
// ctx.
func (l *Loader[K, V]) Load(ctx context.Context, key K) (V, error) {
	if err := ctx.Err(); err != nil {
		var zero V
		return zero, err
	}
	if l.collections != nil {
		if v, ok, err := l.collections.find(ctx, key); ok {
			return v, err
		}
	}
	l.mu.Lock()
	location, ok := l.known.find(key)
	if !ok {
		location = l.loadUnplanned(ctx, key)
	}
	l.mu.Unlock()
	v, err := location.value()
	return v.value, err
}

// loadUnplanned adds a key that no query plan has added. The key is read when a caller waits for
// its value. The caller must hold l.mu.
func (l *Loader[K, V]) loadUnplanned(ctx context.Context, key K) valueRef[K, V] {
	b := &batch[K, V]{loader: l, ctx: ctx}
	if l.batchReader == nil {
		b.keys = []K{key}
	} else {
		if l.unplanned == nil {
			l.unplanned = dataloader.NewBatchedLoader(l.readUnplanned, dataloader.WithWait[K, valueWithRoundTrips[V]](maxBatchWait))
		}
		b.unplanned = l.unplanned.Load(ctx, key)
	}
	location := valueRef[K, V]{batch: b}
	l.known.add(key, location)
	return location
}

// readUnplanned reads a batch of keys that no query plan has added. The parameter first is the
// context of the caller that added the first key.
func (l *Loader[K, V]) readUnplanned(first context.Context, keys []K) []*dataloader.Result[valueWithRoundTrips[V]] {
	b := &batch[K, V]{loader: l, ctx: first, keys: keys}
	out := make([]*dataloader.Result[valueWithRoundTrips[V]], len(keys))
	for i := range keys {
		v, err := valueRef[K, V]{b, i}.value()
		out[i] = &dataloader.Result[valueWithRoundTrips[V]]{Data: v, Error: err}
	}
	return out
}

// isKnown reports whether a key was planned, primed or loaded.
func (l *Loader[K, V]) isKnown(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known.find(key)
	return known
}

// Prime stores a value that was already read together with another record. A later load of the
// value's key sends no request.
func (l *Loader[K, V]) Prime(ctx context.Context, key K, value V) {
	l.prime(ctx, []K{key}, []dynamo.LookupResult[V]{{Value: value}})
}

// prime stores the values of several keys that were already read.
func (l *Loader[K, V]) prime(ctx context.Context, keys []K, values []dynamo.LookupResult[V]) {
	b := &batch[K, V]{results: values, roundTrip: trace.SpanFromContext(ctx).LastRoundTrip()}
	b.once.Do(func() {}) // there is nothing to read
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.grow(len(keys))
	for i, key := range keys {
		if _, known := l.known.find(key); !known {
			l.known.add(key, valueRef[K, V]{b, i})
		}
	}
}

// batch is a set of keys that are read together, once. The first goroutine that needs one of the
// values reads the whole batch. Other goroutines wait until this read has finished.
type batch[K comparable, V any] struct {
	once   sync.Once
	loader *Loader[K, V]
	// ctx is the context of the caller that created the batch. The read uses only the trace span of
	// ctx, to count the round trips before the read. If ctx ends, the read continues.
	ctx  context.Context
	keys []K
	// unplanned waits for the value of a key that was added to Loader.unplanned. In all other batches,
	// it is nil.
	unplanned dataloader.Thunk[valueWithRoundTrips[V]]

	// These fields contain the result of the read.
	results               []dynamo.LookupResult[V]
	err                   error
	roundTrip, roundTrips int
}

func (b *batch[K, V]) read() {
	if b.unplanned != nil {
		b.loader.unplanned.Flush()
		v, err := b.unplanned()
		b.results, b.roundTrip, b.roundTrips = []dynamo.LookupResult[V]{{Value: v.value, Err: err}}, v.roundTrip, v.roundTrips
		return
	}
	ctx := trace.SpanFromContext(b.ctx).Fork(b.loader.loaders.ctx)
	b.results, b.err = b.loader.read(ctx, b.keys)
	b.roundTrip = trace.SpanFromContext(ctx).LastRoundTrip()
	b.roundTrips = b.roundTrip - trace.SpanFromContext(b.ctx).LastRoundTrip()
}

// read reads the keys of a batch. If a reader panics, read returns the panic as an error.
func (l *Loader[K, V]) read(ctx context.Context, keys []K) (results []dynamo.LookupResult[V], err error) {
	defer table.RecoverTo(&err)
	if observe := l.loaders.observeBatch; observe != nil {
		observe(l.pattern, len(keys))
	}
	if l.batchReader != nil {
		if results, err = l.batchReader.read(ctx, l.loaders, keys); err == nil && len(results) != len(keys) {
			// Without this check, the use of a missing result would panic. A Level uses results in several
			// goroutines, and a panic there could end the server.
			return nil, fmt.Errorf("%d keys have %d results", len(keys), len(results))
		}
		return results, err
	}
	results = make([]dynamo.LookupResult[V], len(keys))
	if len(keys) == 1 {
		results[0].Value, results[0].Err = l.keyReader.read(ctx, l.loaders, keys[0])
		return results, nil
	}
	err = table.Parallel(ctx, len(keys), maxConcurrentQueries, func(ctx context.Context, i int) error {
		results[i].Value, results[i].Err = l.keyReader.read(ctx, l.loaders, keys[i])
		return nil // errors are stored by key
	})
	return results, err
}

// valueRef is the location of the value of a key: a batch, and an index in the results of that
// batch.
type valueRef[K comparable, V any] struct {
	batch *batch[K, V]
	index int
}

// value reads the batch if it was not read yet, and returns the value.
func (p valueRef[K, V]) value() (valueWithRoundTrips[V], error) {
	b := p.batch
	b.once.Do(b.read)
	if b.err != nil {
		return valueWithRoundTrips[V]{}, b.err
	}
	return valueWithRoundTrips[V]{b.results[p.index].Value, b.roundTrip, b.roundTrips}, b.results[p.index].Err
}
