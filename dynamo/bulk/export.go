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

// MaxSegments is the maximum number of segments that an export scans in parallel.
const MaxSegments = table.MaxParallel

// SegmentProgress describes how much of one segment of a parallel scan was read. The zero value means that
// nothing was read.
type SegmentProgress struct {
	// After is the key of the last record that was read, or nil if no record was read.
	After *RecordKey `json:"after,omitempty"`
	// Done reports whether the segment has been read completely.
	Done bool `json:"done,omitempty"`
}

// RecordKey is the primary key of a record.
type RecordKey struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

// ExportPage is the result of one Scan request of an export.
type ExportPage struct {
	// Index is the index of the segment. Next is the progress of the segment after this page.
	Index int
	Next  SegmentProgress
	// Lines contains one line of JSON for each exported record. Records is the number of lines.
	// LeftOut is the number of records that were read but not exported.
	Lines            []byte
	Records, LeftOut int
}

// Export reads the whole table with one parallel scan per segment. A scan continues after the last
// record that was read in its segment. Export calls emit for each page, never concurrently. It
// holds at most one page of about 1 MB per segment in memory.
//
// A line contains one record in DynamoDB's JSON format, {"Item":{"pk":{"S":"..."},...}}, with
// sorted attribute names. Idempotency records are not exported, because they expire soon. The
// export contains every record that was written before the call. It may contain some records that
// are written during the call.
//
// Errors: the error of emit, ErrCorrupt for a value of an unknown type, ErrTableMismatch,
// ErrUnavailable, ErrNoTable, ErrAccessDenied, the context's error.
func (t Transfers) Export(ctx context.Context, segments []SegmentProgress, emit func(ExportPage) error) error {
	if len(segments) < 1 || len(segments) > MaxSegments {
		return fmt.Errorf("export: the number of segments is %d, but must be from 1 to %d", len(segments), MaxSegments)
	}
	// emit is never called concurrently, and never again after an error. So a caller can append each
	// page to a file without a lock, and no page follows an incomplete page.
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

// exportPage sends one Scan request. A backup must contain the most recent writes, so the Scan is
// strongly consistent. This doubles its cost.
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

// isIdempotency reports whether a record is an idempotency record. Idempotency records are neither
// exported nor imported.
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

// TableID returns a name that identifies a table. Tables with the same name have different IDs if
// they are in different accounts or were created at different times. If the engine does not report
// the ARN and the creation time, TableID returns the table's name.
//
// Errors: ErrNoTable, ErrUnavailable, ErrAccessDenied.
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
