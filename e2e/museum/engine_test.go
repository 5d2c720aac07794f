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

// update sends a transaction with a token, which updates the item a. The parameters follow those that are
// always the same.
func (e engine) update(parameters string) string {
	return e.send("TransactWriteItems", `{"ClientRequestToken": "token", "TransactItems": [{"Update": {"TableName": "items", "Key": {"id": {"S": "a"}}, `+parameters+`}}]}`)
}

// item returns the response with the item a.
func (e engine) item() string {
	return e.send("GetItem", `{"TableName": "items", "Key": {"id": {"S": "a"}}}`)
}

var engineRooms = []room{{
	name: "token-ignored", sources: []string{"floci-io/floci#799", "nubo-db/dynoxide#124"},
	there: "A DynamoDB engine executes a transaction again if it is repeated with the same token, always or at the same time.",
	here:  "The transaction is executed once, and another transaction cannot have the token.",
	test: func(s *shop) {
		e := newEngine(s.T)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if body := e.update(`"UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": {"N": "5"}}`); body != "{}" {
					e.Errorf("the response is %s", body)
				}
			})
		}
		wg.Wait()
		if body := e.update(`"UpdateExpression": "REMOVE n"`); !strings.Contains(body, "IdempotentParameterMismatchException") {
			e.Errorf("the response to another transaction is %s", body)
		}
		if body := e.item(); body != `{"Item":{"id":{"S":"a"},"n":{"N":"5"}}}` {
			e.Errorf("the item is %s", body)
		}
	},
}, {
	name: "same-transaction-in-other-bytes", sources: []string{"aws/aws-sdk-go-v2#1900", "localstack/localstack#6529"},
	there: "A client sends a transaction again. The members of its objects have another order, so the engine takes it for another transaction.",
	here:  "The order of members does not matter, and the transaction is executed once.",
	test: func(s *shop) {
		e := newEngine(s.T)
		const names = 8
		for n := range names {
			update, definitions := "", ""
			for i := range names {
				at := (i + n) % names // another sequence in each request
				update += fmt.Sprintf(", #n%d :v", i)
				definitions += fmt.Sprintf(`, "#n%d": "n%d"`, at, at)
			}
			body := e.update(fmt.Sprintf(`"UpdateExpression": "ADD %s", "ExpressionAttributeValues": {":v": {"N": "1"}}, "ExpressionAttributeNames": {%s}`, update[2:], definitions[2:]))
			if body != "{}" {
				e.Errorf("the response to request %d is %s", n, body)
			}
		}
		if body := e.item(); strings.Count(body, `{"N":"1"}`) != names {
			e.Errorf("the item is %s", body)
		}
	},
}, {
	name: "equal-sort-keys", sources: []string{"nubo-db/dynoxide#38", "architect/dynalite#43", "faiscadev/fakecloud#121"},
	there: "Items have the same keys in an index. The pages of a Query or Scan of this index skip or repeat some of them.",
	here:  "Each item is on one page, and the pages end.",
	test: func(s *shop) {
		e := newEngine(s.T)
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
