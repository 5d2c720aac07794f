package graph

import (
	"maps"
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/paging"
)

// Every argument of a list that selects records is part of the list's cursors and of its loader's
// key. Otherwise one list would accept a cursor of another list.
func TestEveryArgumentOfAListIsInItsScope(t *testing.T) {
	e := newExecutorPair(t, Options{}, nil).executor
	pagingNames := []string{"first", "after", "last", "before"}
	// sample returns one of two values of a type.
	var sample func(of *ast.Type, n int) any
	sample = func(of *ast.Type, n int) any {
		d := parsedSchema.Types[of.Name()]
		switch {
		case of.Elem != nil:
			return []any{sample(of.Elem, n)}
		case d.Kind == ast.Enum:
			return d.EnumValues[n].Name
		case d.Kind == ast.InputObject:
			return map[string]any{d.Fields[0].Name: sample(d.Fields[0].Type, n)}
		}
		values, ok := map[string][2]any{
			"String": {"a", "b"}, "Int": {int64(1), int64(2)}, "Boolean": {false, true}, "Date": {"2026-01-01", "2026-01-02"}, "DateTime": {"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		}[d.Name]
		if !ok {
			t.Fatalf("this test needs two values of type %s", d.Name)
		}
		return values[n]
	}
	lists, arguments := 0, 0
	for _, d := range own(t) {
		for _, f := range d.Fields {
			if !operation.ReturnsPage(&ast.Field{Definition: f}) {
				continue
			}
			lists++
			_, read := objectTypeOf(d.Name).Field(f.Name)
			request := func(given map[string]any) paging.Request {
				a, err := read(t.Context(), e.fields.generated, given)
				if err != nil {
					t.Fatalf("%s.%s%v: %v", d.Name, f.Name, given, err)
				}
				q := e.resolver.pageRequest(d.Name+"."+f.Name, "parent")
				a.(interface {
					list(*paging.Request, operation.PageInfoSelection)
				}).list(&q, operation.PageInfoSelection{})
				if q.Err != nil {
					t.Fatalf("%s.%s%v: %v", d.Name, f.Name, given, q.Err)
				}
				return q
			}
			all := map[string]any{}
			for _, a := range f.Arguments {
				if !slices.Contains(pagingNames, a.Name) {
					all[a.Name] = sample(a.Type, 0)
				}
			}
			for name := range all {
				arguments++
				given := maps.Clone(all)
				maps.DeleteFunc(given, func(other string, _ any) bool { // a list has at most one prefix
					return other != name && operation.IsPrefixArgument(other) && operation.IsPrefixArgument(name)
				})
				first := request(given)
				given[name] = sample(f.Arguments.ForName(name).Type, 1)
				other := request(given)
				if other.Scope.Encode("1") == first.Scope.Encode("1") {
					t.Errorf("%s.%s: a cursor is also valid for another value of the argument %q", d.Name, f.Name, name)
				}
				if other.Key == first.Key {
					t.Errorf("%s.%s: pages with different values of the argument %q have the same loader key", d.Name, f.Name, name)
				}
			}
		}
	}
	if lists == 0 || arguments == 0 {
		t.Errorf("%d lists with %d arguments were found", lists, arguments)
	}
}
