// Package attempt limits and observes the attempts to send requests to DynamoDB. The first attempt
// and each retry of a request count as one attempt.
//
// The package classifies failed attempts by their cause. All requests to a table share one retry
// budget, which limits the number of retries. A circuit breaker refuses all attempts while too many
// attempts fail. The package imports no other package of the module.
package attempt
