package graph

import (
	"cmp"
	"context"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
)

// CheckedOperation is the result of checking one operation of a trusted document.
type CheckedOperation struct {
	// ID is the ID of the document. Name is the name of the operation.
	ID, Name string
	// Type is "query", "mutation" or "subscription", or empty if the document could not be parsed.
	Type string
	// Bound is the maximum load on DynamoDB. If the operation has errors, it is the zero value.
	Bound bound.Bound
	// Errors contains the reasons why the server would reject the operation.
	Errors []document.Error
	// Definition is the validated operation. If its document has errors, Definition is nil.
	Definition *ast.OperationDefinition
	// Permissions contains the permissions that the operation always needs.
	Permissions []access.Permission
}

// CheckDocuments checks the trusted documents in opts like a server with these options. It returns
// one result for each operation, but only one for an invalid document. opts.Store may be nil.
func CheckDocuments(opts Options, shards int) []CheckedOperation {
	documents := opts.Documents
	opts.Documents = nil
	return NewExecutor(opts).CheckDocuments(documents, shards)
}

// CheckDocuments checks documents with the schema and the limits of the executor. It returns one
// result for each operation, but only one for an invalid document.
func (e *Executor) CheckDocuments(documents []document.TrustedDocument, shards int) []CheckedOperation {
	table, noIntrospection := dynamo.NewCostBounds(shards), e.resolver.access.HidesSchema(access.AnonymousAdmin())
	var operations []CheckedOperation
	for _, trusted := range documents {
		d := e.documents.Parse(trusted.Text, noIntrospection)
		if errs := d.Errors(noIntrospection); len(errs) > 0 {
			checked := CheckedOperation{ID: trusted.ID, Name: cmp.Or(trusted.Name, document.OperationName(d.Parsed)), Errors: document.ConvertErrors(errs)}
			if d.Parsed != nil {
				checked.Type = string(d.Parsed.Operations[0].Operation)
			}
			operations = append(operations, checked)
			continue
		}
		for _, o := range d.Parsed.Operations {
			operations = append(operations, e.checkOperation(trusted, o, table))
		}
	}
	return operations
}

// checkOperation checks an operation of a valid document and computes its maximum load on DynamoDB.
// If the operation has variables, the cost limit is not checked, because the cost can depend on
// them.
func (e *Executor) checkOperation(trusted document.TrustedDocument, o *ast.OperationDefinition, table dynamo.CostBounds) CheckedOperation {
	prepared := e.preparer.PrepareForAllVariables(o)
	checked := CheckedOperation{ID: trusted.ID, Name: o.Name, Type: string(o.Operation), Definition: o, Permissions: prepared.FieldPermissions()}
	if len(o.VariableDefinitions) == 0 {
		if err := e.costs.Check(o, prepared.Cost(nil)); err != nil {
			checked.Errors = document.ConvertErrors(gqlerror.List{err})
			return checked
		}
	}
	checked.Bound = bound.Compute(e.schema.Schema(), prepared, table)
	return checked
}

// Permits reports whether the caller in ctx has at least a part of each permission, such as for its own
// records.
func (e *Executor) Permits(ctx context.Context, permissions []access.Permission) bool {
	principal := e.resolver.principal(ctx)
	return !slices.ContainsFunc(permissions, func(p access.Permission) bool {
		return e.resolver.access.Policy.ScopeOf(principal, p).IsEmpty()
	})
}

// Schema returns the schema that the executor serves. It must not be modified.
func (e *Executor) Schema() *ast.Schema { return e.schema.Schema() }
