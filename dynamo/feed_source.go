package dynamo

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// FeedSource is where a feed learns which records change: Observed or Streamed.
type FeedSource interface {
	// watch tells to what changes in the store's table until ctx ends, and returns when it reads
	// nothing any more. to.ready says that all that is committed from now on will be told, unless a
	// gap is.
	//
	// Errors: why it could not begin, or had to break off; nil where ctx has ended.
	watch(ctx context.Context, t *table.Table, to *feedRun) error
}

// Observable is a table that tells its changes in the process: the embedded store.
type Observable interface {
	// Observe calls observe for every change of the table's records until stop is called: with the
	// records as they were before and as they are after, nil for none, those of a transaction at
	// once. The calls come one after the other, in the order of the commits, before the writer gets
	// its answer; so they must be quick and not call back.
	Observe(table string, observe func(before, after []map[string]types.AttributeValue)) (stop func())
}

// Observed is the source of changes of a table in the process.
func Observed(by Observable) FeedSource { return observed{by} }

type observed struct{ by Observable }

func (o observed) watch(ctx context.Context, t *table.Table, to *feedRun) error {
	stop := o.by.Observe(t.Name, to.changed)
	defer stop()
	to.ready()
	<-ctx.Done()
	return nil
}

// feedRun is the reading for a feed from its first follower to its last.
type feedRun struct {
	feed   *Feed
	cancel context.CancelFunc
	// begun is closed when the source is ready, or has failed with err before it was.
	begun chan struct{}
	err   error
	done  bool
}

// start begins to read. The caller holds mu.
func (f *Feed) start() *feedRun {
	// It outlives the request of the follower that is the first.
	ctx, cancel := context.WithCancel(context.Background())
	r := &feedRun{feed: f, cancel: cancel, begun: make(chan struct{})}
	f.runs.Go(func() {
		defer cancel()
		r.finish(f.watch(ctx, r))
	})
	return r
}

// watch is the source's; a panic is an error.
func (f *Feed) watch(ctx context.Context, r *feedRun) (err error) {
	defer panicked(&err)
	if err := f.source.watch(ctx, f.table, r); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// ready lets those begin who wait.
func (r *feedRun) ready() {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	r.begin(nil)
}

func (r *feedRun) begin(err error) {
	if !r.done {
		r.done, r.err = true, err
		close(r.begun)
	}
}

// finish ends everybody who follows this run, if it was not ended because nobody does.
func (r *feedRun) finish(err error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if !errors.Is(err, table.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", table.ErrUnavailable, err)
	}
	if f.run == r {
		if r.done {
			f.log.Error("subscriptions were ended: the changes of the table cannot be read", "error", err, "followers", f.following)
		}
		f.run = nil
		f.endAll(err, nil)
	}
	r.begin(err)
}

// changed tells followers of changes of records, in the order of the commits as far as one
// partition key goes. What panics was missed: it must end neither the server nor the write that it
// tells of.
func (r *feedRun) changed(before, after []map[string]types.AttributeValue) {
	if err := r.tell(before, after); err != nil {
		r.gap(err)
	}
}

func (r *feedRun) tell(before, after []map[string]types.AttributeValue) (err error) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	defer panicked(&err)
	if r.feed.run == r {
		batch := changes{feed: r.feed, before: before, after: after}
		batch.tell()
	}
	return nil
}

// panicked makes a panic the error.
func panicked(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
	}
}

// gap tells that changes may have been missed. From now on all are told again. Followers with a
// timeline read there what they missed, the others are ended.
func (r *feedRun) gap(why error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run != r {
		return
	}
	f.log.Warn("changes were missed: followers read them from the timelines, and those of statuses are ended", "error", why, "followers", f.following)
	f.endAll(fmt.Errorf("%w: changes were missed: %w", table.ErrUnavailable, why), func(t topic) bool { return t.kind == topicStatus })
	for _, list := range f.followers {
		for _, w := range list {
			w.missed()
		}
	}
}
