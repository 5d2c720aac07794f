// Package replay is an HTTP client for the AWS SDK that replays DynamoDB's responses from memory,
// for tests and benchmarks. The first request of a kind goes to an engine. All later requests get
// the same bytes, including length, checksum and request ID. So a benchmark measures only the
// product.
package replay
