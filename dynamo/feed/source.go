package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Source reports changes of a table's records to a feed. EngineSource and StreamSource return a
// Source.
type Source interface {
	// watch reports the changes of a table to r until ctx ends. It calls r.ready when it is ready to
	// report every later commit, with r.changed, or with r.gap if the change was missed. It returns
	// nil if ctx has ended, and an error if the source fails.
	watch(ctx context.Context, t *table.Table, r *sourceRun) error
}

// Observable is an in-process DynamoDB engine, such as the embedded store, that reports its
// changes.
type Observable interface {
	// Observe calls observe for every transaction until stop is called. before and after are the
	// records before and after the transaction. A record that does not exist is nil. The calls are
	// sequential, in the order of the commits.
	//
	// The engine sends the response to the writer after observe has returned. Therefore observe must
	// be fast and must not call the engine.
	Observe(table string, observe func(before, after []map[string]types.AttributeValue)) (stop func())
}

// EngineSource returns a source that receives the changes from an in-process DynamoDB engine.
func EngineSource(engine Observable) Source { return engineSource{engine} }

type engineSource struct{ engine Observable }

func (o engineSource) watch(ctx context.Context, t *table.Table, r *sourceRun) error {
	stop := o.engine.Observe(t.Name, r.deliverChanges)
	defer stop()
	r.markReady()
	<-ctx.Done()
	return nil
}

// sourceRun is one period of reading the source. It lasts from the first subscription until no
// subscription is left.
type sourceRun struct {
	feed   *Feed
	cancel context.CancelFunc
	// begun is closed when the source is ready or has failed to start. err is the error of a failed
	// start.
	begun chan struct{}
	err   error
	// hasBegun reports whether begun is closed.
	hasBegun bool
}

// startSourceRun starts a goroutine that reads the source. The caller holds mu.
func (f *Feed) startSourceRun() *sourceRun {
	// The run outlives the request of the first subscriber.
	ctx, cancel := context.WithCancel(context.Background())
	r := &sourceRun{feed: f, cancel: cancel, begun: make(chan struct{})}
	f.runs.Go(func() {
		defer cancel()
		r.finish(f.watch(ctx, r))
	})
	return r
}

// watch calls the source's method watch. If the method panics, watch returns an error.
func (f *Feed) watch(ctx context.Context, r *sourceRun) (err error) {
	defer table.RecoverTo(&err)
	if err := f.source.watch(ctx, f.table, r); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// markReady unblocks the subscriptions that wait until the source is ready.
func (r *sourceRun) markReady() {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	r.markBegun(nil)
}

// markBegun closes the channel begun if it is not closed.
func (r *sourceRun) markBegun(err error) {
	if !r.hasBegun {
		r.hasBegun, r.err = true, err
		close(r.begun)
	}
}

// finish ends all subscriptions of the run with err, including subscriptions that still wait for
// the source. If the run was cancelled after its last subscription, finish ends no subscription,
// because newer subscriptions belong to another run.
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
		f.endSubscriptions(err, nil)
	}
	r.markBegun(err)
}

// deliverChanges delivers changes of records. For each partition key, the source must report
// changes in the order of the commits. If the delivery panics, deliverChanges reports a gap. The
// panic must not stop the server or fail the write whose change is being delivered.
func (r *sourceRun) deliverChanges(before, after []map[string]types.AttributeValue) {
	if err := r.deliver(before, after); err != nil {
		r.reportGap(err)
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

// If changes may have been missed, the source must call reportGap before it calls changed again.
// Subscriptions to orders and customers then read the missed events from the timelines.
// Subscriptions to statuses end, because they have no timeline.
func (r *sourceRun) reportGap(cause error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run != r {
		return
	}
	f.log.Warn("changes of the table were missed: subscriptions to orders and customers read them from the timelines, and subscriptions to statuses end", "error", cause, "subscribers", f.subscriptionCount)
	f.endSubscriptions(fmt.Errorf("%w: changes were missed: %w", table.ErrUnavailable, cause), func(t topic) bool { return t.kind == topicStatus })
	for _, list := range f.subscriptions {
		for _, s := range list {
			s.markBehind()
		}
	}
}
