package table

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// RequiredStreamView is the view type that subscriptions require of the stream.
const RequiredStreamView = string(types.StreamViewTypeNewAndOldImages)

// tableStream describes the stream of a table.
type tableStream struct {
	ARN string
	// View is DynamoDB's StreamViewType. It is empty if the stream is disabled.
	View string
}

// CheckView returns ErrNoStream if the stream is disabled or does not have the RequiredStreamView.
func (t tableStream) CheckView() error {
	switch t.View {
	case RequiredStreamView:
		return nil
	case "":
		return ErrNoStream
	default:
		return fmt.Errorf("%w once the existing stream is disabled: its view type is %s, and subscriptions need %s", ErrNoStream, t.View, RequiredStreamView)
	}
}

// StreamOf returns the stream in the description of a table.
func StreamOf(d *types.TableDescription) tableStream {
	if d.StreamSpecification == nil || !aws.ToBool(d.StreamSpecification.StreamEnabled) {
		return tableStream{}
	}
	return tableStream{ARN: aws.ToString(d.LatestStreamArn), View: string(d.StreamSpecification.StreamViewType)}
}

// Stream reads the description of the table's stream. It returns ErrNoTable, ErrUnavailable or
// ErrAccessDenied if the request fails.
func (t *Table) Stream(ctx context.Context) (tableStream, error) {
	out, err := t.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
	if err != nil {
		return tableStream{}, WrapError("DescribeTable", t.Name, err)
	}
	return StreamOf(out.Table), nil
}
