package bound

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// addEntities adds the cost of the records that a federation gateway looks up. Each record is read
// like the field of Query that returns a record of its type by key.
func (b *calculator) addEntities(c *cost, f *operation.Field) {
	count, types := operation.MaxRepresentations, map[string]bool(nil)
	if a := f.Arguments.ForName("representations"); a != nil && a.Value.Kind == ast.ListValue {
		count, types = min(len(a.Value.Children), count), literalTypes(a.Value.Children)
	}
	most := newCost(b)
	for _, field := range b.entityFields(f) {
		// A record is looked up even if nothing is selected of its type, because the response reports
		// whether it exists.
		if types != nil && !types[field.Definition.Type.Name()] {
			continue
		}
		each := newCost(b)
		b.addField(&each, b.schema.Query, field, b.alternatives(b.schema.Query, field), nil, origin{lookup: noPattern, single: count == 1}, map[int]bool{})
		most.setMaximum(each)
	}
	c.addChildren(most, float64(count), 1)
	c.keyChain = max(c.keyChain, most.keyChain)
}

// entityFields returns the fields of Query that look up a record of each type that _entities may
// return. Each field has the selection of _entities for its type.
func (b *calculator) entityFields(f *operation.Field) []*operation.Field {
	var fields []*operation.Field
	for _, set := range f.Members {
		definition := b.schema.Query.Fields.ForName(entityName(set.Type))
		field := &ast.Field{Name: definition.Name, Alias: definition.Name, Definition: definition, ObjectDefinition: b.schema.Query}
		fields = append(fields, &operation.Field{Field: field, Selections: f.Selections, Set: set, Records: []*operation.SelectionSet{set}})
	}
	return fields
}

// literalTypes returns the types in representations that are literals. It returns nil if a variable
// may contain other types.
func literalTypes(representations ast.ChildValueList) map[string]bool {
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
