package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// overlaps finds fields of one response name that cannot be merged
// (https://spec.graphql.org/September2025/#sec-Field-Selection-Merging). The document is valid but
// for that.
//
// The specification compares all pairs of fields. Here each field is compared with the first of its
// name: to be of one shape, and to be the same field with the same arguments, is true of all pairs
// if it is true of each with the first. What is selected below fields that are merged is looked at
// once, merged. So a walk sees no selection more often than the expanded document has it, times the
// types where fields of one name stand on several.
func overlaps(schema *ast.Schema, document *ast.QueryDocument) gqlerror.List {
	for _, operation := range document.Operations {
		o := overlapping{schema: schema}
		if o.check([]ast.SelectionSet{operation.SelectionSet}, false); o.found != nil {
			return gqlerror.List{o.found}
		}
	}
	return nil
}

type overlapping struct {
	schema *ast.Schema
	found  *gqlerror.Error
}

// check looks at selections that are merged. With shapesOnly their fields stand on types that no
// record has both of, so that they need not be the same, but of one shape.
func (o *overlapping) check(sets []ast.SelectionSet, shapesOnly bool) {
	for _, named := range byResponseName(sets) {
		first := named[0]
		for _, f := range named[1:] {
			if !o.sameShape(first.Definition.Type, f.Definition.Type) {
				o.refuse(first, f, "have types that do not fit together")
			}
		}
		classes := [][]*ast.Field{named}
		if !shapesOnly {
			classes = byType(named)
			for _, class := range classes {
				for _, f := range class[1:] {
					if f.Name != class[0].Name {
						o.refuse(class[0], f, "are different fields")
					} else if !sameArguments(class[0].Arguments, f.Arguments) {
						o.refuse(class[0], f, "have different arguments")
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

func (o *overlapping) checkBelow(fields []*ast.Field, shapesOnly bool) {
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

func (o *overlapping) refuse(a, b *ast.Field, why string) {
	if o.found == nil {
		o.found = errcode.New(a.Position, errcode.BadUserInput, "two fields answer as %q and %s: give one of them another alias", a.Alias, why)
		o.found.Locations = append(o.found.Locations, gqlerror.Location{Line: b.Position.Line, Column: b.Position.Column})
	}
}

// byResponseName groups the fields of merged selections, each fragment's once, in the order of the
// document.
func byResponseName(sets []ast.SelectionSet) [][]*ast.Field {
	var groups [][]*ast.Field
	places := map[string]int{}
	visit := FieldVisitor{Field: func(f *ast.Field, _ bool) {
		place, ok := places[f.Alias]
		if !ok {
			place = len(groups)
			places[f.Alias] = place
			groups = append(groups, nil)
		}
		groups[place] = append(groups[place], f)
	}}
	for _, set := range sets {
		visit.Visit(set, false)
	}
	return groups
}

// byType parts fields into classes that one record can have: those of each object type, with those
// of interfaces and unions, which every record may have.
func byType(fields []*ast.Field) [][]*ast.Field {
	var types []*ast.Definition
	classes := map[*ast.Definition][]*ast.Field{} // those of interfaces and unions are of nil
	for _, f := range fields {
		of := f.ObjectDefinition
		if of.Kind != ast.Object {
			of = nil
		} else if classes[of] == nil {
			types = append(types, of)
		}
		classes[of] = append(classes[of], f)
	}
	if len(types) == 0 {
		return [][]*ast.Field{fields}
	}
	parted := make([][]*ast.Field, len(types))
	for i, of := range types {
		parted[i] = slices.Concat(classes[of], classes[nil])
	}
	return parted
}

// sameShape reports whether values of two types can stand in one place of an answer.
func (o *overlapping) sameShape(a, b *ast.Type) bool {
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

// sameValue compares values as they are written; the order of an object's fields does not matter.
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
