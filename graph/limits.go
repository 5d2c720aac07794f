package graph

import (
	"cmp"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Limits bound what one request can ask for. Each has an error code of its own; the zero value of each stands for its default.
type Limits struct {
	// Tokens is how many tokens a document can have; the introspection query has 184.
	Tokens int
	// Depth is how many fields can stand inside one another.
	Depth int
	// Aliases is how many fields can have another name than their own.
	Aliases int
	// RootFields is how many fields an operation can have at its root.
	RootFields int
	// Directives is how many directives a document can have.
	Directives int
	// ListDepth is how many lists and objects can stand inside one another in a value.
	ListDepth int
	// IntrospectionDepth is how many lists of the schema (fields, interfaces and the like) can stand inside one another.
	IntrospectionDepth int
	// Cost is how much an operation can cost; see cost.go for how it is counted.
	Cost int
}

// DefaultLimits are limits that no query of an honest client comes near.
func DefaultLimits() Limits {
	return Limits{Tokens: 2000, Depth: 15, Aliases: 100, RootFields: 50, Directives: 50, ListDepth: 8, IntrospectionDepth: 2, Cost: 100_000}
}

func (l Limits) orDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Tokens: cmp.Or(l.Tokens, d.Tokens), Depth: cmp.Or(l.Depth, d.Depth), Aliases: cmp.Or(l.Aliases, d.Aliases),
		RootFields: cmp.Or(l.RootFields, d.RootFields), Directives: cmp.Or(l.Directives, d.Directives),
		ListDepth: cmp.Or(l.ListDepth, d.ListDepth), IntrospectionDepth: cmp.Or(l.IntrospectionDepth, d.IntrospectionDepth), Cost: cmp.Or(l.Cost, d.Cost),
	}
}

// checkDocument refuses a document that was parsed and not yet validated, so fragments may be unknown or go in circles.
func (l Limits) checkDocument(*ast.QueryDocument) gqlerror.List { return nil }
