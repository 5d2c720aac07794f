package embedded_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ordergraph/ordergraph/embedded"
)

// setExpiry enables or disables the time to live of the table "items".
func setExpiry(t *testing.T, s *embedded.Store, attribute string, enabled bool) error {
	_, err := s.Client().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String("items"), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &enabled},
	})
	return err
}

// expire deletes expired items.
func expire(t *testing.T, s *embedded.Store) {
	t.Helper()
	if err := s.Expire(); err != nil {
		t.Fatal(err)
	}
}

// sortedKeys returns the keys of all items of the table "items".
func sortedKeys(t *testing.T, s *embedded.Store) []string {
	t.Helper()
	keys := scanKeys(t, s, "items", "")
	slices.Sort(keys)
	return keys
}

// Expire deletes the items whose time to live has ended, with their index entries. DynamoDB ignores
// times that are not numbers, and times more than five years ago.
func TestExpire(t *testing.T) {
	t.Parallel()
	s, now := newStore(t, withIndex, withStream(types.StreamViewTypeNewAndOldImages))
	if err := setExpiry(t, s, "ends", true); err != nil {
		t.Fatal(err)
	}
	start := int(now.Now().Unix())
	year := 365 * 24 * 3600
	number := func(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }
	for pk, until := range map[string]any{
		"now": start, "soon": start + 60, "later": start + 3600, "past": start - 1, "years ago": start - 5*year + 60,
		"too old": start - 5*year - 60, "zero": 0, "negative": -1, "text": fmt.Sprint(start - 1), "milliseconds": start * 1000,
		"fraction": number(fmt.Sprintf("%d.5", start-2)), "exponent": number(fmt.Sprintf("%de-1", (start-2)*10)), "huge": number("1e100"),
		"set": &types.AttributeValueMemberNS{Value: []string{fmt.Sprint(start - 1)}},
	} {
		putItem(t, s, newItem(pk, "ends", until, "group", "g", "rank", 1))
	}
	putItem(t, s, newItem("without", "group", "g", "rank", 1))
	next := recordChanges(t, s, "items")
	check := func(when string, gone ...string) {
		t.Helper()
		before := sortedKeys(t, s)
		expire(t, s)
		want := slices.DeleteFunc(slices.Clone(before), func(pk string) bool { return slices.Contains(gone, pk) })
		if got := sortedKeys(t, s); !slices.Equal(got, want) || len(want) != len(before)-len(gone) {
			t.Errorf("%s, Expire left the items %q, want %q", when, got, want)
		}
		if got := len(queryGroup(t, s, "g")); got != len(want) || s.StoredEntries("items", "byGroup") != len(want) {
			t.Errorf("%s, the index has %d items and %d entries, want %d", when, got, s.StoredEntries("items", "byGroup"), len(want))
		}
	}
	check("at the beginning", "past", "years ago", "fraction", "exponent")
	if calls := next(); len(calls) != 4 || calls[0].before[0] == nil || calls[0].after[0] != nil {
		t.Errorf("the observer was called with %s, want four deletions", describe(calls))
	}
	check("without another expired item")
	now.advance(time.Second)
	check("a second later", "now")
	deleteItem(t, s, "later")
	now.advance(2 * time.Hour)
	check("two hours later", "soon")

	removed := slices.DeleteFunc(newStreams(t, s).records(t, streamtypes.ShardIteratorTypeTrimHorizon, ""), func(r streamtypes.Record) bool { return r.EventName != "REMOVE" })
	if len(removed) != 7 {
		t.Fatalf("%d items were removed, want 7", len(removed))
	}
	for _, r := range removed {
		want := &streamtypes.Identity{PrincipalId: aws.String("dynamodb.amazonaws.com"), Type: aws.String("Service")}
		if keysOfRecords([]streamtypes.Record{r})[0] == "later" {
			want = nil // a client deleted this item
		}
		if !reflect.DeepEqual(r.UserIdentity, want) || r.Dynamodb.OldImage == nil {
			t.Errorf("the record of %q has the user identity %+v, want %+v", image(r.Dynamodb.Keys), r.UserIdentity, want)
		}
	}
}

// With a short interval, the store deletes expired items by itself.
func TestExpiryInterval(t *testing.T) {
	t.Parallel()
	now := newClock()
	s, err := embedded.Open(filepath.Join(t.TempDir(), "store.db"), embedded.Options{Now: now.Now, ExpiryInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	createTable(t, s, "items")
	if err := setExpiry(t, s, "ends", true); err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int{1, 2} { // the store deletes items more than once
		putItem(t, s, newItem("a", "ends", int(now.Now().Unix())+seconds))
		now.advance(time.Hour)
		for deadline := time.Now().Add(time.Minute); readItem(t, s, "items", "a") != nil; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("after a minute, the expired item is still in the table")
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Changes of the attribute change the time to live.
func TestExpiryOfChangedItems(t *testing.T) {
	t.Parallel()
	s, now := newStore(t)
	if err := setExpiry(t, s, "ends", true); err != nil {
		t.Fatal(err)
	}
	start := int(now.Now().Unix())
	for _, pk := range []string{"extended", "removed", "deleted", "replaced"} {
		putItem(t, s, newItem(pk, "ends", start+10))
	}
	update := func(pk, expression string, values item) {
		t.Helper()
		if _, err := s.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("items"), Key: newItem(pk), UpdateExpression: &expression, ExpressionAttributeValues: values}); err != nil {
			t.Fatal(err)
		}
	}
	update("extended", "SET ends = ends + :n", item{":n": &types.AttributeValueMemberN{Value: "100"}})
	update("removed", "REMOVE ends", nil)
	update("added", "SET ends = :n", item{":n": &types.AttributeValueMemberN{Value: fmt.Sprint(start + 10)}})
	deleteItem(t, s, "deleted")
	putItem(t, s, newItem("replaced"))
	if got := s.StoredExpiries("items"); got != 2 {
		t.Errorf("%d items have a time to live, want 2", got)
	}
	now.advance(11 * time.Second)
	expire(t, s)
	if got := sortedKeys(t, s); !slices.Equal(got, []string{"extended", "removed", "replaced"}) {
		t.Errorf("after 11 seconds, the table has the items %q", got)
	}
	now.advance(100 * time.Second)
	expire(t, s)
	if got := sortedKeys(t, s); !slices.Equal(got, []string{"removed", "replaced"}) {
		t.Errorf("after 111 seconds, the table has the items %q", got)
	}
}

// A table that has items can get a time to live, and another attribute later. All expired items are
// deleted at once, also more than one commit deletes.
func TestExpiryOfFilledTable(t *testing.T) {
	t.Parallel()
	path, now := filepath.Join(t.TempDir(), "store.db"), newClock()
	s := open(t, path, now.Now)
	createTable(t, s, "items")
	start := int(now.Now().Unix())
	const items = 250 // one commit deletes 100
	release := holdCommit(t, s)
	var results []func() error
	for n := range items {
		results = append(results, background(t, s, put(s, newItem(fmt.Sprint(n), "ends", start-n-1, "other", start-1))))
	}
	results = append(results, background(t, s, put(s, newItem("kept", "ends", start+1, "other", start+1))))
	release()
	for _, result := range results {
		if err := result(); err != nil {
			t.Fatal(err)
		}
	}
	expire(t, s)
	if got := len(sortedKeys(t, s)); got != items+1 {
		t.Errorf("without a time to live, Expire left %d items, want %d", got, items+1)
	}
	status := func(want types.TimeToLiveStatus, attribute string) {
		t.Helper()
		out, err := s.Client().DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("items")})
		if err != nil || out.TimeToLiveDescription.TimeToLiveStatus != want || aws.ToString(out.TimeToLiveDescription.AttributeName) != attribute {
			t.Errorf("DescribeTimeToLive returned %+v, %v, want %s of %q", out, err, want, attribute)
		}
	}
	status(types.TimeToLiveStatusDisabled, "")
	for _, step := range []struct {
		attribute string
		enabled   bool
		want      string
	}{{"other", false, "ValidationException"}, {"other", true, ""}, {"other", true, "ValidationException"}, {"ends", true, "ValidationException"}, {"other", false, ""}, {"ends", true, ""}} {
		if got := errorCode(setExpiry(t, s, step.attribute, step.enabled)); got != step.want {
			t.Errorf("UpdateTimeToLive of %s to %t: the error is %q, want %q", step.attribute, step.enabled, got, step.want)
		}
	}
	status(types.TimeToLiveStatusEnabled, "ends")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, now.Now)
	status(types.TimeToLiveStatusEnabled, "ends")
	if got := s.StoredExpiries("items"); got != items+1 {
		t.Errorf("after reopening, %d items have a time to live, want %d", got, items+1)
	}
	expire(t, s)
	if got := sortedKeys(t, s); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("Expire left the items %q, want only %q", got, "kept")
	}
	if err := setExpiry(t, s, "ends", false); err != nil {
		t.Fatal(err)
	}
	now.advance(time.Hour)
	expire(t, s)
	if got := sortedKeys(t, s); len(got) != 1 {
		t.Errorf("after the time to live was disabled, Expire left the items %q", got)
	}
}
