package bound

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// readRoute is one way to read a field, as declared by a @reads directive in the schema.
type readRoute struct {
	// pattern is the index of the route's access pattern in calculator.patterns.
	pattern int
	// arguments and sub are conditions: all arguments must have values, and the operation must
	// select the subfield sub. An empty condition is always met.
	arguments []string
	sub       string
}

// describe returns the name of a field with the condition of the route, such as
// Query.orders(placed).
func (r readRoute) describe(field string) string {
	if len(r.arguments) > 0 {
		field += "(" + strings.Join(r.arguments, ", ") + ")"
	}
	if r.sub != "" {
		field += " { " + r.sub + " }"
	}
	return field
}

// routesOf returns the routes of a field, in the order of its @reads directives.
func routesOf(f *ast.FieldDefinition, patterns []model.AccessPattern) []readRoute {
	var routes []readRoute
	for _, d := range f.Directives.ForNames(operation.ReadsDirective) {
		id := d.Arguments.ForName("pattern").Value.Raw
		r := readRoute{pattern: slices.IndexFunc(patterns, func(p model.AccessPattern) bool { return p.ID == id })}
		if with := d.Arguments.ForName("with"); with != nil {
			for _, name := range with.Value.Children {
				r.arguments = append(r.arguments, name.Value.Raw)
			}
		}
		if selecting := d.Arguments.ForName("selecting"); selecting != nil {
			r.sub = selecting.Value.Raw
		}
		routes = append(routes, r)
	}
	return routes
}

// schemaRoutes returns the routes of all fields with @reads. The keys of the map have the form
// Type.field.
func schemaRoutes(schema *ast.Schema, patterns []model.AccessPattern) map[string][]readRoute {
	routes := map[string][]readRoute{}
	for _, t := range schema.Types {
		for _, f := range t.Fields {
			for _, r := range routesOf(f, patterns) {
				p := patterns[r.pattern]
				if p.IncludedIn != "" || p.SK == "" && p.Index == "" && r.sub == "" {
					continue // the field needs no request, because it is read with its parent record
				}
				routes[t.Name+"."+f.Name] = append(routes[t.Name+"."+f.Name], r)
			}
		}
	}
	return routes
}

// PatternsMarkdown returns the Markdown table of the access patterns. For each access pattern, the
// table lists the fields that use it.
func PatternsMarkdown(schema *ast.Schema) string {
	return markdown.AccessPatternTable(FieldsOfPatterns(schema, model.AccessPatterns()))
}

// FieldsOfPatterns maps the ID of each access pattern to the fields that use it, such as
// Query.orders(placed).
func FieldsOfPatterns(schema *ast.Schema, patterns []model.AccessPattern) map[string][]string {
	fields := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		for _, f := range schema.Types[name].Fields {
			for _, r := range routesOf(f, patterns) {
				id := patterns[r.pattern].ID
				fields[id] = append(fields[id], r.describe(name+"."+f.Name))
			}
		}
	}
	return fields
}

// FirstPattern returns the ID of the access pattern that a field uses first. If the field needs no
// request, the result is empty.
func FirstPattern(f *ast.FieldDefinition) string {
	if d := f.Directives.ForName(operation.ReadsDirective); d != nil {
		return d.Arguments.ForName("pattern").Value.Raw
	}
	return ""
}

// NonNullArguments returns the arguments of a field that every operation must set.
func NonNullArguments(f *ast.FieldDefinition) (required ast.ArgumentDefinitionList) {
	for _, a := range f.Arguments {
		if a.Type.NonNull && a.DefaultValue == nil {
			required = append(required, a)
		}
	}
	return required
}

// RequiredArguments returns the arguments that an operation must set so that a field reads an
// access pattern first. If the field never does, the Boolean is false.
func RequiredArguments(f *ast.FieldDefinition, p model.AccessPattern) (ast.ArgumentDefinitionList, bool) {
	for i, r := range routesOf(f, []model.AccessPattern{p}) {
		if r.pattern != 0 || r.sub != "" || i > 0 && len(r.arguments) == 0 {
			continue
		}
		required := NonNullArguments(f)
		for _, name := range r.arguments {
			required = append(required, f.Arguments.ForName(name))
		}
		return required, true
	}
	return nil, false
}

// readAlternatives returns the possible ways to read a field. Each alternative is a list of access
// patterns that one execution uses together. The lists contain indexes of b.patterns.
func (b *calculator) readAlternatives(typ *ast.Definition, f *operation.Field) [][]int {
	var withSub, alternatives [][]int
	var plain []int
	routes := slices.Clone(b.routes[typ.Name+"."+f.Name])
	slices.SortStableFunc(routes, func(a, b readRoute) int { return len(b.arguments) - len(a.arguments) })
	for _, r := range routes {
		switch {
		case r.sub != "":
			possible, certain := selectsSubfield(f, r.sub)
			if certain {
				return [][]int{{r.pattern}}
			}
			if possible {
				withSub = append(withSub, []int{r.pattern})
			}
		case len(r.arguments) > 0:
			possible, certain := true, true
			for _, name := range r.arguments {
				mayExist, mustExist := hasArgument(f, name)
				possible, certain = possible && mayExist, certain && mustExist
			}
			if possible {
				alternatives = append(alternatives, []int{r.pattern})
			}
			if certain {
				return alternatives
			}
		default:
			plain = append(plain, r.pattern)
		}
	}
	if len(plain) > 0 {
		alternatives = append(alternatives, plain)
	}
	return append(withSub, alternatives...)
}

// patternCanRead reports whether an access pattern can read a field.
func (b *calculator) patternCanRead(typ *ast.Definition, f *operation.Field, pattern int) bool {
	return slices.ContainsFunc(b.routes[typ.Name+"."+f.Name], func(r readRoute) bool { return r.pattern == pattern })
}

// readableByKey reports whether a field can be read with only the key of its parent record. Such a
// read does not wait for the read of the parent record.
func (b *calculator) readableByKey(typ *ast.Definition, f *operation.Field, alternatives [][]int) bool {
	if typ == b.schema.Query {
		return true
	}
	if len(f.Selections) == 0 || b.collectionFields[typ.Name+"."+f.Name] {
		return false // the field may be stored in the parent record, or may be read together with it
	}
	own, ok := entityOf(typ)
	if !ok {
		return false
	}
	known := append(own.PK.Placeholders(), own.SK.Placeholders()...)
	for _, patterns := range alternatives {
		for _, pattern := range patterns {
			for _, name := range b.patterns[pattern].PK.Placeholders() {
				ok = ok && slices.Contains(known, name)
			}
			ok = ok && !b.patterns[pattern].EmbeddedInParent
		}
	}
	return ok
}

// entityOf returns the entity that stores the records of a type. If the type has no records, it
// returns false.
func entityOf(typ *ast.Definition) (*model.Entity, bool) {
	for _, e := range model.Entities() {
		if e.Name == entityName(typ) {
			return e, true
		}
	}
	return nil, false
}

// entityName returns the name of the entity that stores the records of a type. The field of Query
// that looks up a record of the type has the same name.
func entityName(typ *ast.Definition) string {
	return string(unicode.ToLower(rune(typ.Name[0]))) + typ.Name[1:]
}

// lookupPattern finds the access pattern in the parameter among that reads records of a type by
// their own key. If there is none, it returns noPattern.
func (b *calculator) lookupPattern(typ *ast.Definition, among []int) int {
	if e, ok := entityOf(typ); ok {
		for _, pattern := range among {
			if p := b.patterns[pattern]; p.Direction == "" && p.PK == e.PK && p.SK == e.SK {
				return pattern
			}
		}
	}
	return noPattern
}

// mergedStatuses returns the statuses of a list that is merged from one partition for each status.
// For any other list, it returns nil. Callers may use only the number of statuses.
func (b *calculator) mergedStatuses(p model.AccessPattern, f *operation.Field) []commerce.Status {
	all := commerce.Statuses()
	a := f.Arguments.ForName("statuses")
	switch {
	case !slices.Contains(p.PK.Placeholders(), "status") || f.Definition.Arguments.ForName("status") != nil:
		return nil
	case a == nil:
		return all
	case a.Value.Kind == ast.EnumValue || len(a.Value.Children) == 1:
		return all[:1] // every status has the same cost
	case a.Value.Kind != ast.ListValue:
		return all
	}
	var named []commerce.Status
	for _, v := range a.Value.Children {
		status, err := commerce.ParseStatus(strings.ToLower(v.Value.Raw))
		if v.Value.Kind != ast.EnumValue || err != nil {
			return all // a variable can be any status
		}
		if !slices.Contains(named, status) {
			named = append(named, status)
		}
	}
	return named
}

// hasArgument reports whether an argument has a value. If possible is false, it never has one. If
// certain is true, it has one for all values of the variables.
func hasArgument(f *operation.Field, name string) (possible, certain bool) {
	a := f.Field.Arguments.ForName(name)
	if a == nil || a.Value.Kind == ast.NullValue {
		return false, false
	}
	switch a.Value.Kind {
	case ast.ListValue, ast.EnumValue:
		return true, true
	case ast.StringValue, ast.BlockValue:
		return true, a.Value.Raw != "" || !operation.IsPrefixArgument(name)
	case ast.Variable:
		isText := f.Definition.Arguments.ForName(name).Type.NamedType == "String"
		return true, isText && a.Value.VariableDefinition.Type.NonNull && !operation.IsPrefixArgument(name)
	}
	return true, false // an object can be empty
}

// selectsSubfield reports whether f selects the named subfield. If possible is false, f never
// selects it. If certain is true, f selects it for all values of the variables.
func selectsSubfield(f *operation.Field, name string) (possible, certain bool) {
	if f.Set == nil {
		return false, false
	}
	for i := range f.Set.Fields {
		if below := &f.Set.Fields[i]; below.Name == name {
			possible, certain = true, certain || !below.Optional
		}
	}
	return possible, certain
}
