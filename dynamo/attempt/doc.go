// Package attempt limits and observes the attempts of DynamoDB requests. Each retry of a request is
// a further attempt.
//
// It classifies failed attempts, limits retries with a budget that all requests of a table share,
// and stops sending requests with a circuit breaker. It imports no other package of the module.
package attempt
