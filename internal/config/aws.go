package config

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

// idleConnections is how many connections to DynamoDB are kept open: the SDK's 10 make a busy server open new ones
// all the time.
const idleConnections = 256

// answerTimeout is how long DynamoDB may keep silent before the SDK tries again; it answers in milliseconds, so a connection
// that is silent for longer is dead.
const answerTimeout = 3 * time.Second

// credentialsTimeout is how long the search for credentials may take; asking a metadata service that is not there takes a
// while.
const credentialsTimeout = 10 * time.Second

// OpenDynamoDB returns a client with the SDK's usual settings: AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, the shared
// configuration, and the chain of credentials.
//
// Errors: one that says which setting is missing.
func OpenDynamoDB(ctx context.Context) (*dynamodb.Client, error) {
	if endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("AWS_ENDPOINT_URL_DYNAMODB is %q: set it to a URL such as http://localhost:8000", endpoint)
		}
	}
	// The SDK's own log says nothing that its errors do not say, and says it to standard error.
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}), awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = idleConnections
		t.MaxIdleConnsPerHost = idleConnections
		t.ResponseHeaderTimeout = answerTimeout
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
