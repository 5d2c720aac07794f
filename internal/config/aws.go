package config

import (
	"context"
	"fmt"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
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
// Errors: one that says which setting is missing.
func OpenDynamoDB(ctx context.Context) (*dynamodb.Client, error) {
	// The SDK's own log says nothing that its errors do not say, and says it to standard error.
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}), awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
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
		return nil, fmt.Errorf("no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role; DynamoDB Local takes any")
	}
	return dynamodb.NewFromConfig(cfg), nil
}
