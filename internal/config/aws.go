package config

import (
	"context"
	"fmt"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/dynamo"
)

// idleConnections is how many connections to DynamoDB are kept open: the SDK's 10 make a busy server open new ones
// all the time.
const idleConnections = 256

// credentialsTimeout is how long the search for credentials may take; asking a metadata service that is not there takes a
// while.
const credentialsTimeout = 10 * time.Second

// OpenDynamoDB returns a client with the SDK's usual settings: AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, the shared
// configuration, and the chain of credentials.
//
// Errors: one that says which setting is missing; dynamo.ErrAccessDenied where there are no credentials.
func OpenDynamoDB(ctx context.Context) (*dynamodb.Client, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = idleConnections
		t.MaxIdleConnsPerHost = idleConnections
	})))
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("no AWS region is set: set AWS_REGION, such as us-east-1")
	}
	waiting, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(waiting); err != nil {
		return nil, fmt.Errorf("%w: none were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role (DynamoDB Local takes any)", dynamo.ErrAccessDenied)
	}
	return dynamodb.NewFromConfig(cfg), nil
}
