// Package replay provides an HTTP client for the AWS SDK that replays DynamoDB's responses from
// memory. It is for tests and benchmarks. The first of several equal requests is sent to a DynamoDB
// engine. All later requests get the same bytes, including length, checksum and request ID. A
// benchmark then does not measure the engine.
package replay
