// Package faults makes requests to DynamoDB fail, for tests.
//
// It provides an HTTPClient client for the AWS SDK. The client responds instead of DynamoDB, fails before
// it sends a request, or discards the response. Its responses have DynamoDB's format
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html), so
// the SDK handles them like real errors. The client can also be a proxy, which makes the requests
// of other processes fail.
package faults
