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

// maxIdleConnections is the maximum number of idle connections to DynamoDB. With the default of the
// AWS SDK, 10 per host, a busy server would constantly open new connections.
const maxIdleConnections = 256

// connectionReadBuffer is the size in bytes of the read buffer of each connection to DynamoDB. Most
// responses, with their headers, fit into the buffer.
const connectionReadBuffer = 16 << 10

// responseTimeout is how long the AWS SDK waits for the headers of a response before it retries the
// request. DynamoDB usually responds in milliseconds.
const responseTimeout = 3 * time.Second

// credentialsTimeout limits how long the AWS SDK searches for credentials at the start. Without
// this limit, the SDK could wait too long for a metadata service that does not exist.
const credentialsTimeout = 10 * time.Second

// The environment variables in which the AWS SDK expects the endpoints of DynamoDB and of DynamoDB
// Streams.
const (
	tablesEndpointVariable  = "AWS_ENDPOINT_URL_DYNAMODB"
	streamsEndpointVariable = "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"
)

// lambdaTraceHeaderClient adds the trace ID of the Lambda invocation to each request. The AWS SDK
// does not add the trace ID to requests on the fast path.
type lambdaTraceHeaderClient struct{ next dynamodb.HTTPClient }

// Do sends a request with the trace ID.
func (l lambdaTraceHeaderClient) Do(r *http.Request) (*http.Response, error) {
	// The package aws-lambda-go stores the trace ID in the context under this key.
	if id, ok := r.Context().Value("x-amzn-trace-id").(string); ok && id != "" && r.Header["X-Amzn-Trace-Id"] == nil {
		r.Header["X-Amzn-Trace-Id"] = []string{id}
	}
	return l.next.Do(r)
}

// OpenDynamoDB returns clients of DynamoDB and DynamoDB Streams with the AWS SDK's usual
// configuration. If a setting is missing or invalid, the error names the setting.
func OpenDynamoDB(ctx context.Context) (*dynamodb.Client, *dynamodbstreams.Client, error) {
	for _, name := range []string{tablesEndpointVariable, streamsEndpointVariable} {
		if endpoint := os.Getenv(name); endpoint != "" {
			if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return nil, nil, fmt.Errorf("%s is %q: set it to a URL such as http://localhost:8000", name, endpoint)
			}
		}
	}
	// Disable the SDK's own log on standard error, because the errors that the SDK returns contain the
	// same information.
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}), awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = maxIdleConnections
		t.MaxIdleConnsPerHost = maxIdleConnections
		t.ReadBufferSize = connectionReadBuffer
		t.ResponseHeaderTimeout = responseTimeout
	})))
	if err != nil {
		return nil, nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, nil, fmt.Errorf("no AWS region is set: set AWS_REGION to a region such as us-east-1")
	}
	credentialsCtx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(credentialsCtx); err != nil {
		return nil, nil, fmt.Errorf("no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, set AWS_PROFILE, or use an IAM role; DynamoDB Local accepts any credentials")
	}
	tables := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if os.Getenv("AWS_LAMBDA_FUNCTION_NAME") != "" {
			o.HTTPClient = lambdaTraceHeaderClient{o.HTTPClient}
		}
	})
	streams := dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) {
		// DynamoDB Local serves both APIs at one endpoint, so only one variable must be set.
		if aws.ToString(o.BaseEndpoint) == "" {
			o.BaseEndpoint = tables.Options().BaseEndpoint
		}
	})
	return tables, streams, nil
}
