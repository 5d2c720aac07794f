package embedded_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
)

// changes is one call of an observer.
type changes struct{ before, after []item }

// recordChanges returns a function that returns the observer's calls since its last call.
func recordChanges(t *testing.T, s *embedded.Store, table string) (next func() []changes) {
	t.Helper()
	var mu sync.Mutex
	var calls []changes
	t.Cleanup(s.Observe(table, func(before, after []item) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, changes{before, after})
	}))
	return func() []changes {
		mu.Lock()
		defer mu.Unlock()
		all := calls
		calls = nil
		return all
	}
}

// allTypes returns an item with values of all types. Its sets are sorted and its numbers are
// canonical.
func allTypes(pk string) item {
	return newItem(pk, "s", "text", "n", &types.AttributeValueMemberN{Value: "12345678901234567890.5"}, "b", &types.AttributeValueMemberB{Value: []byte{0, 255}},
		"bool", &types.AttributeValueMemberBOOL{Value: true}, "null", &types.AttributeValueMemberNULL{Value: true},
		"m", &types.AttributeValueMemberM{Value: item{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{
			&types.AttributeValueMemberS{Value: ""}, &types.AttributeValueMemberBOOL{}, &types.AttributeValueMemberM{Value: item{}}}}}},
		"l", &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
		"ss", &types.AttributeValueMemberSS{Value: []string{"a", "b"}}, "ns", &types.AttributeValueMemberNS{Value: []string{"1", "20"}},
		"bs", &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}})
}

func TestObserve(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	db := s.Client()
	next := recordChanges(t, s, "items")
	createTable(t, s, "others")
	others := recordChanges(t, s, "others")
	key := func(pk string) item { return newItem(pk) }
	update := func(pk, expression string, values item) error {
		_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("items"), Key: key(pk), UpdateExpression: &expression, ExpressionAttributeValues: values})
		return err
	}
	updated := allTypes("a")
	updated["added"] = &types.AttributeValueMemberN{Value: "7"}
	remove := types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key("a")}}
	for _, step := range []struct {
		name  string
		write func() error
		want  []changes
	}{
		{"put a new item", func() error { return put(s, allTypes("a"))(t.Context()) }, []changes{{[]item{nil}, []item{allTypes("a")}}}},
		{"put the same item", func() error { return put(s, allTypes("a"))(t.Context()) }, nil},
		{"put the same item in another notation", func() error {
			same := allTypes("a")
			same["n"] = &types.AttributeValueMemberN{Value: "+12345678901234567890.50"}
			same["ns"] = &types.AttributeValueMemberNS{Value: []string{"2e1", "1.0"}}
			return put(s, same)(t.Context())
		}, nil},
		{"update", func() error { return update("a", "SET added = :v", item{":v": updated["added"]}) }, []changes{{[]item{allTypes("a")}, []item{updated}}}},
		{"update without a change", func() error { return update("a", "SET added = :v", item{":v": updated["added"]}) }, nil},
		{"update of a new item", func() error { return update("b", "SET v = :v", item{":v": &types.AttributeValueMemberS{Value: "x"}}) },
			[]changes{{[]item{nil}, []item{newItem("b", "v", "x")}}}},
		{"delete of a missing item", func() error { deleteItem(t, s, "missing"); return nil }, nil},
		{"transaction", func() error {
			_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: aws.String("items"), Item: newItem("c")}},
				{Put: &types.Put{TableName: aws.String("others"), Item: newItem("o")}},
				{Delete: &types.Delete{TableName: aws.String("items"), Key: key("b")}},
				{Delete: &types.Delete{TableName: aws.String("items"), Key: key("missing")}},
				{ConditionCheck: &types.ConditionCheck{TableName: aws.String("items"), Key: key("a"), ConditionExpression: aws.String("attribute_exists(pk)")}},
			}})
			return err
		}, []changes{{[]item{nil, newItem("b", "v", "x")}, []item{newItem("c"), nil}}}},
		{"batch", func() error {
			_, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"items": {
				{PutRequest: &types.PutRequest{Item: newItem("d")}}, remove, {PutRequest: &types.PutRequest{Item: newItem("c")}}}}})
			return err
		}, []changes{{[]item{nil}, []item{newItem("d")}}, {[]item{updated}, []item{nil}}}},
		{"delete", func() error { deleteItem(t, s, "d"); return nil }, []changes{{[]item{newItem("d")}, []item{nil}}}},
	} {
		if err := step.write(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := next(); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: the observer was called with %s, want %s", step.name, describe(got), describe(step.want))
		}
	}
	if got, want := others(), []changes{{[]item{nil}, []item{newItem("o")}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the observer of the other table was called with %s, want %s", describe(got), describe(want))
	}
	stop := s.Observe("items", func(_, _ []item) { t.Error("an observer was called after stop") })
	stop()
	stop()
	putItem(t, s, newItem("last"))
}

// describe returns the calls of an observer as text for messages.
func describe(calls []changes) (text string) {
	for _, c := range calls {
		for i := range c.before {
			text += fmt.Sprintf("%v -> %v; ", keysOf(c.before[i]), keysOf(c.after[i]))
		}
		text += "| "
	}
	return "[" + text + "]"
}

// keysOf returns an item's attributes as text.
func keysOf(i item) (attributes []string) {
	for name, v := range i {
		attributes = append(attributes, fmt.Sprintf("%s=%+v", name, v))
	}
	slices.Sort(attributes)
	return attributes
}

// The observer is called in the order of the commits, before the writer gets its response.
func TestObserveOrder(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	next := recordChanges(t, s, "items")
	release := holdCommit(t, s)
	var results []func() error
	const writes = 20
	for n := range writes {
		results = append(results, background(t, s, put(s, newItem("a", "n", n))))
	}
	release()
	for n, result := range results {
		if err := result(); err != nil {
			t.Errorf("write %d: %v", n, err)
		}
	}
	calls := next()
	if len(calls) != writes {
		t.Fatalf("after the last response, the observer was called %d times, want %d", len(calls), writes)
	}
	for n, c := range calls {
		if want := newItem("a", "n", n); !reflect.DeepEqual(c.after[0], want) {
			t.Errorf("call %d is %s, want %v", n, describe(calls[n:n+1]), keysOf(want))
		}
		if n > 0 && !reflect.DeepEqual(c.before[0], calls[n-1].after[0]) {
			t.Errorf("call %d does not continue the call before: %s", n, describe(calls[n-1:n+1]))
		}
	}
}

// An observer that is added during a commit gets the changes that no read has seen before.
func TestObserveDuringCommit(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	release := holdCommit(t, s)
	calls := 0
	results := []func() error{
		background(t, s, put(s, newItem("a"))),
		background(t, s, func(context.Context) error {
			return s.Commit(func() error {
				t.Cleanup(s.Observe("items", func(_, _ []item) { calls++ }))
				if readItem(t, s, "items", "a") != nil {
					t.Error("a read saw the item before the commit")
				}
				return nil
			})
		}),
	}
	release()
	for _, result := range results {
		if err := result(); err != nil {
			t.Error(err)
		}
	}
	if calls != 1 {
		t.Errorf("the observer was called %d times, want 1", calls)
	}
}

// A panic of an observer fails one request, but blocks no other write.
func TestObserverPanics(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	stop := s.Observe("items", func(_, _ []item) { panic("a bug of the observer") })
	if got := errorCode(put(s, newItem("a"))(t.Context())); got != "InternalServerError" {
		t.Errorf("the error is %q, want InternalServerError", got)
	}
	stop()
	putItem(t, s, newItem("b"))
}
