package bound

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// entities adds records that a gateway names, of any type: each is read as the field of Query reads
// it that gives one of its type by its key.
func (b *bounding) entities(c *cost, f *operation.Field) {
	asked, named := operation.MaxRepresentations, map[string]bool(nil)
	if a := f.Arguments.ForName("representations"); a != nil && a.Value.Kind == ast.ListValue {
		asked, named = min(len(a.Value.Children), asked), typesNamed(a.Value.Children)
	}
	most := newCost(b)
	for _, one := range b.named(f) {
		// A record is looked up also where nothing is selected of its type: whether there is one
		// has to be told.
		if named != nil && !named[one.Definition.Type.Name()] {
			continue
		}
		each := newCost(b)
		b.field(&each, b.schema.Query, one, b.ways(b.schema.Query, one), nil, origin{via: none, single: asked == 1}, map[int]bool{})
		most.either(each)
	}
	c.below(most, float64(asked), 1)
	c.key = max(c.key, most.key)
}

// named are the fields of Query that give one record of each type that _entities may give, with
// what is selected of it there.
func (b *bounding) named(f *operation.Field) []*operation.Field {
	var fields []*operation.Field
	for _, set := range f.Members {
		definition := b.schema.Query.Fields.ForName(entityName(set.Type))
		field := &ast.Field{Name: definition.Name, Alias: definition.Name, Definition: definition, ObjectDefinition: b.schema.Query}
		fields = append(fields, &operation.Field{Field: field, Selections: f.Selections, Set: set, Records: []*operation.SelectionSet{set}})
	}
	return fields
}

// typesNamed are the types that representations in the document name; nil where a variable may name
// others.
func typesNamed(representations ast.ChildValueList) map[string]bool {
	named := map[string]bool{}
	for _, r := range representations {
		typ := r.Value.Children.ForName("__typename")
		if typ == nil || typ.Kind != ast.StringValue {
			return nil
		}
		named[typ.Raw] = true
	}
	return named
}
