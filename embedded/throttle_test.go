package embedded_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/ordergraph/ordergraph/embedded"
)

// throttledTable is the table "items" of a store that throttles requests. Its keys are "pk" and "sk".
type throttledTable struct {
	*testing.T
	*dynamodb.Client
	*clock
}

func newThrottled(t *testing.T, options ...func(*dynamodb.CreateTableInput)) throttledTable {
	t.Helper()
	c := newClock()
	s, err := embedded.Open("", embedded.Options{Now: c.Now, Throttle: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	createTable(t, s, "items", append(options, func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange})
	})...)
	return throttledTable{t, s.Client(), c}
}

// large returns an item that consumes 100 write units, or 25 units of a strongly consistent read.
func large(pk, sk string, attributes ...any) item {
	return newItem(pk, append(attributes, "sk", sk, "data", strings.Repeat("x", 100<<10-100))...)
}

func (tb throttledTable) put(i item) error {
	_, err := tb.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: i})
	return err
}

func (tb throttledTable) get(pk, sk string) error {
	_, err := tb.GetItem(tb.Context(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: newItem(pk, "sk", sk), ConsistentRead: aws.Bool(true)})
	return err
}

// served returns how many requests succeed until one is throttled.
func (tb throttledTable) served(request func() error) int {
	tb.Helper()
	for n := range 10_000 {
		switch err := request(); errorCode(err) {
		case "":
		case "ThrottlingException", "TransactionCanceledException":
			return n
		default:
			tb.Fatal(err)
		}
	}
	tb.Fatal("no request is throttled")
	return 0
}

// checkReason verifies that err is a ThrottlingException with one reason.
func (tb throttledTable) checkReason(err error, reason string) {
	tb.Helper()
	resource, message := "arn:aws:dynamodb:local:000000000000:table/items", "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly."
	if strings.HasPrefix(reason, "Index") {
		resource += "/index/byGroup"
	}
	if strings.HasPrefix(reason, "IndexWrite") {
		message = "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is automatically scaling your index so please try again shortly."
	}
	var f *types.ThrottlingException
	var response *smithyhttp.ResponseError
	switch {
	case !errors.As(err, &f) || !errors.As(err, &response) || response.HTTPStatusCode() != http.StatusBadRequest:
		tb.Errorf("got %v, want ThrottlingException with status 400", err)
	case len(f.ThrottlingReasons) != 1 || *f.ThrottlingReasons[0].Reason != reason || *f.ThrottlingReasons[0].Resource != resource:
		tb.Errorf("got %s, want %s of %s", asJSON(f.ThrottlingReasons), reason, resource)
	case !strings.HasPrefix(f.ErrorMessage(), message):
		tb.Errorf("got the message %q, want %q", f.ErrorMessage(), message)
	}
}

// Each of 16 partition keys serves 1,000 write units a second. Unused capacity lasts for one second.
func TestThrottleWrites(t *testing.T) {
	t.Parallel()
	tb := newThrottled(t)
	for _, s := range []struct {
		pause time.Duration
		want  int
	}{{0, 10}, {0, 0}, {time.Second, 10}, {time.Hour, 10}, {500 * time.Millisecond, 5}, {10 * time.Millisecond, 1}, {90 * time.Millisecond, 0}, {time.Millisecond, 1}} {
		tb.advance(s.pause)
		for key := range 16 {
			if n := tb.served(func() error { return tb.put(large(strconv.Itoa(key), "s")) }); n != s.want {
				t.Errorf("key %d after a pause of %v: %d writes, want %d", key, s.pause, n, s.want)
			}
		}
	}
	tb.checkReason(tb.put(large("0", "s")), "TableWriteKeyRangeThroughputExceeded")
	tb.checkReason(tb.put(newItem("0", "sk", "other")), "TableWriteKeyRangeThroughputExceeded")
	if err := tb.get("0", "s"); err != nil {
		t.Errorf("a read of a key whose writes are throttled: %v", err)
	}
}

// A failed condition consumes units, too.
func TestThrottleFailedConditions(t *testing.T) {
	t.Parallel()
	tb := newThrottled(t, withIndex)
	if err := tb.put(large("p", "s", "group", "g", "rank", 1)); err != nil {
		t.Fatal(err)
	}
	failed := 0
	tb.served(func() error {
		_, err := tb.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: newItem("p", "sk", "s"), ConditionExpression: aws.String("attribute_not_exists(pk)")})
		if errorCode(err) == "ConditionalCheckFailedException" {
			failed++
			return nil
		}
		return err
	})
	if failed != 9 {
		t.Errorf("%d failed conditions, want 9", failed)
	}
	if err := tb.put(large("q", "s", "group", "g", "rank", 2)); err != nil {
		t.Errorf("the failed conditions have consumed units of the index: %v", err)
	}
}

// If an index has no capacity for an entry, the table does not accept the item.
func TestIndexBackPressure(t *testing.T) {
	t.Parallel()
	tb := newThrottled(t, withIndex)
	key := 0
	insert := func() error {
		key++
		return tb.put(large(strconv.Itoa(key), "s", "group", "g", "rank", key))
	}
	if n := tb.served(insert); n != 10 {
		t.Errorf("%d items of one group, want 10", n)
	}
	tb.checkReason(insert(), "IndexWriteKeyRangeThroughputExceeded")
	if n := tb.served(func() error { return tb.put(large(strconv.Itoa(key), "s")) }); n != 10 {
		t.Errorf("%d items without an index entry, want 10: the throttled write has consumed units of the table", n)
	}
	tb.advance(time.Second)
	// The update changes the key of the entry, so DynamoDB deletes the old entry and adds a new one.
	if n := tb.served(func() error {
		_, err := tb.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("items"), Key: newItem("1", "sk", "s"),
			UpdateExpression: aws.String("ADD #r :one"), ExpressionAttributeNames: map[string]string{"#r": "rank"}, ExpressionAttributeValues: item{":one": &types.AttributeValueMemberN{Value: "1"}}})
		return err
	}); n != 5 {
		t.Errorf("%d moves of an index entry, want 5", n)
	}
	tb.advance(time.Second)
	// A transaction consumes twice the units in the table, but not in the index.
	if n := tb.served(func() error {
		key++
		_, err := tb.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("items"), Item: large(strconv.Itoa(key), "s", "group", "g", "rank", key)}}}})
		return err
	}); n != 10 {
		t.Errorf("%d transactions, want 10", n)
	}
}

// A partition serves 3,000 read units a second. A page can need more units than are left, but then
// later reads wait.
func TestThrottleReads(t *testing.T) {
	t.Parallel()
	tb := newThrottled(t, withIndex)
	for i := range 10 {
		if err := tb.put(large("p", strconv.Itoa(i), "group", "g", "rank", i)); err != nil {
			t.Fatal(err)
		}
	}
	table := &dynamodb.QueryInput{TableName: aws.String("items"), ConsistentRead: aws.Bool(true), Select: types.SelectCount,
		KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: newValues(":p", "p")}
	index := &dynamodb.QueryInput{TableName: aws.String("items"), IndexName: aws.String("byGroup"), Select: types.SelectCount, ScanIndexForward: aws.Bool(false),
		KeyConditionExpression: aws.String("#g = :g"), ExpressionAttributeNames: map[string]string{"#g": "group"}, ExpressionAttributeValues: newValues(":g", "g")}
	query := func(in *dynamodb.QueryInput) func() error {
		return func() error {
			_, err := tb.Query(t.Context(), in)
			return err
		}
	}
	scan := func() error {
		_, err := tb.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), Select: types.SelectCount})
		return err
	}
	for _, s := range []struct {
		name    string
		request func() error
		pause   time.Duration
		want    int
	}{
		{"Query, 250 units", query(table), 0, 12},
		{"Query, index, 125 units", query(index), 0, 24},
		{"Scan, 125 units", scan, time.Second, 24},
		{"GetItem, 25 units", func() error { return tb.get("p", "0") }, time.Second, 120},
		{"GetItem, no item, 1 unit", func() error { return tb.get("p", "none") }, time.Second, 3000},
		{"Query, no item, 1 unit", query(&dynamodb.QueryInput{TableName: aws.String("items"), ConsistentRead: aws.Bool(true),
			KeyConditionExpression: aws.String("pk = :p and sk > :s"), ExpressionAttributeValues: newValues(":p", "p", ":s", "9")}), time.Second, 3000},
		{"1 unit left", query(table), time.Millisecond, 1},
		{"in debt", query(table), 80 * time.Millisecond, 0},
		{"debt paid", query(table), 3 * time.Millisecond, 1},
	} {
		tb.advance(s.pause)
		if n := tb.served(s.request); n != s.want {
			t.Errorf("%s: %d requests, want %d", s.name, n, s.want)
		}
	}
	for _, request := range []func() error{query(table), scan, func() error { return tb.get("p", "0") }} {
		tb.checkReason(request(), "TableReadKeyRangeThroughputExceeded")
	}
	tb.served(query(index))
	tb.checkReason(query(index)(), "IndexReadKeyRangeThroughputExceeded")
	if err := tb.get("other", "s"); err != nil {
		t.Errorf("another key: %v", err)
	}
}

// If one key of a transaction is throttled, the transaction has no effect and consumes no units.
func TestThrottleTransactions(t *testing.T) {
	t.Parallel()
	tb := newThrottled(t)
	write := func(keys ...string) error {
		in := &dynamodb.TransactWriteItemsInput{}
		for _, key := range keys {
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{TableName: aws.String("items"), Item: large(key, "s")}})
		}
		_, err := tb.TransactWriteItems(t.Context(), in)
		return err
	}
	read := func(keys ...string) error {
		in := &dynamodb.TransactGetItemsInput{}
		for _, key := range keys {
			in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: aws.String("items"), Key: newItem(key, "sk", "s")}})
		}
		_, err := tb.TransactGetItems(t.Context(), in)
		return err
	}
	for _, c := range []struct {
		name    string
		request func(keys ...string) error
		want    int
	}{{"TransactWriteItems", write, 5}, {"TransactGetItems", read, 60}} {
		if n := tb.served(func() error { return c.request("hot") }); n != c.want {
			t.Errorf("%s: %d requests, want %d", c.name, n, c.want)
		}
		var f *types.TransactionCanceledException
		if err := c.request("cool", "hot"); !errors.As(err, &f) || len(f.CancellationReasons) != 2 || *f.CancellationReasons[0].Code != "None" || *f.CancellationReasons[1].Code != "ThrottlingError" ||
			!strings.HasPrefix(*f.CancellationReasons[1].Message, "Throughput exceeds the current capacity of your table or index.") || !strings.HasSuffix(f.ErrorMessage(), "[None, ThrottlingError]") {
			t.Errorf("%s: got %v", c.name, err)
		}
		if n := tb.served(func() error { return c.request("cool") }); n != c.want {
			t.Errorf("%s: %d requests for the other key, want %d", c.name, n, c.want)
		}
	}
}

// A batch returns the throttled elements. If all of them are throttled, the batch fails.
func TestThrottleBatches(t *testing.T) {
	t.Parallel()
	tb := newThrottled(t)
	write := func(requests ...types.WriteRequest) (map[string][]types.WriteRequest, error) {
		out, err := tb.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"items": requests}})
		if err != nil {
			return nil, err
		}
		return out.UnprocessedItems, nil
	}
	putRequest := func(i item) types.WriteRequest {
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: i}}
	}
	requests := []types.WriteRequest{{DeleteRequest: &types.DeleteRequest{Key: newItem("other", "sk", "s")}}}
	for i := range 12 {
		requests = append(requests, putRequest(large("hot", strconv.Itoa(i))))
	}
	requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: newItem("hot", "sk", "old")}})
	unprocessed, err := write(requests...)
	if want := (map[string][]types.WriteRequest{"items": requests[11:]}); err != nil || asJSON(unprocessed) != asJSON(want) {
		t.Fatalf("got %.300s %v, want %.300s", asJSON(unprocessed), err, asJSON(want))
	}
	_, err = write(unprocessed["items"]...)
	tb.checkReason(err, "TableWriteKeyRangeThroughputExceeded")
	tb.advance(time.Second)
	if unprocessed, err := write(unprocessed["items"]...); err != nil || len(unprocessed) != 0 {
		t.Errorf("a second later: got %.300s %v", asJSON(unprocessed), err)
	}

	read := func(keys ...item) (*dynamodb.BatchGetItemOutput, error) {
		return tb.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"items": {Keys: keys, ConsistentRead: aws.Bool(true)}}})
	}
	if n := tb.served(func() error {
		_, err := read(newItem("hot", "sk", "0"), newItem("hot", "sk", "1"))
		return err
	}); n != 60 {
		t.Errorf("%d batches of 50 read units, want 60", n)
	}
	out, err := read(newItem("hot", "sk", "0"), newItem("cool", "sk", "s"))
	if err != nil || len(out.UnprocessedKeys["items"].Keys) != 1 || text(out.UnprocessedKeys["items"].Keys[0]["pk"]) != "hot" {
		t.Errorf("got %s %v, want the key hot", asJSON(out), err)
	}
	_, err = read(newItem("hot", "sk", "0"), newItem("hot", "sk", "1"))
	tb.checkReason(err, "TableReadKeyRangeThroughputExceeded")
}

// A table with a local secondary index counts the entries of the index for the partition of their
// item.
func TestThrottleLocalIndex(t *testing.T) {
	t.Parallel()
	tb := newThrottled(t, func(in *dynamodb.CreateTableInput) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, indexKey[1])
		for _, projection := range []types.ProjectionType{types.ProjectionTypeAll, types.ProjectionTypeKeysOnly} {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{IndexName: aws.String(string(projection)), Projection: &types.Projection{ProjectionType: projection},
				KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("rank"), KeyType: types.KeyTypeRange}}})
		}
	})
	i := 0
	insert := func() error {
		i++
		return tb.put(large("p", strconv.Itoa(i), "rank", i))
	}
	if n := tb.served(insert); n != 5 {
		t.Errorf("%d items, want 5", n)
	}
	tb.checkReason(insert(), "TableWriteKeyRangeThroughputExceeded")
	// The page consumes 0.5 units of the index, and 12.5 units for each of the 5 items.
	query := func() error {
		_, err := tb.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("items"), IndexName: aws.String("KEYS_ONLY"), Select: types.SelectAllAttributes,
			KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: newValues(":p", "p")})
		return err
	}
	if n := tb.served(query); n != 48 {
		t.Errorf("%d pages, want 48", n)
	}
	tb.checkReason(query(), "TableReadKeyRangeThroughputExceeded")
}

// asJSON formats a value for comparisons and messages.
func asJSON(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// newValues returns the values of an expression: names and strings.
func newValues(pairs ...string) item {
	values := item{}
	for n := 0; n < len(pairs); n += 2 {
		values[pairs[n]] = &types.AttributeValueMemberS{Value: pairs[n+1]}
	}
	return values
}
