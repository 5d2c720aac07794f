// Package repair defines the kinds of drifts, compares records with their expected state, and
// writes the repairs. It imports commerce, dynamo/model and dynamo/table.
package repair
