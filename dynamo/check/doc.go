// Package check verifies that the records of a table are consistent, one item collection at a time.
// It imports commerce, dynamo/counting, dynamo/model, dynamo/repair and dynamo/table.
package check
