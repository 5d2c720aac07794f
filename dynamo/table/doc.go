// Package table sends requests to one DynamoDB table. It encodes most requests itself (the fast
// path) and leaves the others to the AWS SDK. The package adds retries, read budgets and
// measurements. It also compares the local clock with DynamoDB's clock. Within the module, it
// imports commerce, dynamo/attempt, dynamo/model and dynamo/trace.
package table
