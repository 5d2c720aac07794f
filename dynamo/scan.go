package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// scanPage is how many records one Scan reads at most: a page's records take some ten times their
// size in memory, and a full megabyte of them saves little.
const scanPage = 1000

// scan gives take every page of one of so many segments of the table, with its last page marked.
// Segments divide the table by partition key, so the records of an item collection come one behind
// the other, by sort key.
//
// Errors: those of failed, and take's.
func (r *checkReader) scan(ctx context.Context, segment, segments int, take func(page []map[string]types.AttributeValue, last bool) error) error {
	in := &dynamodb.ScanInput{
		TableName: &r.s.table, Limit: aws.Int32(scanPage), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if segments > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(segment)), aws.Int32(int32(segments))
	}
	for {
		out, err := r.s.db.Scan(ctx, in, r.s.bulk)
		if err != nil {
			return failed("Scan", fmt.Sprintf("segment %d of %d", segment+1, segments), err)
		}
		if out.ConsumedCapacity != nil {
			r.count(*out.ConsumedCapacity)
		} else {
			r.count()
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		last := len(in.ExclusiveStartKey) == 0
		if err := take(out.Items, last); err != nil || last {
			return err
		}
	}
}

// keyValue is the n-th value in a key that was built from t.
func keyValue(t Template, key string) string {
	values, _ := t.Values(key)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
