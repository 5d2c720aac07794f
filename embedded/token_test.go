package embedded_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
)

// increment adds a number to an item in a transaction with a token, and returns the consumed
// capacity.
func increment(t *testing.T, s *embedded.Store, token, pk string, by int) (types.ConsumedCapacity, error) {
	t.Helper()
	out, err := s.Client().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: &token, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: aws.String("items"), Key: newItem(pk), UpdateExpression: aws.String("ADD n :n"),
			ExpressionAttributeValues: item{":n": &types.AttributeValueMemberN{Value: fmt.Sprint(by)}},
		}}},
	})
	if err != nil {
		return types.ConsumedCapacity{}, err
	}
	return out.ConsumedCapacity[0], nil
}

// A transaction with the same token has no effect for ten minutes, also after Close and Open.
func TestClientRequestToken(t *testing.T) {
	t.Parallel()
	path, now := filepath.Join(t.TempDir(), "store.db"), newClock()
	s := open(t, path, now.Now)
	createTable(t, s, "items", withStream(types.StreamViewTypeKeysOnly))
	steps := []struct {
		name      string
		after     time.Duration
		reopen    bool
		token, pk string
		by        int
		err       string
		want      string // want is the number of the item "a"
		replayed  bool
	}{
		{"the first transaction", 0, false, "1", "a", 1, "", "1", false},
		{"the same transaction", time.Minute, false, "1", "a", 1, "", "1", true},
		{"another value", 0, false, "1", "a", 2, "IdempotentParameterMismatchException", "1", false},
		{"another key", 0, false, "1", "b", 1, "IdempotentParameterMismatchException", "1", false},
		{"another token", 0, false, "2", "a", 1, "", "2", false},
		{"after ten minutes", 9 * time.Minute, false, "1", "a", 1, "", "2", true},
		{"after ten minutes and a restart", 0, true, "1", "a", 1, "", "2", true},
		{"another value after a restart", 0, false, "1", "a", 2, "IdempotentParameterMismatchException", "2", false},
		{"after more than ten minutes", time.Millisecond, false, "1", "a", 1, "", "3", false},
		{"the other token is known", 30 * time.Second, false, "2", "a", 1, "", "3", true},
		{"the other token is forgotten", 31 * time.Second, false, "2", "a", 3, "", "6", false},
		{"the first token is known from its second use", 0, false, "1", "a", 1, "", "6", true},
	}
	for _, step := range steps {
		now.advance(step.after)
		if step.reopen {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, path, now.Now)
		}
		capacity, err := increment(t, s, step.token, step.pk, step.by)
		if got := errorCode(err); got != step.err {
			t.Errorf("%s: the error is %q, want %q", step.name, got, step.err)
		}
		if got := capacity.ReadCapacityUnits != nil; got != step.replayed {
			t.Errorf("%s: the transaction was replayed: %t, want %t", step.name, got, step.replayed)
		}
		if got := text(readItem(t, s, "items", "a")["n"]); got != step.want {
			t.Errorf("%s: the number is %s, want %s", step.name, got, step.want)
		}
	}
	if got := s.StoredRecords(newStreams(t, s).arn); got != 4 {
		t.Errorf("the stream has %d records, want one for each of 4 writes", got)
	}
	if _, err := increment(t, s, strings.Repeat("x", 37), "a", 1); errorCode(err) != "ValidationException" {
		t.Errorf("a token of 37 characters returned %v", err)
	}
}

// A transaction that was cancelled does not use its token. Tokens of old transactions are deleted.
func TestTokenOfCancelledTransaction(t *testing.T) {
	t.Parallel()
	s, now := newStore(t)
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("token"), TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("items"), Item: newItem("new")}},
		{ConditionCheck: &types.ConditionCheck{TableName: aws.String("items"), Key: newItem("a"), ConditionExpression: aws.String("attribute_exists(pk)")}},
	}}
	if _, err := s.Client().TransactWriteItems(t.Context(), in); errorCode(err) != "TransactionCanceledException" {
		t.Errorf("the transaction returned %v, want TransactionCanceledException", err)
	}
	putItem(t, s, newItem("a"))
	for range 2 {
		if _, err := s.Client().TransactWriteItems(t.Context(), in); err != nil {
			t.Errorf("the transaction whose condition is now true returned %v", err)
		}
	}
	if readItem(t, s, "items", "new") == nil {
		t.Error("the transaction did not write its item")
	}
	for n := range 10 {
		if _, err := increment(t, s, fmt.Sprint(n), "a", 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.StoredTokens(); got != 11 {
		t.Errorf("%d tokens are stored, want 11", got)
	}
	now.advance(10*time.Minute + time.Second)
	if _, err := increment(t, s, "last", "a", 1); err != nil {
		t.Fatal(err)
	}
	if got := s.StoredTokens(); got != 1 {
		t.Errorf("after ten minutes, %d tokens are stored, want 1", got)
	}
}

// A transaction that deletes old tokens keeps a token that has been used again.
func TestReusedToken(t *testing.T) {
	t.Parallel()
	s, now := newStore(t)
	release := holdCommit(t, s)
	const tokens = 250 // a transaction deletes 100 old tokens
	var results []func() error
	for n := range tokens {
		results = append(results, background(t, s, func(context.Context) error {
			_, err := increment(t, s, fmt.Sprintf("%03d", n), "a", 1)
			return err
		}))
	}
	release()
	for _, result := range results {
		if err := result(); err != nil {
			t.Fatal(err)
		}
	}
	now.advance(10*time.Minute + time.Second)
	for _, token := range []string{"249", "x", "y"} {
		if _, err := increment(t, s, token, "a", 1); err != nil {
			t.Fatal(err)
		}
	}
	if capacity, err := increment(t, s, "249", "a", 1); err != nil || capacity.ReadCapacityUnits == nil {
		t.Errorf("the transaction with the reused token was executed again: %v", err)
	}
	if got := s.StoredTokens(); got != 3 {
		t.Errorf("%d tokens are stored, want 3", got)
	}
}

// Of concurrent transactions with one token, one writes. The response of each is a success.
func TestConcurrentTokens(t *testing.T) {
	t.Parallel()
	s := embedded.New()
	createTable(t, s, "items")
	const transactions = 20
	errs := make(chan error, transactions)
	for range transactions {
		go func() {
			_, err := increment(t, s, "token", "a", 1)
			errs <- err
		}()
	}
	for range transactions {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := text(readItem(t, s, "items", "a")["n"]); got != "1" {
		t.Errorf("the number is %s, want 1", got)
	}
}
