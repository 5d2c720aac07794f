package config

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/logging"
)

// idleConnections is how many connections to DynamoDB are kept open: the SDK's 10 make a busy
// server open new ones all the time.
const idleConnections = 256

// readBuffer is how much of an answer is read from a connection at once, in bytes: most answers
// come whole with their headers. The rest of a longer one is read to where it stays.
const readBuffer = 16 << 10

// answerTimeout is how long DynamoDB may keep silent before the SDK tries again; it answers in
// milliseconds, so a connection that is silent for longer is dead.
const answerTimeout = 3 * time.Second

// credentialsTimeout is how long the search for credentials may take; asking a metadata service
// that is not there takes a while.
const credentialsTimeout = 10 * time.Second

// The variables of endpoints, as the SDK calls them.
const (
	endpointOfTables  = "AWS_ENDPOINT_URL_DYNAMODB"
	endpointOfStreams = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"
)

// OpenDynamoDB returns clients of DynamoDB and of its streams with the SDK's usual settings:
// AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, the shared configuration, and the chain of credentials.
// Where an endpoint is set for tables only, streams are read there, too: DynamoDB Local and engines
// like it answer both at one.
//
// Errors: one that says which setting is missing.
func OpenDynamoDB(ctx context.Context) (*dynamodb.Client, *dynamodbstreams.Client, error) {
	for _, name := range []string{endpointOfTables, endpointOfStreams} {
		if endpoint := os.Getenv(name); endpoint != "" {
			if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return nil, nil, fmt.Errorf("%s is %q: set it to a URL such as http://localhost:8000", name, endpoint)
			}
		}
	}
	// The SDK's own log says nothing that its errors do not say, and says it to standard error.
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}), awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = idleConnections
		t.MaxIdleConnsPerHost = idleConnections
		t.ReadBufferSize = readBuffer
		t.ResponseHeaderTimeout = answerTimeout
	})))
	if err != nil {
		return nil, nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, nil, fmt.Errorf("no AWS region is set: set AWS_REGION, such as us-east-1")
	}
	waiting, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(waiting); err != nil {
		return nil, nil, fmt.Errorf("no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role; DynamoDB Local takes any")
	}
	tables := dynamodb.NewFromConfig(cfg)
	streams := dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) {
		if aws.ToString(o.BaseEndpoint) == "" {
			o.BaseEndpoint = tables.Options().BaseEndpoint
		}
	})
	return tables, streams, nil
}
