package graph

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// outlook is what plans see of an operation: those of its fields that may need a request once the record is there that has them. The rest is
// left out. Requests share it, and nothing writes to it.
type outlook struct {
	operation *ast.OperationDefinition
	root      *selection
	// varying are the fields whose arguments hold variables.
	varying []*selected
	// bytes is what it takes in memory, about.
	bytes int
}

// selection is what a query selects of one type at one place, however many records it applies to.
type selection struct{ fields []*selected }

// selected is one field of a selection.
type selected struct {
	*ast.Field
	path string
	// counted tells that "itemCount" is selected beside it.
	counted bool
	// records are the selections of the records that the field gives: its own, or those of a connection's nodes and edges.
	records []*selection
	// entities are the selections by type, where the field is _entities.
	entities map[string][]*selection
	// beyond tells what a page's field is asked for beyond the page.
	beyond struct{ next, previous bool }
	// arguments are those of a page, where they hold no variable; else they stand in the plan, at slot.
	arguments *pageArguments
	slot      int
}

// readsMore tells whether the selection has fields that may need a request of their own once the record is there.
func (s *selection) readsMore() bool { return len(s.fields) > 0 }

// outlooks keeps the outlook of a document's operation, the one that was asked for last, unless it depends on variables or the document has no room
// for it (document.keep).
type outlooks struct {
	kept atomic.Pointer[outlook]
	// passing tells that it is not to be kept.
	passing atomic.Bool
}

// What outlooks take in memory, measured (TestDocumentsKeepNoMoreThanTheyAreSaidTo): each, each of its fields beside its path, each node of a page's
// arguments, and the selections of _entities.
const (
	outlookBytes         = 192
	selectedBytes        = 384
	outlookArgumentBytes = 32
	entitySelectionBytes = 768
)

type outlooksKey struct{}

// withOutlooks returns the context of an operation of a document, which keeps its outlook.
func withOutlooks(ctx context.Context, d *document) context.Context {
	return context.WithValue(ctx, outlooksKey{}, d)
}

// outlookOf returns the outlook of an operation: the one that its document keeps, or a new one.
func outlookOf(ctx context.Context, operation *graphql.OperationContext) *outlook {
	document, _ := ctx.Value(outlooksKey{}).(*document)
	if document == nil {
		return newOutlook(ctx, operation)
	}
	keeps := &document.outlooks
	if kept := keeps.kept.Load(); kept != nil && kept.operation == operation.Operation {
		return kept
	}
	seen := newOutlook(ctx, operation)
	switch {
	case keeps.passing.Load():
	case dependsOnVariables(operation.Doc):
		keeps.passing.Store(true)
	case document.keep(seen.bytes):
		if before := keeps.kept.Swap(seen); before != nil {
			document.forget(before.bytes)
		}
	}
	return seen
}

// dependsOnVariables tells whether variables decide what a document selects.
func dependsOnVariables(document *ast.QueryDocument) bool {
	for _, operation := range document.Operations {
		if setDependsOnVariables(operation.SelectionSet) {
			return true
		}
	}
	return slices.ContainsFunc(document.Fragments, func(f *ast.FragmentDefinition) bool { return setDependsOnVariables(f.SelectionSet) })
}

func setDependsOnVariables(set ast.SelectionSet) bool {
	return slices.ContainsFunc(set, func(s ast.Selection) bool {
		switch s := s.(type) {
		case *ast.Field:
			return variesBy(s.Directives) || setDependsOnVariables(s.SelectionSet)
		case *ast.InlineFragment:
			return variesBy(s.Directives) || setDependsOnVariables(s.SelectionSet)
		case *ast.FragmentSpread:
			return variesBy(s.Directives)
		default:
			return true
		}
	})
}

func variesBy(directives ast.DirectiveList) bool {
	return slices.ContainsFunc(directives, func(d *ast.Directive) bool { return variable(d.Arguments) })
}

// variable tells whether arguments hold variables.
func variable(arguments ast.ArgumentList) bool {
	return slices.ContainsFunc(arguments, func(a *ast.Argument) bool { return variableValue(a.Value) })
}

func variableValue(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return variableValue(c.Value) })
}

// watching makes an outlook.
type watching struct {
	ctx       context.Context
	operation *graphql.OperationContext
	out       *outlook
}

func newOutlook(ctx context.Context, operation *graphql.OperationContext) *outlook {
	w := watching{ctx: ctx, operation: operation, out: &outlook{operation: operation.Operation, bytes: outlookBytes}}
	w.out.root = w.selection(rootType(operation.Operation.Operation), operation.Operation.SelectionSet, "")
	return w.out
}

// selection is what a selection set selects of a type, after @skip and @include.
func (w watching) selection(typ string, set ast.SelectionSet, path string) *selection {
	collected := w.collect(typ, set)
	counted := slices.ContainsFunc(collected, func(f graphql.CollectedField) bool { return f.Name == "itemCount" })
	s := &selection{}
	for _, f := range collected {
		if mayRead(f) {
			s.fields = append(s.fields, w.field(f, below(path, f.Alias), counted))
		}
	}
	return s
}

// collect gives the fields of a selection set that apply to a type. A fragment on the union of entities applies to each of them; elsewhere
// validation lets none through.
func (w watching) collect(typ string, set ast.SelectionSet) []graphql.CollectedField {
	return graphql.CollectFields(w.operation, set, []string{typ, "_Entity"})
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// mayRead tells whether a field may need a request of its own once the record is there that has it.
func mayRead(f graphql.CollectedField) bool {
	switch {
	case f.Name == "orderCount" || f.Name == "itemCount" || f.Name == entitiesField:
		return true
	case strings.HasPrefix(f.Name, "_"): // about the schema
		return false
	default:
		return len(f.Selections) > 0 && !valueTypes[f.Definition.Type.Name()]
	}
}

// valueTypes are object types that are part of the record that has them.
var valueTypes = map[string]bool{"Money": true, "Address": true}

func (w watching) field(f graphql.CollectedField, path string, counted bool) *selected {
	s := &selected{Field: f.Field, path: path, counted: counted}
	w.out.bytes += selectedBytes + len(path)
	switch {
	case f.Name == entitiesField:
		s.entities = map[string][]*selection{}
		w.out.bytes += entitySelectionBytes
		for _, typ := range []string{"Customer", "Order", "Product", "Employee", "Warehouse"} {
			s.entities[typ] = []*selection{w.selection(typ, f.Selections, path)}
		}
	case isPage(f.Field):
		s.records = w.page(f, path)
		s.beyond.next, s.beyond.previous = asksBeyond(w.operation, f)
		if variable(f.Arguments) {
			s.slot = len(w.out.varying)
			w.out.varying = append(w.out.varying, s)
		} else {
			s.arguments = s.read(w.ctx, w.operation.Variables)
			w.out.bytes += countArguments(f.Arguments) * outlookArgumentBytes
		}
	case len(f.Selections) > 0:
		s.records = []*selection{w.selection(f.Definition.Type.Name(), f.Selections, path)}
	}
	return s
}

// page gives the selections of a connection's nodes and edges.
func (w watching) page(f graphql.CollectedField, path string) []*selection {
	var records []*selection
	for _, part := range w.collect(f.Definition.Type.Name(), f.Selections) {
		switch at := below(path, part.Alias); part.Name {
		case "nodes":
			records = append(records, w.selection(part.Definition.Type.Name(), part.Selections, at))
		case "edges":
			for _, edge := range w.collect(part.Definition.Type.Name(), part.Selections) {
				if edge.Name == "node" {
					records = append(records, w.selection(edge.Definition.Type.Name(), edge.Selections, below(at, edge.Alias)))
				}
			}
		}
	}
	return records
}

// selects tells whether one of the selections has a field that may read.
func selects(selections []*selection, name string) bool {
	for _, s := range selections {
		for _, f := range s.fields {
			if f.Name == name {
				return true
			}
		}
	}
	return false
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
