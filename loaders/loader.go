package loaders

import (
	"context"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"github.com/ordergraph/ordergraph/dynamo"
)

// window is how long a look-up that nobody planned waits for others to share a request with.
const window = 250 * time.Microsecond

// longestWait ends a batch that nothing else has ended. It is far longer than giving a plan's keys to a batch takes, so that
// no plan is torn into two requests.
const longestWait = time.Second

// Loader reads values by key for one GraphQL request: each key once, together where DynamoDB can.
type Loader[K comparable, V any] struct {
	batch *dataloader.Loader[K, loaded[V]]
	// alone tells that keys cannot share a request, so that waiting for more of them gains nothing.
	alone bool
	// report is told what a plan's callback panicked with.
	report func(panicked any)
	// plans counts the plans under way.
	plans *sync.WaitGroup

	// mu keeps a plan's keys together: no batch ends while one adds to it.
	mu    sync.Mutex
	asked map[K]bool
	gates map[K]<-chan struct{}
}

// loaded is a value, the wave of requests after which it was there, and how many waves reading it took.
type loaded[V any] struct {
	value      V
	wave, took int
}

// after is the wave that a line of reading has waited for once it has the value, if it asked for it after the given one. A value that
// another line asks for as well may come of a longer chain of requests; but whoever joins in the middle of it waits no longer than
// if the reading had begun then.
func (v loaded[V]) after(wave int) int { return min(v.wave, wave+v.took) }

// Found is a value that was planned, and the key that it was planned by.
type Found[K comparable, V any] struct {
	Key   K
	Value V
}

// fetch reads the values of keys, with a result for each in their order. An error is the whole batch's.
type fetch[K comparable, V any] func(ctx context.Context, keys []K) ([]dynamo.Result[V], error)

// request is what the loaders of one GraphQL request share.
type request struct {
	// ctx ends the loaders' requests, not the context of whoever asks first: one caller who goes away does not fail
	// the others.
	ctx    context.Context
	report func(panicked any)
	plans  *sync.WaitGroup
}

func newLoader[K comparable, V any](r request, alone bool, read fetch[K, V]) *Loader[K, V] {
	run := func(first context.Context, keys []K) []*dataloader.Result[loaded[V]] {
		ctx := dynamo.SpanOf(first).Fork(r.ctx)
		results, err := read(ctx, keys)
		wave := dynamo.SpanOf(ctx).Wave()
		took := wave - dynamo.SpanOf(first).Wave()
		out := make([]*dataloader.Result[loaded[V]], len(keys))
		for i := range keys {
			out[i] = &dataloader.Result[loaded[V]]{Error: err}
			if err == nil {
				out[i].Data, out[i].Error = loaded[V]{results[i].Value, wave, took}, results[i].Err
			}
		}
		return out
	}
	return &Loader[K, V]{
		batch:  dataloader.NewBatchedLoader(run, dataloader.WithWait[K, loaded[V]](longestWait)),
		alone:  alone,
		report: r.report,
		plans:  r.plans,
		asked:  map[K]bool{},
		gates:  map[K]<-chan struct{}{},
	}
}

// Load returns the value of a key: the one that was planned, or one that is read now.
//
// Errors: those of the store's method that reads it; the context's, where it has ended, or ends while a plan is waited for.
func (l *Loader[K, V]) Load(ctx context.Context, key K) (V, error) {
	var none V
	if err := ctx.Err(); err != nil {
		return none, err
	}
	l.mu.Lock()
	gate, asked := l.gates[key], l.asked[key]
	l.asked[key] = true
	l.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	thunk := l.batch.Load(ctx, key)
	switch {
	case asked:
	case l.alone:
		l.flush()
	default:
		time.AfterFunc(window, l.flush)
	}
	v, err := thunk()
	return v.value, err
}

// flush sends what was asked for.
func (l *Loader[K, V]) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batch.Flush()
}

// Plan starts to read keys at once, in one batch. When all are there, it calls then with the values that were found,
// and only then lets Load give them out: what then plans has been planned by the time that anybody asks for it. then may be
// nil. It runs in a goroutine of its own, in a context that knows which requests the values waited for; where it panics,
// the values are given out all the same, as planning only saves requests.
func (l *Loader[K, V]) Plan(ctx context.Context, keys []K, then func(ctx context.Context, found []Found[K, V])) {
	if len(keys) == 0 {
		return
	}
	var gate chan struct{}
	if then != nil {
		gate = make(chan struct{})
	}
	thunks := make([]dataloader.Thunk[loaded[V]], len(keys))
	// A key may have been planned before, with something else to follow: its value waits for both.
	var earlier []<-chan struct{}
	l.mu.Lock()
	for i, k := range keys {
		thunks[i] = l.batch.Load(ctx, k)
		l.asked[k] = true
		if then != nil {
			if before := l.gates[k]; before != nil && before != gate {
				earlier = append(earlier, before)
			}
			l.gates[k] = gate
		}
	}
	l.batch.Flush()
	l.mu.Unlock()
	if then == nil {
		if dynamo.SpanOf(ctx) == nil {
			return
		}
		// An explanation waits for all that was begun.
		then = func(context.Context, []Found[K, V]) {}
	}
	l.plans.Add(1)
	go func() {
		defer l.plans.Done()
		if gate != nil {
			defer close(gate)
		}
		defer func() {
			for _, before := range earlier {
				<-before
			}
		}()
		defer func() {
			if panicked := recover(); panicked != nil {
				l.report(panicked)
			}
		}()
		found := make([]Found[K, V], 0, len(keys))
		span := dynamo.SpanOf(ctx)
		asked := span.Wave()
		ctx := span.Fork(ctx)
		for i, thunk := range thunks {
			if v, err := thunk(); err == nil {
				found = append(found, Found[K, V]{keys[i], v.value})
				dynamo.SpanOf(ctx).Wait(v.after(asked))
			}
		}
		if ctx.Err() == nil {
			then(ctx, found)
		}
	}()
}

// planned tells whether a key was planned with something to follow.
func (l *Loader[K, V]) planned(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gates[key] != nil
}

// known tells whether a key was planned or asked for.
func (l *Loader[K, V]) known(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[key]
}

// wait returns the value of a key as soon as it was read, also before the plan that it belongs to lets Load give it out. It is
// for plans, which would wait for themselves otherwise.
func (l *Loader[K, V]) wait(ctx context.Context, key K) (V, error) {
	v, err := l.batch.Load(ctx, key)()
	return v.value, err
}

// Prime gives the loader a value that came along with another, so that nobody reads it again.
func (l *Loader[K, V]) Prime(ctx context.Context, key K, value V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[key] = true
	l.batch.Prime(ctx, key, loaded[V]{value: value, wave: dynamo.SpanOf(ctx).Wave()})
}
