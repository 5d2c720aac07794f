// Package table sends requests to one DynamoDB table. It sends them on the fast path or through the
// AWS SDK. It adds retries, read budgets, measurements and a comparison of the clocks. Within the
// module, it imports commerce, dynamo/attempt, dynamo/model, dynamo/trace and dynamo/units.
package table
