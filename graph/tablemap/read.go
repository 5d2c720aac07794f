package tablemap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Read is a query for the records of an item collection.
type Read struct {
	// Variable is the placeholder in the key whose value the query needs. Without a placeholder, it
	// is the name of the argument that the query needs, or empty. Argument is the variable of the
	// query that receives it, and Values contains its possible values if it is an enum.
	Variable string   `json:"variable"`
	Argument string   `json:"argument"`
	Values   []string `json:"values"`
	Document string   `json:"document"`
	// Connection is the path of the connection whose pages the variable $after selects, or empty.
	Connection string `json:"connection"`
}

// Served is the schema that a server serves, with its declarations.
type Served struct {
	Declarations model.Declarations
	Schema       *ast.Schema
	// MaySelect reports whether the caller may select a field.
	MaySelect func(*ast.FieldDefinition) bool
}

// readOf returns the query for the records with a partition key. The query needs at most one value.
// If the schema contains no such query, or if the caller may not use it, the result is nil.
func (r Served) readOf(c Collection) *Read {
	index := c.In == "index"
	for _, p := range r.Declarations.AccessPatterns {
		if string(p.PK) != c.Key || (p.Index != "") != index || p.IncludedIn != "" {
			continue
		}
		for _, f := range r.Schema.Query.Fields {
			if read := r.rootRead(f, p); read != nil {
				return read
			}
		}
		// The records belong to a record that the value in the key identifies.
		for _, e := range r.Declarations.Entities {
			typ := r.Schema.Types[strings.ToUpper(e.Name[:1])+e.Name[1:]]
			if e.Kind == model.Base && typ != nil && slices.Equal(e.PK.Placeholders(), p.PK.Placeholders()) && len(e.PK.Placeholders()) == 1 && r.uses(typ, p) {
				root := r.Schema.Query.Fields.ForName(e.Name)
				if root != nil && root.Type.Name() == typ.Name {
					if read := r.write(root, e.PK.Placeholders()[0], bound.NonNullArguments(root), func(f *ast.FieldDefinition) bool { return r.readsFrom(f, c) }); read != nil {
						return read
					}
				}
			}
		}
	}
	return nil
}

// uses reports whether a field of a type that the caller may select reads the access pattern.
func (r Served) uses(typ *ast.Definition, p model.AccessPattern) bool {
	return slices.ContainsFunc(typ.Fields, func(f *ast.FieldDefinition) bool { return r.MaySelect(f) && bound.FirstPattern(f) == p.ID })
}

// readsFrom reports whether a field reads records of a collection.
func (r Served) readsFrom(f *ast.FieldDefinition, c Collection) bool {
	return slices.ContainsFunc(r.Declarations.AccessPatterns, func(p model.AccessPattern) bool {
		return p.ID == bound.FirstPattern(f) && string(p.PK) == c.Key && (p.Index != "") == (c.In == "index")
	})
}

// rootRead returns the query that selects a field of Query, if the field reads the access pattern
// and needs at most one value: the one in the key, or a prefix of a sort key.
func (r Served) rootRead(f *ast.FieldDefinition, p model.AccessPattern) *Read {
	values := p.PK.Placeholders()
	if p.Direction == "" {
		values = append(values, p.SK.Placeholders()...)
	}
	required, ok := bound.RequiredArguments(f, p)
	if !ok || len(required) > 1 || len(values) > len(required) {
		return nil
	}
	placeholder := ""
	if len(required) == 1 {
		if typ := r.Schema.Types[required[0].Type.Name()]; required[0].Type.Elem != nil || typ.Kind != ast.Scalar && typ.Kind != ast.Enum {
			return nil
		}
		placeholder = append(values, required[0].Name)[0]
	}
	return r.write(f, placeholder, required, func(inside *ast.FieldDefinition) bool {
		return p.Index == "" && r.readsFrom(inside, Collection{Key: string(p.PK), In: "table"})
	})
}

// write returns the query that selects a field of Query with the given arguments. The fields below
// it that read further records of the collection are selected if the function inside reports true.
func (r Served) write(root *ast.FieldDefinition, placeholder string, required ast.ArgumentDefinitionList, inside func(*ast.FieldDefinition) bool) *Read {
	if !r.MaySelect(root) {
		return nil
	}
	read, variables, arguments := &Read{Variable: placeholder, Values: []string{}}, []string{}, ""
	for _, a := range required {
		read.Argument = a.Name
		variables, arguments = append(variables, fmt.Sprintf("$%s: %s!", a.Name, strings.TrimSuffix(a.Type.String(), "!"))), fmt.Sprintf("%s: $%[1]s", a.Name)
		if typ := r.Schema.Types[a.Type.Name()]; typ.Kind == ast.Enum {
			for _, v := range typ.EnumValues {
				read.Values = append(read.Values, v.Name)
			}
		}
	}
	selection := r.selected(root, root.Name, arguments, "  ", inside, read)
	if read.Connection != "" {
		variables = append(variables, "$after: String")
	}
	declared := ""
	if len(variables) > 0 {
		declared = "(" + strings.Join(variables, ", ") + ")"
	}
	read.Document = fmt.Sprintf("query Items%s {\n%s}\n", declared, selection)
	return read
}

// selected returns the selection of a field with all fields of its records that need no further
// requests, the keys of other records, and the fields that inside reports.
func (r Served) selected(f *ast.FieldDefinition, path, arguments, indent string, inside func(*ast.FieldDefinition) bool, read *Read) string {
	typ, list := r.Schema.Types[f.Type.Name()], ""
	if nodes := typ.Fields.ForName("nodes"); nodes != nil && strings.HasSuffix(typ.Name, "Connection") {
		page := fmt.Sprintf("first: %d", operation.DefaultPageSize)
		if typ = r.Schema.Types[nodes.Type.Name()]; read.Connection == "" {
			read.Connection, page = path, page+", after: $after"
			list = " pageInfo { hasNextPage endCursor }"
		}
		arguments = strings.TrimPrefix(arguments+", "+page, ", ")
	}
	if arguments != "" {
		arguments = "(" + arguments + ")"
	}
	var below strings.Builder
	for _, child := range typ.Fields {
		childType := r.Schema.Types[child.Type.Name()]
		switch {
		case !r.MaySelect(child) || len(bound.NonNullArguments(child)) > 0 || strings.HasPrefix(child.Name, "__"):
		case inside(child) && childType.Kind == ast.Object:
			below.WriteString(r.selected(child, path+"."+child.Name, "", indent+"  ", func(*ast.FieldDefinition) bool { return false }, read))
		case bound.FirstPattern(child) != "":
			// Another record is selected with its key only, so that it can be read next.
			if key := childType.Fields.ForName(keyField(childType)); key != nil && child.Type.Elem == nil && r.Schema.Query.Fields.ForName(strings.ToLower(childType.Name)) != nil {
				fmt.Fprintf(&below, "%s  %s { %s }\n", indent, child.Name, key.Name)
			}
		case childType.IsLeafType():
			fmt.Fprintf(&below, "%s  %s\n", indent, child.Name)
		case childType.Kind == ast.Object && !strings.HasSuffix(childType.Name, "Connection"):
			below.WriteString(r.selected(child, path+"."+child.Name, "", indent+"  ", func(*ast.FieldDefinition) bool { return false }, read))
		}
	}
	if list != "" || strings.HasSuffix(f.Type.Name(), "Connection") {
		return fmt.Sprintf("%s%s%s { nodes {\n%s%s}%s }\n", indent, f.Name, arguments, below.String(), indent, list)
	}
	return fmt.Sprintf("%s%s%s {\n%s%s}\n", indent, f.Name, arguments, below.String(), indent)
}

// keyField returns the name of the field that identifies the records of a type.
func keyField(typ *ast.Definition) string {
	if key := typ.Directives.ForName("key"); key != nil {
		return key.Arguments.ForName("fields").Value.Raw
	}
	return ""
}
