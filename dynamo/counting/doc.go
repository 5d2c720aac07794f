// Package counting counts records while servers change the table, to verify the counts that the
// table stores. It imports commerce and the packages dynamo/model, dynamo/table and dynamo/repair.
package counting
