package table

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/trace"
)

// Query sends one Query request. It finds the sort keys that start with prefix and continue with a
// text in the range bounds. The Boolean result reports whether more records may follow. Errors come
// from WrapError.
func (t *Table) Query(ctx context.Context, p *model.AccessPattern, partition, prefix string, bounds model.Range, limit int, forward bool) ([]model.Reader, bool, error) {
	ctx, timer := trace.StartTimer(ctx, t.observer, trace.Target{Pattern: p.ID, Operation: "Query", Index: p.Index})
	a, err := t.queryPage(ctx, queryRequest{pattern: p, keyRange: model.NewKeyCondition(p, partition, prefix, bounds), limit: limit, forward: forward}, timer.Enabled())
	if err != nil {
		timer.Stop(ctx, trace.Request{}, err)
		return nil, false, WrapError("Query", partition, err)
	}
	if timer.Enabled() {
		r := trace.Request{Items: len(a.Records), ReadUnits: t.queryUnits(p, model.QueryUnits(a.Records), a)}
		if timer.NeedsKey() {
			r.Key = describeKeyRange(p, partition, prefix, bounds)
		}
		timer.Stop(ctx, r, nil)
	}
	return a.Records, a.more, nil
}

// QueryUpTo is like Query, but it continues with another Query if DynamoDB has stopped at
// MaxQueryBytes. It returns at most limit records. The Boolean result reports whether more records
// may follow. Errors come from WrapError.
func (t *Table) QueryUpTo(ctx context.Context, p *model.AccessPattern, partition, prefix string, bounds model.Range, limit int, forward bool) ([]model.Reader, bool, error) {
	records, more, err := t.Query(ctx, p, partition, prefix, bounds, limit, forward)
	_, sk := p.KeyAttributes()
	for err == nil && more && len(records) < limit {
		if len(records) > 0 {
			bounds = bounds.Remaining(strings.TrimPrefix(records[len(records)-1].Text(sk), prefix), forward)
		}
		if bounds.Empty() {
			return records, false, nil
		}
		var next []model.Reader
		next, more, err = t.Query(ctx, p, partition, prefix, bounds, limit-len(records), forward)
		records = append(records, next...)
	}
	return records, more, err
}

// queryRequest contains the parameters of one Query request.
type queryRequest struct {
	pattern  *model.AccessPattern
	keyRange model.KeyCondition
	limit    int
	forward  bool
}

// maxPreallocatedRecords is the maximum initial capacity of the slice for the records of a Query.
// If there are more records, the slice grows.
const maxPreallocatedRecords = 256

// queryPage sends one Query request. If reportCapacity is true, the result contains the consumed
// capacity. The errors are ErrReadBudgetExceeded, attempt.ErrBreakerOpen and the errors of the AWS
// SDK.
func (t *Table) queryPage(ctx context.Context, q queryRequest, reportCapacity bool) (readResult, error) {
	db, options := t.Client, keepClientOptions
	if t.fastPath != nil {
		read := t.readOptions(reportCapacity)
		read.consistent = read.consistent && q.pattern.Index == ""
		body, ok := queryBody(read, q)
		a, fallback, err := t.tryFastPath(ctx, t.fastPath.targets.query, body, ok, min(q.limit, maxPreallocatedRecords))
		if a != nil || err != nil {
			return *a, err
		}
		db, options = fallback.client, fallback.options
	}
	t.stats.fallbacks.Add(1)
	in := &dynamodb.QueryInput{
		TableName:                 &t.Name,
		KeyConditionExpression:    &q.keyRange.Text,
		ExpressionAttributeValues: q.keyRange.Values(),
		ScanIndexForward:          &q.forward,
		Limit:                     aws.Int32(int32(q.limit)),
		ReturnConsumedCapacity:    returnConsumedCapacityParameter(reportCapacity),
	}
	if q.pattern.Index != "" {
		in.IndexName = &q.pattern.Index
	} else {
		in.ConsistentRead = t.consistentReadParameter()
	}
	out, err := db.Query(ctx, in, options)
	if err != nil {
		return readResult{}, err
	}
	a := readResult{Records: newReaders(out.Items), more: len(out.LastEvaluatedKey) > 0}
	a.addConsumedCapacity(out.ConsumedCapacity)
	return a, nil
}

// queryUnits is like readUnits, but for a Query. A Query of the index is always eventually
// consistent, so its read units are never doubled.
func (t *Table) queryUnits(p *model.AccessPattern, computed float64, a readResult) float64 {
	if p.Index != "" && t.consistent {
		eventual := *t
		eventual.consistent = false
		t = &eventual
	}
	return t.readUnits(computed, 1, a)
}

// MaxCountPages is the maximum number of Query requests that Count sends. Each of them reads at
// most MaxQueryBytes.
const MaxCountPages = 10

// Count counts the records of a partition whose sort keys start with prefix. If MaxCountPages
// Queries are not enough, Count returns ErrTooManyOrders. Other errors come from WrapError.
func (t *Table) Count(ctx context.Context, p *model.AccessPattern, partition, prefix string) (int, error) {
	where := model.NewKeyCondition(p, partition, prefix, model.Range{})
	in := &dynamodb.QueryInput{
		TableName: &t.Name, KeyConditionExpression: &where.Text, ExpressionAttributeValues: where.Values(),
		ScanIndexForward: aws.Bool(p.Direction == model.Ascending), Select: types.SelectCount,
		ConsistentRead: t.consistentReadParameter(), // Count never reads an index
	}
	n := 0
	for range MaxCountPages {
		ctx, timer := trace.StartTimer(ctx, t.observer, trace.Target{Pattern: p.ID, Operation: "Query"})
		in.ReturnConsumedCapacity = returnConsumedCapacityParameter(timer.Enabled())
		out, err := t.Client.Query(ctx, in)
		if err != nil {
			timer.Stop(ctx, trace.Request{}, err)
			return 0, WrapError("Query", partition, err)
		}
		if timer.Enabled() {
			a := readResult{Records: newReaders(out.Items)}
			a.addConsumedCapacity(out.ConsumedCapacity)
			r := trace.Request{Items: int(out.Count), ReadUnits: t.queryUnits(p, model.QueryUnits(a.Records), a)}
			if timer.NeedsKey() {
				r.Key = describeKeyRange(p, partition, prefix, model.Range{})
			}
			timer.Stop(ctx, r, nil)
		}
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("count %s %s*: %w", partition, prefix, ErrTooManyOrders)
}

// MaxQueryBytes is the maximum number of bytes that DynamoDB reads for one Query. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
const MaxQueryBytes = 1 << 20
