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

// Transfers are the exports and imports of the records of a table.
type Transfers struct{ table *table.Table }

// NewTransfers returns the transfers of a table.
func NewTransfers(t *table.Table) Transfers { return Transfers{t} }

// MaxSegments is in how many parts an export reads a table at once.
const MaxSegments = table.MaxParallel

// Segment is how far one part of the table has been read. The zero Segment is its beginning.
type Segment struct {
	// After is the key of the last record that was read, nil at the beginning.
	After *RecordKey `json:"after,omitempty"`
	// Done reports whether nothing is left.
	Done bool `json:"done,omitempty"`
}

// RecordKey is the key of a record.
type RecordKey struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

// ExportPage is what one request of an export read.
type ExportPage struct {
	// Index is the segment's, and Next how far the segment has been read with this page.
	Index int
	Next  Segment
	// Lines are the records, a line each, of which there are Records. LeftOut were read beside
	// them.
	Lines            []byte
	Records, LeftOut int
}

// Export reads the whole table in as many parts at once as there are segments, each on from where
// it is, and gives emit one page after another. It holds no more than a page, about a megabyte of
// records, for each segment.
//
// A line is a record in DynamoDB's JSON, {"Item":{"pk":{"S":"..."},...}}, with its names sorted.
// Idempotency records are left out: they are of the moment. Everything that was written before
// Export was called is in it; of what is written meanwhile, a part may be.
//
// Errors: emit's, ErrCorrupt for a value of an unknown type, ErrTableMismatch, ErrUnavailable,
// ErrNoTable, ErrAccessDenied, the context's.
func (t Transfers) Export(ctx context.Context, segments []Segment, emit func(ExportPage) error) error {
	if len(segments) < 1 || len(segments) > MaxSegments {
		return fmt.Errorf("export: %d segments: a table is read in 1 to %d", len(segments), MaxSegments)
	}
	// emit is called by one at a time, and not again when it has failed: who writes pages to a file
	// counts on what is behind the last whole one.
	var one sync.Mutex
	var refused error
	give := func(page ExportPage) error {
		one.Lock()
		defer one.Unlock()
		if refused == nil {
			refused = emit(page)
		}
		return refused
	}
	return table.Parallel(ctx, len(segments), MaxSegments, func(ctx context.Context, i int) error {
		for at := segments[i]; !at.Done; {
			page, err := t.exportPage(ctx, i, len(segments), at)
			if err != nil {
				return err
			}
			if err := give(page); err != nil {
				return err
			}
			at = page.Next
		}
		return nil
	})
}

// exportPage is one Scan. It reads consistently, for twice the price: an export that lacks what was
// written a second before it would be no backup.
func (t Transfers) exportPage(ctx context.Context, segment, segments int, at Segment) (ExportPage, error) {
	in := &dynamodb.ScanInput{
		TableName: &t.table.Name, ConsistentRead: aws.Bool(true),
		Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)),
	}
	if at.After != nil {
		in.ExclusiveStartKey = model.Keys{PK: at.After.PK, SK: at.After.SK}.Attributes()
	}
	out, err := t.table.Client.Scan(ctx, in, t.table.Bulk)
	if err != nil {
		return ExportPage{}, table.Failed("Scan", t.table.Name, err)
	}
	page := ExportPage{Index: segment}
	if page.Next, err = nextSegment(out.LastEvaluatedKey); err != nil {
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

// isIdempotency reports whether a record is of the moment: neither exported nor imported.
func isIdempotency(r model.Record) bool {
	e := model.EntityOf(model.KeyOf(r))
	return e != nil && e.Name == model.EntityIdempotency.Name
}

func nextSegment(last map[string]types.AttributeValue) (Segment, error) {
	if len(last) == 0 {
		return Segment{Done: true}, nil
	}
	at := model.Reader{Record: last}
	next := RecordKey{PK: at.MustText(model.AttrPK), SK: at.MustText(model.AttrSK)}
	if at.Problem != "" {
		return Segment{}, fmt.Errorf("%w: key: %s", table.ErrTableMismatch, at.Problem)
	}
	return Segment{After: &next}, nil
}

// TableID names the table so that another one of the same name is told apart: one that was made
// anew, or in another account. An engine that knows tables by their names alone gives the name.
//
// Errors: ErrNoTable, ErrUnavailable, ErrAccessDenied.
func (t Transfers) TableID(ctx context.Context) (string, error) {
	out, err := t.table.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.table.Name})
	if err != nil {
		return "", table.Failed("DescribeTable", t.table.Name, err)
	}
	arn, made := aws.ToString(out.Table.TableArn), out.Table.CreationDateTime
	if arn == "" || made == nil {
		return t.table.Name, nil
	}
	return fmt.Sprintf("%s (%s, made %s)", t.table.Name, arn, made.UTC().Format(time.RFC3339Nano)), nil
}
