package graph

import (
	"cmp"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
)

// CheckedOperation is an operation of a trusted document, as CheckDocuments found it.
type CheckedOperation struct {
	// ID is the document's, Name the operation's.
	ID, Name string
	// Type is query, mutation or subscription; empty where the document could not be parsed.
	Type string
	// Bound is the most that it can ask of DynamoDB; nothing where there are Errors.
	Bound bound.Bound
	// Errors tell why the server would not execute it.
	Errors []document.Error
}

// CheckDocuments tells what a server with these options would make of its trusted documents, on a
// table of so many shards. It needs no store. The operations are in the documents' order; a
// document with errors is one operation.
func CheckDocuments(opts Options, shards int) []CheckedOperation {
	given := opts.Documents
	opts.Documents = nil
	e, table := NewExecutor(opts), dynamo.NewBounds(shards)
	var checked []CheckedOperation
	for _, g := range given {
		d := e.documents.Parse(g.Text, opts.NoIntrospection)
		if errs := d.Errors(opts.NoIntrospection); len(errs) > 0 {
			c := CheckedOperation{ID: g.ID, Name: cmp.Or(g.Name, document.OperationName(d.Parsed)), Errors: document.Errors(errs)}
			if d.Parsed != nil {
				c.Type = string(d.Parsed.Operations[0].Operation)
			}
			checked = append(checked, c)
			continue
		}
		for _, o := range d.Parsed.Operations {
			checked = append(checked, e.check(g, o, table))
		}
	}
	return checked
}

// check bounds an operation of a valid document. What it costs can depend on its variables, so only
// where it has none it is known here that it costs too much.
func (e *Executor) check(of document.Trusted, o *ast.OperationDefinition, table dynamo.Bounds) CheckedOperation {
	c := CheckedOperation{ID: of.ID, Name: o.Name, Type: string(o.Operation)}
	prepared := e.preparer.PrepareAny(o)
	if len(o.VariableDefinitions) == 0 {
		if err := e.costs.Check(o, prepared.Cost(nil)); err != nil {
			c.Errors = document.Errors(gqlerror.List{err})
			return c
		}
	}
	c.Bound = bound.Of(e.schema.Schema(), prepared, table)
	return c
}
