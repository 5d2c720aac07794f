package graph

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// selection is what a query selects of one type at one place. Its fields are collected once, however many records it
// applies to.
type selection struct {
	plan *plan
	typ  string
	set  ast.SelectionSet
	path string

	once   sync.Once
	fields []*selected
}

// selected is one field of a selection.
type selected struct {
	graphql.CollectedField
	plan *plan
	path string
	// counted tells that "itemCount" is selected beside it.
	counted bool

	argumentsOnce sync.Once
	arguments     map[string]any
	// refused tells that an argument cannot be read.
	refused atomic.Bool

	subOnce sync.Once
	sub     []*selection
}

func (p *plan) selection(typ string, set ast.SelectionSet, path string) *selection {
	return &selection{plan: p, typ: typ, set: set, path: path}
}

// each gives every field of the selection, after @skip and @include.
func (s *selection) each() []*selected {
	s.once.Do(func() {
		// A fragment on the union of entities applies to each of them; elsewhere validation lets none through.
		collected := graphql.CollectFields(s.plan.operation, s.set, []string{s.typ, "_Entity"})
		counted := slices.ContainsFunc(collected, func(f graphql.CollectedField) bool { return f.Name == "itemCount" })
		for _, f := range collected {
			path := f.Alias
			if s.path != "" {
				path = s.path + "." + f.Alias
			}
			s.fields = append(s.fields, &selected{CollectedField: f, plan: s.plan, path: path, counted: counted})
		}
	})
	return s.fields
}

// readsMore tells whether the selection has fields that may need a request of their own once the record is there.
func (s *selection) readsMore() bool {
	for _, f := range s.each() {
		if f.Name == "orderCount" || f.Name == "itemCount" {
			return true
		}
		if len(f.Selections) > 0 && !valueTypes[f.Definition.Type.Name()] {
			return true
		}
	}
	return false
}

// valueTypes are object types that are part of the record that has them.
var valueTypes = map[string]bool{"Money": true, "Address": true}

// records are the selections of the records that a field gives: its own, or those of a connection's nodes and edges.
func (f *selected) records() []*selection {
	f.subOnce.Do(func() {
		typ := f.Definition.Type.Name()
		own := f.plan.selection(typ, f.Selections, f.path)
		if !isPage(f.Field) {
			f.sub = []*selection{own}
			return
		}
		for _, part := range own.each() {
			switch part.Name {
			case "nodes":
				f.sub = append(f.sub, part.records()...)
			case "edges":
				edges := f.plan.selection(part.Definition.Type.Name(), part.Selections, part.path)
				for _, edge := range edges.each() {
					if edge.Name == "node" {
						f.sub = append(f.sub, edge.records()...)
					}
				}
			}
		}
	})
	return f.sub
}

// asksBeyond tells whether a connection's pageInfo is asked for what lies behind and before the page.
func asksBeyond(op *graphql.OperationContext, f graphql.CollectedField) (next, previous bool) {
	for _, part := range graphql.CollectFields(op, f.Selections, []string{f.Definition.Type.Name()}) {
		if part.Name != "pageInfo" {
			continue
		}
		for _, field := range graphql.CollectFields(op, part.Selections, []string{part.Definition.Type.Name()}) {
			next = next || field.Name == "hasNextPage"
			previous = previous || field.Name == "hasPreviousPage"
		}
	}
	return next, previous
}
