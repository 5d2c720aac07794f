package bound

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// addEntities adds the cost of the field _entities. Federation gateways use this field to look up
// records. Each lookup costs as much as the field of Query for the type, such as customer. If
// several types are possible, the most expensive one counts.
func (b *calculator) addEntities(c *cost, f *operation.Field) {
	count, types := operation.MaxRepresentations, map[string]bool(nil)
	if a := f.Arguments.ForName("representations"); a != nil && a.Value.Kind == ast.ListValue {
		count, types = min(len(a.Value.Children), count), representationTypes(a.Value.Children)
	}
	most := newCost(b)
	for _, field := range b.entityLookupFields(f) {
		// Skip the types that no representation has. A type without selected fields is not skipped,
		// because the response shows whether the record exists.
		if types != nil && !types[field.Definition.Type.Name()] {
			continue
		}
		each := newCost(b)
		b.addField(&each, b.schema.Query, field, b.readAlternatives(b.schema.Query, field), nil, recordOrigin{lookup: noPattern, single: count == 1}, map[int]bool{})
		most.raiseToMaximum(each)
	}
	c.addChildren(most, float64(count), 1)
	c.keyChain = max(c.keyChain, most.keyChain)
}

// entityLookupFields returns one field of Query for each type that _entities may return. Each field
// looks up one record, and has the same subfields that _entities selects for its type.
func (b *calculator) entityLookupFields(f *operation.Field) []*operation.Field {
	var fields []*operation.Field
	for _, set := range f.Members {
		definition := b.schema.Query.Fields.ForName(entityName(set.Type))
		field := &ast.Field{Name: definition.Name, Alias: definition.Name, Definition: definition, ObjectDefinition: b.schema.Query}
		fields = append(fields, &operation.Field{Field: field, Selections: f.Selections, Set: set, Records: []*operation.SelectionSet{set}})
	}
	return fields
}

// representationTypes returns the type names in the representations of _entities. If a type name is
// a variable, it can be any type, so representationTypes returns nil.
func representationTypes(representations ast.ChildValueList) map[string]bool {
	types := map[string]bool{}
	for _, r := range representations {
		typ := r.Value.Children.ForName("__typename")
		if typ == nil || typ.Kind != ast.StringValue {
			return nil
		}
		types[typ.Raw] = true
	}
	return types
}
