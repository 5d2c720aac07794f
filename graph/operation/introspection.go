package operation

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// introspectionPosition is the position of a field in an introspection query. The cost calculation
// assumes different list lengths at different positions.
type introspectionPosition int

const (
	// outsideIntrospection is the position of a field that is not part of an introspection query.
	outsideIntrospection introspectionPosition = iota
	positionSchema
	// positionAllTypes, positionAllFields and positionAllDirectives are positions where the query
	// visits every type, field or directive of the schema. The average list length therefore gives
	// the exact total cost.
	positionAllTypes
	positionAllFields
	positionAllDirectives
	// positionElement is the position of a single type, field or argument. The cost calculation
	// does not know which type, field or argument this is, so it assumes the maximum list lengths.
	positionElement
)

// childPosition returns the position of the fields in the selection set of f. p is the position of
// f.
func (p introspectionPosition) childPosition(f *ast.Field) introspectionPosition {
	switch {
	case f.Name == "__schema":
		return positionSchema
	case f.Name == "__type":
		return positionElement
	case p == outsideIntrospection:
		return outsideIntrospection
	case p == positionSchema && f.Name == "types":
		return positionAllTypes
	case p == positionSchema && f.Name == "directives":
		return positionAllDirectives
	case p == positionAllTypes && f.Name == "fields":
		return positionAllFields
	default:
		return positionElement
	}
}

// listLengths contains the assumed length of each introspection list, by position and by the name
// of the list. Depending on the position, this is the average or the maximum length.
type listLengths map[introspectionPosition]map[string]float64

func (s listLengths) length(list string, in introspectionPosition) float64 { return s[in][list] }

func measureListLengths(schema *ast.Schema) listLengths {
	sum, longest := map[string]float64{}, map[string]float64{}
	count := func(list string, n int) {
		sum[list] += float64(n)
		longest[list] = max(longest[list], float64(n))
	}
	arguments := func(owner string, list ast.ArgumentDefinitionList) {
		count("args of "+owner, len(list))
		longest["args"] = max(longest["args"], float64(len(list)))
	}
	for _, d := range schema.Types {
		if d.Kind == ast.InputObject {
			count("inputFields", len(d.Fields))
		} else {
			count("fields", len(d.Fields))
		}
		for _, f := range d.Fields {
			arguments("fields", f.Arguments)
		}
		count("enumValues", len(d.EnumValues))
		count("interfaces", len(d.Interfaces))
		if d.IsAbstractType() {
			count("possibleTypes", len(schema.GetPossibleTypes(d)))
		}
	}
	for _, d := range schema.Directives {
		arguments("directives", d.Arguments)
		count("locations", len(d.Locations))
	}
	types, directives := float64(len(schema.Types)), float64(len(schema.Directives))
	sizes := listLengths{
		positionSchema:        {"types": types, "directives": directives},
		positionAllTypes:      {},
		positionAllFields:     {"args": sum["args of fields"] / max(1, sum["fields"])},
		positionAllDirectives: {"args": sum["args of directives"] / max(1, directives), "locations": sum["locations"] / max(1, directives)},
		positionElement:       longest,
	}
	for _, list := range []string{"fields", "inputFields", "enumValues", "interfaces", "possibleTypes"} {
		sizes[positionAllTypes][list] = sum[list] / types
	}
	return sizes
}
