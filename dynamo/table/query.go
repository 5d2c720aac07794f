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

// Query is one Query. It reports whether there is more to read in the bounds.
func (t *Table) Query(ctx context.Context, p *model.AccessPattern, partition, prefix string, b model.Range, limit int, forward bool) ([]model.Reader, bool, error) {
	timed := StartTimer(ctx)
	a, err := t.queryOnce(ctx, querying{pattern: p, where: model.KeyRangeOf(p, partition, prefix, b), limit: limit, forward: forward}, timed.On())
	if err != nil {
		return nil, false, Failed("Query", partition, err)
	}
	if timed.On() {
		timed.Stop(Request{AccessPattern: p.ID, Operation: "Query", Index: p.Index, Key: describeRange(p, partition, prefix, b),
			Items: len(a.Records), ReadUnits: t.queried(p, units.Query(a.Records), a)})
	}
	return a.Records, a.more, nil
}

// QueryUpTo reads up to limit records of a partition, and reports whether there are more. It goes
// on where a Query ends at a megabyte.
//
// Errors: those of failed.
func (t *Table) QueryUpTo(ctx context.Context, p *model.AccessPattern, partition, prefix string, b model.Range, limit int, forward bool) ([]model.Reader, bool, error) {
	records, more, err := t.Query(ctx, p, partition, prefix, b, limit, forward)
	_, sk := p.KeyAttributes()
	for err == nil && more && len(records) < limit {
		if len(records) > 0 {
			b = b.Behind(strings.TrimPrefix(records[len(records)-1].Text(sk), prefix), forward)
		}
		if b.Empty() {
			return records, false, nil
		}
		var next []model.Reader
		next, more, err = t.Query(ctx, p, partition, prefix, b, limit-len(records), forward)
		records = append(records, next...)
	}
	return records, more, err
}

// querying is a Query.
type querying struct {
	pattern *model.AccessPattern
	where   model.KeyRange
	limit   int
	forward bool
}

// mostExpected is how many records of a Query room is made for before they are seen.
const mostExpected = 256

// queryOnce is one Query.
//
// Errors: the SDK's, ErrOverBudget.
func (t *Table) queryOnce(ctx context.Context, q querying, priced bool) (answer, error) {
	db, along := t.Client, leaveAsIs
	if t.wire != nil {
		asks := t.asking(priced)
		asks.consistent = asks.consistent && q.pattern.Index == ""
		body, ok := queryBody(asks, q)
		a, rest, err := t.shortly(ctx, t.wire.operations.query, body, ok, min(q.limit, mostExpected))
		if a != nil || err != nil {
			return *a, err
		}
		db, along = rest.db, rest.along
	}
	in := &dynamodb.QueryInput{
		TableName:                 &t.Name,
		KeyConditionExpression:    &q.where.Text,
		ExpressionAttributeValues: q.where.Values(),
		ScanIndexForward:          &q.forward,
		Limit:                     aws.Int32(int32(q.limit)),
		ReturnConsumedCapacity:    returning(priced),
	}
	if q.pattern.Index != "" {
		in.IndexName = &q.pattern.Index
	} else {
		in.ConsistentRead = t.consistency()
	}
	out, err := db.Query(ctx, in, along)
	if err != nil {
		return answer{}, err
	}
	a := answer{Records: readers(out.Items), more: len(out.LastEvaluatedKey) > 0}
	a.cost(out.ConsumedCapacity)
	return a, nil
}

// queried is reported for a Query; those of the index are never consistent.
func (t *Table) queried(p *model.AccessPattern, computed float64, by answer) float64 {
	if p.Index != "" && t.consistent {
		eventual := *t
		eventual.consistent = false
		t = &eventual
	}
	return t.reported(computed, 1, by)
}

// MaxCountedPages is how many Queries count a list at most. Each ends at a megabyte.
const MaxCountedPages = 10

// Count counts the records of a partition of the table whose sort keys begin with prefix. Its
// Queries return none of them.
//
// Errors: ErrTooManyToCount after MaxCountedPages; those of failed.
func (t *Table) Count(ctx context.Context, p *model.AccessPattern, partition, prefix string) (int, error) {
	where := model.KeyRangeOf(p, partition, prefix, model.Range{})
	in := &dynamodb.QueryInput{
		TableName: &t.Name, KeyConditionExpression: &where.Text, ExpressionAttributeValues: where.Values(),
		ScanIndexForward: aws.Bool(p.Direction == model.Ascending), Select: types.SelectCount,
		ConsistentRead: t.consistency(), // only lists of the table are counted
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

// PageBytes is where DynamoDB ends a Query, in bytes. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
const PageBytes = 1 << 20
