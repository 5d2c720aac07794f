package model

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/commerce"
)

// Each declared entity is in the list of entities, and its declaration is one that can be kept.
func TestDeclaredEntities(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for n := range ast.Preorder(file) {
			if spec, ok := n.(*ast.ValueSpec); ok && !strings.HasSuffix(name, "_test.go") && strings.HasPrefix(spec.Names[0].Name, "Entity") {
				declared++
			}
		}
	}
	if listed := len(Entities()); declared != listed {
		t.Errorf("the package declares %d entities, but the list of entities has %d: run `go generate ./...`", declared, listed)
	}
	for _, problem := range problemsOf(Entities()) {
		t.Error(problem)
	}
}

// problemsOf describes what is wrong with the declarations of entities.
func problemsOf(all []*Entity) (problems []string) {
	for i, e := range all {
		add := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("entity %s: ", e.Name)+fmt.Sprintf(format, args...))
		}
		for _, other := range all[:i] {
			if other.Name == e.Name {
				add("another entity has the same name")
			}
			if overlap(e.PK, other.PK) && overlap(e.SK, other.SK) {
				add("a record can have the same primary key as a record of entity %s: change a literal part of %s %s", other.Name, e.PK, e.SK)
			}
		}
		if e.PK == "" || e.SK == "" || (e.IndexPK == "") != (e.IndexSK == "") {
			add("declare PK and SK, and either both or none of IndexPK and IndexSK")
		}
		if (e.Sharded && (e.Kind != Sum || len(e.PK.Placeholders()) > 0) || e.Optional) && e.IndexPK == "" {
			add("a record without index keys is neither Sharded nor Optional, except a Sum with a constant PK")
		}
		if (e.Kind == Base || e.Kind == Sum) != (e.Of == nil) {
			add("set Of for a Copy, Claim, Latest or Share, and only for these kinds")
			continue
		}
		if e.Kind == Copy && (e.Of.Kind == Copy || e.codec != nil) {
			add("a Copy follows an entity that is not a Copy, and has the codec of this entity")
			continue
		}
		if e.Kind == Claim && (len(e.PK.Placeholders()) != 1 || e.SK != metadataSK || len(e.Of.PK.Placeholders()) != 1 || len(e.Of.SK.Placeholders()) > 1 || e.codec != nil) {
			add("a Claim has one placeholder in PK, SK %s, and no codec. It follows an entity with one placeholder in PK, and at most one in SK", metadataSK)
			continue
		}
		if e.Kind == Claim && !slices.ContainsFunc(AttributesOf(e.Of), func(a Attribute) bool { return a.Name == e.ClaimedAttribute() }) {
			add("the claimed attribute %s is no attribute of entity %s", e.ClaimedAttribute(), e.Of.Name)
		}
		if e.Owner != 0 && !slices.Contains(e.PK.Placeholders(), "customerId") {
			add("records with an Owner have the placeholder {customerId} in PK")
		}
		attributes := AttributesOf(e)
		if attributes == nil {
			continue
		}
		find := func(name string) int {
			return slices.IndexFunc(attributes, func(a Attribute) bool { return a.Name == name })
		}
		for _, name := range e.Omitted {
			if find(name) < 0 && name != AttrStockRevision {
				add("Omitted contains %s, but entity %s has no such attribute", name, e.Of.Name)
			}
		}
		for _, template := range []KeyTemplate{e.PK, e.SK, e.IndexPK, e.IndexSK} {
			for _, placeholder := range template.Placeholders() {
				name := e.AttributeForPlaceholder(placeholder)
				inIndex := template == e.IndexPK || template == e.IndexSK
				switch at := find(name); {
				case e.Kind == Claim && template == e.PK:
				case at < 0:
					add("the key %s contains {%s}, but the records have no attribute %s", template, placeholder, name)
				case slices.Contains(e.Omitted, name):
					add("the key %s contains {%s}, but the Copy omits the attribute %s", template, placeholder, name)
				case attributes[at].Optional && !(inIndex && (e.Kind == Copy || e.Optional)):
					add("the key %s contains {%s}, but records may lack the attribute %s: set Optional, or declare a Copy with this key", template, placeholder, name)
				}
			}
		}
	}
	return problems
}

// overlap reports whether two templates can build the same key.
func overlap(a, b KeyTemplate) bool {
	as, bs := strings.Split(string(a), "#"), strings.Split(string(b), "#")
	return len(as) == len(bs) && !slices.ContainsFunc(as, func(part string) bool {
		other := bs[0]
		bs = bs[1:]
		value := strings.HasPrefix(part, "{") && other != "" || strings.HasPrefix(other, "{") && part != ""
		return part != other && !value
	})
}

// A declaration that cannot be kept is refused, and the message names what to change.
func TestRefusedDeclarations(t *testing.T) {
	declare := func(change func(*Entity)) []*Entity {
		e := Entity{Name: "label", PK: "LABEL#{name}", SK: metadataSK, codec: codecFor[commerce.Warehouse](warehouseAttributes)}
		change(&e)
		return []*Entity{&EntityWarehouse, &EntityCustomer, &EntityCustomerRep, &e}
	}
	for want, change := range map[string]func(*Entity){
		"":                                    func(*Entity) {},
		"another entity has the same name":    func(e *Entity) { e.Name = EntityWarehouse.Name },
		"same primary key":                    func(e *Entity) { e.PK = "WAREHOUSE#{name}" },
		"either both or none":                 func(e *Entity) { e.IndexPK = "LABELS" },
		"neither Sharded nor Optional":        func(e *Entity) { e.Sharded = true },
		"set Of for":                          func(e *Entity) { e.Of = &EntityWarehouse },
		"only for these kinds":                func(e *Entity) { e.Kind = Latest },
		"an entity that is not a Copy":        func(e *Entity) { e.Kind, e.Of, e.codec = Copy, &EntityCustomerRep, nil },
		"has the codec of this":               func(e *Entity) { e.Kind, e.Of = Copy, &EntityWarehouse },
		"placeholder {customerId}":            func(e *Entity) { e.Owner = access.PermissionReadOrder },
		"one placeholder in PK":               func(e *Entity) { e.Kind, e.Of, e.codec, e.PK = Claim, &EntityWarehouse, nil, "LABELS" },
		"the claimed attribute color":         func(e *Entity) { e.Kind, e.Of, e.codec, e.PK = Claim, &EntityWarehouse, nil, "LABEL#{color}" },
		"have no attribute color":             func(e *Entity) { e.IndexPK, e.IndexSK = "COLOR#{color}", "LABEL#{name}" },
		"Omitted contains color":              func(e *Entity) { e.Kind, e.Of, e.codec, e.Omitted = Copy, &EntityWarehouse, nil, []string{"color"} },
		"the Copy omits the attribute name":   func(e *Entity) { e.Kind, e.Of, e.codec, e.Omitted = Copy, &EntityWarehouse, nil, []string{"name"} },
		"records may lack the attribute note": func(e *Entity) { e.codec, e.PK = EntityOrderEvent.codec, "LABEL#{note}" },
	} {
		problems := problemsOf(declare(change))
		if want == "" && len(problems) > 0 || want != "" && !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, "entity ") && strings.Contains(p, want) }) {
			t.Errorf("the problems are %q, want %q", problems, want)
		}
	}
}
