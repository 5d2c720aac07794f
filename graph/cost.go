package graph

import (
	"math"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// maxRecords is how many records a query may ask for at most, as its page sizes multiply: a page of 100 orders of each of 100
// customers is 10,000. The answer is built in memory, about two kilobytes for each.
const maxRecords = 250_000

// checkCost refuses an operation that asks for too much. Loaders read each record once, so a query that goes in
// circles from customers to orders and back costs few requests; but each time round its answer grows by the size of a page.
func (l Limits) checkCost(operation *ast.OperationDefinition, variables map[string]any) *gqlerror.Error {
	size := querySize{variables: variables, fragments: map[string]float64{}}
	if records := size.of(operation.SelectionSet); records > maxRecords {
		return refusedAt(operation.Position, CodeTooExpensive, "the query asks for more than %d records, as its page sizes multiply: ask for smaller pages, or for fewer lists inside lists", maxRecords)
	}
	return nil
}

// querySize counts the records that a query asks for, each fragment once, so that it takes no longer than the query is long.
type querySize struct {
	variables map[string]any
	fragments map[string]float64
}

func (q querySize) of(set ast.SelectionSet) float64 {
	records := 0.0
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if len(s.SelectionSet) == 0 {
				continue
			}
			inner := q.of(s.SelectionSet)
			switch s.Name {
			case "nodes", "node":
				inner++ // a record of its own
			}
			records += inner * q.page(s)
		case *ast.InlineFragment:
			records += q.of(s.SelectionSet)
		case *ast.FragmentSpread:
			if _, ok := q.fragments[s.Name]; !ok {
				q.fragments[s.Name] = q.of(s.Definition.SelectionSet)
			}
			records += q.fragments[s.Name]
		}
	}
	return math.Min(records, math.MaxFloat32)
}

// page is by how much a field multiplies what is selected below it: the size of its page, 1 for what is no list.
func (q querySize) page(f *ast.Field) float64 {
	if f.Definition == nil || f.Definition.Arguments.ForName("first") == nil {
		return 1
	}
	given := f.ArgumentMap(q.variables)
	size := float64(defaultPage)
	for _, name := range []string{"first", "last"} {
		if n, err := graphql.UnmarshalInt32(given[name]); err == nil && given[name] != nil {
			size = math.Max(1, math.Min(float64(n), maxPage)) // what is out of bounds is refused by its resolver
		}
	}
	return size
}
