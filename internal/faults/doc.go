// Package faults makes a DynamoDB of an engine that fails now and then, for tests.
//
// It stands below the AWS SDK's client, where the network is: it answers in DynamoDB's place, fails
// before a request is sent, or lets the engine answer and loses the reply. What it answers has the
// form of DynamoDB's own
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html), so
// that the SDK and the code above it take it for real.
package faults
