package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// errStreamGone: the stream, or one of its listed shards, no longer exists.
var errStreamGone = errors.New("the stream is gone")

// StreamOptions set how often a stream is read.
type StreamOptions struct {
	// ShortestPause is the pause between two requests for the records of one shard; 250 ms if it is
	// 0. DynamoDB allows five requests per second and shard, for all readers together. While there
	// are no records, the pause grows to LongestPause; 1 s if it is 0.
	ShortestPause, LongestPause time.Duration
	// ShardsEvery is how often the shards are listed; 30 s if it is 0. They are also listed when a
	// shard has ended.
	ShardsEvery time.Duration
}

// Streamed returns the source of changes of a table that reads its stream through client: DynamoDB
// Streams, with new and old images. A feed reads each shard once.
func Streamed(client *dynamodbstreams.Client, opts StreamOptions) Source {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	set(&opts.ShortestPause, 250*time.Millisecond)
	set(&opts.LongestPause, max(time.Second, opts.ShortestPause))
	set(&opts.ShardsEvery, 30*time.Second)
	return &streamed{client: client, opts: opts}
}

// maxReopenings is how often a stream that the table's description names is opened before the feed
// fails. The attempts take about half a minute.
const maxReopenings = 60

type streamed struct {
	client *dynamodbstreams.Client
	opts   StreamOptions
}

// watch reads the table's stream, and then the next one if the stream was turned off and on again
// or the table was created anew.
func (s *streamed) watch(ctx context.Context, t *table.Table, r *run) error {
	var missed error
	for attempt := 0; ; attempt++ {
		if err := table.BackOff(ctx, attempt); err != nil {
			return nil
		}
		stream, err := t.Stream(ctx)
		if err != nil {
			return err
		}
		if stream.View != table.WantedView {
			return stream.Missing()
		}
		reader := &streamReader{streamed: s, run: r, arn: stream.ARN, shards: map[string]*shard{}, ended: make(chan shardEnd)}
		began, err := reader.read(ctx, missed)
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, errStreamGone) || !began && (missed == nil || attempt > maxReopenings) {
			return err
		}
		if missed = err; began {
			attempt = 0
		}
	}
}

// streamReader reads one stream.
type streamReader struct {
	*streamed
	run    *run
	arn    string
	shards map[string]*shard
	ended  chan shardEnd
	group  sync.WaitGroup
}

// shard is a part of the stream. It has the changes of some partition keys, until it ends and its
// children take its place.
type shard struct {
	id, parent string
	// started is set once it is being read or need not be read, finished once it was read to its
	// end.
	started, finished bool
}

// shardEnd reports that a shard was read to its end, or why it cannot be read.
type shardEnd struct {
	shard *shard
	err   error
}

// read takes a position at the end of each shard, calls run.ready, and reports changes until the
// stream can no longer be read. It reports whether it called ready. missed is the cause of a gap
// before, nil if there was no subscription before.
//
// Errors: errStreamGone, and those of table.Failed; nil if ctx has ended.
func (r *streamReader) read(ctx context.Context, missed error) (began bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer r.group.Wait()
	defer cancel()
	listed, err := r.list(ctx)
	if err != nil {
		return false, err
	}
	var open []*shardReader
	for _, is := range listed {
		sh := r.add(is)
		// The changes in a shard that has ended were committed before.
		sh.started, sh.finished = true, is.SequenceNumberRange != nil && is.SequenceNumberRange.EndingSequenceNumber != nil
		if !sh.finished {
			open = append(open, &shardReader{streamReader: r, shard: sh, from: position{kind: streamtypes.ShardIteratorTypeLatest}})
		}
	}
	err = table.Parallel(ctx, len(open), table.MaxParallel, func(ctx context.Context, i int) error { return open[i].settle(ctx) })
	if err != nil {
		return false, err
	}
	if missed != nil {
		r.run.gap(missed)
	}
	r.run.ready()
	for _, sr := range open {
		r.start(ctx, sr)
	}
	r.startNext(ctx)
	return true, r.keepUp(ctx)
}

// add adds a listed shard.
func (r *streamReader) add(is streamtypes.Shard) *shard {
	sh := &shard{id: aws.ToString(is.ShardId), parent: aws.ToString(is.ParentShardId)}
	r.shards[sh.id] = sh
	return sh
}

// keepUp reads the children of shards that end, and new shards.
func (r *streamReader) keepUp(ctx context.Context) error {
	// A child is often not listed yet when its parent ends, so list soon, and then less and less
	// often. The parent may have ended before the feed began.
	wait := r.opts.ShardsEvery
	for _, sh := range r.shards {
		if sh.finished && !r.hasChild(sh) {
			wait = r.opts.ShortestPause
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case end := <-r.ended:
			if end.err != nil {
				return end.err
			}
			end.shard.finished = true
			r.startNext(ctx)
			wait = r.opts.ShortestPause
			if r.hasChild(end.shard) {
				wait = r.opts.ShardsEvery
			}
		case <-timer.C:
			found, err := r.refresh(ctx)
			if ctx.Err() != nil {
				return nil
			}
			// List again later. The readers of the shards report other errors.
			if errors.Is(err, errStreamGone) || errors.Is(err, table.ErrAccessDenied) {
				return err
			}
			wait = min(2*wait, r.opts.ShardsEvery)
			if found {
				wait = r.opts.ShardsEvery
			}
		}
		timer.Reset(wait)
	}
}

func (r *streamReader) hasChild(of *shard) bool {
	for _, sh := range r.shards {
		if sh.parent == of.id {
			return true
		}
	}
	return false
}

// refresh lists the shards, adds new ones and removes those that no longer exist. It reports
// whether there are new ones.
//
// Errors: errStreamGone, also if the stream is turned off; those of table.Failed.
func (r *streamReader) refresh(ctx context.Context) (found bool, err error) {
	listed, err := r.list(ctx)
	if err != nil {
		return false, err
	}
	there := make(map[string]bool, len(listed))
	for _, is := range listed {
		id := aws.ToString(is.ShardId)
		if there[id] = true; r.shards[id] == nil {
			r.add(is)
			found = true
		}
	}
	for id, sh := range r.shards {
		switch {
		case there[id]:
		case sh.finished:
			delete(r.shards, id)
		case !sh.started:
			delete(r.shards, id)
			r.run.gap(fmt.Errorf("shard %s was trimmed before it was read", id))
		}
	}
	r.startNext(ctx)
	return found, nil
}

// startNext starts to read shards whose parent was read to its end or is no longer listed, from
// their beginning. So changes of one partition key are reported in order.
func (r *streamReader) startNext(ctx context.Context) {
	for _, sh := range r.shards {
		if sh.started {
			continue
		}
		if parent := r.shards[sh.parent]; parent == nil || parent.finished {
			sh.started = true
			r.start(ctx, &shardReader{streamReader: r, shard: sh, from: position{kind: streamtypes.ShardIteratorTypeTrimHorizon}})
		}
	}
}

func (r *streamReader) start(ctx context.Context, sr *shardReader) {
	r.group.Go(func() {
		end := shardEnd{shard: sr.shard, err: sr.read(ctx)}
		select {
		case r.ended <- end:
		case <-ctx.Done():
		}
	})
}

// list returns all shards of the stream.
//
// Errors: errStreamGone, those of table.Failed.
func (r *streamReader) list(ctx context.Context) ([]streamtypes.Shard, error) {
	var shards []streamtypes.Shard
	for from := (*string)(nil); ; {
		out, err := r.client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &r.arn, ExclusiveStartShardId: from})
		if err != nil {
			return nil, streamFailed("DescribeStream", r.arn, err)
		}
		d := out.StreamDescription
		if d.StreamStatus == streamtypes.StreamStatusDisabled {
			return nil, fmt.Errorf("%w: %s is turned off", errStreamGone, r.arn)
		}
		shards = append(shards, d.Shards...)
		if from = d.LastEvaluatedShardId; aws.ToString(from) == "" {
			return shards, nil
		}
	}
}

// streamFailed is table.Failed for requests on a stream.
func streamFailed(operation, subject string, err error) error {
	if missing := (*streamtypes.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return fmt.Errorf("%s %s: %w: %w", operation, subject, errStreamGone, err)
	}
	return table.Failed(operation, subject, err)
}
