package embedded_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
)

// updateIndexes adds or removes an index of a table.
func updateIndexes(s *embedded.Store, table string, u types.GlobalSecondaryIndexUpdate) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.Client().UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &table, AttributeDefinitions: indexKey,
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{u}})
		return err
	}
}

// addIndex returns a request that adds the index "byGroup" to a table.
func addIndex(s *embedded.Store, table string, p *types.Projection) func(context.Context) error {
	return updateIndexes(s, table, types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
		IndexName: aws.String("byGroup"), KeySchema: indexSchema, Projection: p}})
}

// removeIndex returns a request that removes the index "byGroup" of the table "items".
func removeIndex(s *embedded.Store) func(context.Context) error {
	return updateIndexes(s, "items", types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("byGroup")}})
}

// all is the projection of all attributes.
var all = &types.Projection{ProjectionType: types.ProjectionTypeAll}

// An index that is added to a filled table has the items that have its keys. It can be removed and
// added again.
func TestUpdateTableIndexes(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	const items = 120
	release := holdCommit(t, s)
	var results []func() error
	for n := range items {
		results = append(results, background(t, s, put(s, newItem(fmt.Sprint(n), "group", fmt.Sprint("g", n%3), "rank", n))))
	}
	release()
	for _, result := range results {
		if err := result(); err != nil {
			t.Fatal(err)
		}
	}
	putItem(t, s, newItem("no group", "rank", 1))
	putItem(t, s, newItem("no rank", "group", "g0"))
	putItem(t, s, newItem("other type", "group", "g0", "rank", "1"))
	count := func(want int) {
		t.Helper()
		for group := range 3 {
			keys := queryGroup(t, s, fmt.Sprint("g", group))
			if len(keys) != want/3 || keys[0] != fmt.Sprint(group) || keys[1] != fmt.Sprint(group+3) {
				t.Errorf("group %d has the items %q, want %d items", group, keys, want/3)
			}
		}
		out, err := s.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")})
		if err != nil || len(out.Table.GlobalSecondaryIndexes) != 1 {
			t.Fatalf("DescribeTable returned %v, %v, want one index", out, err)
		}
		if x := out.Table.GlobalSecondaryIndexes[0]; *x.ItemCount != int64(want) || x.IndexStatus != types.IndexStatusActive || len(out.Table.AttributeDefinitions) != 3 {
			t.Errorf("DescribeTable returned an index of %d items that is %s, and %d attributes", *x.ItemCount, x.IndexStatus, len(out.Table.AttributeDefinitions))
		}
	}
	if err := addIndex(s, "items", all)(t.Context()); err != nil {
		t.Fatal(err)
	}
	count(items)
	if err := addIndex(s, "items", all)(t.Context()); errorCode(err) != "ValidationException" {
		t.Errorf("adding the index twice returned %v", err)
	}
	if err := put(s, newItem("other type", "group", "g0", "rank", "2"))(t.Context()); errorCode(err) != "ValidationException" {
		t.Errorf("an item whose index key has another type returned %v", err)
	}
	for n := range 3 {
		deleteItem(t, s, fmt.Sprint(n+6))
	}
	count(items - 3)

	if err := removeIndex(s)(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := removeIndex(s)(t.Context()); errorCode(err) != "ResourceNotFoundException" {
		t.Errorf("removing the index twice returned %v", err)
	}
	if _, err := s.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), IndexName: aws.String("byGroup")}); errorCode(err) != "ValidationException" {
		t.Errorf("a Scan of the removed index returned %v", err)
	}
	for n := range 3 {
		deleteItem(t, s, fmt.Sprint(n+9))
	}
	if err := addIndex(s, "items", &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly})(t.Context()); err != nil {
		t.Fatal(err)
	}
	count(items - 6)
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

// An index that is added to a filled table omits the items whose key is not valid in the index.
// These items can still be updated and deleted.
func TestAddIndexOverInvalidKeys(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	long := func(n int) string { return strings.Repeat("x", n) }
	items := map[string]item{
		"longest": newItem("longest", "group", long(2048), "rank", 1), "a": newItem("a", "group", "g", "rank", 1),
		"too long": newItem("too long", "group", long(2049), "rank", 1), "much too long": newItem("much too long", "group", long(100_000), "rank", 1),
		"empty": newItem("empty", "group", "", "rank", 1), "number": newItem("number", "group", 1, "rank", 1),
		"text rank": newItem("text rank", "group", "g", "rank", "1"), "list": newItem("list", "group", &types.AttributeValueMemberL{}, "rank", 1),
	}
	for _, i := range items {
		putItem(t, s, i)
	}
	if err := addIndex(s, "items", all)(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkIndex := func(when string, want ...string) {
		t.Helper()
		got := scanKeys(t, s, "items", "byGroup")
		if slices.Sort(got); !slices.Equal(got, want) || s.StoredEntries("items", "byGroup") != len(want) {
			t.Errorf("%s, the index has the items %q and %d entries, want %q", when, got, s.StoredEntries("items", "byGroup"), want)
		}
	}
	checkIndex("after the index was added", "a", "longest")
	update := func(pk, expression string, values item) error {
		_, err := s.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("items"), Key: newItem(pk), UpdateExpression: &expression,
			ExpressionAttributeNames: map[string]string{"#g": "group"}, ExpressionAttributeValues: values})
		return err
	}
	for pk := range items {
		if err := update(pk, "SET v = #g", nil); err != nil {
			t.Errorf("the update of another attribute of the item %q: %v", pk, err)
		}
	}
	checkIndex("after updates of other attributes", "a", "longest")
	for _, value := range []types.AttributeValue{&types.AttributeValueMemberS{Value: long(2049)}, &types.AttributeValueMemberS{}, &types.AttributeValueMemberN{Value: "1"}} {
		if err := update("a", "SET #g = :g", item{":g": value}); errorCode(err) != "ValidationException" {
			t.Errorf("an update to an invalid index key returned %v", err)
		}
	}
	if err := update("empty", "SET #g = :g", item{":g": &types.AttributeValueMemberS{Value: "g"}}); err != nil {
		t.Error(err)
	}
	checkIndex("after a key became valid", "a", "empty", "longest")
	for pk := range items {
		deleteItem(t, s, pk)
	}
	checkIndex("after all items were deleted")
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

// Writes and reads go on while indexes are added and removed. At the end the index is complete.
func TestIndexChangesUnderLoad(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	createTable(t, s, "items")
	ctx, stop := context.WithCancel(t.Context())
	const writers = 4
	done := make(chan int, writers)
	for w := range writers {
		go func() {
			n := 0
			for ; ctx.Err() == nil; n++ {
				if err := put(s, newItem(fmt.Sprintf("%d-%d", w, n), "group", "g", "rank", n))(t.Context()); err != nil {
					t.Error(err)
				}
			}
			done <- n
		}()
	}
	reader := make(chan struct{})
	go func() {
		defer close(reader)
		for ctx.Err() == nil {
			_, err := s.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), IndexName: aws.String("byGroup"), Limit: aws.Int32(10)})
			if code := errorCode(err); code != "" && code != "ValidationException" && code != "ResourceNotFoundException" {
				t.Error(err)
			}
			if _, err := s.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")}); err != nil {
				t.Error(err)
			}
		}
	}()
	for n := range 41 {
		change := addIndex(s, "items", all)
		if n%2 == 1 {
			change = removeIndex(s)
		}
		if err := change(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	written := 0
	for range writers {
		written += <-done
	}
	<-reader
	if got := s.StoredEntries("items", "byGroup"); got != written {
		t.Errorf("the index has %d entries, want one for each of %d items", got, written)
	}
	if got := len(scanKeys(t, s, "items", "")); got != written {
		t.Errorf("the table has %d items, want %d", got, written)
	}
	t.Logf("%d items were written", written)
}

// A table that is deleted and created again is empty. Deletion protection prevents it.
func TestDeleteTable(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t, withIndex, func(in *dynamodb.CreateTableInput) { in.DeletionProtectionEnabled = aws.Bool(true) })
	db := s.Client()
	putItem(t, s, newItem("a", "group", "g", "rank", 1))
	remove := func() error {
		_, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("items")})
		return err
	}
	if err := remove(); errorCode(err) != "ValidationException" || !strings.Contains(err.Error(), "protected against deletion") {
		t.Errorf("DeleteTable of a protected table returned %v", err)
	}
	if readItem(t, s, "items", "a") == nil {
		t.Error("DeleteTable of a protected table deleted an item")
	}
	if _, err := db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("items"), DeletionProtectionEnabled: aws.Bool(false)}); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"DeleteTable": remove(),
		"PutItem":     put(s, newItem("a"))(t.Context()),
		"GetItem": func() error {
			_, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("items"), Key: newItem("a")})
			return err
		}(),
		"Scan": func() error {
			_, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items")})
			return err
		}(),
		"DescribeTable": func() error {
			_, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("items")})
			return err
		}(),
		"UpdateTable":      setStream(t, s, types.StreamViewTypeKeysOnly),
		"UpdateTimeToLive": setExpiry(t, s, "ends", true),
	} {
		if got := errorCode(err); got != "ResourceNotFoundException" {
			t.Errorf("%s of a deleted table returned %v, want ResourceNotFoundException", name, err)
		}
	}
	createTable(t, s, "items", withIndex)
	if got := scanKeys(t, s, "items", ""); len(got) != 0 {
		t.Errorf("the new table has the items %q", got)
	}
	if got := queryGroup(t, s, "g"); len(got) != 0 {
		t.Errorf("the new index has the items %q", got)
	}
	out, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || !slices.Equal(out.TableNames, []string{"items"}) {
		t.Errorf("ListTables returned %v, %v", out, err)
	}
}

// A read of a table that is deleted meanwhile returns ResourceNotFoundException.
func TestDeleteTableUnderLoad(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	createTable(t, s, "kept")
	for range 20 {
		createTable(t, s, "items", withIndex)
		ctx, stop := context.WithCancel(t.Context())
		const clients = 3
		done := make(chan struct{}, clients)
		for c := range clients {
			go func() {
				defer func() { done <- struct{}{} }()
				for n := 0; ctx.Err() == nil; n++ {
					for _, err := range []error{
						put(s, newItem(fmt.Sprintf("%d-%d", c, n), "group", "g", "rank", n))(t.Context()),
						func() error {
							_, err := s.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items"), IndexName: aws.String("byGroup"), Limit: aws.Int32(1)})
							return err
						}(),
						func() error {
							_, err := s.Client().BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
								"items": {Keys: []map[string]types.AttributeValue{newItem("0-0")}}, "kept": {Keys: []map[string]types.AttributeValue{newItem("a")}}}})
							return err
						}(),
					} {
						switch errorCode(err) {
						case "ResourceNotFoundException":
							return
						case "":
						default:
							t.Error(err)
							return
						}
					}
				}
			}()
		}
		if _, err := s.Client().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("items")}); err != nil {
			t.Error(err)
		}
		for range clients {
			<-done
		}
		stop()
	}
}
