// Package repair compares stored records with the expected records, and writes repairs. It also
// defines the kinds of inconsistencies between records. It imports commerce, dynamo/attempt,
// dynamo/markdown, dynamo/model and dynamo/table.
package repair
