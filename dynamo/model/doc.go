// Package model says what stands in the table: the entities with their keys, the access and write
// patterns, and how each record is written and read. It imports commerce and the SDK's types, no
// client.
package model
