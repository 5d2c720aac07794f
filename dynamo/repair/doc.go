// Package repair says what can be wrong with records, compares them, and writes what leads them to
// what they should be. It imports commerce, dynamo/model and dynamo/table.
package repair
