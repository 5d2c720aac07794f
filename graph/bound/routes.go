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

// route is one way in which a field is read: an @reads of the schema.
type route struct {
	// pattern is the index of the access pattern in bounding.patterns.
	pattern int
	// arguments are those that choose the pattern where all of them have values. sub is the field
	// that chooses it where it is selected.
	arguments []string
	sub       string
}

// text names a field with what chooses the route: Query.orders(placed).
func (r route) text(field string) string {
	if len(r.arguments) > 0 {
		field += "(" + strings.Join(r.arguments, ", ") + ")"
	}
	if r.sub != "" {
		field += " { " + r.sub + " }"
	}
	return field
}

// routesOf returns the routes of a field, in the schema's order.
func routesOf(f *ast.FieldDefinition, patterns []model.AccessPattern) []route {
	var routes []route
	for _, d := range f.Directives.ForNames(operation.ReadsDirective) {
		id := d.Arguments.ForName("pattern").Value.Raw
		r := route{pattern: slices.IndexFunc(patterns, func(p model.AccessPattern) bool { return p.ID == id })}
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

// schemaRoutes are the routes of all fields of a schema that need requests, by Type.field.
func schemaRoutes(schema *ast.Schema, patterns []model.AccessPattern) map[string][]route {
	routes := map[string][]route{}
	for _, t := range schema.Types {
		for _, f := range t.Fields {
			for _, r := range routesOf(f, patterns) {
				p := patterns[r.pattern]
				if p.With != "" || p.SK == "" && p.Index == "" && r.sub == "" {
					continue // it comes along with the record above
				}
				routes[t.Name+"."+f.Name] = append(routes[t.Name+"."+f.Name], r)
			}
		}
	}
	return routes
}

// PatternsMarkdown is the table of the access patterns for the docs, with the fields that each
// serves.
func PatternsMarkdown(schema *ast.Schema) string {
	patterns := model.AccessPatterns()
	fields := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		for _, f := range schema.Types[name].Fields {
			for _, r := range routesOf(f, patterns) {
				id := patterns[r.pattern].ID
				fields[id] = append(fields[id], r.text(name+"."+f.Name))
			}
		}
	}
	return markdown.Patterns(fields)
}

// ways are the alternatives by which a field may be read, each the patterns that it takes.
func (b *bounding) ways(typ *ast.Definition, f *operation.Field) [][]int {
	var whole, ways [][]int
	var plain []int
	routes := slices.Clone(b.routes[typ.Name+"."+f.Name])
	slices.SortStableFunc(routes, func(a, b route) int { return len(b.arguments) - len(a.arguments) })
	for _, r := range routes {
		switch {
		case r.sub != "":
			may, must := selected(f, r.sub)
			if must {
				return [][]int{{r.pattern}}
			}
			if may {
				whole = append(whole, []int{r.pattern})
			}
		case len(r.arguments) > 0:
			may, must := true, true
			for _, name := range r.arguments {
				mayHave, mustHave := hasArgument(f, name)
				may, must = may && mayHave, must && mustHave
			}
			if may {
				ways = append(ways, []int{r.pattern})
			}
			if must {
				return ways
			}
		default:
			plain = append(plain, r.pattern)
		}
	}
	if len(plain) > 0 {
		ways = append(ways, plain)
	}
	return append(whole, ways...)
}

// serves reports whether a pattern serves a field.
func (b *bounding) serves(typ *ast.Definition, f *operation.Field, pattern int) bool {
	return slices.ContainsFunc(b.routes[typ.Name+"."+f.Name], func(r route) bool { return r.pattern == pattern })
}

// byKey reports whether a field is read as soon as the key of the record above is known, instead of
// when the record is there.
func (b *bounding) byKey(typ *ast.Definition, f *operation.Field, ways [][]int) bool {
	if typ == b.schema.Query {
		return true
	}
	if len(f.Selections) == 0 || b.whole[typ.Name+"."+f.Name] {
		return false // the record may tell a number, and may have come with the list
	}
	own, ok := kindOf(typ)
	known := append(own.PK.Names(), own.SK.Names()...)
	for _, way := range ways {
		for _, pattern := range way {
			for _, name := range b.patterns[pattern].PK.Names() {
				ok = ok && slices.Contains(known, name)
			}
			ok = ok && !b.patterns[pattern].Fallback
		}
	}
	return ok
}

// kindOf is the kind of record that a type is.
func kindOf(typ *ast.Definition) (model.Entity, bool) {
	for _, e := range model.Entities() {
		if e.Name == entityName(typ) {
			return e, true
		}
	}
	return model.Entity{}, false
}

// entityName is the name of a type's records in the table, and of the field of Query that gives one
// by its key.
func entityName(typ *ast.Definition) string {
	return string(unicode.ToLower(rune(typ.Name[0]))) + typ.Name[1:]
}

// lookUp is the pattern among some that reads a record of a type by its own key; none where there
// is none.
func (b *bounding) lookUp(typ *ast.Definition, among []int) int {
	if e, ok := kindOf(typ); ok {
		for _, pattern := range among {
			if p := b.patterns[pattern]; p.Direction == "" && p.PK == e.PK && p.SK == e.SK {
				return pattern
			}
		}
	}
	return none
}

// statuses are the statuses that a list of orders may merge: those that the field names, or all.
// Other lists have none.
func (b *bounding) statuses(p model.AccessPattern, f *operation.Field) []commerce.Status {
	all := commerce.Statuses()
	a := f.Arguments.ForName("statuses")
	switch {
	case !slices.Contains(p.PK.Names(), "status") || f.Definition.Arguments.ForName("status") != nil:
		return nil
	case a == nil:
		return all
	case a.Value.Kind == ast.EnumValue || len(a.Value.Children) == 1:
		return all[:1] // any status costs as much
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

// hasArgument reports whether an argument may have a value and whether it must have one. An object
// may turn out to be empty.
func hasArgument(f *operation.Field, name string) (may, must bool) {
	a := f.Field.Arguments.ForName(name)
	if a == nil || a.Value.Kind == ast.NullValue {
		return false, false
	}
	switch a.Value.Kind {
	case ast.ListValue, ast.EnumValue:
		return true, true
	case ast.StringValue, ast.BlockValue:
		return true, a.Value.Raw != "" || !operation.IsPrefix(name)
	case ast.Variable:
		isText := f.Definition.Arguments.ForName(name).Type.NamedType == "String"
		return true, isText && a.Value.VariableDefinition.Type.NonNull && !operation.IsPrefix(name)
	}
	return true, false
}

// selected reports whether a field may be selected below f and whether it must be, whatever the
// variables are.
func selected(f *operation.Field, name string) (may, must bool) {
	if f.Set == nil {
		return false, false
	}
	for i := range f.Set.Fields {
		if below := &f.Set.Fields[i]; below.Name == name {
			may, must = true, must || !below.Optional
		}
	}
	return may, must
}
