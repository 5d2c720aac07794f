// Package counting counts records while other clients change them. It imports commerce,
// dynamo/model, dynamo/table and dynamo/repair.
package counting
