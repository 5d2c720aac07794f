package embedded_test

import (
	"context"
	"fmt"
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
	film := map[string]types.AttributeValue{"title": &types.AttributeValueMemberS{Value: "Metropolis"}}
	if err := createFilms(ctx, client); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String("films"),
		Item: map[string]types.AttributeValue{
			"title":  &types.AttributeValueMemberS{Value: "Metropolis"},
			"copies": &types.AttributeValueMemberN{Value: "2"},
		},
	}); err != nil {
		fmt.Println(err)
		return
	}

	// A condition protects the last copy.
	for range 3 {
		out, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                 aws.String("films"),
			Key:                       film,
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
	ctx := context.Background()
	server := httptest.NewServer(embedded.New())
	defer server.Close()
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &server.URL,
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
	})
	if err := createFilms(ctx, client); err != nil {
		fmt.Println(err)
		return
	}
	tables, err := client.ListTables(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tables.TableNames)
	// Output: [films]
}

// createFilms creates a table whose partition key is a title.
func createFilms(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("films"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("title"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("title"), KeyType: types.KeyTypeHash}},
	})
	return err
}
