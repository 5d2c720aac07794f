package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Source reports changes of a table's records to a feed. Observed and Streamed return a Source.
type Source interface {
	// watch reports the changes of a table to r until ctx ends. It calls r.ready when it is certain to
	// report every later commit, as a change or as a gap. It returns an error if it cannot begin or
	// continue, and nil if ctx has ended.
	watch(ctx context.Context, t *table.Table, r *sourceRun) error
}

// Observable is an in-process engine that reports its changes, such as the embedded store.
type Observable interface {
	// Observe calls observe for every change of the table's records until stop is called. The
	// arguments are the records before and after their change, with nil for a record that does not
	// exist. There is one call for each transaction. The calls are sequential, in the order of the
	// commits, and precede the response to the writer. So observe must be fast and must not call the
	// engine.
	Observe(table string, observe func(before, after []map[string]types.AttributeValue)) (stop func())
}

// EngineSource returns a source that gets the changes from an in-process engine.
func EngineSource(engine Observable) Source { return engineSource{engine} }

type engineSource struct{ engine Observable }

func (o engineSource) watch(ctx context.Context, t *table.Table, r *sourceRun) error {
	stop := o.engine.Observe(t.Name, r.changed)
	defer stop()
	r.ready()
	<-ctx.Done()
	return nil
}

// sourceRun is one period of reading the source, from the first subscription until none is left.
type sourceRun struct {
	feed   *Feed
	cancel context.CancelFunc
	// begun is closed when the source is ready, or when it fails before. err is the error in the
	// latter case.
	begun chan struct{}
	err   error
	// hasBegun reports whether begun is closed.
	hasBegun bool
}

// start begins to read the source. The caller holds mu.
func (f *Feed) start() *sourceRun {
	// The run outlives the request of the first subscriber.
	ctx, cancel := context.WithCancel(context.Background())
	r := &sourceRun{feed: f, cancel: cancel, begun: make(chan struct{})}
	f.runs.Go(func() {
		defer cancel()
		r.finish(f.watch(ctx, r))
	})
	return r
}

// watch calls the source's watch. A panic becomes an error.
func (f *Feed) watch(ctx context.Context, r *sourceRun) (err error) {
	defer table.RecoverTo(&err)
	if err := f.source.watch(ctx, f.table, r); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// ready lets waiting subscriptions begin.
func (r *sourceRun) ready() {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	r.begin(nil)
}

// begin closes begun unless it is closed already.
func (r *sourceRun) begin(err error) {
	if !r.hasBegun {
		r.hasBegun, r.err = true, err
		close(r.begun)
	}
}

// finish ends the run's subscriptions with err, including subscriptions that still wait for the run
// to begin. If the run was cancelled because no subscription was left, it ends no subscription.
func (r *sourceRun) finish(err error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !errors.Is(err, table.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", table.ErrUnavailable, err)
	}
	if f.run == r {
		if r.hasBegun {
			f.log.Error("subscriptions were ended: the changes of the table cannot be read", "error", err, "subscribers", f.subscriptionCount)
		}
		f.run = nil
		f.endAll(err, nil)
	}
	r.begin(err)
}

// changed delivers changes of records. The source calls it in the order of the commits for each
// partition key. A panic counts as a gap: it must not end the server or fail the write that is
// reported.
func (r *sourceRun) changed(before, after []map[string]types.AttributeValue) {
	if err := r.deliver(before, after); err != nil {
		r.gap(err)
	}
}

func (r *sourceRun) deliver(before, after []map[string]types.AttributeValue) (err error) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	defer table.RecoverTo(&err)
	if r.feed.run == r {
		batch := changeBatch{feed: r.feed, before: before, after: after}
		batch.deliver()
	}
	return nil
}

// gap reports that changes may have been missed before the next call of changed. Subscriptions with
// a timeline read the missed changes there. Subscriptions to statuses end.
func (r *sourceRun) gap(cause error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run != r {
		return
	}
	f.log.Warn("changes were missed: they are read from the timelines, and subscriptions to statuses are ended", "error", cause, "subscribers", f.subscriptionCount)
	f.endAll(fmt.Errorf("%w: changes were missed: %w", table.ErrUnavailable, cause), func(t topic) bool { return t.kind == topicStatus })
	for _, list := range f.subscriptions {
		for _, s := range list {
			s.markBehind()
		}
	}
}
