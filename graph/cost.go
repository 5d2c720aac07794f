package graph

import (
	"math"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/commerce"
)

// What an operation costs: one for each value that its answer can hold at most, be it a field's value, an element of a list, an object,
// or null; and in addition what the order book has to do for it.
const (
	// listCost is for each page of a list, which can be a Query of DynamoDB.
	listCost = 10
	// mutationCost is for each mutation, which is a transaction.
	mutationCost = 10
	// plainList is how many elements a list has that is no connection: phone numbers, transitions, the path of a user error. None has
	// more, but for phone numbers that other software wrote; user errors have a bound of their own, maxRefusals.
	plainList = commerce.MaxPhoneNumbers
)

// costs counts what operations cost.
type costs struct {
	limit  int
	schema *ast.Schema
	// lists are the schema's own lists, for introspection.
	lists schemaSizes
}

func newCosts(schema *ast.Schema, limits Limits) costs {
	return costs{limits.Cost, schema, sizesOf(schema)}
}

// check refuses an operation that costs too much.
//
// Errors: TOO_EXPENSIVE.
func (c costs) check(operation *ast.OperationDefinition, variables map[string]any) *gqlerror.Error {
	return c.refused(operation, c.of(operation, variables))
}

// refused is the error of an operation whose cost is over the limit, nil for others. Loaders read each record once, so a query that goes
// in circles from customers to orders and back costs few requests; but each time round its answer, which is built in memory, grows by
// the size of a page.
func (c costs) refused(operation *ast.OperationDefinition, cost int) *gqlerror.Error {
	if cost <= c.limit {
		return nil
	}
	return refusedAt(operation.Position, CodeTooExpensive, "the %s costs %d, as page sizes multiply, and the limit is %d: ask for smaller pages, for fewer lists inside lists, or for fewer fields", operation.Operation, cost, c.limit)
}

// of is what a valid operation costs with these variables, which are coerced. It is the same whatever the table holds, and never less than
// the answer has values: @skip and @include are taken to let everything in.
//
// It takes time in proportion to the document's length: what a fragment costs is counted once for each kind of place that it is
// spread in.
func (c costs) of(operation *ast.OperationDefinition, variables map[string]any) int {
	counting := costCount{costs: c, variables: variables, fragments: map[fragmentPlace]amount{}}
	whole := counting.selections(operation.SelectionSet, anywhere)
	return int(math.Round(whole.once)) // introspection counts with averages
}

// amount is what a selection costs: once, and again for each record of the page that it stands in. So a fragment on a connection
// is counted without knowing the size of the page.
type amount struct{ once, perRecord float64 }

func (a amount) plus(b amount) amount {
	return amount{enormous(a.once + b.once), enormous(a.perRecord + b.perRecord)}
}

// enormous keeps a cost below what an int holds: fragments that double can multiply beyond every number.
func enormous(cost float64) float64 { return math.Min(cost, 1<<52) }

type costCount struct {
	costs
	variables map[string]any
	fragments map[fragmentPlace]amount
}

type fragmentPlace struct {
	name  string
	place place
}

func (c *costCount) selections(set ast.SelectionSet, in place) amount {
	var whole amount
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if s.ObjectDefinition == c.schema.Mutation {
				whole = whole.plus(amount{once: mutationCost})
			}
			whole = whole.plus(c.field(s, in))
		case *ast.InlineFragment:
			whole = whole.plus(c.selections(s.SelectionSet, in))
		case *ast.FragmentSpread:
			at := fragmentPlace{s.Name, in}
			cost, known := c.fragments[at]
			if !known {
				cost = c.selections(s.Definition.SelectionSet, in)
				c.fragments[at] = cost
			}
			whole = whole.plus(cost)
		}
	}
	return whole
}

func (c *costCount) field(f *ast.Field, in place) amount {
	within := in.below(f)
	below := c.selections(f.SelectionSet, within)
	switch {
	case isPage(f):
		size := c.page(f)
		return amount{once: enormous(1 + listCost + below.once + size*below.perRecord)}
	case f.Definition.Type.Elem == nil:
		return amount{once: 1 + below.once}
	case isRecords(f):
		return amount{once: 1, perRecord: 1 + below.once}
	case f.Name == entitiesField:
		return amount{once: enormous(1 + c.representations(f)*(1+below.once))}
	default:
		elements := float64(plainList)
		switch {
		case in != anywhere:
			elements = c.lists.of(f.Name, in)
		case f.Name == "userErrors":
			elements = maxRefusals
		}
		return amount{once: enormous(1 + elements*(1+below.once))}
	}
}

// isRecords tells whether a field gives the records of a page.
func isRecords(f *ast.Field) bool {
	return f.ObjectDefinition.Fields.ForName("pageInfo") != nil && (f.Name == "nodes" || f.Name == "edges")
}

// page is how many records a page has at most.
func (c *costCount) page(f *ast.Field) float64 {
	given := f.ArgumentMap(c.variables)
	var sizes []int
	for _, name := range []string{"first", "last"} {
		if n, err := graphql.UnmarshalInt32(given[name]); err == nil && given[name] != nil {
			sizes = append(sizes, int(n))
		}
	}
	return float64(largestPage(sizes))
}

// representations is how many entities a gateway asks for.
func (c *costCount) representations(f *ast.Field) float64 {
	return float64(max(1, len(graphql.CoerceList(f.ArgumentMap(c.variables)["representations"]))))
}
