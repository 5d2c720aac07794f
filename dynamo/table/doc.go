// Package table makes the requests on one DynamoDB table: reads, transactions and streams, with
// retries, budgets and traces, on the fast path or by the SDK. It imports commerce and
// dynamo/model.
package table
