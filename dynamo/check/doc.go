// Package check verifies that the records of a table are consistent, one item collection at a time.
// It imports commerce and the packages dynamo/model, table, repair and counting.
package check
