package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// findFieldConflicts returns an error if two fields with the same response name cannot be merged
// (https://spec.graphql.org/September2025/#sec-Field-Selection-Merging). The document must already
// satisfy all other rules.
func findFieldConflicts(schema *ast.Schema, document *ast.QueryDocument) gqlerror.List {
	for _, operation := range document.Operations {
		o := conflictFinder{schema: schema}
		if o.check([]ast.SelectionSet{operation.SelectionSet}, false); o.found != nil {
			return gqlerror.List{o.found}
		}
	}
	return nil
}

// conflictFinder finds conflicts in time O(n·t). n is the number of nodes after each fragment
// spread is replaced by its fragment. t is the maximum number of object types on which the document
// selects the same response name.
type conflictFinder struct {
	schema *ast.Schema
	found  *gqlerror.Error
}

// check compares the fields of selection sets that the response merges. If shapesOnly is true, the
// sets are on different object types. Fields with the same response name then need only the same
// shape (sameShape).
func (o *conflictFinder) check(sets []ast.SelectionSet, shapesOnly bool) {
	for _, named := range groupByResponseName(sets) {
		// Equality is transitive, so each field is compared only with the first one.
		first := named[0]
		for _, f := range named[1:] {
			if !o.sameShape(first.Definition.Type, f.Definition.Type) {
				o.reportConflict(first, f, "return incompatible types")
			}
		}
		classes := [][]*ast.Field{named}
		if !shapesOnly {
			classes = groupByType(named)
			for _, class := range classes {
				for _, f := range class[1:] {
					if f.Name != class[0].Name {
						o.reportConflict(class[0], f, "are different fields")
					} else if !sameArguments(class[0].Arguments, f.Arguments) {
						o.reportConflict(class[0], f, "have different arguments")
					}
				}
			}
		}
		if o.found != nil {
			return
		}
		for _, class := range classes {
			o.checkBelow(class, shapesOnly)
		}
		if len(classes) > 1 {
			o.checkBelow(named, true)
		}
	}
}

func (o *conflictFinder) checkBelow(fields []*ast.Field, shapesOnly bool) {
	var below []ast.SelectionSet
	for _, f := range fields {
		if len(f.SelectionSet) > 0 {
			below = append(below, f.SelectionSet)
		}
	}
	if len(below) > 0 && o.found == nil {
		o.check(below, shapesOnly)
	}
}

func (o *conflictFinder) reportConflict(a, b *ast.Field, why string) {
	if o.found == nil {
		o.found = errcode.New(a.Position, errcode.BadUserInput, "two fields with the response name %q conflict because they %s: use a different alias for one of the fields", a.Alias, why)
		o.found.Locations = append(o.found.Locations, gqlerror.Location{Line: b.Position.Line, Column: b.Position.Column})
	}
}

// groupByResponseName groups the fields of several selection sets by response name. The groups are
// in the order in which the document first uses the names. Each fragment is visited only once.
func groupByResponseName(sets []ast.SelectionSet) [][]*ast.Field {
	var groups [][]*ast.Field
	indexes := map[string]int{}
	visit := FieldVisitor{Field: func(f *ast.Field, _ bool) {
		index, ok := indexes[f.Alias]
		if !ok {
			index = len(groups)
			indexes[f.Alias] = index
			groups = append(groups, nil)
		}
		groups[index] = append(groups[index], f)
	}}
	for _, set := range sets {
		visit.Visit(set, false)
	}
	return groups
}

// groupByType groups fields by the object type on which the document selects them. A field that is
// selected on an interface or union belongs to every group, because objects of each type can have
// it.
func groupByType(fields []*ast.Field) [][]*ast.Field {
	var types []*ast.Definition
	classes := map[*ast.Definition][]*ast.Field{} // the key nil stands for all interfaces and unions
	for _, f := range fields {
		objectType := f.ObjectDefinition
		if objectType.Kind != ast.Object {
			objectType = nil
		} else if classes[objectType] == nil {
			types = append(types, objectType)
		}
		classes[objectType] = append(classes[objectType], f)
	}
	if len(types) == 0 {
		return [][]*ast.Field{fields}
	}
	groups := make([][]*ast.Field, len(types))
	for i, objectType := range types {
		groups[i] = slices.Concat(classes[objectType], classes[nil])
	}
	return groups
}

// sameShape reports whether two types have the same list and non-null wrappers. Scalars and enums
// must also have the same name. For other types, check compares the nested fields.
func (o *conflictFinder) sameShape(a, b *ast.Type) bool {
	if a.NonNull != b.NonNull || (a.Elem == nil) != (b.Elem == nil) {
		return false
	}
	if a.Elem != nil {
		return o.sameShape(a.Elem, b.Elem)
	}
	if o.schema.Types[a.NamedType].IsLeafType() || o.schema.Types[b.NamedType].IsLeafType() {
		return a.NamedType == b.NamedType
	}
	return true
}

func sameArguments(a, b ast.ArgumentList) bool {
	if len(a) != len(b) {
		return false
	}
	for _, argument := range a {
		other := b.ForName(argument.Name)
		if other == nil || !sameValue(argument.Value, other.Value) {
			return false
		}
	}
	return true
}

// sameValue reports whether two values in the document are equal. The order of an object's fields
// does not matter.
func sameValue(a, b *ast.Value) bool {
	if a.Kind != b.Kind || a.Raw != b.Raw || len(a.Children) != len(b.Children) {
		return false
	}
	for i, child := range a.Children {
		other := b.Children[i].Value
		if a.Kind == ast.ObjectValue {
			other = b.Children.ForName(child.Name)
		}
		if other == nil || !sameValue(child.Value, other) {
			return false
		}
	}
	return true
}
