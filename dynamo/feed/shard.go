package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// position is a position in a shard: after a record, or where reading begins.
type position struct {
	kind     streamtypes.ShardIteratorType
	sequence string
}

// shardReader reads one shard.
type shardReader struct {
	*streamReader
	shard *shard
	from  position
	// iterator is DynamoDB's token for the position, valid for 15 minutes. It is nil when a new
	// one is needed.
	iterator *string
	// first are the records that came while the position was taken. They are reported once all
	// shards have their position.
	first []streamtypes.Record
	// missed is why changes were missed. The gap is reported before the next records.
	missed error
	// failures are how many requests have failed in a row.
	failures int
}

// loggedFailure is the failure in a row that is logged; fewer are likely to pass.
const loggedFailure = 3

// settle takes the position at the end of the shard, so every later commit will be read. An
// iterator alone does not say when it found the end, so it is used once.
//
// Errors: those of table.Failed.
func (r *shardReader) settle(ctx context.Context) (err error) {
	r.first, err = r.fetch(ctx)
	return err
}

// read reports the changes in the shard up to its end.
//
// Errors: errStreamGone, ErrAccessDenied, a panic. Other failures are retried until ctx ends.
func (r *shardReader) read(ctx context.Context) (err error) {
	defer table.Recovered(&err)
	r.report(r.first)
	r.first = nil
	pause := r.opts.ShortestPause
	for ctx.Err() == nil && (r.iterator != nil || !r.atEnd()) {
		if table.Wait(ctx, pause) != nil {
			return nil
		}
		n, err := r.next(ctx)
		if err == nil {
			r.succeeded()
			if pause = min(2*pause, r.opts.LongestPause); n > 0 {
				pause = r.opts.ShortestPause
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
			// The next iterator begins after the last record. If no record was read, the shard's end
			// has moved, and its beginning may have.
			if r.iterator = nil; r.from.sequence == "" {
				r.missed = err
			}
		case errors.As(err, &trimmed):
			r.iterator, r.from, r.missed = nil, position{kind: streamtypes.ShardIteratorTypeTrimHorizon}, err
		}
		if r.failures++; r.failures == loggedFailure {
			r.run.feed.log.Warn("the table's stream cannot be read; it is tried again and again", "shard", r.shard.id, "error", err)
		}
		pause = r.pauseAfter(r.failures)
	}
	return nil
}

// succeeded ends a row of failures.
func (r *shardReader) succeeded() {
	if r.failures >= loggedFailure {
		r.run.feed.log.Info("the table's stream is read again", "shard", r.shard.id)
	}
	r.failures = 0
}

// pauseAfter returns the pause after so many failures in a row. It is random, so that servers do
// not retry at the same time, and at most 2, 4, 8 and so on to 64 times the shortest pause: 16 s.
func (r *shardReader) pauseAfter(failures int) time.Duration {
	most := r.opts.ShortestPause << min(failures, 6)
	return most/2 + rand.N(most/2+1)
}

// endOfShard is the kind of the position after the last record of a shard that has ended.
const endOfShard streamtypes.ShardIteratorType = "END"

func (r *shardReader) atEnd() bool { return r.from.kind == endOfShard }

// next requests records once, reports them, and returns their number.
//
// Errors: errStreamGone, and those of table.Failed.
func (r *shardReader) next(ctx context.Context) (int, error) {
	records, err := r.fetch(ctx)
	if err != nil {
		return 0, err
	}
	// Report the gap first, or these records would look like the next ones.
	if r.missed != nil {
		r.run.gap(r.missed)
		r.missed = nil
	}
	r.report(records)
	return len(records), nil
}

// fetch requests records once, and takes the position after them.
func (r *shardReader) fetch(ctx context.Context) ([]streamtypes.Record, error) {
	if r.iterator == nil {
		in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &r.arn, ShardId: &r.shard.id, ShardIteratorType: r.from.kind}
		if r.from.sequence != "" {
			in.SequenceNumber = &r.from.sequence
		}
		out, err := r.client.GetShardIterator(ctx, in)
		if err != nil {
			return nil, streamFailed("GetShardIterator", r.shard.id, err)
		}
		r.iterator = out.ShardIterator
	}
	out, err := r.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: r.iterator})
	if err != nil {
		return nil, streamFailed("GetRecords", r.shard.id, err)
	}
	if n := len(out.Records); n > 0 && out.Records[n-1].Dynamodb != nil {
		r.from = position{kind: streamtypes.ShardIteratorTypeAfterSequenceNumber, sequence: aws.ToString(out.Records[n-1].Dynamodb.SequenceNumber)}
	}
	if r.iterator = out.NextShardIterator; r.iterator == nil {
		r.from = position{kind: endOfShard}
	}
	return out.Records, nil
}

// report reports the changes of records that may belong to orders; the others need no translation.
func (r *shardReader) report(records []streamtypes.Record) {
	var before, after []map[string]types.AttributeValue
	for _, is := range records {
		change := is.Dynamodb
		if change == nil {
			continue
		}
		pk, _ := change.Keys[model.AttrPK].(*streamtypes.AttributeValueMemberS)
		if pk == nil || !strings.HasPrefix(pk.Value, model.EntityOrder.PK.Literal()) && !strings.HasPrefix(pk.Value, model.EntityLastEvent.PK.Literal()) {
			continue
		}
		if old, now := streamImage(change.OldImage), streamImage(change.NewImage); old != nil || now != nil {
			before, after = append(before, old), append(after, now)
		}
	}
	if len(after) > 0 {
		r.run.changed(before, after)
	}
}

// streamImage converts an image of a stream record to a record of the table, nil for none. The SDK
// has two sets of types for the same values.
func streamImage(image map[string]streamtypes.AttributeValue) map[string]types.AttributeValue {
	if len(image) == 0 {
		return nil
	}
	return streamMap(image)
}

func streamMap(m map[string]streamtypes.AttributeValue) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(m))
	for name, v := range m {
		out[name] = streamValue(v)
	}
	return out
}

func streamValue(v streamtypes.AttributeValue) types.AttributeValue {
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
			out[i] = streamValue(e)
		}
		return &types.AttributeValueMemberL{Value: out}
	case *streamtypes.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: streamMap(v.Value)}
	default:
		return &types.UnknownUnionMember{Tag: fmt.Sprintf("%T", v)}
	}
}
