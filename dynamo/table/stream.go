package table

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// RequiredStreamView is the view type that a table's stream must have for subscriptions.
const RequiredStreamView = string(types.StreamViewTypeNewAndOldImages)

// tableStream describes a table's DynamoDB stream.
type tableStream struct {
	ARN string
	// View is the StreamViewType of the stream in DynamoDB. If the stream is disabled, View is empty.
	View string
}

// CheckView returns an error that wraps ErrNoStream if the stream is disabled, or if its view type
// is not RequiredStreamView.
func (t tableStream) CheckView() error {
	switch t.View {
	case RequiredStreamView:
		return nil
	case "":
		return ErrNoStream
	default:
		return fmt.Errorf("%w; disable the existing stream first, because its view type is %s instead of %s", ErrNoStream, t.View, RequiredStreamView)
	}
}

// StreamFromDescription returns the stream in a table description.
func StreamFromDescription(d *types.TableDescription) tableStream {
	if d.StreamSpecification == nil || !aws.ToBool(d.StreamSpecification.StreamEnabled) {
		return tableStream{}
	}
	return tableStream{ARN: aws.ToString(d.LatestStreamArn), View: string(d.StreamSpecification.StreamViewType)}
}

// DescribeStream reads the description of the table's stream.
//
// Errors: ErrNoTable, ErrUnavailable, ErrAccessDenied.
func (t *Table) DescribeStream(ctx context.Context) (tableStream, error) {
	out, err := t.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
	if err != nil {
		return tableStream{}, WrapError("DescribeTable", t.Name, err)
	}
	return StreamFromDescription(out.Table), nil
}
