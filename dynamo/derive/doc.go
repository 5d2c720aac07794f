// Package derive declares the numbers that Ordergraph derives from other records, such as the
// available stock of a product. Each number is declared once. Mutations, loading and checks compute
// it from this declaration. The package has no side effects, and imports dynamo/model.
package derive
