package feed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// position is a position in a shard of the stream. If sequence is set, the position is after the
// stream record with this sequence number. Otherwise, kind alone is the position, such as LATEST or
// endOfShard.
type position struct {
	kind     streamtypes.ShardIteratorType
	sequence string
}

// shardReader reads one shard of the stream.
type shardReader struct {
	*streamReader
	shard    *shard
	position position
	// iterator is the shard iterator for the position. DynamoDB's shard iterators expire after 15
	// minutes. If iterator is nil, fetch requests a new one.
	iterator *string
	// firstRecords contains the records that findEnd has read. The method read reports these records
	// later, after findEnd has succeeded for all shards.
	firstRecords []streamtypes.Record
	// gapCause is set if the reader may have missed records. readOnce reports this gap before the next
	// records, and then sets gapCause to nil.
	gapCause error
	// failures is the number of consecutive failed requests.
	failures int
}

// failuresBeforeLog is the number of consecutive failures after which a shardReader logs a warning.
// Fewer failures are probably transient.
const failuresBeforeLog = 3

// findEnd moves the reader to the current end of the shard. It calls GetRecords once, because
// DynamoDB may determine the position of a LATEST iterator only in this call.
//
// It returns the errors of table.WrapError.
func (r *shardReader) findEnd(ctx context.Context) (err error) {
	r.firstRecords, err = r.fetch(ctx)
	return err
}

// read reports the changes in the shard until the shard or ctx ends. It returns an error only for
// errStreamGone, table.ErrAccessDenied or a panic. After all other errors, it tries again.
func (r *shardReader) read(ctx context.Context) (err error) {
	defer table.RecoverTo(&err)
	defer r.run.feed.lag.removeShard(r.shard)
	r.report(r.firstRecords)
	r.firstRecords = nil
	pause := r.opts.MinPause
	for ctx.Err() == nil && (r.iterator != nil || !r.atEnd()) {
		if table.Sleep(ctx, pause) != nil {
			return nil
		}
		n, err := r.readOnce(ctx)
		if err == nil {
			r.resetFailures()
			if pause = min(2*pause, r.opts.MaxPause); n > 0 {
				pause = r.opts.MinPause
			}
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		expired, trimmed := (*streamtypes.ExpiredIteratorException)(nil), (*streamtypes.TrimmedDataAccessException)(nil)
		switch {
		case errors.Is(err, errStreamGone), errors.Is(err, table.ErrAccessDenied):
			return err
		case errors.As(err, &expired):
			// The next iterator starts after the last record that was read. But if no record was read, the
			// next iterator may skip records, so report a gap.
			if r.iterator = nil; r.position.sequence == "" {
				r.gapCause = err
			}
		case errors.As(err, &trimmed):
			r.iterator, r.position, r.gapCause = nil, position{kind: streamtypes.ShardIteratorTypeTrimHorizon}, err
		}
		if r.failures++; r.failures == failuresBeforeLog {
			r.run.feed.log.Warn("a shard of the table's stream cannot be read: the server tries again", "shard", r.shard.id, "error", err)
		}
		pause = r.retryPause(r.failures)
	}
	return nil
}

// resetFailures resets the count of consecutive failures.
func (r *shardReader) resetFailures() {
	if r.failures >= failuresBeforeLog {
		r.run.feed.log.Info("a shard of the table's stream can be read again", "shard", r.shard.id)
	}
	r.failures = 0
}

// retryPause returns the pause after consecutive failures. The pause is random, so that servers do
// not retry at the same time.
func (r *shardReader) retryPause(failures int) time.Duration {
	// By default, maximum is at most 16 s.
	maximum := r.opts.MinPause << min(failures, 6)
	return maximum/2 + attempt.RandomN(maximum/2+1)
}

// endOfShard is the value of position.kind after the last record of a shard that has ended.
// DynamoDB has no iterator type for this position.
const endOfShard streamtypes.ShardIteratorType = "END"

func (r *shardReader) atEnd() bool { return r.position.kind == endOfShard }

// readOnce sends one GetRecords request, reports the records, and returns their number.
//
// Errors: errStreamGone, and the errors of table.WrapError.
func (r *shardReader) readOnce(ctx context.Context) (int, error) {
	before, atHorizon := r.shard.readAt, r.position.kind == streamtypes.ShardIteratorTypeTrimHorizon
	records, err := r.fetch(ctx)
	if err != nil {
		return 0, err
	}
	now := r.run.feed.table.Now()
	r.run.feed.lag.updateLag(r.shard, records, now)
	// A read from the oldest record does not fail if the stream has deleted records before.
	if atHorizon && r.gapCause == nil && now.Sub(before) > r.opts.Retention/2 {
		r.gapCause = fmt.Errorf("shard %s was read so late that the stream may have deleted its first records", r.shard.id)
	}
	// Report the gap before the records that follow it.
	if r.gapCause != nil {
		r.run.reportGap(r.gapCause)
		r.gapCause = nil
	}
	r.report(records)
	return len(records), nil
}

// fetch sends one GetRecords request and returns the records. It moves the position to the end of
// these records.
func (r *shardReader) fetch(ctx context.Context) ([]streamtypes.Record, error) {
	if r.iterator == nil {
		in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &r.arn, ShardId: &r.shard.id, ShardIteratorType: r.position.kind}
		if r.position.sequence != "" {
			in.SequenceNumber = &r.position.sequence
		}
		out, err := r.client.GetShardIterator(ctx, in)
		if err != nil {
			return nil, wrapStreamError("GetShardIterator", r.shard.id, err)
		}
		r.iterator = out.ShardIterator
	}
	out, err := r.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: r.iterator})
	if err != nil {
		return nil, wrapStreamError("GetRecords", r.shard.id, err)
	}
	if n := len(out.Records); n > 0 && out.Records[n-1].Dynamodb != nil {
		r.position = position{kind: streamtypes.ShardIteratorTypeAfterSequenceNumber, sequence: aws.ToString(out.Records[n-1].Dynamodb.SequenceNumber)}
	}
	if r.iterator = out.NextShardIterator; r.iterator == nil {
		r.position = position{kind: endOfShard}
	} else {
		r.shard.readAt = r.run.feed.table.Now()
	}
	return out.Records, nil
}

// report reports the changes of table records that may concern orders. It skips all other changes.
func (r *shardReader) report(records []streamtypes.Record) {
	var before, after []map[string]types.AttributeValue
	for _, record := range records {
		change := record.Dynamodb
		if change == nil {
			continue
		}
		pk, _ := change.Keys[model.AttrPK].(*streamtypes.AttributeValueMemberS)
		if pk == nil || !strings.HasPrefix(pk.Value, model.EntityOrder.PK.Prefix()) && !strings.HasPrefix(pk.Value, model.EntityLastEvent.PK.Prefix()) {
			continue
		}
		if oldImage, newImage := convertStreamImage(change.OldImage), convertStreamImage(change.NewImage); oldImage != nil || newImage != nil {
			before, after = append(before, oldImage), append(after, newImage)
		}
	}
	if len(after) > 0 {
		r.run.deliverChanges(before, after)
	}
}

// convertStreamImage converts an image (a record before or after a change) from the types of
// DynamoDB Streams to the types of DynamoDB. If there is no image, it returns nil.
func convertStreamImage(image map[string]streamtypes.AttributeValue) map[string]types.AttributeValue {
	if len(image) == 0 {
		return nil
	}
	return convertStreamMap(image)
}

func convertStreamMap(m map[string]streamtypes.AttributeValue) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(m))
	for name, v := range m {
		out[name] = convertStreamValue(v)
	}
	return out
}

func convertStreamValue(v streamtypes.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *streamtypes.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *streamtypes.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *streamtypes.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: v.Value}
	case *streamtypes.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}
	case *streamtypes.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: v.Value}
	case *streamtypes.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: v.Value}
	case *streamtypes.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: v.Value}
	case *streamtypes.AttributeValueMemberBS:
		return &types.AttributeValueMemberBS{Value: v.Value}
	case *streamtypes.AttributeValueMemberL:
		out := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			out[i] = convertStreamValue(e)
		}
		return &types.AttributeValueMemberL{Value: out}
	case *streamtypes.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: convertStreamMap(v.Value)}
	default:
		return &types.UnknownUnionMember{Tag: fmt.Sprintf("%T", v)}
	}
}
