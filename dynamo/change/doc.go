// Package change makes mutations: each reads what it needs, plans what becomes of every record, and
// is made as one transaction, or planned anew when another change came first. It imports commerce,
// dynamo/model and dynamo/table.
package change
