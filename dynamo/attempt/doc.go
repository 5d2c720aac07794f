// Package attempt limits and observes the attempts to send DynamoDB requests. A request has one
// attempt, plus one attempt for each retry.
//
// The package classifies failed attempts. All requests to a table share a budget of retries. A
// circuit breaker stops the requests while DynamoDB fails. The package imports no other package of
// the module.
package attempt
