package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ordergraph/ordergraph/dynamo/table"
)

// errStreamGone means that the stream, or one of its shards, no longer exists.
var errStreamGone = errors.New("the stream no longer exists")

// StreamOptions are the options of StreamSource. They configure how often the stream is read.
type StreamOptions struct {
	// MinPause and MaxPause are the minimum and maximum pause between successful GetRecords requests
	// for a shard. The defaults are 250 ms and 1 s. After failures, the pause can exceed MaxPause.
	// DynamoDB allows five requests per second for each shard, for all its readers together.
	MinPause, MaxPause time.Duration
	// ShardListInterval is the time between reads of the stream's list of shards. The default is 30 s.
	// The list is also read soon after a shard has ended.
	ShardListInterval time.Duration
	// Retention is how long the stream keeps its records. The default is 24 h, as in DynamoDB.
	Retention time.Duration
}

// StreamSource returns a Source that reads the table's stream from DynamoDB Streams. The stream
// must contain new and old images.
func StreamSource(client *dynamodbstreams.Client, opts StreamOptions) Source {
	setDefault := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	setDefault(&opts.MinPause, 250*time.Millisecond)
	setDefault(&opts.MaxPause, max(time.Second, opts.MinPause))
	setDefault(&opts.ShardListInterval, 30*time.Second)
	setDefault(&opts.Retention, 24*time.Hour)
	return &streamSource{client: client, opts: opts}
}

// maxReopenings is the maximum number of attempts to open a new stream after a stream has ended.
// The attempts take about half a minute.
const maxReopenings = 60

type streamSource struct {
	client *dynamodbstreams.Client
	opts   StreamOptions
}

// watch reads the table's stream. If the stream is enabled again or the table is created again,
// watch continues with the new stream.
func (s *streamSource) watch(ctx context.Context, t *table.Table, r *sourceRun) error {
	var missed error
	for attempt := 0; ; attempt++ {
		if err := table.BackOff(ctx, attempt); err != nil {
			return nil
		}
		stream, err := t.DescribeStream(ctx)
		if err != nil {
			return err
		}
		if stream.View != table.RequiredStreamView {
			return stream.CheckView()
		}
		reader := &streamReader{streamSource: s, run: r, arn: stream.ARN, shards: map[string]*shard{}, shardEnds: make(chan shardEnd)}
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
	*streamSource
	run       *sourceRun
	arn       string
	shards    map[string]*shard
	shardEnds chan shardEnd
	group     sync.WaitGroup
}

// shard is a shard of the stream. It contains the changes of some partition keys. After a shard has
// ended, its child shards contain the later changes of these keys.
type shard struct {
	id, parent string
	// started is true if a reader has been started. finished is true if the shard has been read to its
	// end. If the shard need not be read, both are true.
	started, finished bool
	// readAt is the last time at which the shard, or the one before it, was read and had not ended. So
	// records of a later shard are not much older. If it is not known, readAt is the zero time.
	readAt time.Time
}

// shardEnd reports that a shard has been read to its end. If err is set, reading the shard has
// failed.
type shardEnd struct {
	shard *shard
	err   error
}

// read reports changes until the stream ends. The result began is true if read has called
// run.markReady. The parameter missed is the error that ended the previous stream. For the first
// stream, missed is nil.
//
// Errors: errStreamGone, and the errors of table.WrapError.
func (r *streamReader) read(ctx context.Context, missed error) (began bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer r.group.Wait()
	defer cancel()
	descriptions, err := r.listShards(ctx)
	if err != nil {
		return false, err
	}
	var open []*shardReader
	for _, description := range descriptions {
		sh := r.addShard(description)
		sh.readAt = r.run.feed.table.Now()
		// A shard that has already ended receives no more changes, so do not read it.
		sh.started, sh.finished = true, description.SequenceNumberRange != nil && description.SequenceNumberRange.EndingSequenceNumber != nil
		if !sh.finished {
			open = append(open, &shardReader{streamReader: r, shard: sh, position: position{kind: streamtypes.ShardIteratorTypeLatest}})
		}
	}
	err = table.Parallel(ctx, len(open), table.MaxParallel, func(ctx context.Context, i int) error { return open[i].findEnd(ctx) })
	if err != nil {
		return false, err
	}
	if missed != nil {
		// Changes may have been missed since the earlier stream ended.
		r.run.reportGap(missed)
	}
	r.run.markReady()
	for _, sr := range open {
		r.startReader(ctx, sr)
	}
	r.startReadyShards(ctx)
	return true, r.watchShards(ctx)
}

// addShard adds a shard from the stream's list of shards.
func (r *streamReader) addShard(description streamtypes.Shard) *shard {
	sh := &shard{id: aws.ToString(description.ShardId), parent: aws.ToString(description.ParentShardId)}
	r.shards[sh.id] = sh
	return sh
}

// watchShards reads the stream's list of shards regularly. It starts a reader for each new shard,
// but only after the parent shard has been read to its end.
func (r *streamReader) watchShards(ctx context.Context) error {
	// DynamoDB often lists the child of an ended shard only after some seconds. Until then, read the
	// list more often: first after MinPause, then each time after twice the previous wait.
	wait := r.opts.ShardListInterval
	for _, sh := range r.shards {
		if sh.finished && !r.hasChild(sh) {
			wait = r.opts.MinPause
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case end := <-r.shardEnds:
			if end.err != nil {
				return end.err
			}
			end.shard.finished = true
			r.startReadyShards(ctx)
			wait = r.opts.MinPause
			if r.hasChild(end.shard) {
				wait = r.opts.ShardListInterval
			}
		case <-timer.C:
			found, err := r.refreshShards(ctx)
			if ctx.Err() != nil {
				return nil
			}
			// Ignore all other errors, because the list is read again later. If DynamoDB keeps failing, the
			// shard readers log the failures.
			if errors.Is(err, errStreamGone) || errors.Is(err, table.ErrAccessDenied) {
				return err
			}
			wait = min(2*wait, r.opts.ShardListInterval)
			if found {
				wait = r.opts.ShardListInterval
			}
		}
		timer.Reset(wait)
	}
}

func (r *streamReader) hasChild(parent *shard) bool {
	for _, sh := range r.shards {
		if sh.parent == parent.id {
			return true
		}
	}
	return false
}

// refreshShards updates the list of shards. If there are new shards, found is true.
//
// Errors: errStreamGone if the stream was deleted or disabled, and the errors of table.WrapError.
func (r *streamReader) refreshShards(ctx context.Context) (found bool, err error) {
	descriptions, err := r.listShards(ctx)
	if err != nil {
		return false, err
	}
	exists := make(map[string]bool, len(descriptions))
	for _, description := range descriptions {
		id := aws.ToString(description.ShardId)
		if exists[id] = true; r.shards[id] == nil {
			r.addShard(description)
			found = true
		}
	}
	for id, sh := range r.shards {
		switch {
		case exists[id]:
		case sh.finished:
			delete(r.shards, id)
		case !sh.started:
			delete(r.shards, id)
			r.run.reportGap(fmt.Errorf("shard %s of the stream expired before it was read", id))
		}
	}
	r.startReadyShards(ctx)
	return found, nil
}

// startReadyShards starts a reader for each new shard whose parent has been read to its end or is
// no longer listed. So the changes of each partition key stay in order.
func (r *streamReader) startReadyShards(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(r.shards)) {
		sh := r.shards[id]
		if sh.started {
			continue
		}
		if parent := r.shards[sh.parent]; parent == nil || parent.finished {
			if sh.started = true; parent != nil {
				sh.readAt = parent.readAt
			}
			r.startReader(ctx, &shardReader{streamReader: r, shard: sh, position: position{kind: streamtypes.ShardIteratorTypeTrimHorizon}})
		}
	}
}

func (r *streamReader) startReader(ctx context.Context, sr *shardReader) {
	r.group.Go(func() {
		end := shardEnd{shard: sr.shard, err: sr.read(ctx)}
		select {
		case r.shardEnds <- end:
		case <-ctx.Done():
		}
	})
}

// listShards returns all shards of the stream.
//
// Errors: errStreamGone if the stream was deleted or disabled, and the errors of table.WrapError.
func (r *streamReader) listShards(ctx context.Context) ([]streamtypes.Shard, error) {
	var shards []streamtypes.Shard
	for from := (*string)(nil); ; {
		out, err := r.client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &r.arn, ExclusiveStartShardId: from})
		if err != nil {
			return nil, wrapStreamError("DescribeStream", r.arn, err)
		}
		d := out.StreamDescription
		if d.StreamStatus == streamtypes.StreamStatusDisabled {
			return nil, fmt.Errorf("%w: %s is disabled", errStreamGone, r.arn)
		}
		shards = append(shards, d.Shards...)
		if from = d.LastEvaluatedShardId; aws.ToString(from) == "" {
			return shards, nil
		}
	}
}

// wrapStreamError is like table.WrapError, but for requests to DynamoDB Streams. If the stream or
// the shard does not exist, the result wraps errStreamGone.
func wrapStreamError(operation, subject string, err error) error {
	if missing := (*streamtypes.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return fmt.Errorf("%s %s: %w: %w", operation, subject, errStreamGone, err)
	}
	return table.WrapError(operation, subject, err)
}
