package table

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/dynamo/attempt"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// testActions returns the actions of a transaction. The SDK encodes their maps in random order.
func testActions() []types.TransactWriteItem {
	item := model.Keys{PK: "a", SK: "b", IndexPK: "c", IndexSK: "d"}.Attributes().Merge(model.Record{"n": model.Num(1), "s": model.Str("x"), "l": model.TextListValue([]string{"y"}), "v": model.Num(2)})
	table := "shop"
	return []types.TransactWriteItem{
		{Put: &types.Put{TableName: &table, Item: item}},
		{ConditionCheck: &types.ConditionCheck{TableName: &table, Key: model.Keys{PK: "e", SK: "f"}.Attributes(), ConditionExpression: aws.String("attribute_exists(pk)")}},
	}
}

// fixedToken is an idempotency token provider that always returns the same token.
type fixedToken struct{}

// GetIdempotencyToken returns the token.
func (fixedToken) GetIdempotencyToken() (string, error) {
	return "7f0f3a34-3b62-4f3a-bd2e-0f8d4f1f2e55", nil
}

// actionGenerator generates any action of a transaction that the SDK accepts.
func actionGenerator() *rapid.Generator[types.TransactWriteItem] {
	value := rapid.OneOf(valueGenerator(2), rapid.SampledFrom([]types.AttributeValue{
		&types.AttributeValueMemberL{}, &types.AttributeValueMemberM{}, &types.AttributeValueMemberSS{}, &types.AttributeValueMemberNS{},
		&types.AttributeValueMemberBS{}, &types.AttributeValueMemberNULL{},
	}))
	attributes := rapid.MapOfN(rapid.String(), value, 0, 6)
	optional := rapid.Custom(func(t *rapid.T) map[string]types.AttributeValue {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return attributes.Draw(t, "values")
	})
	return rapid.Custom(func(t *rapid.T) types.TransactWriteItem {
		table, key, values := rapid.String().Draw(t, "table"), attributes.Draw(t, "key"), optional.Draw(t, "values")
		condition, names := rapid.Ptr(rapid.String(), true).Draw(t, "condition"), map[string]string(nil)
		if rapid.Bool().Draw(t, "named") {
			names = rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "names")
		}
		onFailure := rapid.SampledFrom([]types.ReturnValuesOnConditionCheckFailure{"", "ALL_OLD", "NONE"}).Draw(t, "onFailure")
		required := rapid.String().Draw(t, "expression")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: key, ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: onFailure}}
		case 1:
			return types.TransactWriteItem{Update: &types.Update{TableName: &table, Key: key, UpdateExpression: &required, ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: onFailure}}
		case 2:
			return types.TransactWriteItem{Delete: &types.Delete{TableName: &table, Key: key, ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: onFailure}}
		default:
			return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &table, Key: key, ConditionExpression: &required, ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: onFailure}}
		}
	})
}

// Equal transactions have equal bytes except for the token.
func TestTransactionEncodingIsDeterministic(t *testing.T) {
	first, ok := transactWriteBody("token", testActions(), false)
	if !ok {
		t.Fatal("the fast path cannot encode the transaction")
	}
	for range 20 {
		if again, _ := transactWriteBody("token", testActions(), false); !bytes.Equal(again, first) {
			t.Fatalf("the transaction is encoded as\n%s\nand as\n%s", first, again)
		}
	}
}

// Each transaction has a new token from the client's token provider.
func TestTransactionsHaveTokens(t *testing.T) {
	tokens := map[string]bool{}
	s := newTestTable(t, func(r *http.Request) (*http.Response, error) {
		token, _ := readSentRequest(t, r).body.(map[string]any)["ClientRequestToken"].(string)
		tokens[token] = true
		return newResponse(http.StatusOK, `{}`), nil
	})
	for range 3 {
		if _, err := s.transactWrite(context.Background(), testActions(), false); err != nil {
			t.Fatal(err)
		}
	}
	if len(tokens) != 3 || tokens[""] {
		t.Errorf("3 transactions have the tokens %v, want 3 different tokens", tokens)
	}
}

// failingToken is an idempotency token provider that fails.
type failingToken struct{}

var errNoToken = errors.New("there is no entropy")

// GetIdempotencyToken fails.
func (failingToken) GetIdempotencyToken() (string, error) { return "", errNoToken }

// The SDK sends the transactions that the fast path cannot encode. A transaction without a token is
// not sent.
func TestTransactionsThatOnlyTheSDKEncodes(t *testing.T) {
	requests := 0
	s := newTestTable(t, func(r *http.Request) (*http.Response, error) {
		if requests++; r.Header.Get("Amz-Sdk-Request") == "" {
			t.Error("the request uses the fast path, want the SDK")
		}
		return newResponse(http.StatusOK, `{}`), nil
	})
	for _, value := range []types.AttributeValue{model.Str("\xff"), &types.AttributeValueMemberB{}, &types.AttributeValueMemberBS{Value: [][]byte{nil}}} {
		requests = 0
		put := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("shop"), Item: model.Record{"pk": value}}}
		if _, err := s.transactWrite(context.Background(), []types.TransactWriteItem{put}, false); err != nil || requests != 1 {
			t.Errorf("%#v: got %v after %d requests, want 1 request", value, err, requests)
		}
	}
	s = newTestTable(t, func(*http.Request) (*http.Response, error) {
		t.Error("a request without a token is sent")
		return newResponse(http.StatusOK, `{}`), nil
	}, func(o *dynamodb.Options) { o.IdempotencyTokenProvider = failingToken{} })
	if _, err := s.transactWrite(context.Background(), testActions(), false); !errors.Is(err, errNoToken) {
		t.Errorf("without a token: got %v", err)
	}
}

// The fast path and the SDK return the same cancellation reasons, with the current records.
func TestCancelledTransactionsHaveTheirRecords(t *testing.T) {
	const reasons = `{"Code":"None"},{"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"a"},"sk":{"S":"b"},"version":{"N":"2"}}},{"Code":"ConditionalCheckFailed"}`
	for name, with := range map[string]func(*Table) *Table{"the fast path": onFastPath, "the SDK": onSDK} {
		s := with(newTestTable(t, func(r *http.Request) (*http.Response, error) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			return newResponse(http.StatusBadRequest, `{"__type":"x#TransactionCanceledException","CancellationReasons":[`+reasons+`]}`), nil
		}))
		var cancelled *types.TransactionCanceledException
		if _, err := s.transactWrite(context.Background(), testActions(), false); !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 3 {
			t.Fatalf("%s: got %v", name, err)
		}
		for i, want := range []types.CancellationReason{
			{Code: aws.String("None")},
			{Code: aws.String(attempt.ReasonConditionFailed), Item: model.Record{"pk": model.Str("a"), "sk": model.Str("b"), "version": model.Num(2)}},
			{Code: aws.String(attempt.ReasonConditionFailed)},
		} {
			if got := cancelled.CancellationReasons[i]; aws.ToString(got.Code) != *want.Code || !model.EqualRecords(got.Item, want.Item) {
				t.Errorf("%s: reason %d is %v, want %v", name, i, got, want)
			}
		}
	}
}

// Transactions are not charged to the read budget.
func TestTransactionsAreNotChargedToReadBudget(t *testing.T) {
	for name, with := range map[string]func(*Table) *Table{"the fast path": onFastPath, "the SDK": onSDK} {
		requests := 0
		s := with(newTestTable(t, func(*http.Request) (*http.Response, error) {
			if requests++; requests%2 == 1 {
				return newResponse(http.StatusInternalServerError, `{"__type":"x#InternalServerError"}`), nil
			}
			return newResponse(http.StatusOK, `{}`), nil
		}))
		budget := NewReadBudget(0)
		ctx := budget.NewContext(context.Background())
		if _, err := s.transactWrite(ctx, testActions(), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.transactGet(ctx, testKeys, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if requests != 4 || budget.Remaining() != 0 {
			t.Errorf("%s: got %d requests, and %d left in the budget; want 4 and 0", name, requests, budget.Remaining())
		}
	}
}

// valueGenerator generates a value of any type, nested up to depth.
func valueGenerator(depth int) *rapid.Generator[types.AttributeValue] {
	text, data := rapid.String(), rapid.SliceOf(rapid.Byte())
	kinds := []*rapid.Generator[types.AttributeValue]{
		rapid.Map(text, func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }),
		rapid.Map(rapid.Int(), model.Num),
		rapid.Map(data, func(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }),
		rapid.Map(rapid.Bool(), func(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }),
		rapid.Just[types.AttributeValue](&types.AttributeValueMemberNULL{Value: true}),
		rapid.Map(rapid.SliceOfN(text, 1, 5), func(s []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: s} }),
		rapid.Map(rapid.SliceOfN(data, 1, 5), func(b [][]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: b} }),
	}
	if depth > 0 {
		inner := valueGenerator(depth - 1)
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []types.AttributeValue) types.AttributeValue { return model.ListValue(l...) }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 4), func(m map[string]types.AttributeValue) types.AttributeValue {
				return &types.AttributeValueMemberM{Value: m}
			}))
	}
	return rapid.OneOf(kinds...)
}
