// Package counting counts records while they change. It imports commerce, dynamo/model,
// dynamo/table and dynamo/repair.
package counting
