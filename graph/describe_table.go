package graph

import (
	"context"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/tablemap"
)

// DescribeTable returns a tablemap.Map as the data of the result, if the caller has
// access.PermissionExplain. It reads at most the layout of the table.
func (e *Executor) DescribeTable(ctx context.Context) Result {
	r := e.resolver
	if principal := r.principal(ctx); principal.Role == 0 {
		return e.refuse(ctx, newUnauthenticatedError())
	} else if r.callerScope(ctx, access.PermissionExplain).IsEmpty() {
		return e.refuse(ctx, operation.PermissionError(nil, principal, "read the description of the table"))
	}
	layout, err := r.store.Layout(ctx)
	if err != nil {
		return e.refuse(ctx, err)
	}
	described := tablemap.Describe(tablemap.Source{Declarations: r.extension.Declarations(), Schema: e.schema.Schema(), Store: r.store, Layout: layout, Prices: e.prices})
	data, err := json.Marshal(described)
	if err != nil {
		return e.refuse(ctx, err)
	}
	return Result{Response: &graphql.Response{Data: data}}
}

// refuse returns the result of a request that is refused because of an error.
func (e *Executor) refuse(ctx context.Context, err error) Result {
	return Result{Response: &graphql.Response{Errors: gqlerror.List{e.resolver.presentError(ctx, err)}}, Outcome: Refused}
}
