package enginetest

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func streamCases() []testCase {
	return []testCase{
		{"StreamSetting", testStreamSetting},
		{"StreamNoSuchTable", testStreamNoSuchTable},
	}
}

// streamView returns the view type of the table's stream, or "" if the stream is disabled.
func (tb *table) streamView() types.StreamViewType {
	tb.Helper()
	out, err := tb.db.DescribeTable(tb.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name})
	if err != nil {
		tb.Fatal(err)
	}
	if is := out.Table.StreamSpecification; is != nil && aws.ToBool(is.StreamEnabled) {
		return is.StreamViewType
	}
	return ""
}

// testStreamSetting tests only the setting, because engines deliver changes in different ways.
func testStreamSetting(tb *table) {
	set := func(is types.StreamSpecification) error {
		out, err := tb.db.UpdateTable(tb.Context(), &dynamodb.UpdateTableInput{TableName: &tb.name, StreamSpecification: &is})
		if err != nil || out.TableDescription.TableStatus != types.TableStatusUpdating {
			return err
		}
		// Amazon DynamoDB applies the setting in the background and rejects further changes meanwhile.
		return dynamodb.NewTableExistsWaiter(tb.db).Wait(tb.Context(), &dynamodb.DescribeTableInput{TableName: &tb.name}, 5*time.Minute)
	}
	images := types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	if got := tb.streamView(); got != "" {
		tb.Errorf("a new table has a stream of %q", got)
	}
	assertCode(tb, "turned off when it is off", set(types.StreamSpecification{StreamEnabled: aws.Bool(false)}), "ValidationException")
	if err := set(images); err != nil {
		tb.Fatal(err)
	}
	if got := tb.streamView(); got != types.StreamViewTypeNewAndOldImages {
		tb.Errorf("the stream is of %q", got)
	}
	assertCode(tb, "turned on when it is on", set(images), "ValidationException")
	if err := set(types.StreamSpecification{StreamEnabled: aws.Bool(false)}); err != nil {
		tb.Fatal(err)
	}
	if got := tb.streamView(); got != "" {
		tb.Errorf("the stream that was turned off is of %q", got)
	}
}

func testStreamNoSuchTable(tb *table) {
	_, err := tb.db.UpdateTable(tb.Context(), &dynamodb.UpdateTableInput{
		TableName: aws.String(tb.name + "-not"), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		tb.Errorf("want ResourceNotFoundException, got %v", err)
	}
}
