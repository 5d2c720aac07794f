package mcptool

import (
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/graph/operation"
)

// inputSchema returns the JSON schema of the tool's arguments. It contains no references, because some
// clients do not resolve them.
func (t *Tool) inputSchema(schema *ast.Schema, o *ast.OperationDefinition) *jsonschema.Schema {
	object := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: noOthers()}
	uses := map[string]*ast.ArgumentDefinition{}
	findUses(schema, o.SelectionSet, uses)
	for _, v := range o.VariableDefinitions {
		property := typeSchema(schema, v.Type, nil)
		if use := uses[v.Variable]; use != nil {
			describeProperty(property, use.Description)
			if use.Name == "first" || use.Name == "last" {
				least, most := 1.0, float64(operation.MaxPageSize)
				property.Minimum, property.Maximum = &least, &most
			}
		}
		if v.Description != "" {
			property.Description = oneLine(v.Description)
		}
		if v.DefaultValue != nil {
			if value, err := v.DefaultValue.Value(nil); err == nil {
				property.Default, _ = json.Marshal(value)
			}
		} else if v.Type.NonNull {
			object.Required = append(object.Required, v.Variable)
		}
		object.Properties[v.Variable] = property
		object.PropertyOrder = append(object.PropertyOrder, v.Variable)
	}
	for _, path := range t.keys {
		within := object
		for _, name := range path {
			if !slices.Contains(within.Required, name) {
				within.Required = append(within.Required, name)
			}
			within = within.Properties[name]
		}
	}
	return object
}

// typeSchema returns the JSON schema of the values of a type. within contains the input types around
// the value.
func typeSchema(schema *ast.Schema, t *ast.Type, within []string) *jsonschema.Schema {
	if t.Elem != nil {
		return &jsonschema.Schema{Type: "array", Items: typeSchema(schema, t.Elem, within)}
	}
	d := schema.Types[t.Name()]
	s := &jsonschema.Schema{Type: "string", Description: oneLine(d.Description)}
	if d.BuiltIn {
		s.Description = ""
	}
	switch {
	case d.Kind == ast.Enum:
		for _, v := range d.EnumValues {
			s.Enum = append(s.Enum, v.Name)
		}
	case d.Kind == ast.InputObject:
		s.Type = "object"
		if slices.Contains(within, d.Name) {
			break // the input type contains itself
		}
		s.Properties, s.AdditionalProperties = map[string]*jsonschema.Schema{}, noOthers()
		for _, f := range d.Fields {
			s.Properties[f.Name] = typeSchema(schema, f.Type, append(slices.Clip(within), d.Name))
			describeProperty(s.Properties[f.Name], f.Description)
			s.PropertyOrder = append(s.PropertyOrder, f.Name)
			if f.Type.NonNull && f.DefaultValue == nil {
				s.Required = append(s.Required, f.Name)
			}
		}
	case d.Name == "Int":
		s.Type = "integer"
	case d.Name == "Float":
		s.Type = "number"
	case d.Name == "Boolean":
		s.Type = "boolean"
	case d.Name == "DateTime":
		s.Format = "date-time"
	case d.Name == "Date":
		s.Format = "date"
	case d.Name == "_Any":
		s.Type = "object"
	}
	return s
}

// noOthers is the schema of properties that are not declared: no value is valid.
func noOthers() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// describeProperty puts the description of an argument or an input field before the description of its
// scalar or enum. It removes the description of an input type, which would repeat the argument's.
func describeProperty(s *jsonschema.Schema, text string) {
	if s.Type == "object" {
		s.Description = ""
	}
	s.Description = oneLine(text + " " + s.Description)
}

// findUses finds the argument or input field in which each variable is used first.
func findUses(schema *ast.Schema, set ast.SelectionSet, uses map[string]*ast.ArgumentDefinition) {
	var visit func(definition *ast.ArgumentDefinition, v *ast.Value)
	visit = func(definition *ast.ArgumentDefinition, v *ast.Value) {
		if v.Kind == ast.Variable && uses[v.Raw] == nil {
			uses[v.Raw] = definition
		}
		for _, child := range v.Children {
			of := definition
			if d := schema.Types[definition.Type.Name()]; v.Kind == ast.ObjectValue && d != nil {
				if f := d.Fields.ForName(child.Name); f != nil {
					of = &ast.ArgumentDefinition{Name: f.Name, Description: f.Description, Type: f.Type}
				}
			}
			visit(of, child.Value)
		}
	}
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			for _, a := range s.Arguments {
				visit(s.Definition.Arguments.ForName(a.Name), a.Value)
			}
			findUses(schema, s.SelectionSet, uses)
		case *ast.InlineFragment:
			findUses(schema, s.SelectionSet, uses)
		case *ast.FragmentSpread:
			findUses(schema, s.Definition.SelectionSet, uses)
		}
	}
}
