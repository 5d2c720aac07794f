// Package bulk loads datasets into a table, and exports and imports the records of a table. It
// imports the packages commerce, dynamo/model and dynamo/table.
package bulk
