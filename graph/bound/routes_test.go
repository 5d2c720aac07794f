package bound

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// ownSchema is the schema with all its directives.
func ownSchema(t *testing.T) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob("../../*.graphqls")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of the schema: %v", len(files), err)
	}
	var sources []*ast.Source
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: name, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
}

// ownTypes are the types that the schema defines, by name.
func ownTypes(schema *ast.Schema) []*ast.Definition {
	var types []*ast.Definition
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		if d := schema.Types[name]; !d.BuiltIn && !strings.HasPrefix(name, "__") {
			types = append(types, d)
		}
	}
	return types
}

// Fields that read have a pattern, or their cost would be forgotten: those that give records, but
// for what only wraps the record that is there.
func TestEveryFieldThatReadsHasAPattern(t *testing.T) {
	schema := ownSchema(t)
	b := newBounding(schema, ast.Query, dynamo.NewBounds(1))
	for _, d := range ownTypes(schema) {
		wraps := strings.HasSuffix(d.Name, "Connection") || strings.HasSuffix(d.Name, "Edge") || strings.HasSuffix(d.Name, "Payload")
		if d.Kind != ast.Object || wraps || d == schema.Mutation || d == schema.Subscription {
			continue
		}
		for _, f := range d.Fields {
			_, isRecord := kindOf(schema.Types[f.Type.Name()])
			isRecord = isRecord && d.Name+"."+f.Name != "OrderUpdate.event" // it is what the feed tells
			reads := isRecord || strings.HasSuffix(f.Type.Name(), "Connection") || strings.HasPrefix(f.Name, "orderCount") && d.Name != "Spending" || f.Name == "spending" || f.Name == "quote" || f.Name == "itemCount" || d.Name == "Product" && (f.Name == "totalInventory" || f.Name == "available")
			if served := len(b.routes[d.Name+"."+f.Name]) > 0; served != reads {
				t.Errorf("%s.%s: served by a pattern: %v, reads: %v", d.Name, f.Name, served, reads)
			}
		}
	}
}

// Every access pattern serves a field. What @reads says of a field exists, and its description
// names no other pattern.
func TestFieldsNameAccessPatterns(t *testing.T) {
	schema := ownSchema(t)
	patterns := model.AccessPatterns()
	used := map[string]bool{}
	mentioned := regexp.MustCompile(`AP\d+`)
	for _, d := range ownTypes(schema) {
		for _, f := range d.Fields {
			name := d.Name + "." + f.Name
			var declared []string
			for _, r := range routesOf(f, patterns) {
				if r.pattern < 0 {
					t.Fatalf("%s: @reads names a pattern that does not exist", name)
				}
				declared = append(declared, patterns[r.pattern].ID)
				used[patterns[r.pattern].ID] = true
				for _, argument := range r.arguments {
					if f.Arguments.ForName(argument) == nil {
						t.Errorf("%s: @reads names the argument %q, which does not exist", name, argument)
					}
				}
				if r.sub != "" && schema.Types[f.Type.Name()].Fields.ForName(r.sub) == nil {
					t.Errorf("%s: @reads names the field %q, which does not exist", name, r.sub)
				}
			}
			for _, id := range mentioned.FindAllString(f.Description, -1) {
				if !slices.Contains(declared, id) {
					t.Errorf("the description of %s names %s, its @reads %v", name, id, declared)
				}
			}
		}
	}
	for _, p := range patterns {
		if !used[p.ID] {
			t.Errorf("no field is read by %s (%s): add @reads to one", p.ID, p.What)
		}
	}
}
