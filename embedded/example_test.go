package embedded_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/embedded"
)

// A test uses DynamoDB through the AWS SDK, without a network.
func ExampleNew() {
	ctx := context.Background()
	client := embedded.New().Client()
	if err := createBooks(ctx, client); err != nil {
		log.Fatal(err)
	}
	if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("books"),
		Item: map[string]types.AttributeValue{
			"isbn":   &types.AttributeValueMemberS{Value: "978-0134190440"},
			"copies": &types.AttributeValueMemberN{Value: "2"},
		},
	}); err != nil {
		log.Fatal(err)
	}

	// A condition protects the last copy.
	for range 3 {
		out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                 aws.String("books"),
			Key:                       map[string]types.AttributeValue{"isbn": &types.AttributeValueMemberS{Value: "978-0134190440"}},
			UpdateExpression:          aws.String("SET copies = copies - :one"),
			ConditionExpression:       aws.String("copies >= :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
			ReturnValues:              types.ReturnValueUpdatedNew,
		})
		if err != nil {
			fmt.Println("sold out")
			continue
		}
		fmt.Println("left:", out.Attributes["copies"].(*types.AttributeValueMemberN).Value)
	}
	// Output:
	// left: 1
	// left: 0
	// sold out
}

// Programs in other processes and languages use a store over HTTP.
func ExampleStore_ServeHTTP() {
	server := httptest.NewServer(embedded.New())
	defer server.Close()

	ctx := context.Background()
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &server.URL,
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
	})
	if err := createBooks(ctx, client); err != nil {
		log.Fatal(err)
	}
	tables, err := client.ListTables(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tables.TableNames)
	// Output: [books]
}

// createBooks creates a table whose partition key is an ISBN.
func createBooks(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("books"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("isbn"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("isbn"), KeyType: types.KeyTypeHash}},
	})
	return err
}
