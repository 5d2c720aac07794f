package graph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// gathered is a field as it is executed: all selections of one name in the response.
type gathered struct {
	*ast.Field
	sets []ast.SelectionSet
}

// collect gathers the fields that selections may have for a type.
func (b *bounding) collect(typ *ast.Definition, sets []ast.SelectionSet) []*gathered {
	return b.gather(typ, sets, leftOut)
}

// gather is collect without what directives make out to be leftOut, or conditional.
func (b *bounding) gather(typ *ast.Definition, sets []ast.SelectionSet, out func(ast.DirectiveList) bool) []*gathered {
	var fields []*gathered
	places := map[string]*gathered{}
	seen := map[string]bool{}
	var walk func(set ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				if strings.HasPrefix(s.Name, "__") || out(s.Directives) {
					continue
				}
				g := places[s.Alias]
				if g == nil {
					g = &gathered{Field: s}
					places[s.Alias] = g
					fields = append(fields, g)
				}
				if len(s.SelectionSet) > 0 {
					g.sets = append(g.sets, s.SelectionSet)
				}
			case *ast.InlineFragment:
				if !out(s.Directives) && b.applies(s.TypeCondition, typ) {
					walk(s.SelectionSet)
				}
			case *ast.FragmentSpread:
				if !out(s.Directives) && !seen[s.Name] && b.applies(s.Definition.TypeCondition, typ) {
					seen[s.Name] = true
					walk(s.Definition.SelectionSet)
				}
			}
		}
	}
	for _, set := range sets {
		walk(set)
	}
	return fields
}

// applies tells whether a fragment on a type is for records of another.
func (b *bounding) applies(condition string, typ *ast.Definition) bool {
	return condition == "" || condition == typ.Name || slices.ContainsFunc(b.schema.PossibleTypes[condition], func(d *ast.Definition) bool { return d.Name == typ.Name })
}

// leftOut tells whether @skip or @include leave something out whatever the variables are.
func leftOut(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if v := d.Arguments.ForName("if"); v != nil && v.Value.Kind == ast.BooleanValue && (d.Name == "skip" && v.Value.Raw == "true" || d.Name == "include" && v.Value.Raw == "false") {
			return true
		}
	}
	return false
}

// conditional tells whether @skip or @include may leave something out.
func conditional(directives ast.DirectiveList) bool {
	return directives.ForName("skip") != nil || directives.ForName("include") != nil
}

// isGiven tells whether an argument may have a value and whether it must have one. An object may turn out to say nothing.
func isGiven(f *gathered, name string) (may, must bool) {
	a := f.Arguments.ForName(name)
	if a == nil || a.Value.Kind == ast.NullValue {
		return false, false
	}
	return true, a.Value.Kind == ast.ListValue || a.Value.Kind == ast.EnumValue
}

// selects tells whether a field may be selected below f and whether it must be, whatever the variables are.
func (b *bounding) selects(f *gathered, name string) (may, must bool) {
	typ := b.schema.Types[f.Definition.Type.Name()]
	named := func(g *gathered) bool { return g.Name == name }
	return slices.ContainsFunc(b.collect(typ, f.sets), named), slices.ContainsFunc(b.gather(typ, f.sets, conditional), named)
}

// nodes are the selections of a connection's records.
func (b *bounding) nodes(connection *ast.Definition, sets []ast.SelectionSet) []gatheredType {
	var nodes []gatheredType
	add := func(f *gathered) {
		if len(f.sets) > 0 {
			nodes = append(nodes, gatheredType{b.schema.Types[f.Definition.Type.Name()], f.sets})
		}
	}
	for _, part := range b.collect(connection, sets) {
		switch part.Name {
		case "nodes":
			add(part)
		case "edges":
			for _, edge := range b.collect(b.schema.Types[part.Definition.Type.Name()], part.sets) {
				if edge.Name == "node" {
					add(edge)
				}
			}
		}
	}
	return nodes
}

type gatheredType struct {
	typ  *ast.Definition
	sets []ast.SelectionSet
}

// pageSize is how many records a page has at most; a size in a variable is any.
func pageSize(f *gathered) int {
	var sizes []int
	for _, name := range []string{"first", "last"} {
		a := f.Arguments.ForName(name)
		if a == nil || a.Value.Kind == ast.NullValue {
			continue
		}
		n, err := strconv.Atoi(a.Value.Raw)
		if a.Value.Kind != ast.IntValue || err != nil {
			n = maxPage
		}
		sizes = append(sizes, n)
	}
	return largestPage(sizes)
}

// asksBeyond tells whether a connection is asked for what lies beyond the page.
func (b *bounding) asksBeyond(f *gathered) bool {
	for _, part := range b.collect(b.schema.Types[f.Definition.Type.Name()], f.sets) {
		if part.Name != "pageInfo" {
			continue
		}
		next, _ := b.selects(part, "hasNextPage")
		previous, _ := b.selects(part, "hasPreviousPage")
		if next || previous {
			return true
		}
	}
	return false
}
