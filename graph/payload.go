package graph

import "github.com/ordergraph/ordergraph/commerce"

// Payload is what a mutation answers: the record, or why the rules refused.
type Payload[T any] struct {
	// Value is the record as the mutation left it; with a VersionConflict as it is; else nil where
	// the mutation was refused.
	Value *T
	// UserErrors are why it was not done, empty where it was.
	UserErrors []commerce.Refusal
}
