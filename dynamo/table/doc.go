// Package table sends requests to one DynamoDB table, on the fast path or through the SDK. It adds
// retries, read budgets, traces and a check of the clock. It imports commerce, dynamo/model and
// dynamo/units.
package table
