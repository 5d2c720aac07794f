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

// maxBatchWait is the maximum time before a batch of unplanned keys is read. The batch is read
// earlier if a caller waits for one of its values.
const maxBatchWait = time.Second

// Loader reads values by key for one GraphQL request. It reads each key once. It reads several keys
// with one DynamoDB request where possible. It is safe for concurrent use.
type Loader[K comparable, V any] struct {
	loaders *Loaders
	// pattern is the ID of the access pattern.
	pattern string
	// Exactly one of the two readers is set. batchReader reads several keys with one DynamoDB request.
	// keyReader reads one key, and is set if several keys cannot share a DynamoDB request.
	batchReader batchReader[K, V]
	keyReader   keyReader[K, V]
	// collections returns records that were read as part of an item collection. It is nil if the
	// records have no item collections.
	collections recordSource[K, V]

	mu sync.Mutex
	// known contains the keys that were planned, primed or loaded, with the locations of their values.
	known smallMap[K, valueRef[K, V]]
	// unplanned groups the keys that were not planned into batches. It is nil until the first such
	// key.
	unplanned *dataloader.Loader[K, valueWithWaves[V]]
}

// initSingle sets a read function for keys that cannot share a DynamoDB request. At most
// maxConcurrentQueries reads of one batch run concurrently.
func (l *Loader[K, V]) initSingle(all *Loaders, pattern string, read func(*Loaders, context.Context, K) (V, error)) {
	l.loaders, l.pattern, l.keyReader = all, pattern, keyReaderFunc[K, V](read)
}

type (
	// keyReader reads the value of one key.
	keyReader[K comparable, V any] interface {
		read(ctx context.Context, l *Loaders, key K) (V, error)
	}
	// batchReader reads keys that can share a DynamoDB request. It returns a result for each key, in
	// the order of the keys. An error applies to all keys.
	batchReader[K comparable, V any] interface {
		read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.LookupResult[V], error)
	}
	// recordSource returns values that another loader has read.
	recordSource[K comparable, V any] interface {
		isKnown(key K) bool
		load(ctx context.Context, key K) (V, error)
	}
)

// Each reader is at most one pointer in size, so storing a reader in an interface does not allocate
// memory.
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

func (r lookupReader[K, V]) read(ctx context.Context, l *Loaders, keys []K) ([]dynamo.LookupResult[V], error) {
	return dynamo.ReadRecords(ctx, l.store, r.pattern, keys)
}

// read reads a page. If the list contains the orders of a customer and the viewer may not read
// these orders, the page is empty.
func (r listReader[V]) read(ctx context.Context, l *Loaders, key dynamo.ListRequest) (dynamo.Page[V], error) {
	if r.pattern.PK == model.CustomerOrders.PK && !l.viewer.canReadOrdersOf(commerce.CustomerID(key.PartitionValue)) {
		return dynamo.Page[V]{}, nil
	}
	return dynamo.ReadPage(ctx, l.store, r.pattern, key)
}

// valueWithWaves is a value and the round trips of its read. In the explain output, a round trip is
// called a wave, and waves are numbered. wave is the number of the round trip that returned the
// value. waves is the number of sequential round trips that the read took.
type valueWithWaves[V any] struct {
	value       V
	wave, waves int
}

// availableInWave returns the number of the round trip that returns the value to a caller. wave is
// the number of the caller's last round trip before it requested the value. If another caller
// started the read in a later round trip, the result does not count the additional delay.
func (v valueWithWaves[V]) availableInWave(wave int) int { return min(v.wave, wave+v.waves) }

// Load returns the value of a key. It reads the value unless the key was planned or primed.
//
// It returns the errors of the Store's method that reads the value. If ctx has ended, it returns
// the error of ctx.
func (l *Loader[K, V]) Load(ctx context.Context, key K) (V, error) {
	if err := ctx.Err(); err != nil {
		var zero V
		return zero, err
	}
	if l.collections != nil && l.collections.isKnown(key) {
		return l.collections.load(ctx, key)
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

// loadUnplanned starts the read of a key that was not planned. Keys that can share a DynamoDB
// request are batched until a caller waits for a value. The caller must hold l.mu.
func (l *Loader[K, V]) loadUnplanned(ctx context.Context, key K) valueRef[K, V] {
	b := &batch[K, V]{loader: l, ctx: ctx}
	if l.batchReader == nil {
		b.keys = []K{key}
	} else {
		if l.unplanned == nil {
			l.unplanned = dataloader.NewBatchedLoader(l.readUnplanned, dataloader.WithWait[K, valueWithWaves[V]](maxBatchWait))
		}
		b.unplanned = l.unplanned.Load(ctx, key)
	}
	location := valueRef[K, V]{batch: b}
	l.known.add(key, location)
	return location
}

// readUnplanned reads a batch of keys that were not planned. first is the context of the caller
// that started the batch.
func (l *Loader[K, V]) readUnplanned(first context.Context, keys []K) []*dataloader.Result[valueWithWaves[V]] {
	b := &batch[K, V]{loader: l, ctx: first, keys: keys}
	out := make([]*dataloader.Result[valueWithWaves[V]], len(keys))
	for i := range keys {
		v, err := valueRef[K, V]{b, i}.value()
		out[i] = &dataloader.Result[valueWithWaves[V]]{Data: v, Error: err}
	}
	return out
}

// loadKnown waits for the value of a known key. It returns false if the key is unknown or its read
// failed.
func (l *Loader[K, V]) loadKnown(key K) (v V, ok bool) {
	l.mu.Lock()
	location, known := l.known.find(key)
	l.mu.Unlock()
	if !known {
		return v, false
	}
	got, err := location.value()
	return got.value, err == nil
}

// isKnown reports whether a key was planned, primed or loaded.
func (l *Loader[K, V]) isKnown(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known.find(key)
	return known
}

// Prime adds a value that was read together with another record. The loader then does not read the
// key.
func (l *Loader[K, V]) Prime(ctx context.Context, key K, value V) {
	l.prime(ctx, []K{key}, []dynamo.LookupResult[V]{{Value: value}})
}

// prime adds the values of several keys.
func (l *Loader[K, V]) prime(ctx context.Context, keys []K, values []dynamo.LookupResult[V]) {
	b := &batch[K, V]{results: values, wave: trace.SpanFromContext(ctx).LastWave()}
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

// batch is a set of keys that are read together, once. The first goroutine that needs a value reads
// the batch. The other goroutines wait until this read has finished. A goroutine never waits for a
// read that has not started.
type batch[K comparable, V any] struct {
	once   sync.Once
	loader *Loader[K, V]
	// ctx contains the trace span of the caller, which counts the round trips before this read. The
	// read continues if ctx ends.
	ctx  context.Context
	keys []K
	// unplanned returns the value of a key that was not planned. It is nil for planned keys.
	unplanned dataloader.Thunk[valueWithWaves[V]]

	// The result of the read.
	results     []dynamo.LookupResult[V]
	err         error
	wave, waves int
}

func (b *batch[K, V]) read() {
	if b.unplanned != nil {
		b.loader.unplanned.Flush()
		v, err := b.unplanned()
		b.results, b.wave, b.waves = []dynamo.LookupResult[V]{{Value: v.value, Err: err}}, v.wave, v.waves
		return
	}
	ctx := trace.SpanFromContext(b.ctx).Fork(b.loader.loaders.ctx)
	b.results, b.err = b.loader.read(ctx, b.keys)
	b.wave = trace.SpanFromContext(ctx).LastWave()
	b.waves = b.wave - trace.SpanFromContext(b.ctx).LastWave()
}

// read reads keys from the store. A panic becomes the error of all keys.
func (l *Loader[K, V]) read(ctx context.Context, keys []K) (results []dynamo.LookupResult[V], err error) {
	defer table.RecoverTo(&err)
	if observe := l.loaders.observeBatch; observe != nil {
		observe(l.pattern, len(keys))
	}
	if l.batchReader != nil {
		if results, err = l.batchReader.read(ctx, l.loaders, keys); err == nil && len(results) != len(keys) {
			// Without this check, a missing result would cause a panic. In the goroutine of a concurrent
			// read, the panic would end the server.
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

// valueRef locates the value of a key: a batch and an index in the results of the batch.
type valueRef[K comparable, V any] struct {
	batch *batch[K, V]
	index int
}

// value reads the batch if necessary and returns the value.
func (p valueRef[K, V]) value() (valueWithWaves[V], error) {
	b := p.batch
	b.once.Do(b.read)
	if b.err != nil {
		return valueWithWaves[V]{}, b.err
	}
	return valueWithWaves[V]{b.results[p.index].Value, b.wave, b.waves}, b.results[p.index].Err
}
