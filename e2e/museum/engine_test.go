package museum_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ordergraph/ordergraph/embedded"
)

// engine is an embedded store with the table items, whose partition key is id. Its index byRank has the
// keys group and rank.
type engine struct {
	*testing.T
	*embedded.Store
}

func newEngine(t *testing.T) engine {
	e := engine{t, embedded.New()}
	e.send("CreateTable", `{"TableName": "items", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "group", "AttributeType": "S"}, {"AttributeName": "rank", "AttributeType": "N"}],
		"GlobalSecondaryIndexes": [{"IndexName": "byRank", "Projection": {"ProjectionType": "ALL"}, "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}, {"AttributeName": "rank", "KeyType": "RANGE"}]}]}`)
	return e
}

// send sends a request and returns the body of the response.
func (e engine) send(operation, body string) string {
	r, w := httptest.NewRequest("POST", "/", strings.NewReader(body)), httptest.NewRecorder()
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	e.ServeHTTP(w, r)
	return w.Body.String()
}

// increment sends a transaction with a token, which adds a number to the item a.
func (e engine) increment(token, by string) string {
	return e.send("TransactWriteItems", fmt.Sprintf(`{"ClientRequestToken": %q, "TransactItems": [{"Update": {"TableName": "items", "Key": {"id": {"S": "a"}},
		"UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": {"N": %q}}}}]}`, token, by))
}

func (e engine) wantItem(id, item string) {
	e.Helper()
	if got, want := e.send("GetItem", fmt.Sprintf(`{"TableName": "items", "Key": {"id": {"S": %q}}}`, id)), `{"Item":`+item+`}`; got != want {
		e.Errorf("the item is %s, want %s", got, want)
	}
}

var engineRooms = []room{{
	name: "token-ignored", sources: []string{"floci-io/floci#799", "nubo-db/dynoxide#124"},
	there: "A DynamoDB engine executes a transaction again if it is repeated with the same token, always or at the same time.",
	here:  "The transaction is executed once, and another transaction cannot have the token.",
	test: func(t *testing.T) {
		e := newEngine(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if body := e.increment("token", "5"); body != "{}" {
					e.Errorf("the response is %s", body)
				}
			})
		}
		wg.Wait()
		if body := e.increment("token", "6"); !strings.Contains(body, "IdempotentParameterMismatchException") {
			e.Errorf("the response to another transaction is %s", body)
		}
		e.wantItem("a", `{"id":{"S":"a"},"n":{"N":"5"}}`)
	},
}, {
	name: "same-transaction-in-other-bytes", sources: []string{"aws/aws-sdk-go-v2#1900", "localstack/localstack#6529"},
	there: "A client sends a transaction again. The members of its objects have another order, so the engine takes it for another transaction.",
	here:  "The order of members does not matter, and the transaction is executed once.",
	test: func(t *testing.T) {
		e := newEngine(t)
		const names = 8
		for n := range names {
			var updates, values, definitions []string
			for i := range names {
				updates = append(updates, fmt.Sprintf("#n%d :v%d", i, i))
				at := (i + n) % names // another sequence in each request
				values, definitions = append(values, fmt.Sprintf(`":v%d": {"N": "1"}`, at)), append(definitions, fmt.Sprintf(`"#n%d": "n%d"`, at, at))
			}
			body := e.send("TransactWriteItems", fmt.Sprintf(`{"ClientRequestToken": "token", "TransactItems": [{"Update": {"TableName": "items", "Key": {"id": {"S": "a"}},
				"UpdateExpression": "ADD %s", "ExpressionAttributeValues": {%s}, "ExpressionAttributeNames": {%s}}}]}`, strings.Join(updates, ", "), strings.Join(values, ", "), strings.Join(definitions, ", ")))
			if body != "{}" {
				e.Errorf("the response to request %d is %s", n, body)
			}
		}
		if body := e.send("GetItem", `{"TableName": "items", "Key": {"id": {"S": "a"}}}`); strings.Count(body, `{"N":"1"}`) != names {
			e.Errorf("the item is %s", body)
		}
	},
}, {
	name: "equal-sort-keys", sources: []string{"nubo-db/dynoxide#38", "architect/dynalite#43", "faiscadev/fakecloud#121"},
	there: "Items have the same keys in an index. The pages of a Query or Scan of this index skip or repeat some of them.",
	here:  "Each item is on one page, and the pages end.",
	test: func(t *testing.T) {
		e := newEngine(t)
		const items = 5
		for i := range items {
			e.send("PutItem", fmt.Sprintf(`{"TableName": "items", "Item": {"id": {"S": "i%d"}, "group": {"S": "g"}, "rank": {"N": "7"}}}`, i))
		}
		for operation, condition := range map[string]string{"Scan": "", "Query": `, "KeyConditionExpression": "#g = :g", "ExpressionAttributeNames": {"#g": "group"}, "ExpressionAttributeValues": {":g": {"S": "g"}}`} {
			seen, start, pages := map[string]int{}, "", 0
			for ; pages == 0 || start != "" && pages < 2*items; pages++ {
				var page struct {
					Items            []struct{ ID struct{ S string } }
					LastEvaluatedKey json.RawMessage
				}
				if err := json.Unmarshal([]byte(e.send(operation, `{"TableName": "items", "IndexName": "byRank", "Limit": 2`+condition+start+"}")), &page); err != nil {
					e.Fatal(err)
				}
				for _, item := range page.Items {
					seen[item.ID.S]++
				}
				if start = ""; page.LastEvaluatedKey != nil {
					start = `, "ExclusiveStartKey": ` + string(page.LastEvaluatedKey)
				}
			}
			if len(seen) != items || seen["i0"] != 1 || pages != (items+1)/2 {
				e.Errorf("%s returns these items on %d pages: %v", operation, pages, seen)
			}
		}
	},
}}
