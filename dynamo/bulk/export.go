package bulk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// Transfers loads, exports and imports the records of a table.
type Transfers struct{ table *table.Table }

// NewTransfers returns a Transfers for a table.
func NewTransfers(t *table.Table) Transfers { return Transfers{t} }

// MaxSegments is the maximum number of table segments that an export scans in parallel.
const MaxSegments = table.MaxParallel

// SegmentProgress describes how much of one segment of a parallel scan has been read. The zero
// value means that nothing has been read.
type SegmentProgress struct {
	// After is the key of the last record that was read. It is nil if no record was read or if Done is
	// true.
	After *RecordKey `json:"after,omitempty"`
	// Done is true if the segment has been read completely.
	Done bool `json:"done,omitempty"`
}

// RecordKey is the primary key of a record: its partition key and its sort key.
type RecordKey struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

// ExportPage is the result of one Scan request of an export.
type ExportPage struct {
	// Index is the index of the scanned segment. Next is the segment's progress after this page.
	Index int
	Next  SegmentProgress
	// Lines contains one line of JSON for each exported record. Records is the number of lines.
	// LeftOut is the number of idempotency records, which were read but not exported.
	Lines            []byte
	Records, LeftOut int
}

// Export scans the table and passes one page at a time to emit. Records that are written during the
// call may be missing.
//
// Errors: the error of emit; model.ErrCorrupt; table.ErrTableMismatch, table.ErrUnavailable,
// table.ErrNoTable, table.ErrAccessDenied; the context's error.
func (t Transfers) Export(ctx context.Context, segments []SegmentProgress, emit func(ExportPage) error) error {
	if len(segments) < 1 || len(segments) > MaxSegments {
		return fmt.Errorf("export: the number of segments is %d, but it must be from 1 to %d", len(segments), MaxSegments)
	}
	// emitNext never calls emit concurrently, so a caller can append each page to a file without a
	// lock. After an error, emitNext does not call emit again, so no page follows an incomplete page
	// in the file.
	var mu sync.Mutex
	var failed error
	emitNext := func(page ExportPage) error {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = emit(page)
		}
		return failed
	}
	return table.Parallel(ctx, len(segments), MaxSegments, func(ctx context.Context, i int) error {
		for segment := segments[i]; !segment.Done; {
			page, err := t.exportPage(ctx, i, len(segments), segment)
			if err != nil {
				return err
			}
			if err := emitNext(page); err != nil {
				return err
			}
			segment = page.Next
		}
		return nil
	})
}

// exportPage sends one Scan request. An export must contain the most recent writes, so the Scan is
// strongly consistent. A strongly consistent Scan costs twice as much as an eventually consistent
// Scan.
func (t Transfers) exportPage(ctx context.Context, segment, segments int, from SegmentProgress) (ExportPage, error) {
	in := &dynamodb.ScanInput{
		TableName: &t.table.Name, ConsistentRead: aws.Bool(true),
		Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)),
	}
	if from.After != nil {
		in.ExclusiveStartKey = model.Keys{PK: from.After.PK, SK: from.After.SK}.Attributes()
	}
	out, err := t.table.Client.Scan(ctx, in, t.table.BulkOptions)
	if err != nil {
		return ExportPage{}, table.WrapError("Scan", t.table.Name, err)
	}
	page := ExportPage{Index: segment}
	if page.Next, err = segmentProgressAfter(out.LastEvaluatedKey); err != nil {
		return ExportPage{}, err
	}
	for _, r := range out.Items {
		if isIdempotency(r) {
			page.LeftOut++
			continue
		}
		line, err := toJSON(r)
		if err != nil {
			return ExportPage{}, err
		}
		page.Lines = append(page.Lines, line...)
		page.Records++
	}
	return page, nil
}

// isIdempotency reports whether r is an idempotency record. If a client repeats a mutation, the
// server returns the result in this record. Idempotency records are neither exported nor imported.
func isIdempotency(r model.Record) bool {
	e := model.EntityOf(model.KeyOf(r))
	return e != nil && e.Name == model.EntityIdempotency.Name
}

func segmentProgressAfter(last map[string]types.AttributeValue) (SegmentProgress, error) {
	if len(last) == 0 {
		return SegmentProgress{Done: true}, nil
	}
	reader := model.Reader{Record: last}
	next := RecordKey{PK: reader.RequiredText(model.AttrPK), SK: reader.RequiredText(model.AttrSK)}
	if reader.Problem != "" {
		return SegmentProgress{}, fmt.Errorf("%w: key: %s", table.ErrTableMismatch, reader.Problem)
	}
	return SegmentProgress{After: &next}, nil
}

// TableID returns the table's name. If DynamoDB reports the ARN and the creation time, TableID
// appends both to the name, to distinguish tables with the same name.
//
// Errors: table.ErrNoTable, table.ErrUnavailable, table.ErrAccessDenied.
func (t Transfers) TableID(ctx context.Context) (string, error) {
	out, err := t.table.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.table.Name})
	if err != nil {
		return "", table.WrapError("DescribeTable", t.table.Name, err)
	}
	arn, created := aws.ToString(out.Table.TableArn), out.Table.CreationDateTime
	if arn == "" || created == nil {
		return t.table.Name, nil
	}
	return fmt.Sprintf("%s (%s, made %s)", t.table.Name, arn, created.UTC().Format(time.RFC3339Nano)), nil
}
