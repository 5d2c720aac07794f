package embedded_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ordergraph/ordergraph/embedded"
)

// TestKeysOfSeveralAttributes tests an index whose partition key and sort key have two attributes
// each. DynamoDB Local does not have such keys.
func TestKeysOfSeveralAttributes(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	if status, body := send(t, s, "CreateTable", `{"TableName":"games","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"cup","AttributeType":"S"},
			{"AttributeName":"year","AttributeType":"N"},{"AttributeName":"round","AttributeType":"N"},{"AttributeName":"city","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"GlobalSecondaryIndexes":[{"IndexName":"by-cup","Projection":{"ProjectionType":"KEYS_ONLY"},"KeySchema":[
			{"AttributeName":"cup","KeyType":"HASH"},{"AttributeName":"year","KeyType":"HASH"},
			{"AttributeName":"round","KeyType":"RANGE"},{"AttributeName":"city","KeyType":"RANGE"}]}]}`); status != http.StatusOK {
		t.Fatal(body)
	}
	for id, g := range map[string]string{
		"g1": `"cup":{"S":"c"},"year":{"N":"2024"},"round":{"N":"2"},"city":{"S":"Oslo"}`,
		"g2": `"cup":{"S":"c"},"year":{"N":"2024"},"round":{"N":"10"},"city":{"S":"Bonn"}`,
		"g3": `"cup":{"S":"c"},"year":{"N":"2024"},"round":{"N":"10"},"city":{"S":"Bern"}`,
		"g4": `"cup":{"S":"c"},"year":{"N":"2025"},"round":{"N":"1"},"city":{"S":"Rome"}`,
		"g5": `"cup":{"S":"c"},"year":{"N":"2024"},"city":{"S":"Rome"}`, // not in the index
	} {
		if status, body := send(t, s, "PutItem", fmt.Sprintf(`{"TableName":"games","Item":{"id":{"S":%q},%s}}`, id, g)); status != http.StatusOK {
			t.Fatal(body)
		}
	}
	values := map[string]string{":c": `{"S":"c"}`, ":y": `{"N":"2024"}`, ":r": `{"N":"10"}`, ":p": `{"S":"B"}`, ":t": `{"S":"Bonn"}`}
	const gap = "RANGE key attributes round must have equality conditions specified in the query because a condition is present on key attribute city"
	for _, c := range []struct{ condition, want string }{
		{"cup = :c AND #y = :y", "g1 g3 g2"},
		{"#y = :y AND round = :r AND cup = :c", "g3 g2"},
		{"cup = :c AND #y = :y AND round < :r", "g1"},
		{"cup = :c AND #y = :y AND round = :r AND begins_with(city, :p)", "g3 g2"},
		{"cup = :c AND #y = :y AND round = :r AND city >= :t", "g2"},
		{"cup = :c AND #y = :y AND city = :t", gap},
		{"cup = :c AND #y = :y AND round >= :r AND city = :t", gap},
		{"#y = :y AND round = :r", "Query condition missed key schema element: cup"},
		{"cup = :c AND #y > :y", "Query key condition not supported"},
	} {
		var used []string
		for name, v := range values {
			if strings.Contains(c.condition, name) {
				used = append(used, fmt.Sprintf("%q:%s", name, v))
			}
		}
		start, got := "", []string{}
		for { // page by page
			_, body := send(t, s, "Query", fmt.Sprintf(`{"TableName":"games","IndexName":"by-cup","Limit":1,"KeyConditionExpression":%q,
				"ExpressionAttributeNames":{"#y":"year"},"ExpressionAttributeValues":{%s}%s}`, c.condition, strings.Join(used, ","), start))
			var page struct {
				Items []struct {
					ID struct{ S string } `json:"id"`
				}
				LastEvaluatedKey map[string]map[string]string `json:",omitzero"`
				Message          string                       `json:"message"`
			}
			if err := json.Unmarshal([]byte(body), &page); err != nil {
				t.Fatal(err)
			}
			for _, item := range page.Items {
				got = append(got, item.ID.S)
			}
			if page.LastEvaluatedKey == nil {
				got = append(got, page.Message)
				break
			}
			if len(page.LastEvaluatedKey) != 5 {
				t.Fatalf("the key %v does not have all attributes of the keys", page.LastEvaluatedKey)
			}
			encoded, err := json.Marshal(page.LastEvaluatedKey)
			if err != nil {
				t.Fatal(err)
			}
			start = `,"ExclusiveStartKey":` + string(encoded)
		}
		if all := strings.TrimSpace(strings.Join(got, " ")); all != c.want {
			t.Errorf("%s: got %q, want %q", c.condition, all, c.want)
		}
	}
}
