// Package replay provides an HTTP client for the AWS SDK that replays DynamoDB's responses from
// memory. It is for tests and benchmarks. When several requests are equal, the client sends only
// the first one to DynamoDB, and stores the response. It responds to the later requests with the
// stored response. A benchmark with this client therefore does not measure DynamoDB.
package replay
