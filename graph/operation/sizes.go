package operation

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// place is a position in an introspection. It determines the length of the lists that are selected
// there.
type place int

const (
	// anywhere is a position outside of an introspection.
	anywhere place = iota
	theSchema
	// allTypes, allFields and allDirectives are selections that apply to every type, field and
	// directive of the schema. Average lengths of lists are therefore exact.
	allTypes
	allFields
	allDirectives
	// oneElement is a single type, field or argument, which can be any.
	oneElement
)

// below returns the position of the selection below a field.
func (p place) below(f *ast.Field) place {
	switch {
	case f.Name == "__schema":
		return theSchema
	case f.Name == "__type":
		return oneElement
	case p == anywhere:
		return anywhere
	case p == theSchema && f.Name == "types":
		return allTypes
	case p == theSchema && f.Name == "directives":
		return allDirectives
	case p == allTypes && f.Name == "fields":
		return allFields
	default:
		return oneElement
	}
}

// schemaSizes are the lengths of the schema's lists in an introspection. Depending on the position,
// a length is the average or the maximum.
type schemaSizes map[place]map[string]float64

func (s schemaSizes) of(list string, in place) float64 { return s[in][list] }

func sizesOf(schema *ast.Schema) schemaSizes {
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
	sizes := schemaSizes{
		theSchema:     {"types": types, "directives": directives},
		allTypes:      {},
		allFields:     {"args": sum["args of fields"] / max(1, sum["fields"])},
		allDirectives: {"args": sum["args of directives"] / max(1, directives), "locations": sum["locations"] / max(1, directives)},
		oneElement:    longest,
	}
	for _, list := range []string{"fields", "inputFields", "enumValues", "interfaces", "possibleTypes"} {
		sizes[allTypes][list] = sum[list] / types
	}
	return sizes
}
