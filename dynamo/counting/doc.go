// Package counting counts records while others change them. It imports commerce, dynamo/model,
// dynamo/table and dynamo/repair.
package counting
