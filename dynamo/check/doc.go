// Package check verifies that the records of a table are consistent, one item collection at a time,
// and repairs them. It imports commerce, dynamo/attempt, dynamo/derive, dynamo/markdown, dynamo/model and
// dynamo/table.
package check
