package loaders

import (
	"context"
	"sync"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Level is what a plan knows at one time that it will read. When the level is complete, its reads
// run side by side, and each goes on at once with what follows from it, a level of its own,
// whatever the others do.
type Level struct {
	reads []pending
	// room is for as many reads as most levels have.
	room [2]pending
}

// pending is a read that a level has.
type pending interface{ run() }

func (v *Level) add(p pending) {
	if v.reads == nil {
		v.reads = v.room[:0]
	}
	v.reads = append(v.reads, p)
}

// run runs the reads and waits for them: one in the caller's goroutine, which would only wait, and
// the others each in one of its own.
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

// Plan runs a plan: first gives the keys that are known from the beginning to loaders. When Plan
// returns, they are read, and so is all that followed from them. Where first panics, what it had
// planned until then is read all the same, and the panic goes on.
func (l *Loaders) Plan(first func(*Level)) {
	v := &Level{}
	defer v.run()
	first(v)
}

// Found is a value that was planned, and the key that it was planned by.
type Found[K comparable, V any] struct {
	Key   K
	Value V
}

// Plan has keys read together when the level is complete. When all are there, it calls then with
// the values that were found, in a context that knows which requests they waited for, and with the
// level that comes of them. then may be nil. Keys that are known already are not read again; then
// waits for them, too.
//
// Where then panics, the values are given out all the same, and what it had planned is read, as
// planning only saves requests. It is not called when ctx has ended.
func (l *Loader[K, V]) Plan(ctx context.Context, at *Level, keys []K, then func(ctx context.Context, next *Level, found []Found[K, V])) {
	if l.collections != nil {
		keys = without(keys, l.collections)
	}
	if len(keys) == 0 {
		return
	}
	p := &planned[K, V]{own: batch[K, V]{loader: l, ctx: ctx}, keys: keys, then: then}
	l.mu.Lock()
	l.known.grow(len(keys))
	for i, key := range keys {
		where, known := l.known.find(key)
		if !known {
			where = place[K, V]{&p.own, i}
			if p.places != nil {
				where.at = len(p.own.keys)
				p.own.keys = append(p.own.keys, key)
			}
			l.known.add(key, where)
		} else if p.places == nil {
			p.own.keys = append(make([]K, 0, len(keys)-1), keys[:i]...)
			p.places = make([]place[K, V], i, len(keys))
			for j := range i {
				p.places[j] = place[K, V]{&p.own, j}
			}
		}
		if p.places != nil {
			p.places = append(p.places, where)
		}
	}
	if p.places == nil {
		p.own.keys = keys
	}
	l.mu.Unlock()
	if then != nil || len(p.own.keys) > 0 {
		at.add(p)
	}
}

// planned is keys that a plan wants, and what follows from them.
type planned[K comparable, V any] struct {
	own  batch[K, V]
	keys []K
	// places are where the keys' values are; nil where own reads all of them, in their order.
	places []place[K, V]
	then   func(context.Context, *Level, []Found[K, V])
	next   Level
}

func (p *planned[K, V]) run() {
	if len(p.own.keys) > 0 {
		p.own.once.Do(p.own.read)
	}
	if p.then == nil {
		return
	}
	found := make([]Found[K, V], 0, len(p.keys))
	span := table.SpanOf(p.own.ctx)
	asked := span.Wave()
	ctx := span.Fork(p.own.ctx)
	for i, key := range p.keys {
		where := place[K, V]{&p.own, i}
		if p.places != nil {
			where = p.places[i]
		}
		if v, err := where.get(); err == nil {
			found = append(found, Found[K, V]{key, v.value})
			table.SpanOf(ctx).Wait(v.after(asked))
		}
	}
	if ctx.Err() == nil {
		p.follow(ctx, found)
		p.next.run()
	}
}

// follow plans what follows.
func (p *planned[K, V]) follow(ctx context.Context, found []Found[K, V]) {
	defer func() {
		if panicked := recover(); panicked != nil {
			p.own.loader.all.report(panicked)
		}
	}()
	p.then(ctx, &p.next, found)
}
