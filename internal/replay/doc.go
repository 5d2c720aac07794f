// Package replay is for tests and benchmarks: an HTTP client for the AWS SDK that asks an engine
// once, keeps what it answered, and from then on gives the same bytes again. What is measured above
// it is then the product alone, at the speed of memory, with the very bytes that DynamoDB's answers
// have: length, checksum and request id included.
package replay
