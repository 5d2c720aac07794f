package dynamo

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

// errStreamGone: the stream, or a shard of it that was listed, is not there any more.
var errStreamGone = errors.New("the stream is gone")

// StreamOptions say how often a stream is read.
type StreamOptions struct {
	// ShortestPause is between two requests for the records of one shard; 250 ms where it is 0.
	// DynamoDB answers five a second and shard, whoever asks. LongestPause is what it grows to
	// while there are no records; 1 s where it is 0.
	ShortestPause, LongestPause time.Duration
	// ShardsEvery is how often new shards are looked for when nothing tells that there are any; 30
	// s where it is 0. Where a shard has ended they are looked for at once.
	ShardsEvery time.Duration
}

// Streamed is the source of changes of a table whose stream (DynamoDB Streams, of new and old
// images) is read through client. A feed reads each shard once.
func Streamed(client *dynamodbstreams.Client, opts StreamOptions) FeedSource {
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

// maxReopenings is how often a stream that the table's description tells of is looked for, for
// about half a minute, before those who follow are told that there is none.
const maxReopenings = 60

type streamed struct {
	client *dynamodbstreams.Client
	opts   StreamOptions
}

// watch reads the table's stream, and the next one where the stream was turned off and on again or
// the table was made anew.
func (s *streamed) watch(ctx context.Context, t *table.Table, to *feedRun) error {
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
		r := &streamReader{streamed: s, to: to, arn: stream.ARN, shards: map[string]*shard{}, ended: make(chan shardEnd)}
		began, err := r.read(ctx, missed)
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
	to     *feedRun
	arn    string
	shards map[string]*shard
	ended  chan shardEnd
	group  sync.WaitGroup
}

// shard is a part of the stream. It holds the changes of some partition keys, until it ends and
// others take its place.
type shard struct {
	id, parent string
	// started tells that it is being read or needs no reading, finished that it was read to its
	// end.
	started, finished bool
}

// shardEnd tells that a shard was read to its end, or why it cannot be read.
type shardEnd struct {
	shard *shard
	err   error
}

// read takes its position at the end of each shard, says so, and tells what follows until the
// stream cannot be read any more. It says whether it got so far. missed is why there is a gap
// before, nil where nobody followed.
//
// Errors: errStreamGone, and those of failed; nil where ctx has ended.
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
		// What stands in a shard that has ended was committed before.
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
		r.to.gap(missed)
	}
	r.to.ready()
	for _, sr := range open {
		r.start(ctx, sr)
	}
	r.startNext(ctx)
	return true, r.keepUp(ctx)
}

// add takes note of a shard.
func (r *streamReader) add(is streamtypes.Shard) *shard {
	sh := &shard{id: aws.ToString(is.ShardId), parent: aws.ToString(is.ParentShardId)}
	r.shards[sh.id] = sh
	return sh
}

// keepUp goes on with the shards that follow on others.
func (r *streamReader) keepUp(ctx context.Context) error {
	// A child is often not listed yet when its parent ends, also before the beginning, so it is
	// looked for more and more seldom.
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
			found, err := r.look(ctx)
			if ctx.Err() != nil {
				return nil
			}
			// A list that cannot be had now can be had later; the readers report what is wrong.
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

// look looks for new shards, and forgets those that are gone. It tells whether there are new ones.
//
// Errors: errStreamGone, also where the stream is turned off; those of failed.
func (r *streamReader) look(ctx context.Context) (found bool, err error) {
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
			r.to.gap(fmt.Errorf("shard %s was trimmed before it was read", id))
		}
	}
	r.startNext(ctx)
	return found, nil
}

// startNext starts shards whose parent was read to its end or is not known any more, from their
// beginning: so changes of one partition key are told in their order.
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
		end := shardEnd{shard: sr.shard, err: sr.run(ctx)}
		select {
		case r.ended <- end:
		case <-ctx.Done():
		}
	})
}

// list gives all shards that are listed.
//
// Errors: errStreamGone, those of failed.
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

// streamFailed is failed for requests about a stream.
func streamFailed(operation, subject string, err error) error {
	if missing := (*streamtypes.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return fmt.Errorf("%s %s: %w: %w", operation, subject, errStreamGone, err)
	}
	return table.Failed(operation, subject, err)
}
