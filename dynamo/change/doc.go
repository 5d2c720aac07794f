// Package change implements the mutations. Each mutation reads records, plans the writes, and
// commits them in one transaction. If the transaction conflicts with another one, the mutation
// plans the writes again with the current records. The package imports commerce and the packages
// dynamo/model, table, attempt and units.
package change
