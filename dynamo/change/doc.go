// Package change implements the mutations. Each mutation reads records, plans the writes, and
// commits them in one transaction. If another mutation conflicts, the mutation reads and plans
// again. The package imports commerce, dynamo/model and dynamo/table.
package change
