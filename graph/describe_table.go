package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/graph/extension"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/tablemap"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// The work for a schema extension, as nodes of documents that are parsed. schemaNodes is the work for
// the schema without custom fields, and nodesPerField and nodesPerQuery that for each field and each query
// by a field. They are measured in units of operation.CPUTimePerPoint.
const (
	schemaNodes   = 50_000
	nodesPerField = 150
	nodesPerQuery = 2500
)

// DescribeTable returns a tablemap.Map as the data of the result, if the caller has
// access.PermissionExplain. It reads at most the layout of the table.
//
// If text is not nil, it is the text of a schema extension. DescribeTable then describes the table
// of a server with this extension, and what the extension would change. It changes neither the
// table nor the declarations of the process. To count records, it executes queries for the caller.
func (e *Executor) DescribeTable(ctx context.Context, text *string) Result {
	described, errs := e.describeTable(ctx, text)
	if len(errs) > 0 {
		refused := Result{Response: &graphql.Response{}, Outcome: Refused}
		for _, err := range errs[:min(len(errs), errcode.MaxErrors)] {
			refused.Errors = append(refused.Errors, e.resolver.presentError(ctx, err))
		}
		return refused
	}
	data, err := json.Marshal(described)
	if err != nil {
		panic(err) // a Map can always be encoded
	}
	return Result{Response: &graphql.Response{Data: data}}
}

func (e *Executor) describeTable(ctx context.Context, text *string) (tablemap.Map, []error) {
	r := e.resolver
	principal := r.principal(ctx)
	switch {
	case principal.Role == 0:
		return tablemap.Map{}, []error{newUnauthenticatedError()}
	case r.callerScope(ctx, access.PermissionExplain).IsEmpty():
		return tablemap.Map{}, []error{operation.PermissionError(nil, principal, "read the description of the table")}
	}
	if refused := e.documents.RefuseIntrospection("the description of the table"); refused != nil {
		return tablemap.Map{}, []error{refused}
	}
	if r.access.HidesSchema(principal) {
		return tablemap.Map{}, []error{operation.PermissionError(nil, principal, "read the schema, which the description of the table contains")}
	}
	layout, err := r.store.Layout(ctx)
	if err != nil {
		return tablemap.Map{}, []error{err}
	}
	served := tablemap.Served{
		Declarations: r.extension.Declarations(), Schema: e.schema.Schema(),
		MaySelect: func(f *ast.FieldDefinition) bool { return r.access.MaySelect(principal, f) },
	}
	source := tablemap.Source{Served: served, Proposed: served, Store: r.store, Layout: layout, Prices: e.prices}
	if text == nil {
		return tablemap.Describe(source), nil
	}
	costs, errs := e.readProposal(ctx, *text, &source)
	if len(errs) > 0 {
		return tablemap.Map{}, errs
	}
	described := tablemap.Describe(source)
	described.Proposal = source.Propose(costs, func(recordType string) (int, bool) { return e.countRecords(ctx, recordType) })
	return described, nil
}

// readProposal parses a schema extension and returns the costs of its queries. It sets s.Proposed.
// Like the parsing of documents, it waits for a slot of admission.PoolParsing.
func (e *Executor) readProposal(ctx context.Context, text string, s *tablemap.Source) (map[string]tablemap.Cost, []error) {
	caller, pool := admission.CallerFromContext(ctx), e.pools[admission.PoolParsing]
	if pool.Acquire(ctx, caller, 1) != nil {
		return nil, []error{errcode.New(nil, errcode.TimedOut, "the schema extension was not parsed in time because the server is busy: try again later")}
	}
	defer pool.Release(caller, 1)
	// Each token takes at least one byte, and about one in four begins a node.
	work := document.ProcessedNodes{Parsed: schemaNodes + len(text)/4}
	defer func() { e.callerLimiter(ctx).Deduct(e.resolver.principal(ctx).ID, operation.PreparationPoints(work)) }()
	proposed, err := ParseExtension("", text)
	if mistakes := (*extension.MistakesError)(nil); errors.As(err, &mistakes) {
		var errs []error
		for _, m := range mistakes.Mistakes[:min(len(mistakes.Mistakes), errcode.MaxErrors)] {
			located := errcode.New(nil, errcode.BadUserInput, "%s", errcode.Excerpt(m.Text, maxErrorMessage))
			located.Locations = []gqlerror.Location{{Line: m.Line, Column: 1}}
			errs = append(errs, located)
		}
		return nil, errs
	} else if err != nil {
		return nil, []error{err}
	}
	other := NewExecutor(Options{Store: e.resolver.store, Extension: proposed, Limits: e.limits, Admission: e.pools})
	s.Proposed = tablemap.Served{Declarations: proposed.Declarations(), Schema: other.schema.Schema()}
	for _, fields := range proposed.Fields {
		work.Parsed += nodesPerField * len(fields)
	}
	work.Parsed += nodesPerQuery * len(proposed.Queries())
	return other.costsOfQueries(*s), nil
}

// costsOfQueries returns the costs of the queries by custom fields that the source proposes. A
// query selects the keys of the records on one page.
func (e *Executor) costsOfQueries(s tablemap.Source) map[string]tablemap.Cost {
	costs, bounds := map[string]tablemap.Cost{}, dynamo.NewCostBoundsWith(s.Proposed.Declarations, s.Store.Shards())
	for _, q := range s.Proposed.Declarations.Queries() {
		f := e.schema.Schema().Query.Fields.ForName(q.Name)
		value := bound.NonNullArguments(f)[0]
		selected := "__typename id"
		if e.schema.Schema().Types[q.RecordType].Fields.ForName("id") == nil {
			selected = "__typename sku"
		}
		if q.Claim == nil {
			selected = "nodes { " + selected + " }"
		}
		doc := e.documents.Parse(fmt.Sprintf("query($value: %s) { %s(%s: $value) { %s } }", value.Type, q.Name, value.Name, selected), false)
		if len(doc.Errors(false)) > 0 {
			continue // the limits of the server reject the query
		}
		prepared := e.preparer.PrepareForAllVariables(doc.Parsed.Operations[0])
		costs[q.Name] = tablemap.Cost{
			Typical: bound.Compute(e.schema.Schema(), prepared, bounds.WithRecordSize(tablemap.TypicalRecordBytes)),
			Most:    bound.Compute(e.schema.Schema(), prepared, bounds),
		}
	}
	return costs
}

// countRecords returns the number of orders or products, if the caller may read the records that
// count them.
func (e *Executor) countRecords(ctx context.Context, recordType string) (n int, ok bool) {
	query := map[string]string{
		"Order": "{ orderCounts { count } }", "Product": "{ categories(first: 100) { nodes { productCount } pageInfo { hasNextPage } } }",
	}[recordType]
	if query == "" {
		return 0, false
	}
	var counted struct {
		OrderCounts []struct{ Count int }
		Categories  struct {
			Nodes    []struct{ ProductCount int }
			PageInfo struct{ HasNextPage bool }
		}
	}
	result := e.Execute(ctx, Request{Query: query, ReadOnly: true})
	if len(result.Errors) > 0 || json.Unmarshal(result.Data, &counted) != nil || counted.Categories.PageInfo.HasNextPage {
		return 0, false
	}
	for _, c := range counted.OrderCounts {
		n += c.Count
	}
	for _, c := range counted.Categories.Nodes {
		n += c.ProductCount
	}
	return n, true
}
