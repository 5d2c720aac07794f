// Package check verifies the records of a table against one another, item collection by item
// collection, and has package repair repair them. It imports what is below dynamo.
package check
