package embedded_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/embedded"
)

// TestNumberSizes tests the sizes of numbers by the maximum size of an item. DynamoDB counts the
// digits before the point and after it separately.
func TestNumberSizes(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	create(t, s)
	for number, size := range map[string]int{
		"0": 1, "-0.0": 1, "7": 2, "70": 2, "77": 2, "777": 3, "7070": 3, "-77": 3, "7.7": 3, "0.77": 2, "0.0007": 2,
		"77.07": 3, "777.7": 4, "700.7": 4, "7.0007": 4, "1e-130": 2, "9e125": 2, "-7.7": 4, strings.Repeat("7", 38): 20,
	} {
		for _, over := range []int{0, 1} {
			filler := 400<<10 + over - len("pk") - len("a") - len("n") - size - len("f")
			status, body := send(t, s, "PutItem", fmt.Sprintf(`{"TableName":"hash","Item":{"pk":{"S":"a"},"n":{"N":%q},"f":{"S":%q}}}`, number, strings.Repeat("f", filler)))
			if fits := status == http.StatusOK; fits != (over == 0) {
				t.Errorf("%s does not have the size %d: with %d bytes too many, PutItem answers %s", number, size, over, body)
			}
		}
	}
}

// TestTableSettings tests settings that have no effect, but are described.
func TestTableSettings(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	send(t, s, "CreateTable", `{"TableName":"set","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"SSESpecification":{"Enabled":true},"OnDemandThroughput":{"MaxReadRequestUnits":7,"MaxWriteRequestUnits":5}}`)
	send(t, s, "UpdateTable", `{"TableName":"set","OnDemandThroughput":{"MaxReadRequestUnits":8,"MaxWriteRequestUnits":6}}`)
	_, body := send(t, s, "DescribeTable", `{"TableName":"set"}`)
	for _, want := range []string{`"OnDemandThroughput":{"MaxReadRequestUnits":8,"MaxWriteRequestUnits":6}`, `"SSEDescription":{"Status":"ENABLED","SSEType":"KMS","KMSMasterKeyArn":"arn:aws:kms:`} {
		if !strings.Contains(body, want) {
			t.Errorf("the description %s does not contain %s", body, want)
		}
	}
	for _, c := range []struct {
		request string
		want    int
	}{
		{`{"TableName":"set","BillingMode":"PROVISIONED"}`, http.StatusBadRequest},
		{`{"TableName":"set","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":3,"WriteCapacityUnits":3}}`, http.StatusOK},
	} {
		request, want := c.request, c.want
		for range 2 { // the second request changes nothing
			if status, body := send(t, s, "UpdateTable", request); status != want {
				t.Errorf("UpdateTable %s: got %s, want status %d", request, body, want)
			}
			want = http.StatusBadRequest
		}
	}
}
