package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
)

// put returns a write for background.
func put(s *embedded.Store, i item) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.Client().PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("items"), Item: i})
		return err
	}
}

// Reads do not wait for a running commit, and do not see its writes.
func TestReadDuringCommit(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withIndex)
	putItem(t, s, newItem("before", "group", "g", "rank", 1))
	release := holdCommit(t, s)
	result := background(t, s, put(s, newItem("during", "group", "g", "rank", 2)))
	if got := queryGroup(t, s, "g"); !slices.Equal(got, []string{"before"}) {
		t.Errorf("during a commit, Query returned %q, want the item before the commit", got)
	}
	if got := scanKeys(t, s, "items", ""); len(got) != 1 {
		t.Errorf("during a commit, Scan returned %q, want the item before the commit", got)
	}
	if readItem(t, s, "items", "during") != nil {
		t.Error("GetItem returned an item that is not committed")
	}
	release()
	if err := result(); err != nil {
		t.Fatal(err)
	}
	if got := queryGroup(t, s, "g"); !slices.Equal(got, []string{"before", "during"}) {
		t.Errorf("after the commit, Query returned %q, want both items", got)
	}
}

// Each read sees one state: the items of a transaction always have the same number.
func TestReadsSeeOneState(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withIndex)
	const items = 20
	writes := longtest.Size(20, 500)
	write := func(ctx context.Context, number int) error {
		in := &dynamodb.TransactWriteItemsInput{}
		for i := range items {
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
				TableName: aws.String("items"), Item: newItem(strconv.Itoa(i), "group", "g", "rank", number),
			}})
		}
		_, err := s.Client().TransactWriteItems(ctx, in)
		return err
	}
	if err := write(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	var finished atomic.Bool
	var wg sync.WaitGroup
	for _, index := range []*string{nil, aws.String("byGroup")} {
		wg.Go(func() {
			for !finished.Load() {
				out, err := s.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), IndexName: index})
				if err != nil {
					t.Error(err)
					return
				}
				ranks := map[string]int{}
				for _, i := range out.Items {
					ranks[text(i["rank"])]++
				}
				if len(out.Items) != items || len(ranks) != 1 {
					t.Errorf("a Scan returned %d items with the ranks %v, want %d items of one transaction", len(out.Items), ranks, items)
					return
				}
			}
		})
	}
	for n := range writes {
		if err := write(t.Context(), n+1); err != nil {
			t.Error(err)
		}
	}
	finished.Store(true)
	wg.Wait()
}

// Writes that wait for a commit are committed together.
func TestWritesAreCommittedInGroups(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	release := holdCommit(t, s)
	const writes = 300 // the maximum of one commit is 256
	var results []func() error
	for i := range writes {
		results = append(results, background(t, s, put(s, newItem(strconv.Itoa(i)))))
	}
	before := s.Commits()
	release()
	for _, result := range results {
		if err := result(); err != nil {
			t.Error(err)
		}
	}
	// The first commit is the one that was held.
	if got := s.Commits() - before; got != 3 {
		t.Errorf("%d writes needed %d commits, want 3", writes, got)
	}
	if got := len(scanKeys(t, s, "items", "")); got != writes {
		t.Errorf("the table has %d items, want %d", got, writes)
	}
}

// Concurrent writers lose no increment, and fail no condition that is true.
func TestConcurrentIncrements(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	const writers = 8
	increments := longtest.Size(8, 100)
	putItem(t, s, newItem("counter", "n", 0))
	before := s.Commits()
	var retries atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < increments; {
				old, err := s.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: newItem("counter")})
				if err != nil {
					t.Error(err)
					return
				}
				number, err := strconv.Atoi(text(old.Item["n"]))
				if err != nil {
					t.Error(err)
					return
				}
				_, err = s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{
					TableName: aws.String("items"), Item: newItem("counter", "n", number+1),
					ConditionExpression: aws.String("n = :old"), ExpressionAttributeValues: item{":old": old.Item["n"]},
				})
				switch errorCode(err) {
				case "":
					done++
				case "ConditionalCheckFailedException":
					retries.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := text(readItem(t, s, "items", "counter")["n"]); got != strconv.Itoa(writers*increments) {
		t.Errorf("the counter is %s, want %d", got, writers*increments)
	}
	// Failed conditions commit nothing.
	if got := s.Commits() - before; got > writers*increments {
		t.Errorf("%d increments needed %d commits", writers*increments, got)
	}
	t.Logf("%d increments, %d failed conditions, %d commits", writers*increments, retries.Load(), s.Commits()-before)
}

// A write sees the changes of tables that are committed together with it.
func TestTableChangedInSameCommit(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	db := s.Client()
	createTable(t, s, "deleted")
	addExpiry := func(ctx context.Context) error {
		_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: aws.String("items"),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ends"), Enabled: aws.Bool(true)}})
		return err
	}
	deleteTable := func(ctx context.Context) error {
		_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("deleted")})
		return err
	}
	create := func(ctx context.Context) error {
		_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{TableName: aws.String("created"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}}})
		return err
	}
	putDeleted := func(ctx context.Context) error {
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("deleted"), Item: newItem("a")})
		return err
	}
	steps := []struct {
		name  string
		write func(context.Context) error
		want  string
	}{
		{"add an index", addIndex(s, "items", all), ""},
		{"put", put(s, newItem("a", "group", "g", "rank", 1, "ends", 1)), ""},
		{"add the index again", addIndex(s, "items", all), "ValidationException"},
		{"enable the time to live", addExpiry, ""},
		{"enable the time to live again", addExpiry, "ValidationException"},
		{"put another item", put(s, newItem("b", "group", "g", "rank", 2, "ends", 2)), ""},
		{"add an index to a table", addIndex(s, "deleted", all), ""},
		{"delete the table", deleteTable, ""},
		{"delete the table again", deleteTable, "ResourceNotFoundException"},
		{"put into the deleted table", putDeleted, "ResourceNotFoundException"},
		{"create a table", create, ""},
		{"create the table again", create, "ResourceInUseException"},
	}
	release := holdCommit(t, s)
	before := s.Commits()
	var results []func() error
	for _, step := range steps {
		results = append(results, background(t, s, step.write))
	}
	release()
	for i, step := range steps {
		if got := errorCode(results[i]()); got != step.want {
			t.Errorf("%s: the error is %q, want %q", step.name, got, step.want)
		}
	}
	// A put begins again if its table has changed, so each put may need a further commit.
	if got := s.Commits() - before; got > 4 {
		t.Errorf("the requests needed %d commits, want 4 at most", got)
	}
	if got := queryGroup(t, s, "g"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the index has the items %q, want both items that were written with it", got)
	}
	if got := s.StoredExpiries("items"); got != 2 {
		t.Errorf("%d items have a time to live, want 2", got)
	}
	if got := s.StoredTables(); got != 2 {
		t.Errorf("the file has the buckets of %d tables, want 2", got)
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

// A read that begins before a table or an index is removed, and reads the file after it, returns
// ResourceNotFoundException. An observer runs at this moment.
func TestReadOfRemovedTable(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withIndex)
	db := s.Client()
	key := newItem("a")
	scanIndex := func() error {
		_, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), IndexName: aws.String("byGroup")})
		return err
	}
	reads := map[string]func() error{
		"GetItem": func() error {
			_, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: key})
			return err
		},
		"BatchGetItem": func() error {
			_, err := db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"items": {Keys: []item{key}}}})
			return err
		},
		"TransactGetItems": func() error {
			_, err := db.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: aws.String("items"), Key: key}}}})
			return err
		},
		"Scan": func() error {
			_, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items")})
			return err
		},
	}
	for _, step := range []struct {
		name   string
		remove func(context.Context) error
		reads  map[string]func() error
	}{
		{"the index", removeIndex(s), map[string]func() error{"Scan of the index": scanIndex}},
		{"the table", func(ctx context.Context) error {
			_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("items")})
			return err
		}, reads},
	} {
		calls := 0
		stop := s.Observe("items", func(_, _ []item) {
			calls++
			for name, read := range step.reads {
				if got := errorCode(read()); got != "ResourceNotFoundException" {
					t.Errorf("without %s, the error of %s is %q, want ResourceNotFoundException", step.name, name, got)
				}
			}
			if _, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")}); err != nil {
				t.Errorf("DescribeTable: %v", err)
			}
		})
		release := holdCommit(t, s)
		results := []func() error{background(t, s, put(s, newItem(step.name))), background(t, s, step.remove)}
		release()
		for _, result := range results {
			if err := result(); err != nil {
				t.Error(err)
			}
		}
		if stop(); calls != 1 {
			t.Errorf("the observer was called %d times, want 1", calls)
		}
	}
	if got := s.StoredTables(); got != 0 {
		t.Errorf("the file has the buckets of %d tables, want none", got)
	}
}

// If a commit fails, all its writes fail. No response is based on a write that was undone.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	putItem(t, s, newItem("a", "n", 1))
	putOnce := func(ctx context.Context) error {
		_, err := s.Client().PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("items"), Item: newItem("b"), ConditionExpression: aws.String("attribute_not_exists(pk)")})
		return err
	}
	for name, fault := range map[string]func() error{
		"an error": func() error { return errors.New("no space left on device") },
		"a panic":  func() error { panic("no space left on device") },
	} {
		release := holdCommit(t, s)
		results := []func() error{
			background(t, s, put(s, newItem("a", "n", 2))), background(t, s, putOnce), background(t, s, putOnce),
			background(t, s, func(context.Context) error { return s.Commit(fault) }),
		}
		stop := s.Observe("items", func(_, after []item) { t.Errorf("%s: an observer was called with %v", name, after) })
		release()
		for i, result := range results[:3] {
			if err := result(); errorCode(err) != "InternalServerError" || !strings.Contains(err.Error(), "no space left on device") {
				t.Errorf("%s: write %d of the failed commit returned %v, want InternalServerError", name, i, err)
			}
		}
		if err := results[3](); err == nil {
			t.Errorf("%s: the write that failed returned no error", name)
		}
		stop()
		if got := text(readItem(t, s, "items", "a")["n"]); got != "1" || readItem(t, s, "items", "b") != nil {
			t.Errorf("%s: the failed commit changed items", name)
		}
	}
	if err := putOnce(t.Context()); err != nil {
		t.Errorf("a write after failed commits: %v", err)
	}
}

// A failed condition undoes only its own write.
func TestFailedConditionInGroup(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	release := holdCommit(t, s)
	before := s.Commits()
	var results []func() error
	for n := range 6 {
		results = append(results, background(t, s, func(ctx context.Context) error {
			_, err := s.Client().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: aws.String("items"), Item: newItem(fmt.Sprint("own-", n))}},
				{Put: &types.Put{TableName: aws.String("items"), Item: newItem(fmt.Sprint("shared-", n/2), "by", n), ConditionExpression: aws.String("attribute_not_exists(pk)")}},
			}})
			return err
		}))
	}
	release()
	for n, result := range results {
		if got, want := errorCode(result()), []string{"", "TransactionCanceledException"}[n%2]; got != want {
			t.Errorf("transaction %d: the error is %q, want %q", n, got, want)
		}
	}
	keys := scanKeys(t, s, "items", "")
	slices.Sort(keys)
	if want := []string{"own-0", "own-2", "own-4", "shared-0", "shared-1", "shared-2"}; !slices.Equal(keys, want) {
		t.Errorf("the table has the items %q, want %q", keys, want)
	}
	if got := s.Commits() - before; got != 2 {
		t.Errorf("the transactions needed %d commits, want one after the commit that was held", got)
	}
}

// A request whose context has ended is not executed.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The SDK would not send the request.
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://embedded.invalid/", strings.NewReader(`{"TableName":"items","Item":{"pk":{"S":"a"}}}`))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
	if response, err := s.Do(r); !errors.Is(err, context.Canceled) {
		t.Errorf("PutItem returned %v, %v, want context.Canceled", response, err)
	}
	if readItem(t, s, "items", "a") != nil {
		t.Error("PutItem wrote the item after its context had ended")
	}
	// A context that ends during the commit returns its error, but the item is written.
	release := holdCommit(t, s)
	ctx, cancel = context.WithCancel(t.Context())
	result := background(t, s, func(context.Context) error { return put(s, newItem("b"))(ctx) })
	cancel()
	release()
	if err := result(); !errors.Is(err, context.Canceled) {
		t.Errorf("PutItem returned %v, want context.Canceled", err)
	}
	if readItem(t, s, "items", "b") == nil {
		t.Error("the item is missing, although its commit had begun")
	}
}
