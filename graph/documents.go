package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
)

// parsedQueries is how many parsed queries are kept; each can be as large as a request.
const parsedQueries = 250

// documents are the documents that can be executed, parsed and validated.
type documents struct {
	schema *ast.Schema
	limits Limits
	// introspection tells whether documents may ask for the schema.
	introspection bool
	parsed        *lru.LRU[*ast.QueryDocument]
}

func newDocuments(schema *ast.Schema, limits Limits, opts Options) *documents {
	return &documents{schema: schema, limits: limits, introspection: !opts.NoIntrospection, parsed: lru.New[*ast.QueryDocument](parsedQueries)}
}

// find returns the document that a request asks for, and its text.
func (d *documents) find(ctx context.Context, r Request) (string, *ast.QueryDocument, gqlerror.List) {
	if document, ok := d.parsed.Get(ctx, r.Query); ok {
		return r.Query, document, nil
	}
	document, errs := d.parse(r.Query)
	if len(errs) == 0 {
		d.parsed.Add(ctx, r.Query, document)
	}
	return r.Query, document, errs
}

// parse makes a document of a text, within limits and valid.
func (d *documents) parse(text string) (*ast.QueryDocument, gqlerror.List) {
	document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, d.limits.Tokens)
	if err != nil {
		return nil, gqlerror.List{d.limits.parseError(text, err)}
	}
	if len(document.Operations) == 0 {
		return nil, gqlerror.List{gqlerror.Errorf("the document has no operation: send a query or a mutation")}
	}
	if errs := d.limits.checkDocument(document); len(errs) > 0 {
		return nil, errs
	}
	return document, validate(d.schema, document, d.introspection)
}
