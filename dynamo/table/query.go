package table

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/units"
)

// Query sends one Query and reports whether more records may follow within the bounds. The bounds
// apply to the sort key after prefix.
func (t *Table) Query(ctx context.Context, p *model.AccessPattern, partition, prefix string, bounds model.Range, limit int, forward bool) ([]model.Reader, bool, error) {
	timed := StartTimer(ctx)
	a, err := t.queryOnce(ctx, querying{pattern: p, where: model.KeyRangeOf(p, partition, prefix, bounds), limit: limit, forward: forward}, timed.On())
	if err != nil {
		return nil, false, Failed("Query", partition, err)
	}
	if timed.On() {
		timed.Stop(Request{AccessPattern: p.ID, Operation: "Query", Index: p.Index, Key: describeRange(p, partition, prefix, bounds),
			Items: len(a.Records), ReadUnits: t.queried(p, units.Query(a.Records), a)})
	}
	return a.Records, a.more, nil
}

// QueryUpTo reads up to limit records of a partition and reports whether more may follow. It sends
// further Queries if DynamoDB ends one at PageBytes. Errors are wrapped by Failed.
func (t *Table) QueryUpTo(ctx context.Context, p *model.AccessPattern, partition, prefix string, bounds model.Range, limit int, forward bool) ([]model.Reader, bool, error) {
	records, more, err := t.Query(ctx, p, partition, prefix, bounds, limit, forward)
	_, sk := p.KeyAttributes()
	for err == nil && more && len(records) < limit {
		if len(records) > 0 {
			bounds = bounds.Behind(strings.TrimPrefix(records[len(records)-1].Text(sk), prefix), forward)
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

// querying has the parameters of one Query.
type querying struct {
	pattern *model.AccessPattern
	where   model.KeyRange
	limit   int
	forward bool
}

// mostExpected limits how many records a Query preallocates.
const mostExpected = 256

// queryOnce sends one Query. If reportCapacity is set, DynamoDB reports the consumed capacity. It
// returns the SDK's error, or ErrOverBudget.
func (t *Table) queryOnce(ctx context.Context, q querying, reportCapacity bool) (answer, error) {
	db, options := t.Client, leaveAsIs
	if t.wire != nil {
		read := t.asking(reportCapacity)
		read.consistent = read.consistent && q.pattern.Index == ""
		body, ok := queryBody(read, q)
		a, fallback, err := t.shortly(ctx, t.wire.operations.query, body, ok, min(q.limit, mostExpected))
		if a != nil || err != nil {
			return *a, err
		}
		db, options = fallback.db, fallback.along
	}
	in := &dynamodb.QueryInput{
		TableName:                 &t.Name,
		KeyConditionExpression:    &q.where.Text,
		ExpressionAttributeValues: q.where.Values(),
		ScanIndexForward:          &q.forward,
		Limit:                     aws.Int32(int32(q.limit)),
		ReturnConsumedCapacity:    returning(reportCapacity),
	}
	if q.pattern.Index != "" {
		in.IndexName = &q.pattern.Index
	} else {
		in.ConsistentRead = t.consistency()
	}
	out, err := db.Query(ctx, in, options)
	if err != nil {
		return answer{}, err
	}
	a := answer{Records: readers(out.Items), more: len(out.LastEvaluatedKey) > 0}
	a.cost(out.ConsumedCapacity)
	return a, nil
}

// queried returns the read units of a Query, as reported does. A Query of the index is never
// strongly consistent.
func (t *Table) queried(p *model.AccessPattern, computed float64, a answer) float64 {
	if p.Index != "" && t.consistent {
		eventual := *t
		eventual.consistent = false
		t = &eventual
	}
	return t.reported(computed, 1, a)
}

// MaxCountedPages is the maximum number of Queries that Count sends. Each reads up to PageBytes.
const MaxCountedPages = 10

// Count counts the records of a partition of the table whose sort keys begin with prefix. Its
// Queries select only the count, not the records. It returns ErrTooManyToCount if MaxCountedPages
// do not reach the end. Other errors are wrapped by Failed.
func (t *Table) Count(ctx context.Context, p *model.AccessPattern, partition, prefix string) (int, error) {
	where := model.KeyRangeOf(p, partition, prefix, model.Range{})
	in := &dynamodb.QueryInput{
		TableName: &t.Name, KeyConditionExpression: &where.Text, ExpressionAttributeValues: where.Values(),
		ScanIndexForward: aws.Bool(p.Direction == model.Ascending), Select: types.SelectCount,
		ConsistentRead: t.consistency(), // Count never reads an index
	}
	n := 0
	for range MaxCountedPages {
		timed := StartTimer(ctx)
		in.ReturnConsumedCapacity = returning(timed.On())
		out, err := t.Client.Query(ctx, in)
		if err != nil {
			return 0, Failed("Query", partition, err)
		}
		if timed.On() {
			a := answer{Records: readers(out.Items)}
			a.cost(out.ConsumedCapacity)
			timed.Stop(Request{AccessPattern: p.ID, Operation: "Query", Key: describeRange(p, partition, prefix, model.Range{}),
				Items: int(out.Count), ReadUnits: t.queried(p, units.Query(a.Records), a)})
		}
		n += int(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("count %s %s*: %w", partition, prefix, ErrTooManyToCount)
}

// PageBytes is the maximum number of bytes that DynamoDB reads for one Query. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
const PageBytes = 1 << 20
