package bound

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// loadSchema returns the schema with all its directives.
func loadSchema(t *testing.T) *ast.Schema {
	t.Helper()
	var sources []*ast.Source
	for _, name := range []string{"../../deploy/subgraph.graphqls", "../../schema/federation.graphqls"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: name, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
}

// definedTypes returns the types that the schema defines, sorted by name.
func definedTypes(schema *ast.Schema) []*ast.Definition {
	var types []*ast.Definition
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		if d := schema.Types[name]; !d.BuiltIn && !strings.HasPrefix(name, "__") {
			types = append(types, d)
		}
	}
	return types
}

// Every field that may read has an access pattern. Otherwise the bound would not include its cost.
// Fields that return records may read, except fields of types that only wrap a record.
func TestReadingFieldsHavePatterns(t *testing.T) {
	schema := loadSchema(t)
	b := newCalculator(schema, ast.Query, dynamo.NewCostBounds(1))
	for _, d := range definedTypes(schema) {
		isWrapper := strings.HasSuffix(d.Name, "Connection") || strings.HasSuffix(d.Name, "Edge") || strings.HasSuffix(d.Name, "Payload")
		if d.Kind != ast.Object || isWrapper || d == schema.Mutation || d == schema.Subscription {
			continue
		}
		for _, f := range d.Fields {
			_, isRecord := entityOf(schema.Types[f.Type.Name()])
			isRecord = isRecord && d.Name+"."+f.Name != "OrderUpdate.event" // the feed delivers the event
			reads := isRecord || strings.HasSuffix(f.Type.Name(), "Connection") || strings.HasPrefix(f.Name, "orderCount") && d.Name != "Spending" && d.Name != "DailySales" || f.Name == "spending" || f.Name == "sales" || f.Name == "quote" || f.Name == "itemCount" || f.Name == "returned" || f.Name == "canShipFrom" || f.Name == "shipped" || d.Name == "Product" && (f.Name == "totalInventory" || f.Name == "available") ||
				d.Name == "Webhook" && (f.Name == "state" || f.Name == "lag" || f.Name == "pending" || strings.HasPrefix(f.Name, "last"))
			if hasRoute := len(b.routes[d.Name+"."+f.Name]) > 0; hasRoute != reads {
				t.Errorf("%s.%s has a route: %v, but should have one: %v", d.Name, f.Name, hasRoute, reads)
			}
		}
	}
}

// Every access pattern serves a field. Each @reads refers to a pattern, arguments and a field that
// exist. The description of a field mentions only its own patterns.
func TestReadsDirectives(t *testing.T) {
	schema := loadSchema(t)
	patterns := model.AccessPatterns()
	used := map[string]bool{}
	mentioned := regexp.MustCompile(`AP\d+`)
	for _, d := range definedTypes(schema) {
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
					t.Errorf("the description of %s names the access pattern %s, but its @reads declares %v", name, id, declared)
				}
			}
		}
	}
	for _, p := range patterns {
		if !used[p.ID] {
			t.Errorf("no field is read by %s (%s): add @reads to one", p.ID, p.Description)
		}
	}
}
