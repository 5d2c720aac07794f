// Package counting counts records of the table while servers change the table, to verify the stored
// counts. It imports commerce, dynamo/model, dynamo/table and dynamo/repair.
package counting
