package loaders

import (
	"context"
	"sync"

	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Level is a set of planned reads that run concurrently. When one of these reads finishes, the
// reads that depend on it start immediately, as another Level.
type Level struct {
	reads []levelRead
	// initial is the initial array of the slice reads. Most levels have at most two reads, so they
	// need no larger array.
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

// Plan runs a query plan. It calls the function first, which adds the initial keys to a Level. When
// these keys have been read, callbacks can add more keys. Plan returns when all keys have been
// read. If the function first panics, Plan reads the keys that were already added, and then panics
// with the same value.
func (l *Loaders) Plan(first func(*Level)) {
	v := &Level{}
	defer v.run()
	first(v)
}

// FoundValue is a key and the value that was read for the key.
type FoundValue[K comparable, V any] struct {
	Key   K
	Value V
}

// Plan adds keys to a Level, which reads them as one batch. It does not read keys that were already
// planned, primed or loaded. The last argument is a callback, and may be nil. After the read, the
// callback receives the values that were found, and the next Level. Its context contains a trace
// span that counts the round trips of these reads.
//
// If the callback panics, Plan reports the panic. The values can still be loaded, and so can the
// keys that the callback has already added. If ctx has ended, Plan does not call the callback.
func (l *Loader[K, V]) Plan(ctx context.Context, level *Level, keys []K, then func(ctx context.Context, next *Level, found []FoundValue[K, V])) {
	if l.collections != nil {
		keys = withoutKnown(keys, l.collections)
	}
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

// plannedRead is the planned read of a batch of keys, with its callback.
type plannedRead[K comparable, V any] struct {
	own  batch[K, V]
	keys []K
	// If the batch in the field own reads all keys, refs is nil. Otherwise, refs contains the location
	// of the value of each key, because other batches read some of the keys.
	refs []valueRef[K, V]
	then func(context.Context, *Level, []FoundValue[K, V])
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
	requestedIn := span.LastWave()
	ctx := span.Fork(p.own.ctx)
	for i, key := range p.keys {
		location := valueRef[K, V]{&p.own, i}
		if p.refs != nil {
			location = p.refs[i]
		}
		if v, err := location.value(); err == nil {
			found = append(found, FoundValue[K, V]{key, v.value})
			trace.SpanFromContext(ctx).WaitForWave(v.availableInWave(requestedIn))
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
