// Package attempt limits and observes the attempts of DynamoDB requests. A request has several
// attempts if it is retried.
//
// It classifies failed attempts, limits retries with a budget that all requests of a table share,
// and stops sending requests with a circuit breaker. It imports no other package of the module.
package attempt
