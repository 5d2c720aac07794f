package loaders

import (
	"context"
	"sync"

	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Level is a set of scheduled reads that run concurrently. The reads that depend on the result of
// one read form another Level. They start when this read finishes, and do not wait for the other
// reads.
type Level struct {
	reads []levelRead
	// initial is the first backing array of the slice named reads. Most levels need no larger array,
	// because they have at most two reads.
	initial [2]levelRead
}

// levelRead is one planned read of a Level.
type levelRead interface{ run() }

func (v *Level) add(p levelRead) {
	if v.reads == nil {
		v.reads = v.initial[:0]
	}
	v.reads = append(v.reads, p)
}

// run starts the reads and waits until they finish. The last read runs in the current goroutine.
func (v *Level) run() {
	if len(v.reads) == 0 {
		return
	}
	last := len(v.reads) - 1
	if last == 0 {
		v.reads[0].run()
		return
	}
	var others sync.WaitGroup
	for _, p := range v.reads[:last] {
		others.Go(p.run)
	}
	v.reads[last].run()
	others.Wait()
}

// Plan runs a query plan. It calls the function first, which adds the initial keys. Callbacks can
// add more keys. Plan returns when all keys have been read.
func (l *Loaders) Plan(first func(*Level)) {
	v := &Level{}
	defer v.run() // if first panics, the keys that it has added are still read
	first(v)
}

// FoundValue is a key and the value that was read for the key.
type FoundValue[K comparable, V any] struct {
	Key   K
	Value V
}

// thenFunc is a callback of Loader.Plan. It adds the reads that depend on the found values to next.
type thenFunc[K comparable, V any] = func(ctx context.Context, next *Level, found []FoundValue[K, V])

// Plan adds keys to a Level. The Level reads them in one batch, without the keys that were already
// read or scheduled. The callback then receives the values that were found. If ctx has ended, the
// callback is not called. For the values in an item collection that a query plan reads, Plan waits
// for this read, and calls the callback separately.
func (l *Loader[K, V]) Plan(ctx context.Context, level *Level, keys []K, then thenFunc[K, V]) {
	if l.collections != nil {
		keys = l.collections.planKnown(ctx, level, keys, l, then)
	}
	l.planOwn(ctx, level, keys, then)
}

// planOwn is Plan for values that no item collection contains.
func (l *Loader[K, V]) planOwn(ctx context.Context, level *Level, keys []K, then thenFunc[K, V]) {
	if len(keys) == 0 {
		return
	}
	p := &plannedRead[K, V]{own: batch[K, V]{loader: l, ctx: ctx}, keys: keys, then: then}
	l.mu.Lock()
	l.known.grow(len(keys))
	for i, key := range keys {
		location, known := l.known.find(key)
		if !known {
			location = valueRef[K, V]{&p.own, i}
			if p.refs != nil {
				location.index = len(p.own.keys)
				p.own.keys = append(p.own.keys, key)
			}
			l.known.add(key, location)
		} else if p.refs == nil {
			p.own.keys = append(make([]K, 0, len(keys)-1), keys[:i]...)
			p.refs = make([]valueRef[K, V], i, len(keys))
			for j := range i {
				p.refs[j] = valueRef[K, V]{&p.own, j}
			}
		}
		if p.refs != nil {
			p.refs = append(p.refs, location)
		}
	}
	if p.refs == nil {
		p.own.keys = keys
	}
	l.mu.Unlock()
	if then != nil || len(p.own.keys) > 0 {
		level.add(p)
	}
}

// plannedRead is a read that Loader.Plan has scheduled: a batch of keys, and a callback.
type plannedRead[K comparable, V any] struct {
	own  batch[K, V]
	keys []K
	// refs is nil if the batch own reads all keys. Otherwise, other batches read some of the keys, and
	// refs contains the location of each key's value.
	refs []valueRef[K, V]
	then thenFunc[K, V]
	next Level
}

func (p *plannedRead[K, V]) run() {
	if len(p.own.keys) > 0 {
		p.own.once.Do(p.own.read)
	}
	if p.then == nil {
		return
	}
	found := make([]FoundValue[K, V], 0, len(p.keys))
	span := trace.SpanFromContext(p.own.ctx)
	requestedIn := span.LastRoundTrip()
	ctx := span.Fork(p.own.ctx)
	for i, key := range p.keys {
		location := valueRef[K, V]{&p.own, i}
		if p.refs != nil {
			location = p.refs[i]
		}
		if v, err := location.value(); err == nil {
			found = append(found, FoundValue[K, V]{key, v.value})
			trace.SpanFromContext(ctx).WaitForRoundTrip(v.availableInRoundTrip(requestedIn))
		}
	}
	if ctx.Err() == nil {
		p.callThen(ctx, found)
		p.next.run()
	}
}

// callThen calls the callback. If the callback panics, callThen recovers and reports the panic.
func (p *plannedRead[K, V]) callThen(ctx context.Context, found []FoundValue[K, V]) {
	defer func() {
		if panicked := recover(); panicked != nil {
			p.own.loader.loaders.reportPanic(panicked)
		}
	}()
	p.then(ctx, &p.next, found)
}
