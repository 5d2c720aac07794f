// Package change implements the mutations. Each mutation reads records, plans its writes, and
// commits them in one transaction. If another transaction changes these records in the meantime,
// the mutation plans its writes again with the current records. The package imports commerce and
// the packages attempt, model, table and units of dynamo.
package change
