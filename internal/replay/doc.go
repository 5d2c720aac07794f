// Package replay provides an HTTPClient client for the AWS SDK that replays DynamoDB's responses from
// memory. It is for tests and benchmarks. The client sends the first of several equal requests to a
// DynamoDB engine. For each later request, it returns the same bytes, including length, checksum
// and request ID. A benchmark with this client does not measure the engine.
package replay
