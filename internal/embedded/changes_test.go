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

	"github.com/ordergraph/ordergraph/internal/embedded"
)

// Every write is reported with the record before and after. The writes of a transaction are
// reported in one call. Writes that were undone or changed nothing are not reported.
func TestChangesAreTold(t *testing.T) {
	ctx := context.Background()
	store := embedded.New()
	db := store.Client()
	for _, table := range []string{"t", "other"} {
		_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName:            aws.String(table),
			BillingMode:          types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	stop := store.Observe("t", func(before, after []map[string]types.AttributeValue) {
		var batch []string
		for i := range before {
			batch = append(batch, value(before[i])+">"+value(after[i]))
		}
		told = append(told, strings.Join(batch, " "))
	})
	name := aws.String("t")
	rec := func(k, v string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: k}, "v": &types.AttributeValueMemberN{Value: v}}
	}
	at := func(k string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: k}}
	}
	one := map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: "1"}}
	never := aws.String("attribute_exists(nothing)")
	transact := func(actions ...types.TransactWriteItem) error {
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions})
		return err
	}
	step := func(what string, err error, fails bool, want ...string) {
		t.Helper()
		if (err != nil) != fails {
			t.Errorf("%s: %v", what, err)
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: reported %q, want %q", what, told, want)
		}
		told = nil
	}

	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: rec("a", "1")})
	step("put", err, false, "->a1")
	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: rec("a", "1")})
	step("the same again", err, false)
	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: rec("a", "2"), ConditionExpression: never})
	step("refused", err, true)
	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("other"), Item: rec("a", "2")})
	step("another table", err, false)
	_, err = db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: at("a"), UpdateExpression: aws.String("ADD v :v"), ExpressionAttributeValues: one})
	step("update", err, false, "a1>a2")
	_, err = db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: at("a"), UpdateExpression: aws.String("SET l = list_append(if_not_exists(l, :l), :l), v = :v"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "x"}}}, ":v": one[":v"]}})
	step("the engine's own update", err, false, "a2>a1")
	_, err = db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"t": {
		{PutRequest: &types.PutRequest{Item: rec("b", "1")}}, {DeleteRequest: &types.DeleteRequest{Key: at("nobody")}},
	}}})
	step("batch", err, false, "->b1")
	step("transaction", transact(
		types.TransactWriteItem{Put: &types.Put{TableName: name, Item: rec("c", "3")}},
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: name, Key: at("b"), ConditionExpression: aws.String("attribute_exists(k)")}},
		types.TransactWriteItem{Update: &types.Update{TableName: name, Key: at("a"), UpdateExpression: aws.String("ADD v :v"), ExpressionAttributeValues: one}},
		types.TransactWriteItem{Put: &types.Put{TableName: aws.String("other"), Item: rec("c", "3")}},
	), false, "->c3 a1>a2")
	step("a transaction that is cancelled", transact(
		types.TransactWriteItem{Put: &types.Put{TableName: name, Item: rec("d", "4")}},
		types.TransactWriteItem{Delete: &types.Delete{TableName: name, Key: at("c"), ConditionExpression: never}},
	), true)
	_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: at("c")})
	step("delete", err, false, "c3>-")
	stop()
	_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: at("b")})
	step("nobody observes", err, false)
}

func value(r map[string]types.AttributeValue) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprint(r["k"].(*types.AttributeValueMemberS).Value, r["v"].(*types.AttributeValueMemberN).Value)
}

// Values of all types are reported unchanged.
func TestValuesAreToldAsTheyAre(t *testing.T) {
	ctx := context.Background()
	store := embedded.New()
	db := store.Client()
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("t"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var told map[string]types.AttributeValue
	defer store.Observe("t", func(_, after []map[string]types.AttributeValue) { told = after[0] })()
	put := map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: "a"}, "n": &types.AttributeValueMemberN{Value: "1.5"}, "b": &types.AttributeValueMemberB{Value: []byte{0, 1}},
		"o": &types.AttributeValueMemberBOOL{Value: false}, "u": &types.AttributeValueMemberNULL{Value: true},
		"ss": &types.AttributeValueMemberSS{Value: []string{"x"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"2"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{3}}},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: ""}}},
		"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"e": &types.AttributeValueMemberL{Value: []types.AttributeValue{}}}},
	}
	if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("t"), Item: put}); err != nil {
		t.Fatal(err)
	}
	got, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: map[string]types.AttributeValue{"k": put["k"]}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range put {
		for from, r := range map[string]map[string]types.AttributeValue{"reported": told, "read": got.Item} {
			if fmt.Sprintf("%T%+v", r[name], flat(r[name])) != fmt.Sprintf("%T%+v", want, flat(want)) {
				t.Errorf("%s: %s %+v, want %+v", from, name, flat(r[name]), flat(want))
			}
		}
	}
}

// flat converts a value to a form without pointers, for comparing.
func flat(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberL:
		values := []any{}
		for _, e := range v.Value {
			values = append(values, flat(e))
		}
		return values
	case *types.AttributeValueMemberM:
		values := map[string]any{}
		for name, e := range v.Value {
			values[name] = flat(e)
		}
		return values
	case nil:
		return nil
	default:
		return fmt.Sprintf("%+v", v)
	}
}
