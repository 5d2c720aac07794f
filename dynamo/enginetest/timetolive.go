package enginetest

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func timeToLiveCases() []testCase {
	return []testCase{
		{"TimeToLive", testTimeToLive},
		{"TimeToLiveNoSuchTable", testTimeToLiveNoSuchTable},
	}
}

// timeToLive returns the name of the table's time-to-live attribute, or "" if time to live is off.
func (tb *table) timeToLive() string {
	tb.Helper()
	out, err := tb.db.DescribeTimeToLive(tb.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &tb.name})
	if err != nil {
		tb.Fatal(err)
	}
	switch d := out.TimeToLiveDescription; d.TimeToLiveStatus {
	case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
		return aws.ToString(d.AttributeName)
	}
	return ""
}

// testTimeToLive only enables time to live. Amazon DynamoDB takes up to an hour for this change,
// and rejects further changes in that time. The deletion of expired records is not tested, because
// it can take days.
func testTimeToLive(tb *table) {
	set := func(name string, on bool) error {
		_, err := tb.db.UpdateTimeToLive(tb.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: &tb.name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &name, Enabled: &on},
		})
		return err
	}
	if got := tb.timeToLive(); got != "" {
		tb.Errorf("time to live is already enabled on a new table, with attribute %q", got)
	}
	assertCode(tb, "disabled while disabled", set("until", false), "ValidationException")
	if err := set("until", true); err != nil {
		tb.Fatal(err)
	}
	if got := tb.timeToLive(); got != "until" {
		tb.Errorf("time to live is enabled with attribute %q, not until", got)
	}
	assertCode(tb, "enabled while enabled", set("until", true), "ValidationException")
	assertCode(tb, "enabled with another attribute", set("other", true), "ValidationException")
	it := record("p", "1")
	it["until"] = num("4102444800") // the year 2100
	tb.put(it)
	if got := number(tb.get("p", "1"), "until"); got != "4102444800" {
		tb.Errorf("got %q", got)
	}
}

func testTimeToLiveNoSuchTable(tb *table) {
	no := aws.String(tb.name + "-not")
	_, err := tb.db.DescribeTimeToLive(tb.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: no})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		tb.Errorf("DescribeTimeToLive: want ResourceNotFoundException, got %v", err)
	}
	_, err = tb.db.UpdateTimeToLive(tb.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: no, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("until"), Enabled: aws.Bool(true)},
	})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
		tb.Errorf("UpdateTimeToLive: want ResourceNotFoundException, got %v", err)
	}
}
