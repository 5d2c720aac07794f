// Package faults makes requests to DynamoDB fail on purpose, for tests.
//
// It provides an HTTP client for the AWS SDK. To make a request fail, the client returns an error
// response, returns a network error, or discards the response of DynamoDB. The error responses have
// DynamoDB's format, so the SDK handles them like real errors
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html).
//
// The client can also serve as an HTTP proxy. Other processes send their DynamoDB requests to the
// proxy, which makes some of them fail.
package faults
