// Package bulk loads, exports and imports whole tables. It imports commerce, dynamo/model and
// dynamo/table.
package bulk
