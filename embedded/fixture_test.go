package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ordergraph/ordergraph/embedded"
)

// clock is a clock that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// open opens a store in a file. The test closes the store at its end.
func open(t *testing.T, path string, now func() time.Time) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(path, embedded.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil { // some tests have closed the store already
			t.Error(err)
		}
	})
	return s
}

// newStore returns a store in a new file with a manual clock and the table "items".
func newStore(t *testing.T, options ...func(*dynamodb.CreateTableInput)) (*embedded.Store, *clock) {
	t.Helper()
	c := newClock()
	s := open(t, filepath.Join(t.TempDir(), "store.db"), c.Now)
	createTable(t, s, "items", options...)
	return s, c
}

// createTable creates a table with the key "pk".
func createTable(t *testing.T, s *embedded.Store, name string, options ...func(*dynamodb.CreateTableInput)) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}
	for _, o := range options {
		o(in)
	}
	if _, err := s.Client().CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// indexKey are the definitions of the attributes of the index "byGroup".
var indexKey = []types.AttributeDefinition{
	{AttributeName: aws.String("group"), AttributeType: types.ScalarAttributeTypeS},
	{AttributeName: aws.String("rank"), AttributeType: types.ScalarAttributeTypeN},
}

var indexSchema = []types.KeySchemaElement{
	{AttributeName: aws.String("group"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("rank"), KeyType: types.KeyTypeRange},
}

// withIndex adds the index "byGroup" with the keys "group" and "rank".
func withIndex(in *dynamodb.CreateTableInput) {
	in.AttributeDefinitions = append(in.AttributeDefinitions, indexKey...)
	in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
		IndexName: aws.String("byGroup"), KeySchema: indexSchema, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
	}}
}

// withStream enables a stream.
func withStream(view types.StreamViewType) func(*dynamodb.CreateTableInput) {
	return func(in *dynamodb.CreateTableInput) {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
}

// item is an item of the SDK.
type item = map[string]types.AttributeValue

// newItem returns an item with a key and further attributes: names and values. A string is an S, an
// int is an N.
func newItem(pk string, attributes ...any) item {
	i := item{"pk": &types.AttributeValueMemberS{Value: pk}}
	for n := 0; n < len(attributes); n += 2 {
		switch v := attributes[n+1].(type) {
		case string:
			i[attributes[n].(string)] = &types.AttributeValueMemberS{Value: v}
		case int:
			i[attributes[n].(string)] = &types.AttributeValueMemberN{Value: strconv.Itoa(v)}
		case types.AttributeValue:
			i[attributes[n].(string)] = v
		default:
			panic(fmt.Sprintf("newItem: unsupported type %T", v))
		}
	}
	return i
}

// putItem writes an item to the table "items".
func putItem(t *testing.T, s *embedded.Store, i item) {
	t.Helper()
	if _, err := s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: i}); err != nil {
		t.Fatal(err)
	}
}

// deleteItem deletes an item of the table "items".
func deleteItem(t *testing.T, s *embedded.Store, pk string) {
	t.Helper()
	if _, err := s.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("items"), Key: newItem(pk)}); err != nil {
		t.Fatal(err)
	}
}

// readItem returns an item of a table, nil if it does not exist.
func readItem(t *testing.T, s *embedded.Store, table, pk string) item {
	t.Helper()
	out, err := s.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: newItem(pk)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// scanKeys returns the keys of all items of a table or an index. An index of "" is the table.
func scanKeys(t *testing.T, s *embedded.Store, table, index string) (keys []string) {
	t.Helper()
	in := &dynamodb.ScanInput{TableName: &table}
	if index != "" {
		in.IndexName = &index
	}
	for pages := dynamodb.NewScanPaginator(s.Client(), in); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.Items {
			keys = append(keys, text(i["pk"]))
		}
	}
	return keys
}

// queryGroup returns the keys of the items of a group in the index "byGroup", by rank.
func queryGroup(t *testing.T, s *embedded.Store, group string) (keys []string) {
	t.Helper()
	out, err := s.Client().Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String("items"), IndexName: aws.String("byGroup"), KeyConditionExpression: aws.String("#g = :g"),
		ExpressionAttributeNames: map[string]string{"#g": "group"}, ExpressionAttributeValues: item{":g": &types.AttributeValueMemberS{Value: group}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range out.Items {
		keys = append(keys, text(i["pk"]))
	}
	return keys
}

// text returns the text of a string or number, "" for other values.
func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// errorCode returns the code of a response's error, "" without an error.
func errorCode(err error) string {
	if err == nil {
		return ""
	}
	if e := smithy.APIError(nil); errors.As(err, &e) {
		return e.ErrorCode()
	}
	return "not an error of the API: " + err.Error()
}

// holdCommit begins a commit that runs until release is called.
func holdCommit(t *testing.T, s *embedded.Store) (release func()) {
	t.Helper()
	began, released, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.Commit(func() error {
			close(began)
			<-released
			return nil
		})
	}()
	<-began
	return func() {
		close(released)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// background runs a write while a commit is held, and returns after the write waits for the commit.
func background(t *testing.T, s *embedded.Store, write func(context.Context) error) (result func() error) {
	t.Helper()
	before := s.WaitingWrites()
	done := make(chan error, 1)
	go func() { done <- write(t.Context()) }()
	for s.WaitingWrites() == before {
		runtime.Gosched()
	}
	return func() error { return <-done }
}
