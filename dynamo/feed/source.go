package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Source reports the changes of a table's records to a Feed. EngineSource and StreamSource return a
// Source.
type Source interface {
	// watch reports changes to r until ctx ends. As soon as watch can report every change from then
	// on, it calls r.markReady. If watch may have missed changes, it calls r.reportGap.
	//
	// If ctx has ended, watch returns nil.
	watch(ctx context.Context, t *table.Table, r *sourceRun) error
}

// Observable is a DynamoDB engine in this process, such as the embedded store, that reports the
// changes of its tables.
type Observable interface {
	// Observe calls the function observe for every transaction, in the order of the commits. before[i]
	// and after[i] are one record before and after the transaction. If the record does not exist at
	// that time, the value is nil. The function observe must be fast and must not call the engine.
	Observe(table string, observe func(before, after []map[string]types.AttributeValue)) (stop func())
}

// EngineSource returns a Source that receives the changes from a DynamoDB engine in this process.
func EngineSource(engine Observable) Source { return engineSource{engine} }

type engineSource struct{ engine Observable }

func (o engineSource) watch(ctx context.Context, t *table.Table, r *sourceRun) error {
	stop := o.engine.Observe(t.Name, r.deliverChanges)
	defer stop()
	r.markReady()
	<-ctx.Done()
	return nil
}

// sourceRun is one period in which the feed reads the source. It lasts from the first subscription
// until no subscription is left.
type sourceRun struct {
	feed   *Feed
	cancel context.CancelFunc
	// begun is closed when the source is ready or has failed to start. err is the error if the source
	// has failed.
	begun chan struct{}
	err   error
	// hasBegun is true if the channel begun is closed.
	hasBegun bool
}

// startSourceRun starts a goroutine that reads the source. The caller holds mu.
func (f *Feed) startSourceRun() *sourceRun {
	// Do not use the context of the first subscriber, because the run may last longer than the first
	// subscription.
	ctx, cancel := context.WithCancel(context.Background())
	r := &sourceRun{feed: f, cancel: cancel, begun: make(chan struct{})}
	f.runs.Go(func() {
		defer cancel()
		r.finish(f.watch(ctx, r))
	})
	return r
}

// watch calls the method watch of the source. If this method panics, watch returns an error.
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

// markBegun closes the channel begun, unless it is already closed. err is the error if the source
// has failed to start.
func (r *sourceRun) markBegun(err error) {
	if !r.hasBegun {
		r.hasBegun, r.err = true, err
		close(r.begun)
	}
}

// finish ends all subscriptions of the run with err, after the source has stopped. If the feed no
// longer uses this run, all current subscriptions belong to another run and continue.
func (r *sourceRun) finish(err error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !errors.Is(err, table.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", table.ErrUnavailable, err)
	}
	if f.run == r {
		if r.hasBegun {
			f.log.Error("all subscriptions have ended, because the changes of the table cannot be read", "error", err, "subscribers", f.subscriptionCount)
		}
		f.run = nil
		f.endSubscriptions(err, nil)
	}
	r.markBegun(err)
}

// deliverChanges delivers changes of records. before[i] and after[i] are a record before and after
// its change. For each partition key, the changes must be in the order of the commits.
func (r *sourceRun) deliverChanges(before, after []map[string]types.AttributeValue) {
	if err := r.deliver(before, after); err != nil {
		// After a panic, the server and the write of an in-process engine must continue.
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

// reportGap reports that changes may have been missed. The source must call reportGap before it
// delivers later changes. Subscriptions to a status end, unless they read the list of status changes.
func (r *sourceRun) reportGap(cause error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run != r {
		return
	}
	f.log.Warn("changes to the table were missed: the server reads the missed events of orders and customers from the table, and ends the subscriptions to a status that began without an event", "error", cause, "subscribers", f.subscriptionCount)
	f.endSubscriptions(fmt.Errorf("%w: changes were missed: %w", table.ErrUnavailable, cause), func(s *Subscription) bool { return s.history == nil })
	for _, list := range f.subscriptions {
		for _, s := range list {
			s.markBehind()
		}
	}
}
