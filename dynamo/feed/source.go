package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Source reports to a feed which records of a table change. It is Observed or Streamed.
type Source interface {
	// watch reports the changes of a table to r until ctx ends. It calls r.ready once every later
	// commit will be reported, either as a change or as a gap.
	//
	// Errors: why it could not begin or go on; nil if ctx has ended.
	watch(ctx context.Context, t *table.Table, r *run) error
}

// Observable is an engine that reports changes in the process: the embedded store.
type Observable interface {
	// Observe calls observe for every change of the table's records until stop is called. The
	// arguments are the records before and after the change, nil for none; a transaction is one
	// call. The calls are made one after the other, in the order of the commits, before the writer
	// gets its response. So observe must be quick and not call back.
	Observe(table string, observe func(before, after []map[string]types.AttributeValue)) (stop func())
}

// Observed returns the source of changes of an engine in the process.
func Observed(engine Observable) Source { return observed{engine} }

type observed struct{ engine Observable }

func (o observed) watch(ctx context.Context, t *table.Table, r *run) error {
	stop := o.engine.Observe(t.Name, r.changed)
	defer stop()
	r.ready()
	<-ctx.Done()
	return nil
}

// run is one reading of the source, from the first subscription to the last.
type run struct {
	feed   *Feed
	cancel context.CancelFunc
	// begun is closed when the source is ready, or has failed with err before that.
	begun chan struct{}
	err   error
	done  bool
}

// start begins to read the source. The caller holds mu.
func (f *Feed) start() *run {
	// It outlives the request of the first subscriber.
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{feed: f, cancel: cancel, begun: make(chan struct{})}
	f.runs.Go(func() {
		defer cancel()
		r.finish(f.watch(ctx, r))
	})
	return r
}

// watch calls the source's watch. A panic becomes an error.
func (f *Feed) watch(ctx context.Context, r *run) (err error) {
	defer table.Recovered(&err)
	if err := f.source.watch(ctx, f.table, r); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// ready lets the waiting subscriptions begin.
func (r *run) ready() {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	r.begin(nil)
}

func (r *run) begin(err error) {
	if !r.done {
		r.done, r.err = true, err
		close(r.begun)
	}
}

// finish ends the subscriptions of this run, unless the run ended because none was left.
func (r *run) finish(err error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !errors.Is(err, table.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", table.ErrUnavailable, err)
	}
	if f.run == r {
		if r.done {
			f.log.Error("subscriptions were ended: the changes of the table cannot be read", "error", err, "subscribers", f.count)
		}
		f.run = nil
		f.endAll(err, nil)
	}
	r.begin(err)
}

// changed delivers changes of records. Changes of one partition key come in the order of their
// commits. A panic is treated as a gap, because it must end neither the server nor the write that
// is reported.
func (r *run) changed(before, after []map[string]types.AttributeValue) {
	if err := r.deliver(before, after); err != nil {
		r.gap(err)
	}
}

func (r *run) deliver(before, after []map[string]types.AttributeValue) (err error) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	defer table.Recovered(&err)
	if r.feed.run == r {
		batch := changes{feed: r.feed, before: before, after: after}
		batch.deliver()
	}
	return nil
}

// gap notes that changes may have been missed. Subscriptions with a timeline read the missed
// changes there; the others are ended. Every later commit is reported again.
func (r *run) gap(why error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run != r {
		return
	}
	f.log.Warn("changes were missed: they are read from the timelines, and subscriptions to statuses are ended", "error", why, "subscribers", f.count)
	f.endAll(fmt.Errorf("%w: changes were missed: %w", table.ErrUnavailable, why), func(t topic) bool { return t.kind == topicStatus })
	for _, list := range f.subscriptions {
		for _, s := range list {
			s.missed()
		}
	}
}
