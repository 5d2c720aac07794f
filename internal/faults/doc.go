// Package faults wraps an engine so that some of its requests fail, for tests.
//
// It is an HTTP client below the AWS SDK. It responds instead of DynamoDB, fails before it sends a
// request, or loses the engine's response. Its responses have DynamoDB's format
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html), so
// the SDK and the code above it handle them as real errors.
package faults
