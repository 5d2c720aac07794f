// Package repair defines the kinds of inconsistencies between records, compares stored records with
// the expected records, and writes repairs. It imports commerce, dynamo/model, dynamo/markdown and
// dynamo/table.
package repair
