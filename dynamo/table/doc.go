// Package table sends requests to one DynamoDB table. A request is encoded by the package itself
// (the fast path) or by the AWS SDK. The package adds retries, read budgets and measurements, and
// compares the local clock with DynamoDB's clock. Within the module, it imports commerce,
// dynamo/attempt, dynamo/model, dynamo/trace and dynamo/units.
package table
