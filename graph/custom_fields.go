package graph

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/extension"
	"github.com/ordergraph/ordergraph/graph/input"
	"github.com/ordergraph/ordergraph/graph/operation"
	"github.com/ordergraph/ordergraph/graph/scalar"
)

// The executor treats a custom field like any other field (docs/adr/0054-custom-fields.md). Only the
// code in this file knows that the generated code has no case for it.

// ParseExtension reads a schema extension from the text of a file.
//
// The error contains a line for each mistake in the file.
func ParseExtension(file, text string) (extension.Extension, error) {
	// loadSchema would remove types whose names an enum cannot have, such as Float.
	e, err := extension.Parse(file, text, parsedSchema, model.IsReservedAttribute)
	if err != nil {
		return e, err
	}
	return e, checkServed(file, e)
}

// checkServed returns an error if the schema is invalid with an extension. extension.Parse should
// have rejected such a file, but without this check, loadSchema would panic.
func checkServed(file string, e extension.Extension) error {
	if _, err := gqlparser.LoadSchema(servedSources(e)...); err != nil {
		return &extension.MistakesError{File: file, Mistakes: []extension.Mistake{{Line: 1, Text: "the schema is invalid with the custom fields: " + err.Error()}}}
	}
	return nil
}

// The names of schema files. customInputsFile contains what the generated code needs to receive the
// values of custom fields. The other files contain a mutation that exists only if orders or line items
// have custom fields.
const (
	customInputsFile   = "custom_inputs.graphqls"
	customFieldsFile   = "custom_fields.graphqls"
	customPayloadsFile = "custom_payloads.graphqls"
)

// servedSources returns the schema files that clients see, with the definitions of an extension.
func servedSources(e extension.Extension) (served []*ast.Source) {
	for _, source := range sources {
		name := source.Name[strings.LastIndexByte(source.Name, '/')+1:]
		switch name {
		case customInputsFile:
			continue
		case customFieldsFile, customPayloadsFile:
			if !e.ChangesOrders() {
				continue
			}
		}
		served = append(served, source)
	}
	if text := e.SDL(); text != "" {
		served = append(served, &ast.Source{Name: "custom fields", Input: text})
	}
	return served
}

// loadSchema parses schema files, and removes definitions that clients cannot use.
func loadSchema(sources []*ast.Source) *ast.Schema {
	schema := gqlparser.MustLoadSchema(sources...)
	// The data of @defer would be lost in a response to a plain POST request.
	for _, name := range []string{"defer", "link", "key", "shareable", "access", operation.ReadsDirective, "userErrors"} {
		delete(schema.Directives, name)
	}
	// A schema must not contain a built-in scalar that it does not use, such as Float
	// (https://spec.graphql.org/September2025/#sec-Scalars.Built-in-Scalars).
	for _, name := range []string{"link__Import", "federation__FieldSet", "Float"} {
		delete(schema.Types, name)
	}
	return schema
}

// restrictCustomFields adds the roles that may read and set custom fields to the access checker.
func restrictCustomFields(checker *operation.AccessChecker, schema *ast.Schema, e extension.Extension) {
	for _, d := range schema.Types {
		for _, f := range d.Fields {
			if field := e.Field(d.Name, f.Name); field != nil && field.SeenBy != nil {
				checker.RequireRoles(f, field.SeenBy)
			}
			if field := e.Field(extension.TypeSetBy(d.Name), f.Name); field != nil {
				checker.RequireRoles(f, field.SetBy)
			}
		}
	}
	for _, q := range e.Queries() {
		if roles := e.QueryRoles(q); roles != nil {
			checker.RequireRoles(schema.Query.Fields.ForName(q.Name), roles)
		}
	}
}

// customInputs moves the values of custom fields to the place where the generated code expects them.
type customInputs struct {
	extension extension.Extension
	schema    *ast.Schema
	// queries contains the queries by custom fields, by their names.
	queries map[string]model.CustomQuery
}

// objectType returns the generated description of a type. Its functions that read arguments also read
// custom fields.
func (c customInputs) objectType(name string) operation.ObjectType {
	t, d := objectTypeOf(name), c.schema.Types[name]
	if t.Field == nil || d == nil || len(c.extension.Fields) == 0 {
		return t
	}
	generated := t.Field
	t.Field = func(field string) (int, operation.ArgumentsReader) {
		if q, ok := c.queries[field]; ok && d == c.schema.Query {
			return 0, readCustomQueryArguments(q)
		}
		number, read := generated(field)
		f := d.Fields.ForName(field)
		if read == nil || f == nil || !slices.ContainsFunc(f.Arguments, setsCustomFields) {
			return number, read
		}
		return number, func(ctx context.Context, generated any, arguments map[string]any) (any, error) {
			moved := maps.Clone(arguments)
			for _, a := range f.Arguments {
				if value, ok := arguments[a.Name]; ok {
					moved[a.Name] = c.moved(a.Type.Name(), value)
				}
			}
			return read(ctx, generated, moved)
		}
	}
	return t
}

// setsCustomFields reports whether an argument can contain custom fields. Objects inside the argument have
// them only if the argument's own type has them.
func setsCustomFields(a *ast.ArgumentDefinition) bool {
	return extension.TypeSetBy(a.Type.Name()) != ""
}

// moved returns a copy of an input value in which each object with custom fields has them in its field
// customFields. typ is the name of the value's type.
func (c customInputs) moved(typ string, value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = c.moved(typ, value[i])
		}
		return list
	case map[string]any:
		d := c.schema.Types[typ]
		if d.Kind != ast.InputObject {
			return value
		}
		object, custom, record := make(map[string]any, len(value)), map[string]any{}, extension.TypeSetBy(typ)
		for name, v := range value {
			if c.extension.Field(record, name) != nil {
				custom[name] = v
			} else if f := d.Fields.ForName(name); f != nil {
				object[name] = c.moved(f.Type.Name(), v)
			}
		}
		if len(custom) > 0 {
			object["customFields"] = input.CustomFields{RecordType: record, Values: custom}
		}
		return object
	}
	return value
}

// customField writes the value of a custom field of a record. typ is the type of the record. It returns
// false if the value of a non-null field is null.
func (x *execution) customField(f *operation.Field, typ string, values commerce.CustomValues) bool {
	declared := x.executor.resolver.extension.Field(typ, f.Name)
	value, err := declared.Value(values)
	if err != nil {
		x.recordError(f, err)
		return !declared.Required && x.writeNull()
	}
	list, ok := value.([]any)
	if !ok {
		x.enter(f)
		defer x.leave()
		return x.customValue(f, declared, value)
	}
	start, valid := x.openList(f), true
	for i, element := range list {
		x.element(i)
		valid = x.customValue(f, declared, element) && valid
	}
	return x.closeList(start, valid)
}

// customValue writes one value of a custom field, which is the last element of the path.
func (x *execution) customValue(f *operation.Field, declared *extension.Field, value any) bool {
	switch value := value.(type) {
	case nil:
		return x.writeNull()
	case string:
		x.out = scalar.AppendString(x.out, value)
	case bool:
		x.out = scalar.AppendBoolean(x.out, value)
	case json.Number:
		if declared.Type == commerce.CustomInt {
			x.out = append(x.out, value...)
		} else {
			x.out = scalar.AppendString(x.out, value.String())
		}
	case commerce.Money:
		return x.objectMoney(f.Set, &value)
	}
	return true
}
