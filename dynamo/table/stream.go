package table

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// WantedView is what the stream has to tell of a change.
const WantedView = string(types.StreamViewTypeNewAndOldImages)

// tableStream is a table's stream.
type tableStream struct {
	ARN string
	// View is what it tells, as DynamoDB calls it; empty where it is off.
	View string
}

// Missing says what is missing for changes to be told.
//
// Errors: ErrNoStream.
func (t tableStream) Missing() error {
	switch t.View {
	case WantedView:
		return nil
	case "":
		return ErrNoStream
	default:
		return fmt.Errorf("%w once the one of %s is turned off, as subscriptions need %s", ErrNoStream, t.View, WantedView)
	}
}

// StreamOf is the stream that a table's description tells of.
func StreamOf(d *types.TableDescription) tableStream {
	if d.StreamSpecification == nil || !aws.ToBool(d.StreamSpecification.StreamEnabled) {
		return tableStream{}
	}
	return tableStream{ARN: aws.ToString(d.LatestStreamArn), View: string(d.StreamSpecification.StreamViewType)}
}

// Stream is the table's stream.
//
// Errors: ErrNoTable, ErrUnavailable, ErrAccessDenied.
func (t *Table) Stream(ctx context.Context) (tableStream, error) {
	out, err := t.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
	if err != nil {
		return tableStream{}, Failed("DescribeTable", t.Name, err)
	}
	return StreamOf(out.Table), nil
}
