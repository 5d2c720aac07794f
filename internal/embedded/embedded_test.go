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
			t.Errorf("record %d is not there: %v", i, err)
		}
	}
	if _, err := embedded.New().Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: key("0")}); err == nil {
		t.Error("another store has the table")
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
		t.Errorf("the record is there all the same: %v, %v", out.Item, err)
	}
}

func TestErrorsAreDynamoDBs(t *testing.T) {
	db := embedded.New().Client()
	_, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("none"), Key: key("a")})
	if missing := (*types.ResourceNotFoundException)(nil); !errors.As(err, &missing) {
		t.Errorf("error is %v, want ResourceNotFoundException", err)
	}
}

// A panic of the engine is an error of DynamoDB's to the caller, and the store goes on. Asking for a list element behind
// the end makes it panic.
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
		t.Errorf("the store does not go on: %v", err)
	}
}
