// Package model defines the contents of the table: entities with their keys, access patterns, write
// patterns, and the encoding of each record. It imports commerce and the SDK's types, but no
// client.
package model
