package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ordergraph/ordergraph/internal/embedded"
)

func table(t *testing.T, db *dynamodb.Client) *string {
	t.Helper()
	name := aws.String("t")
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            name,
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func key(s string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: s}}
}

func TestClientsOfAStoreShareIt(t *testing.T) {
	store := embedded.New()
	name := table(t, store.Client())
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if _, err := store.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: key(fmt.Sprint(i))}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i := range 20 {
		out, err := store.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key(fmt.Sprint(i))})
		if err != nil || out.Item == nil {
			t.Errorf("record %d is missing after the concurrent writes: %v", i, err)
		}
	}
	if _, err := embedded.New().Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key("0")}); err == nil {
		t.Error("a new store has the table of another store")
	}
}

func TestAContextThatEndedMakesNoRequest(t *testing.T) {
	db := embedded.New().Client()
	name := table(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: key("a")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the context's", err)
	}
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key("a")})
	if err != nil || out.Item != nil {
		t.Errorf("the record was written: %v, %v", out.Item, err)
	}
}

func TestErrorsAreDynamoDBs(t *testing.T) {
	db := embedded.New().Client()
	_, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("none"), Key: key("a")})
	if missing := (*types.ResourceNotFoundException)(nil); !errors.As(err, &missing) {
		t.Errorf("error is %v, want ResourceNotFoundException", err)
	}
}

// A panic of the engine becomes a DynamoDB error, and the store continues to work. The engine
// panics at a list index after the end of the list.
func TestAPanicOfTheEngineIsAnError(t *testing.T) {
	store := embedded.New()
	db := store.Client()
	name := table(t, db)
	item := key("l")
	item["l"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "x"}}}
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: item}); err != nil {
		t.Fatal(err)
	}
	_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: name, Item: item, ConditionExpression: aws.String("attribute_exists(l[7])"),
	})
	if api := smithy.APIError(nil); !errors.As(err, &api) || api.ErrorCode() != "InternalServerError" {
		t.Errorf("error is %v, want InternalServerError", err)
	}
	if _, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key("l")}); err != nil {
		t.Errorf("the store does not work after a panic: %v", err)
	}
}

func put(name *string, item map[string]types.AttributeValue, condition string) types.TransactWriteItem {
	p := &types.Put{TableName: name, Item: item}
	if condition != "" {
		p.ConditionExpression = &condition
	}
	return types.TransactWriteItem{Put: p}
}

// A transaction in which the engine panics is undone.
func TestAPanicInATransactionUndoesIt(t *testing.T) {
	db := embedded.New().Client()
	name := table(t, db)
	item := key("l")
	item["l"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "x"}}}
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: item}); err != nil {
		t.Fatal(err)
	}
	_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		put(name, key("new"), ""),
		{Delete: &types.Delete{TableName: name, Key: key("l"), ConditionExpression: aws.String("attribute_exists(l[7])")}},
	}})
	if api := smithy.APIError(nil); !errors.As(err, &api) || api.ErrorCode() != "InternalServerError" {
		t.Errorf("error is %v, want InternalServerError", err)
	}
	for s, there := range map[string]bool{"new": false, "l": true} {
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key(s)})
		if err != nil || (out.Item != nil) != there {
			t.Errorf("%s: %v, %v", s, out.Item, err)
		}
	}
}

// Transactions reject updates that the store cannot apply as DynamoDB does.
func TestATransactionRefusesUpdatesBeyondTopLevelAttributes(t *testing.T) {
	db := embedded.New().Client()
	name := table(t, db)
	for _, expression := range []string{
		"SET m.a = :v", "SET l[0] = :v", "REMOVE l[0]", "SET l = list_append(l, :v)", "SET a = m.a + :v", "ADD s :v", "DELETE s :v",
	} {
		u := &types.Update{TableName: name, Key: key("a"), UpdateExpression: aws.String(expression)}
		if expression != "REMOVE l[0]" {
			u.ExpressionAttributeValues = map[string]types.AttributeValue{":v": &types.AttributeValueMemberSS{Value: []string{"x"}}}
		}
		_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			put(name, key("new"), ""), {Update: u},
		}})
		if api := smithy.APIError(nil); !errors.As(err, &api) || api.ErrorCode() != "ValidationException" {
			t.Errorf("%s: error is %v, want ValidationException", expression, err)
		}
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key("new")})
		if err != nil || out.Item != nil {
			t.Errorf("%s: the other action was executed: %v, %v", expression, out.Item, err)
		}
	}
}

// The SDK encodes maps in random order. The same transaction still matches its token.
func TestATokenDoesNotMindTheOrderOfMaps(t *testing.T) {
	db := embedded.New().Client()
	name := table(t, db)
	item := key("a")
	for i := range 12 {
		item[fmt.Sprint("attribute", i)] = &types.AttributeValueMemberS{Value: "x"}
	}
	for range 20 {
		_, err := db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String("token"), TransactItems: []types.TransactWriteItem{put(name, item, "attribute_not_exists(pk)")},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// If the condition of an update that the engine executes fails, the error contains the record.
func TestANestedUpdateReturnsTheOldRecord(t *testing.T) {
	db := embedded.New().Client()
	name := table(t, db)
	item := key("a")
	item["m"] = &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"x": &types.AttributeValueMemberS{Value: "x"}}}
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: item}); err != nil {
		t.Fatal(err)
	}
	_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: name, Key: key("a"), UpdateExpression: aws.String("SET m.y = m.x"), ConditionExpression: aws.String("attribute_not_exists(m)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed := (*types.ConditionalCheckFailedException)(nil); !errors.As(err, &failed) || failed.Item["m"] == nil {
		t.Errorf("error is %v, want ConditionalCheckFailedException with the record", err)
	}
}

func TestUnknownOperationsAreRefused(t *testing.T) {
	_, err := embedded.New().Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if api := smithy.APIError(nil); !errors.As(err, &api) || api.ErrorCode() != "UnknownOperationException" {
		t.Errorf("error is %v, want UnknownOperationException", err)
	}
}
